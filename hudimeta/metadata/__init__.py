"""The metadata table: what a table consists of and which values lie where, kept as records in HFiles beside the table."""

from hudimeta.metadata.metadata_table import MetadataTable

__all__ = [
    "MetadataTable",
    "answers",  # what it answers about indexes, one function a question
    "bloom_filters",  # codec of a partition
    "column_stats",  # codec of a partition
    "compaction",  # compaction of the metadata table
    "completeness",  # which indexes are proven to lack no row
    "delta",  # what one commit changes
    "expression_index",  # codec of the partitions `expr_index_*`
    "files",  # codec of a partition
    "group_files",  # files and file groups, and what their names say
    "group_merges",  # the next base files of file groups
    "groups",  # a partition's newest slices
    "index_definitions",  # which indexes a table has
    "indexed_columns",  # which columns get statistics
    "indexing",  # the action `indexing` on the timeline
    "keys",  # keys of records, and where each lives
    "listing_history",  # what the listing of files rests on
    "own_instants",  # instants of what the metadata table does by itself
    "partition_stats",  # codec of a partition
    "payload",  # cells of records, and their order
    "record",  # the record's Avro schema in two layouts
    "record_index",  # codec of a partition
    "rollback",  # taking an instant back
    "secondary_index",  # codec of the partitions `secondary_index_*`
    "stated_files",  # what commits of the table state of its metadata table
    "statistics",  # statistics of files that are being written
    "strays",  # delta commits and indexes that are nobody's
    "upkeep",  # cleaning and archival of the metadata table
    "whole_records",  # records of all partitions in one shape
    "writer",  # creation, and the delta commit of every commit
]
