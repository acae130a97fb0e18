"""Avro as Hudi uses it: container files on the timeline, bare datums in log blocks."""

__all__ = [
    "commit_metadata",  # what commits say, in both of its forms
    "container",  # object container files
    "delete_list",  # the deletes of a delete block
    "narrowed",  # some fields of a record, as a record
    "nodes",  # schemas as trees that rows are coded by
    "ordering",  # ordering values of deletes
    "rows",  # rows of log blocks
    "schemas",  # Hudi's own records
]
