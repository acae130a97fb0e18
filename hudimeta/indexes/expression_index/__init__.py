"""The expression index."""
