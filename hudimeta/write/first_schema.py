"""The columns of a table that has neither a schema nor a row: those of the first rows that are written to it.

A first write of a DataFrame by Apache Hudi that fails leaves such a table: its properties are there, and state no columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import pyarrow as pa

from hudimeta.commit.session import WriteSession
from hudimeta.errors import SchemaUnknown
from hudimeta.schema import normalise_schema, strip_meta_columns, table_avro_schema
from hudimeta.snapshot.table_schema import file_schema
from hudimeta.types import Operation
from hudimeta.write.creation import check_named_columns

__all__ = ["with_first_schema"]

_CREATE_SCHEMA: Final = "hoodie.table.create.schema"

R = TypeVar("R")


def with_first_schema(session: WriteSession, operation: Operation, schema: pa.Schema, write: Callable[[], R]) -> R:
    """Run a part of a write; if nothing tells the table's columns, state those of the rows, and run it again.

    Tables that tell them pay nothing for it.

    Args:
        session: Of the write.
        operation: Rows that are to be deleted tell no columns.
        schema: Of the rows.
        write: Does nothing before it asked for the table's columns.

    Raises:
        SchemaUnknown: Nothing tells the columns, and the operation deletes.
        ConfigError: The rows lack a column that the table names rows, partitions or an order by; nothing was changed.
    """
    try:
        return write()
    except SchemaUnknown:
        if operation in (Operation.DELETE, Operation.DELETE_PARTITION):
            raise
        _state(session, normalise_schema(strip_meta_columns(schema)))
    return write()


def _state(session: WriteSession, schema: pa.Schema) -> None:
    with session.lock.held():
        session.reload()
        table = session.properties
        if file_schema(table, table.load_timeline(session.storage)) is not None:
            return  # somebody else's first rows
        check_named_columns(table.record_keys, table.partition_fields, table.ordering_fields, schema)
        text = table_avro_schema(schema, table.name, create_schema=True)
        session.change_properties(lambda _: {_CREATE_SCHEMA: text})
    session.notes.append("nothing told the table's columns: they are those of these rows")
