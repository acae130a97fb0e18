"""Rows that were read from a table which generates its keys, and come back to it: their meta columns say which rows they are.

No other column could. As in Apache Hudi, an upsert changes such rows in place and a delete takes them out, while every other
operation makes new rows of them.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import SchemaMismatch
from hudimeta.formats.plain_arrays import single_array
from hudimeta.keys import KeyGenerator
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.types import Operation

__all__ = ["CARRIED_NOTE", "CARRYING_COLUMNS", "PATH_COLUMN", "carried_keys", "carries_keys", "check_stay"]

PATH_COLUMN = "_hoodie_partition_path"
CARRYING_COLUMNS = (KEY_COLUMN, PATH_COLUMN)
"""The meta columns that say which row of a table one is."""
CARRIED_NOTE = f"the table generates its keys: rows are those that their {KEY_COLUMN} names"


def carries_keys(generator: KeyGenerator, operation: Operation, names: Collection[str]) -> bool:
    """True when the meta columns of rows say which rows of the table they are.

    Args:
        generator: Of the table.
        operation: What is done with the rows.
        names: Of their columns.
    """
    changes = operation in (Operation.UPSERT, Operation.DELETE)
    return changes and generator.generates_keys and all(name in names for name in CARRYING_COLUMNS)


def carried_keys(rows: pa.Table) -> tuple[pa.StringArray, pa.StringArray]:
    """Keys and partition paths as rows carry them.

    Raises:
        SchemaMismatch: A row without one of them.
    """
    for name in CARRYING_COLUMNS:
        if rows[name].null_count:
            raise SchemaMismatch(
                name,
                f"null in {rows[name].null_count} rows",
                "what the row was read with, in every row",
                f"Drop {' and '.join(CARRYING_COLUMNS)} to insert the rows as new ones.",
            )
    keys, paths = (single_array(rows[name]).cast(pa.string()) for name in CARRYING_COLUMNS)
    return keys, paths


def check_stay(paths: pa.StringArray, made: pa.StringArray) -> None:
    """Raise SchemaMismatch where the columns of a row mean another partition than the one in which it lies.

    Args:
        paths: Where the rows lie.
        made: The partition paths that their columns make.
    """
    moved = pc.sum(pc.not_equal(paths, made)).as_py() or 0
    if moved:
        raise SchemaMismatch(
            PATH_COLUMN,
            f"another partition than that of the columns in {moved} rows",
            "partition columns as they were read",
            "A row with a generated key stays in its partition: delete it, then insert it without its meta columns.",
        )
