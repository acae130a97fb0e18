"""File slices to rows: base files, log parts, merge rules, spilling."""

__all__ = [
    "bootstrap",  # rows whose columns lie in another table
    "copied_files",  # base files put together without being decoded
    "custom_merger",  # a function of the user's that merges
    "fold",  # a log's records to one version a key
    "kept_groups",  # parts of a base file that stay when it is written anew
    "log_damage",  # damage, or what a dead writer left
    "log_folding",  # a log as what a log compaction writes
    "log_keys",  # which log files may touch a key
    "log_parts",  # records of log blocks as columns
    "log_records",  # which blocks of a slice count
    "merge",  # a log merged over its base file
    "merge_rules",  # which version of a row wins
    "ordering",  # ordering values
    "overlay",  # what a log changes about its base file
    "projection",  # parts of columns
    "read_task",  # what a process needs to read slices
    "reader",  # rows of one slice
    "record_keys",  # the record keys that a predicate asks for
    "same_keys",  # rows of one key told apart
    "single_files",  # the files of slices one by one
    "slice_logs",  # the log files of one slice
    "slice_keys",  # keys and ordering values of one slice
    "slice_rows",  # some columns of all rows of a slice
    "stored_rows",  # base files that are written anew
]
