"""Secondary indexes: the record keys of each value of a column."""

__all__ = [
    "keep",  # keeps it in step with commits
    "skip",  # leaves files out of a read
]
