"""Bloom filters of record keys: which base files may hold a key."""

__all__ = [
    "keep",  # keeps it in step with commits
    "look_up",  # finds rows by key
    "skip",  # leaves files out of a read
]
