"""Statements of SQL that change tables, in an attached session."""

__all__ = [
    "definition",  # CREATE, ALTER and DROP TABLE
    "insertion",  # INSERT
    "session",  # the session, its catalog, its own `sql`
    "statements",  # what runs here, and what in Spark
]
