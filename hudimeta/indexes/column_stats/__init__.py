"""Column statistics: bounds of columns, by file and by partition."""

__all__ = [
    "columns",  # which columns have statistics
    "keep",  # keeps it in step with commits
    "skip",  # leaves files out of a read
]
