"""Spark's own scans over files that our planner chose: the attached door, and the scans of `HudiTable`."""

__all__ = [
    "attachment",  # `attach(spark)`
    "frame_scan",  # a read as a DataFrame
    "jvm",  # values of Scala
    "scan_folders",  # where the manifests of scans lie
    "stream_batch",  # `foreachBatch`
]
