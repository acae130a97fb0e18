"""Statements that ask: SHOW PARTITIONS, SHOW INDEXES, DESCRIBE HISTORY and DESCRIBE DETAIL from the table's own files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.errors import AnalysisException

from hudimeta.errors import UnsupportedFeature
from hudimeta.sql import BETWEEN_WORDS, Ask, TableQuestion
from pyspark_hudimeta.arrow_types import spark_schema
from pyspark_hudimeta.plain.registration import MARKED_TYPE
from pyspark_hudimeta.sql.described import described_columns, extended, properties_of, show_create, shown_properties
from pyspark_hudimeta.sql.partitions import partitions_like
from pyspark_hudimeta.sql.session import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_hudimeta.sql.session import Entry, SqlSession

__all__ = ["answer", "described", "listed_tables", "lists_tables"]

_OWN_VIEW = "_hudimeta_"
"""How the names of temporary views begin that stand for reads in statements and in views of users."""
_LISTS_TABLES = re.compile(rf"{BETWEEN_WORDS}*show{BETWEEN_WORDS}+(?:tables|views)\b", re.IGNORECASE)

_DETAIL = (
    "format string, id string, name string, description string, location string, createdAt string, "
    "partitionColumns array<string>, numFiles bigint, sizeInBytes bigint, properties map<string, string>, "
    "tableType string, tableVersion int, recordKeys array<string>, orderingFields array<string>, indexes array<string>"
)
"""The columns of Delta's DESCRIBE DETAIL that mean something here, then those of a Hudi table."""


def answer(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    """The rows that a SHOW or DESCRIBE asks for.

    Raises:
        HudiError: The table cannot be read, or lacks what is asked for.
    """
    return _ANSWERS[ask.question](session, entry, ask)


def lists_tables(text: str) -> bool:
    """True of SHOW TABLES and SHOW VIEWS."""
    return _LISTS_TABLES.match(text) is not None


def listed_tables(session: SqlSession, text: str) -> DataFrame | None:
    """What such a statement lists, without the views that this package made; None where there are none of those."""
    frame = session.plain(text, session.parameters, **session.frames)
    name = frame.columns[1]
    own = frame[name].startswith(_OWN_VIEW)
    return None if frame.where(own).isEmpty() else frame.where(~own)


def described(session: SqlSession, text: str) -> DataFrame:
    """What DESCRIBE of anything but a table of ours says, such as a view of one: strings are called so, marked ones too.

    Raises:
        UnsupportedFeature: A partition of a table of ours, of which Spark says that there are none.
        AnalysisException, of Spark: What else is wrong.
    """
    try:
        frame = session.plain(text, session.parameters, **session.frames)
    except AnalysisException as error:
        if "PARTITION_MANAGEMENT_IS_UNSUPPORTED" not in str(error):
            raise
        hint = "SHOW PARTITIONS lists those of a hudimeta table, hudi_filesystem_view their files."
        raise UnsupportedFeature("DESCRIBE … PARTITION of a table whose partitions the catalog does not keep", hint) from error
    kind = "data_type" if "data_type" in frame.columns else "info_value"  # the latter of DESCRIBE of one column
    rows = [row.asDict() for row in frame.collect()] if kind in frame.columns else []
    if not any(MARKED_TYPE.search(row[kind] or "") for row in rows):
        return frame
    shown = [row | {kind: MARKED_TYPE.sub("string", row[kind])} if row[kind] else row for row in rows]
    return session.rows([tuple(row.values()) for row in shown], ", ".join(f"{name} string" for name in frame.columns))


def _partitions(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    table = opened(session, entry)
    is_flat = not table.properties.partition_fields and not ask.partition  # none are there, as Apache Hudi shows
    paths = [] if is_flat else partitions_like(session, entry, table, ask.partition)
    return session.rows([(path,) for path in paths], "partition string")


def _indexes(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    found = opened(session, entry).indexes.list().to_pylist()
    rows = [(one["name"], one["type"], ",".join(one["columns"])) for one in found]
    return session.rows(rows, "index_name string, index_type string, col_name string")


def _history(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    history = opened(session, entry).history(ask.limit)
    return session.spark.createDataFrame(history, spark_schema(history.schema))


def _detail(session: SqlSession, entry: Entry, ask: Ask) -> DataFrame:
    table = opened(session, entry)
    properties, snapshot = table.properties, table.snapshot()
    slices = snapshot.slices()
    logs = pc.list_flatten(slices["log_sizes"])
    row = (
        "hudimeta",
        properties.get("hoodie.table.checksum"),
        ".".join(session.full_parts(entry.name)),
        entry.comment,
        entry.location,
        entry.created or None,
        list(properties.partition_fields),
        pc.count(slices["base_file"]).as_py() + len(logs),
        (pc.sum(slices["base_size"]).as_py() or 0) + (pc.sum(logs).as_py() or 0),
        properties_of(session, entry),
        properties.type.value,
        properties.version,
        list(properties.record_keys),
        list(properties.ordering_fields),
        sorted(properties.metadata_partitions),
    )
    return session.rows([row], _DETAIL)


_ANSWERS: dict[TableQuestion, Callable[[SqlSession, Entry, Ask], DataFrame]] = {
    TableQuestion.CREATE: show_create,
    TableQuestion.PROPERTIES: shown_properties,
    TableQuestion.COLUMNS: described_columns,
    TableQuestion.EXTENDED: extended,
    TableQuestion.PARTITIONS: _partitions,
    TableQuestion.INDEXES: _indexes,
    TableQuestion.HISTORY: _history,
    TableQuestion.DETAIL: _detail,
}
