"""EXPLAIN of what runs: of queries with their native scans, and of statements that change rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hudimeta.sql import (
    AlterEntry,
    AlterTable,
    Analyze,
    Ask,
    CallProcedure,
    CreateLike,
    CreateTable,
    Delete,
    Explain,
    Insert,
    MergeStatement,
    Partitions,
    PartitionVerb,
    SetTableProperties,
    Statement,
    TableName,
    Update,
)
from pyspark_hudimeta.sql.calling import procedure_of
from pyspark_hudimeta.sql.changes import explained
from pyspark_hudimeta.sql.insertion import explained_insert
from pyspark_hudimeta.sql.queries import may_exchange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = ["explain", "explain_call", "explain_creation", "explain_query", "explained_by_spark", "reads_rows"]

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
        case _:
            return _without_plan(session, _words(statement), entry.name)
    head = f"== hudimeta {word} of {session.full_name(entry.name)}: these rows in one commit, written by Spark's tasks =="
    return session.rows([(f"{head}\n{text}",)], _PLAN)


def explain_creation(session: SqlSession, statement: CreateTable | CreateLike, mode: str) -> DataFrame | None:
    """What is shown of CREATE TABLE: how the rows of its query are computed; None for a table that is none of ours."""
    if statement.provider != "hudimeta" and (statement.provider or session.entry(_source(statement)) is None):
        return None
    query = statement.query if isinstance(statement, CreateTable) else None
    if query is None:
        return _without_plan(session, "CREATE TABLE", statement.name)
    head = f"== hudimeta CREATE TABLE AS SELECT of {session.full_name(statement.name)}: these rows in one commit =="
    return session.rows([(f"{head}\n{session.explained(session.query(query), mode)}",)], _PLAN)


def _source(statement: CreateTable | CreateLike) -> TableName:
    return statement.source if isinstance(statement, CreateLike) else statement.name


def _without_plan(session: SqlSession, words: str, name: TableName) -> DataFrame:
    return session.rows([(f"== hudimeta {words} of {session.full_name(name)}: {_NO_PLAN} ==",)], _PLAN)


def _words(statement: Statement) -> str:
    """The words that a statement begins with."""
    match statement:
        case Ask():
            return statement.question.value
        case Partitions():
            return "MSCK REPAIR TABLE" if statement.verb is PartitionVerb.ADD and not statement.given else statement.verb.value
        case Analyze():
            return "ANALYZE TABLE"
        case AlterTable() | AlterEntry() | SetTableProperties():
            return "ALTER TABLE"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(statement).__name__).upper()


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
