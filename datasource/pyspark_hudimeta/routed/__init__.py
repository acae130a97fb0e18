"""Writes by Spark's executors."""

__all__ = [
    "assignment",  # rows brought to a table's columns
    "merge",  # `HudiTable.merge`
    "stream_batch",  # `foreachBatch` in an attached session
    "stream_sink",  # `writeStream` in an attached session
    "write",  # a DataFrame written by executors
]
