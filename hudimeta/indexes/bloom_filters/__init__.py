"""The bloom filters."""
