"""The secondary index."""
