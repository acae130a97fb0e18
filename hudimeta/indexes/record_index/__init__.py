"""The record index: the file group of each record key."""

__all__ = [
    "keep",  # keeps it in step with commits
    "look_up",  # finds rows by key
    "skip",  # leaves files out of a read
]
