"""DELETE, UPDATE and MERGE that are Spark's to run, of views above all, whose refusal is put into words that help."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hudimeta.errors import UnsupportedFeature
from hudimeta.sql import Delete, Explain, MergeStatement, Update, parse, target_of
from pyspark_hudimeta.sql.catalog import Known
from pyspark_hudimeta.sql.explanation import explained_by_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["change_view", "explain_change_of_view"]

_WORDS = {Delete: "DELETE FROM", Update: "UPDATE of", MergeStatement: "MERGE INTO"}
_FORMS = {
    "DELETE": "DELETE FROM t [AS alias] [WHERE condition]",
    "UPDATE": "UPDATE t [AS alias] SET column = expression, … [WHERE condition]",
    "MERGE": "MERGE INTO t [AS alias] USING source [AS alias] ON condition WHEN … THEN …",
}
_REFUSED = re.compile(
    r"\[INTERNAL_ERROR\] Unexpected table relation"
    r"|Table `(?:unknown|hudimeta)` does not support (?:DELETE|UPDATE|MERGE)"
    r"|Table does not support deletes: hudimeta"
)
"""What Spark says of a view that cannot be changed: that it met an internal error, or that no table of no name can be."""


def change_view(session: SqlSession, text: str) -> DataFrame | None:
    """Let Spark change a view; None for what changes no view, and no table of ours in a way that only Spark reads.

    Raises:
        UnsupportedFeature: It is none that Spark can change.
        AnalysisException, of Spark: What else does not fit.
    """
    changed = _changed(session, text)
    form = _form(session, text) if changed is None else None
    if changed is None and form is None:
        return None
    try:
        return session.plain(text, session.parameters, **session.frames)
    except Exception as error:  # Spark's own, or py4j's of an internal error; Connect comes without py4j
        if _REFUSED.search(str(error)) is None:
            raise
        if changed is None:
            raise UnsupportedFeature(f"{str(form).split()[0]}, as it stands here,", f"Write {form}.") from error
        raise _refusal(session, changed) from error


def _form(session: SqlSession, text: str) -> str | None:
    """How a statement is written that is about a table of ours and is not read here; `DELETE FROM t where` has an alias."""
    name = target_of(text)
    if name is None or session.entry(name) is None:
        return None
    return next((form for verb, form in _FORMS.items() if re.search(rf"\b{verb}\b", text, re.IGNORECASE)), None)


def explain_change_of_view(session: SqlSession, statement: Explain) -> None:
    """Refuse EXPLAIN of what `change_view` refuses, where Spark shows its error as if it was a plan.

    Raises:
        UnsupportedFeature: The view is none that Spark can change.
    """
    changed = _changed(session, statement.text)
    if changed is not None and _REFUSED.search(explained_by_spark(session, statement)):
        raise _refusal(session, changed)


def _changed(session: SqlSession, text: str) -> Delete | Update | MergeStatement | None:
    statement = parse(text)
    if not isinstance(statement, (Delete, Update, MergeStatement)):
        return None
    return statement if session.catalog.known(statement.name) in (Known.VIEW, Known.TEMPORARY) else None


def _refusal(session: SqlSession, changed: Delete | Update | MergeStatement) -> UnsupportedFeature:
    name = changed.name.sql
    hint = "Change the table that the view reads, by its name or as hudimeta.`/its/folder`"
    if session.catalog.known(changed.name) is Known.VIEW:
        hint += f"; SHOW CREATE TABLE {name} shows which one that is"
    return UnsupportedFeature(f"{_WORDS[type(changed)]} the view {name}", f"{hint}.")
