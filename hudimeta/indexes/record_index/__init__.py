"""The record index."""
