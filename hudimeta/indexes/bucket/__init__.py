"""Buckets: the file group of a key follows from its hash, by a fixed number or by consistent hashing."""

__all__ = [
    "consistent_hashing",  # buckets that are stretches of a ring
    "hash_keys",  # the hash of a key
    "look_up",  # finds rows by key
    "partition_rules",  # how many buckets a partition has
    "ring_changes",  # what a clustering does to a ring
]
