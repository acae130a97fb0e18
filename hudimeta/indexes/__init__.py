"""Indexes: finding rows, leaving files out, keeping each in step with commits; one package a kind."""

__all__ = [
    "allowed",  # which indexes a reader may use
    "apart",  # indexes that tasks write
    "bloom_filters",  # a kind
    "bucket",  # a kind, of writes only
    "built_meanwhile",  # indexes that were built while a write was under way
    "choice",  # which index a write uses
    "column_stats",  # a kind
    "decisions",  # why each file of a plan is read or not
    "expression_index",  # a kind
    "facts",  # what indexes must know of the rows of a new base file
    "log_facts",  # the same of a new log file
    "lost_definitions",  # indexes that must have a definition and have none
    "plan",  # what an index to make is
    "planned",  # which indexes a new table gets
    "proof",  # may an index be believed about rows that it does not know?
    "protocol",  # what a commit tells an index, and what the index makes of it
    "pruning",  # which partitions and slices can hold a row
    "record_index",  # a kind
    "record_window",  # the record keys of the last days alone, of writes only
    "registry",  # every kind, one line each
    "scan_report",  # ScanReport
    "secondary_index",  # a kind
    "simple",  # no index: keys are looked for in files
    "skipping",  # the indexes that a read asks, in their order
    "tagging",  # which rows of a batch are in the table, and where
    "written_file",  # what the writer of a file hands to the coordinator
]
