"""Buckets: the file group of a key follows from its hash, by a fixed number or by consistent hashing."""
