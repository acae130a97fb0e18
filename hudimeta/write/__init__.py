"""Writes: operations over Arrow rows, file writers, and the coordinator that makes a commit visible."""
