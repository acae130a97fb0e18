"""An index of the record keys of the last days alone (RFC-8, future improvements), kept beside the metadata table.

Apache Hudi prunes its reads by a partition `record_index`, so an index that knows some keys only must not be one. It stands in
`.hoodie/.aux/hudimeta/record_window`, which Hudi does not look at, and is derived: a segment says of which files it is, and
counts for just those. What another writer, a rollback or a dead process did is found by that, and read from the files.

    days.py        which day a partition is of, and where the window begins
    content.py     runs put together: which file group holds a key; merging
"""

__all__ = [
    "chains",  # which segments of runs speak of a file slice as it is now
    "folder",  # the runs of a table, and the manifest that names them
    "keep",  # what a write that was published adds
    "look_up",  # finds rows by key
    "runs",  # the format: sorted prints of keys and the file group that each is in
    "settings",  # of how many days, by what, and what becomes of older rows
    "window",  # the index of one table, opened: what runs do not cover is read from the files and added
]
