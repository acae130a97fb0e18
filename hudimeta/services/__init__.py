"""Table services: each plans first, as a value that can be printed and stored, and then executes its plan."""

__all__ = [
    "advice",  # what would make reads cheaper
    "after_write",  # what is due after a write
    "archival",  # old instants leave the active timeline
    "bootstrapping",  # a table out of a dataset that is there
    "bucket_rescaling",  # other numbers of buckets for partitions
    "clean",  # files that no retained moment needs
    "clustering",  # small files into fewer ones, sorted
    "compaction",  # logs merged into new base files
    "log_compaction",  # many log blocks into one
    "in_thread",  # services in a thread of the writer's process
    "indexing",  # making, rebuilding and dropping indexes
    "maintenance",  # what is due, and all of it in the right order
    "metadata_table",  # the metadata table as a whole: made, removed, switched, counted, timed
    "partial_logs",  # partial updates merged before columns are altered
    "repair",  # what went wrong around a table put right
    "restore",  # the table as it was
    "rollback",  # one instant taken back
    "savepoints",  # moments whose files stay
    "table_type",  # copy-on-write to merge-on-read, and back
    "ttl",  # partitions that have outlived their time
    "validation",  # the metadata table held against the table
    "versions",  # moving a table to another version
]
