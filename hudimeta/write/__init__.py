"""Writes: from rows to files. Operations, placement, file writers; `routed` does the same by tasks."""

__all__ = [
    "altering",  # ALTER
    "asked_indexes",  # indexes that a write's options ask for
    "base_files",  # writing base files
    "batch",  # rows made ready: checked, keyed, one row a key
    "bulk_sort",  # the order of a bulk insert
    "carried_keys",  # rows that were read from a table without key columns, and come back to it
    "combining",  # one row a key among the rows of a write
    "creation",  # creating a table
    "default_values",  # what new rows get in columns that they lack
    "duplicates",  # what an insert does with keys that are there
    "execution",  # carrying out a plan
    "first_schema",  # columns of a table that nothing tells
    "learned_keys",  # what only the stored table tells of its keys and partition paths
    "log_files",  # writing log files
    "merge_builder",  # `Table.merge`
    "merge_clauses",  # the rows that a merge makes
    "no_rows",  # writes that have nothing to do
    "opening",  # opening a table that may have to be created
    "operations",  # what each operation does
    "placement",  # where new rows go
    "partitions",  # which partitions a write names
    "routed",  # writes by tasks
    "renewed_rings",  # new file groups of buckets whose old ones a write takes out
    "row_changes",  # delete where, update where
    "rows_in",  # rows as users hand them over
    "streaming",  # batches that need not fit into memory
    "table_files",  # what the files of a table are read and written with
    "table_writer",  # rows to a table from this process
]
