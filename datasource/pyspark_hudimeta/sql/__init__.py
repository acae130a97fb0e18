"""Statements of SQL that change tables, in an attached session."""
