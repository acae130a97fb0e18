"""Bloom filters of record keys: which base files may hold a key."""
