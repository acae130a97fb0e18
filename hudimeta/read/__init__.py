"""Reading: which slices a predicate leaves, and their rows; incremental and CDC queries."""

__all__ = [
    "blobs",  # the bytes of BLOBs
    "cdc_images",  # rows as JSON texts
    "cdc_reader",  # the changes of one commit to one file group
    "cdc_scan",  # a CDC query
    "chosen_partitions",  # the partitions that a read is limited to
    "incremental",  # incremental reads
    "native_files",  # files that any Parquet reader reads alike
    "native_slices",  # slices that Spark's own reader may read
    "nearest",  # the rows whose vectors lie nearest to others
    "noting",  # what reads filter by, noted for advice
    "planner",  # which slices a predicate leaves
    "query_notes",  # these notes as a value
    "request",  # what is asked of a table
    "scan",  # a read: planned once, then rows
    "scan_plan",  # what a scan will read
    "split",  # shares of a read for other processes
    "stream_positions",  # the commits of a table as a stream
]
