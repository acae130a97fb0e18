"""EXPLAIN of what runs: of queries with their native scans, and of statements that change rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hudimeta.sql import (
    CallProcedure,
    CreateIndex,
    Delete,
    DropIndex,
    Explain,
    Insert,
    MergeStatement,
    Optimize,
    RefreshIndex,
    Restore,
    Statement,
    Update,
    Vacuum,
)
from pyspark_hudimeta.sql.calling import procedure_of
from pyspark_hudimeta.sql.changes import explained
from pyspark_hudimeta.sql.insertion import explained_insert
from pyspark_hudimeta.sql.queries import may_exchange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = ["explain", "explain_call", "explain_query", "explained_by_spark", "reads_rows"]

_PLAN = "plan string"
_NO_PLAN = "done by hudimeta, without a plan of Spark's"
_QUERY = re.compile(r"\s*(?:\(|(?:select|with|from|values|table)\b)", re.IGNORECASE)


def explain(session: SqlSession, entry: Entry, statement: Statement, mode: str) -> DataFrame | None:
    """How the rows of a statement are computed that writes them in one commit; None for a statement that has none."""
    match statement:
        case Insert():
            word, text = "INSERT", explained_insert(session, entry, statement, mode)
        case Update() | Delete() | MergeStatement():
            word, text = type(statement).__name__.removesuffix("Statement").upper(), explained(session, entry, statement, mode)
        case Optimize() | Vacuum() | Restore() | CreateIndex() | DropIndex() | RefreshIndex():
            return session.rows(
                [(f"== hudimeta {_words(type(statement))} of {session.full_name(entry.name)}: {_NO_PLAN} ==",)], _PLAN
            )
        case _:
            return None
    head = f"== hudimeta {word} of {session.full_name(entry.name)}: these rows in one commit, written by Spark's tasks =="
    return session.rows([(f"{head}\n{text}",)], _PLAN)


def _words(kind: type) -> str:
    """The words that a statement of a kind begins with."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).upper()


def explain_call(session: SqlSession, statement: CallProcedure) -> DataFrame | None:
    """What is shown of CALL, which runs nothing then; None for a procedure that is none of Hudi's."""
    procedure = procedure_of(statement)
    return None if procedure is None else session.rows([(f"== hudimeta CALL {procedure.signature}: {_NO_PLAN} ==",)], _PLAN)


def reads_rows(text: str) -> bool:
    """True for a query."""
    return _QUERY.match(text) is not None


def explain_query(session: SqlSession, statement: Explain) -> DataFrame | None:
    """The plans of a query as it runs in an attached session; None for one that reads no table of ours.

    Raises:
        AnalysisException, of Spark: A query that does not fit.
    """
    if not may_exchange(statement.text) and "hudimeta" not in explained_by_spark(session, statement):
        return None
    return session.rows([(session.explained(session.query(statement.text), statement.mode),)], _PLAN)


def explained_by_spark(session: SqlSession, statement: Explain) -> str:
    """What Spark itself shows."""
    word = "" if statement.mode == "simple" else statement.mode
    shown = session.plain(f"EXPLAIN {word} {statement.text}", session.parameters, **session.frames)
    return "\n".join(row[0] for row in shown.collect())
