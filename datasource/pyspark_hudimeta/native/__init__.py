"""Spark's own Parquet reader over files that our planner chose: for attached sessions, and for the scans of `HudiTable`."""

__all__ = [
    "frame_scan",  # a read as a DataFrame
    "jvm",  # values of Scala
    "native_filter",  # Catalyst's filters as our predicates
    "native_table",  # one table of an attached session
    "report",  # what a scan did
    "scan_folders",  # where the manifests of scans lie
    "spark_places",  # where Spark can open files
    "staging",  # rows that Spark shall read instead
]
