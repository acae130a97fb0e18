"""Spark's own scans over files that our planner chose: the attached door, and the scans of `HudiTable`."""
