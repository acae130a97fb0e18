"""Writes of any size, done by tasks: rows are laid aside where they will be needed, looked up, placed, merged and indexed."""

__all__ = [
    "computed",  # changes that a SQL engine computes
    "driver",  # the five steps
    "executors",  # whatever runs the tasks
    "merging",  # a merge by tasks
    "sources",  # where the rows come from
]
