"""Bytes to values and back: one module per file format, none of which knows what a table is."""
