"""Statements of SQL of attached sessions and of `pyspark_hudimeta.sql`: those about hudimeta tables run here, others in Spark.

A statement is looked at in three steps, each dearer than the one before and taken by fewer statements: its first word; the
table that it names, in the catalog; the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import ParseException, PySparkException

from hudimeta.config import refuse_on_write
from hudimeta.errors import UnsupportedFeature
from hudimeta.sql import (
    AlterEntry,
    AlterTable,
    Analyze,
    Ask,
    CallProcedure,
    CreateIndex,
    CreateLike,
    CreateTable,
    Delete,
    DropIndex,
    DropTable,
    Execute,
    Explain,
    Insert,
    InsertEach,
    MergeStatement,
    Optimize,
    Partitions,
    RefreshIndex,
    Restore,
    Script,
    SetOption,
    SetTableProperties,
    TableName,
    Update,
    Vacuum,
    in_types_of_spark,
    may_write,
    named_parameters,
    parse,
    source_of,
    target_of,
    texts_of,
    with_format,
    with_literals,
    without_database,
)
from pyspark_hudimeta.default_format import may_lack_format
from pyspark_hudimeta.routed.assignment import names_as_in
from pyspark_hudimeta.sql.altering import alter
from pyspark_hudimeta.sql.answers import answer, described, listed_tables, lists_tables
from pyspark_hudimeta.sql.calling import call
from pyspark_hudimeta.sql.changes import delete, merge, update
from pyspark_hudimeta.sql.definition import create, create_like, drop
from pyspark_hudimeta.sql.entries import alter_entry, check_setting, set_properties
from pyspark_hudimeta.sql.executing import execute, execute_in_spark, text_of
from pyspark_hudimeta.sql.explanation import explain, explain_call, explain_creation, explain_query, reads_rows
from pyspark_hudimeta.sql.identifiers import with_ansi_names, with_names, with_variables
from pyspark_hudimeta.sql.indexing import create_index, drop_index, refresh_index
from pyspark_hudimeta.sql.insertion import insert
from pyspark_hudimeta.sql.inserts import explain_each, has_ours, insert_each
from pyspark_hudimeta.sql.misread import not_ours
from pyspark_hudimeta.sql.partitions import change_partitions
from pyspark_hudimeta.sql.queries import exchanged_query, may_exchange
from pyspark_hudimeta.sql.registering import literals
from pyspark_hudimeta.sql.scripting import run_script
from pyspark_hudimeta.sql.session import Entry, SqlSession
from pyspark_hudimeta.sql.spark_errors import raised_by_pyspark
from pyspark_hudimeta.sql.upkeep import analyze, optimize, restore, vacuum
from pyspark_hudimeta.sql.views import change_view, explain_change_of_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hudimeta.sql import Statement

__all__ = ["run_statement"]


def run_statement(session: SqlSession, text: Any, args: Any, frames: Mapping[str, Any]) -> DataFrame | None:
    """Run a statement that changes a hudimeta table.

    Args:
        session: Where it is run; without parameters and DataFrames.
        text: The statement, as `sql` was given it.
        args: Values of its parameters, as `sql` was given them.
        frames: DataFrames that it names, as `sql` was given them.

    Returns:
        What `sql` shall return; None where the statement is Spark's.

    Raises:
        HudiError, PySparkException: The statement cannot be run; the table is as it was.
    """
    if not isinstance(text, str):
        return None
    with names_as_in(session.spark), raised_by_pyspark(session.jvm):
        return _read(session, text, args, frames)


def _read(session: SqlSession, text: str, args: Any, frames: Mapping[str, Any]) -> DataFrame | None:
    text = with_variables(session, text)
    lacking = may_lack_format(session.spark, text)
    if not may_write(text) and not may_exchange(text) and not lacking:
        return None
    text = with_ansi_names(session, text)
    named = _named(text, args)
    if named is None:
        return None
    written, parameters = named
    called = with_names(session, written, parameters)
    called = with_format(called) if lacking else called
    if parameters and may_write(called) in _OF_DEFINITIONS:
        called = with_literals(called, literals(parameters))
    written, text = called, text if called == written else called
    session = replace(session, parameters=parameters, frames=frames)
    try:
        done = _own(session, written, text) if may_write(text) else None
    except ParseException:
        _let_spark_read(session, text)
        raise
    return done if done is not None or not may_exchange(text) else exchanged_query(session, written)


def _let_spark_read(session: SqlSession, text: str) -> None:
    """Let Spark say what is wrong with a whole statement, of which it was given parts; nothing is run."""
    if may_write(text) not in _OF_SPARK or session.frames:
        return
    if session.jvm is not None:
        session.jvm.session.sessionState().sqlParser().parsePlan(text)
    else:
        session.plain(f"EXPLAIN {text}", session.parameters)


def _check_by_spark(session: SqlSession, statement: Statement | None, text: str) -> None:
    """Let Spark refuse a definition that it could not read, before any of it is done.

    Through Connect nothing reads it so, nor where a parameter has a value that is written otherwise than as a literal.
    """
    given = session.parameters or {}
    known = literals(given)
    if session.jvm is None or not isinstance(statement, _READ_BY_SPARK) or known.keys() != given.keys():
        return
    try:
        session.jvm.session.sessionState().sqlParser().parsePlan(with_literals(_in_words_of_spark(statement, text), known))
    except PySparkException as error:
        if "parameter" in str(error).lower():  # one without a value, as Spark says where it is given values
            session.plain(f"EXPLAIN {text}", session.parameters)
        raise


def _in_words_of_spark(statement: Statement | None, text: str) -> str:
    """A definition without the types that Apache Hudi adds to Spark's."""
    listed = statement.columns if isinstance(statement, CreateTable) else None
    return text if not listed else text.replace(listed, in_types_of_spark(listed)[0], 1)


def _named(text: str, args: Any) -> tuple[str, Mapping[str, Any] | None] | None:
    """The statement with named parameters; None where its parameters do not fit it."""
    if isinstance(args, (list, tuple)):
        return named_parameters(text, args)
    return (text, args) if args is None or isinstance(args, dict) else None


def _own(session: SqlSession, written: str, text: str) -> DataFrame | None:
    """Run what is ours.

    Args:
        session: The session's SQL.
        written: The statement with named parameters.
        text: The same as it was given.
    """
    word = may_write(text)
    if word in ("CREATE", "REPLACE"):
        made = parse(written)
        _check_by_spark(session, made, written)
        if isinstance(made, CreateLike):
            return create_like(session, made)
        if isinstance(made, CreateTable):
            return create(session, made)
    if word == "SET":
        setting = parse(written)
        if isinstance(setting, SetOption):
            check_setting(setting)
        return None
    called = parse(written) if word in _OF_CALLS else None
    if isinstance(called, CallProcedure):
        return call(session, called)
    if word in _CALLS:
        return None
    if word == "EXECUTE":
        executing = parse(written)
        return _executed(session, executing) if isinstance(executing, Execute) else None
    if word == "BEGIN":
        scripted = parse(written)
        return _scripted(session, scripted) if isinstance(scripted, Script) else None
    if word == "EXPLAIN":
        explaining = parse(written)
        return _explained(session, explaining) if isinstance(explaining, Explain) else None
    if word == "SHOW" and lists_tables(text):
        return listed_tables(session, text)
    several = parse(written) if word in ("FROM", "WITH") else None
    if isinstance(several, InsertEach):
        return insert_each(session, several)
    found = _about(session, written)
    if found is None:
        if word in ("DELETE", "UPDATE", "MERGE", "WITH"):
            return change_view(session, written)
        done = not_ours(session, written)
        return described(session, written) if done is None and word in ("DESCRIBE", "DESC") else done
    _check_by_spark(session, found[1], written)
    return _run(session, *found, text)


_CALLS = ("CALL", "RUN", "SCHEDULE")
"""First words of calls of procedures and of nothing else."""
_OF_CALLS = (*_CALLS, "SHOW")
_OF_DEFINITIONS = ("CREATE", "REPLACE", "ALTER", "SHOW", "DESCRIBE", "DESC", "OPTIMIZE", "VACUUM")
"""First words of statements in which parameters stand in other places than in expressions."""
_OF_SPARK = ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "FROM")
"""First words of statements that Spark can read as a whole."""
_READ_BY_SPARK = (CreateTable, CreateLike, AlterTable, AlterEntry, SetTableProperties, Partitions, DropTable, Analyze)
"""Definitions whose frame alone is read here, and all of which Spark knows."""


def _executed(session: SqlSession, statement: Execute) -> DataFrame | None:
    """Run what EXECUTE IMMEDIATE names; None where that is Spark's."""
    text = text_of(session, statement)
    if text is None:
        return None
    if _is_ours(session, text):
        return execute(session, statement, text)
    return None if statement.literal is not None else execute_in_spark(session, statement, text)


def _scripted(session: SqlSession, script: Script) -> DataFrame | None:
    """Run a script; None where none of its statements is ours."""
    if not _has_ours(session, script):
        return None
    _check_script(session, script)
    return run_script(session, script)


def _check_script(session: SqlSession, script: Script) -> None:
    """Let Spark refuse a script with a statement that it could not read before the first is run, as its own interpreter does.

    Nothing reads it so where a parameter has a value that is written otherwise than as a literal.
    """
    given = session.parameters or {}
    known = literals(given)
    if session.frames or known.keys() != given.keys():
        return
    for text in texts_of((script.body,)):
        if isinstance(parse(text), (Insert, Update, Delete, type(None))):
            _check_readable(session, with_literals(text, known))


def _check_readable(session: SqlSession, text: str) -> None:
    """Let Spark refuse a statement that it cannot read. Raises ParseException."""
    if session.jvm is not None:
        session.jvm.session.sessionState().sqlParser().parsePlan(text)
        return
    try:
        session.plain(f"EXPLAIN {text}")
    except ParseException:
        raise
    except PySparkException:
        return  # it can be read; what it names may be made by a statement before it


def _has_ours(session: SqlSession, script: Script) -> bool:
    return any(_is_ours(session, text) for text in texts_of((script.body,)))


def _is_ours(session: SqlSession, text: str) -> bool:
    """True of a statement that does not go to Spark as it is, and of one whose text only its run makes."""
    word = may_write(text)
    statement = parse(text) if word in ("EXECUTE", "EXPLAIN", "BEGIN", "FROM", "WITH", "SHOW") else None
    match statement:
        case Execute():
            return statement.literal is None or _is_ours(session, statement.literal)
        case Explain():
            return _is_ours(session, statement.text)
        case Script():
            return _has_ours(session, statement)
        case InsertEach():
            return has_ours(session, statement)
        case CallProcedure():
            return True
    if word in ("CREATE", "REPLACE", *_CALLS) or may_exchange(text) or may_lack_format(session.spark, text):
        return True
    return _about(session, text) is not None


def _about(session: SqlSession, text: str) -> tuple[Entry, Statement] | None:
    """The table that a statement is about, and the statement; None where it is none of ours."""
    name = target_of(text)
    entry = session.entry(name) if name is not None else None
    statement = _parsed(session, text, name) if entry is not None and name is not None else None
    return (entry, statement) if entry is not None and statement is not None else None


def _explained(session: SqlSession, statement: Explain) -> DataFrame | None:
    explained = parse(statement.text)
    if isinstance(explained, InsertEach):
        return explain_each(session, explained, statement.mode)
    found = _about(session, statement.text)
    if found is not None:
        return explain(session, *found, statement.mode)
    if isinstance(explained, CallProcedure):
        return explain_call(session, explained)
    if isinstance(explained, (CreateTable, CreateLike)):
        return explain_creation(session, explained, statement.mode)
    explain_change_of_view(session, statement)
    return explain_query(session, statement) if reads_rows(statement.text) else None


def _parsed(session: SqlSession, text: str, name: TableName) -> Statement | None:
    """The statement, with the tables that it changes and reads by their bare names where it names their columns."""
    text = _with_bare_names(session, text, name)
    statement = parse(text)
    source = source_of(statement) if isinstance(statement, MergeStatement) else None
    return statement if source is None else parse(_with_bare_names(session, text, source))


def _with_bare_names(session: SqlSession, text: str, name: TableName) -> str:
    """A statement in which columns of a table are not named by its database and catalog, whether they name it or not."""
    if name.is_folder or not re.search(rf"\.\s*`?{re.escape(name.table)}`?\s*\.", text, re.IGNORECASE):
        return text
    catalog, database, table = session.full_parts(name)
    for parts in ((catalog, database, table), (database, table)):
        text = without_database(text, TableName(parts))
    return text


def _run(session: SqlSession, entry: Entry, statement: Statement, text: str) -> DataFrame | None:
    if isinstance(statement, (Insert, Update, Delete, MergeStatement)):
        refuse_on_write(entry.options)
    said = _OF_THE_CATALOG.get(type(statement))
    if entry.name.is_folder and said is not None:
        hint = "CREATE TABLE … USING hudimeta LOCATION gives the folder a name."
        raise UnsupportedFeature(f"{said} by the name of a folder", hint)
    if isinstance(statement, AlterTable):
        return alter(session, entry, statement, text)
    if isinstance(statement, AlterEntry):
        return alter_entry(session, entry, statement, text)
    if isinstance(statement, SetTableProperties):
        return set_properties(session, entry, statement, text)
    run = _RUN.get(type(statement))
    return run(session, entry, statement) if run is not None else None


_OF_THE_CATALOG = {
    AlterTable: "ALTER TABLE",
    AlterEntry: "ALTER TABLE",
    SetTableProperties: "ALTER TABLE",
    DropTable: "DROP TABLE",
}
"""Statements about what only a table of the catalog has, and how they begin."""
_RUN: Mapping[type, Callable[[SqlSession, Entry, Any], DataFrame]] = {
    Insert: insert,
    Update: update,
    Delete: delete,
    MergeStatement: merge,
    DropTable: drop,
    Ask: answer,
    CreateIndex: create_index,
    DropIndex: drop_index,
    RefreshIndex: refresh_index,
    Partitions: change_partitions,
    Optimize: optimize,
    Vacuum: vacuum,
    Restore: restore,
    Analyze: analyze,
}
"""What runs a statement about a table, by its kind."""
