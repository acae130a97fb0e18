"""The table at one moment: its properties, timeline, schema, listing and visible slices."""

__all__ = [
    "cleaned",  # what cleaning has taken from a moment
    "column_history",  # how columns were called before
    "file_slice",  # one file slice as a value
    "listing_check",  # the metadata table's listing against storage
    "named_partitions",  # which partitions names stand for
    "opened_ahead",  # the metadata table of a far-away table, opened meanwhile
    "partition_columns",  # columns whose values the partition path states
    "planned_groups",  # file groups that pending plans take
    "schema_commits",  # the history of columns beside each write
    "snapshot",  # the table at one moment
    "table_schema",  # the columns of a table
]
