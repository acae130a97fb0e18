"""Statements that Spark does not know, where they are not written as they must be, or are about no hudimeta table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException

from hudimeta.errors import UnsupportedFeature
from hudimeta.sql import BETWEEN_WORDS, Form, TableName, form_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["not_ours"]

_S = BETWEEN_WORDS
_INTO_DIRECTORY = re.compile(
    rf"{_S}*insert{_S}+overwrite{_S}+(?:local{_S}+)?directory\b[^(]*?\busing{_S}+hudimeta\b", re.IGNORECASE
)


def not_ours(session: SqlSession, text: str) -> DataFrame | None:
    """Let Spark, with whatever extensions it has, run OPTIMIZE and the like of another table; None for other statements.

    Raises:
        UnsupportedFeature: It does not know the statement, or the table is ours and the statement is not written as it must be.
        AnalysisException, of Spark: There is no such table.
    """
    if _INTO_DIRECTORY.match(text):
        hint = "CREATE TABLE … USING hudimeta LOCATION … AS SELECT makes a table in a folder."
        raise UnsupportedFeature("INSERT OVERWRITE DIRECTORY … USING hudimeta", hint)
    form = form_of(text)
    if form is None:
        return None
    if session.entry(form.name) is not None:
        raise UnsupportedFeature(f"{form.said}, as it stands here,", f"Write {form.form}.")
    if session.is_missing(form.name):
        session.plain(f"DESCRIBE TABLE {form.name.sql}")
    if form.said.endswith("INDEX") or _describes_column(session, form):
        return None  # Spark knows these
    try:
        return session.plain(text, session.parameters, **session.frames)
    except AnalysisException as error:
        if not isinstance(error, ParseException) and not form.said.startswith("DESC"):
            raise
        hint = "SHOW TABLES lists the tables, SHOW CREATE TABLE shows the format of one, and what a view reads."
        raise UnsupportedFeature(f"{form.said} of {form.name.sql}, which is no hudimeta table,", hint) from error


def _describes_column(session: SqlSession, form: Form) -> bool:
    """True where DESCRIBE HISTORY name is about a column of a table that is called history."""
    verb, _, table = form.said.partition(" ")
    return verb.startswith("DESC") and not session.is_missing(TableName((table.lower(),)))
