"""The files."""
