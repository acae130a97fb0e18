"""The plain door: the Python data source that Spark finds by its name."""

__all__ = [
    "commit_report",  # what the last write of a DataFrame did
    "given_paths",  # the paths of a read, and the tables that they lead to
    "listed_slices",  # slices that a read has to read
    "location",  # which folder a statement means
    "registration",  # tables of Spark's catalog
    "source",  # the data source that Spark finds by its name
    "stream_reader",  # `readStream`
    "stream_writer",  # `writeStream`
    "streams",  # tables of ours as streams of an attached session
    "target",  # which table a read or a write means
    "worker_heap",  # what a Python worker has loaded
    "writer",  # the plain write's Spark side
]
