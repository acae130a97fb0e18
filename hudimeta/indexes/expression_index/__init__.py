"""Expression indexes: bounds, or a bloom filter, of an expression over a column, by file."""

__all__ = [
    "expressions",  # new values of columns
    "facts",  # what it records of one file
    "keep",  # keeps it in step with commits
    "matching",  # which expression it is about
    "skip",  # leaves files out of a read
]
