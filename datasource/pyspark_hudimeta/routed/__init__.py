"""Writes by Spark's executors."""
