"""The attached door: Spark's own scans over files that our planner chose."""
