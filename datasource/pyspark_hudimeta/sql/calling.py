"""CALL: its arguments are computed by Spark, its table is found in the catalog or at a path, and the procedure runs here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from hudimeta.errors import ConfigError, TableNotFound
from hudimeta.procedures import PROCEDURES, Procedure, bind, find, help_text, refuse_unless_runs
from pyspark_hudimeta.hudi_table import HudiTable
from pyspark_hudimeta.procedures import frame_of, run_bootstrap
from pyspark_hudimeta.sql.session import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hudimeta.sql import CallProcedure
    from pyspark_hudimeta.sql.session import SqlSession

__all__ = ["call", "procedure_of"]

_SCHEMAS = ((), ("system",), ("spark_catalog", "system"))
"""What may stand before a procedure's name."""
_MAKES_TABLE = "run_bootstrap"


def call(session: SqlSession, statement: CallProcedure) -> DataFrame | None:
    """Run a procedure.

    Returns:
        What it shows; None where the procedure is none of Hudi's, and its name like none of them.

    Raises:
        HudiError: A slip in its name or its arguments, no such table, or what the procedure raises.
    """
    procedure = procedure_of(statement)
    if procedure is None:
        return None
    arguments = _arguments(session, procedure, statement)
    refuse_unless_runs(procedure, session=True)
    named = [p.name for p in procedure.parameters if p.names_table]
    if not named:
        return frame_of(session.spark, procedure, procedure.table([(help_text(arguments["cmd"]),)]))
    if procedure.name == _MAKES_TABLE:
        return run_bootstrap(session.spark, arguments, session.place)
    tables = [_table(session, procedure, one) for one in _by_table(procedure, arguments)]
    left_out = named if procedure.takes_table else ()
    given = {name: value for name, value in arguments.items() if name not in left_out and value is not None}
    done = [table.call(procedure.name, **given) for table in tables]
    return reduce(lambda above, below: above.unionAll(below), done)


def _by_table(procedure: Procedure, arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The arguments once for each table that the call names."""
    text = arguments.get("table")
    if not procedure.takes_several or text is None:
        return [arguments]
    names = [name for part in text.split(",") if (name := part.strip())]
    return [{**arguments, "table": name} for name in names] or [arguments]


def procedure_of(statement: CallProcedure) -> Procedure | None:
    """The procedure that a call names; None where it is none of Hudi's, and its name like none of them.

    Raises:
        ConfigError: A slip in its name.
    """
    *schema, name = (part.lower() for part in statement.name)
    if tuple(schema) not in _SCHEMAS:
        return None
    return find(name) if difflib.get_close_matches(name, PROCEDURES, 1, 0.8) else None


def _arguments(session: SqlSession, procedure: Procedure, statement: CallProcedure) -> dict[str, Any]:
    """The values of the call's expressions, which may be no columns, as the procedure takes them."""
    texts = [*statement.positional, *(text for _, text in statement.named)]
    row = session.query(f"SELECT {', '.join(texts)}").collect()[0] if texts else ()
    values = list(row)
    count = len(statement.positional)
    named: dict[str, Any] = {}
    for (name, _), value in zip(statement.named, values[count:], strict=True):
        if name.lower() in named:
            raise ConfigError(name, value, f"one value for {name}")
        named[name.lower()] = value
    return bind(procedure, values[:count], named, on_table=False)


def _table(session: SqlSession, procedure: Procedure, arguments: Mapping[str, Any]) -> HudiTable:
    """The table that the call names, by its name in the catalog or by its folder."""
    name = arguments.get("table") if procedure.takes_table else None
    path = arguments.get("path") if any(p.names_table and p.name == "path" for p in procedure.parameters) else None
    if name is not None and "/" not in name:
        return _named(session, name)
    folder = name if name is not None else path
    if folder is None:
        raise ConfigError("table", None, "the name of a table, or its folder as path", f"Call {procedure.signature}.")
    return _at(session, session.place(folder), below=not procedure.takes_table)


def _named(session: SqlSession, name: str) -> HudiTable:
    entry = session.entry_named(name)
    if entry is None:
        hint = "SHOW TABLES lists the tables of a database; a folder is named as path => '…'."
        raise ConfigError("table", name, "a table of the catalog that was made or registered USING hudimeta", hint)
    return opened(session, entry)


def _at(session: SqlSession, location: str, *, below: bool) -> HudiTable:
    """The table in a folder, or around it where the call may name a folder of a table."""
    tried = location
    while True:
        try:
            return HudiTable(session.spark, tried, session.settings)
        except TableNotFound:
            above = tried.rpartition("/")[0]
            if not below or not above.rpartition("/")[0]:
                return HudiTable(session.spark, location, session.settings)
            tried = above
