"""Keeping indexes in step with the table: one module for each kind of metadata partition, found by `registry.maintainer_of`."""
