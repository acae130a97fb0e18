"""The table lock: what a writer holds while it publishes, the same lock as Apache Hudi's of the same class name."""

__all__ = [
    "chosen",  # the lock that a table's options mean
    "fence",  # a lock that knows how long ago it was ours for certain
    "protocol",  # what a lock does, and how long one waits for it
]
