"""Mergers that a user brings: a Python function that makes one version of each row out of two.

    def keep_the_sum(older: pa.Table, newer: pa.Table) -> pa.Table:
        total = pc.add(older["qty"], newer["qty"])
        return newer.set_column(newer.schema.get_field_index("qty"), "qty", total)

It is named by the option `hudimeta.merger=package.module:keep_the_sum`. A table never names it: opening data must not run code
that the data chose.

Both tables have all columns of the table, meta columns included, in the same order, and the same number of rows: row `i` of
either is the same key. The function returns as many rows in the same order, with the same columns in any order; meta columns
count as it returns them, so start from the side whose commit time the row is to have. One more column `_hoodie_is_deleted` of
bool says which rows are gone. The function is called for many keys at once and several times for a key with several versions,
first for those in the log, oldest first, then for what became of them and the row of the base file. A compaction may happen
anywhere in between, so merging must not depend on how versions are grouped.

Deletes are settled before: a delete that is newer by the table's ordering columns, or without ordering columns the later one,
removes the row; a row after it stands alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import ConfigError
from hudimeta.formats.required_fields import cast_table

__all__ = ["MERGER_KEY", "Merger", "load_merger", "merge_versions"]

MERGER_KEY = "hudimeta.merger"
_DELETED = "_hoodie_is_deleted"
_ALLOWED = "a function as package.module:function that takes two Arrow tables and returns one"

Merger: TypeAlias = Callable[[pa.Table, pa.Table], pa.Table]
"""(older rows, newer rows) -> rows; see the head of the module."""


@lru_cache(maxsize=16)
def load_merger(name: str) -> Merger:
    """The function of a name `package.module:function`.

    Raises:
        ConfigError: No such module, no such function, or one that cannot be called.
    """
    import importlib

    module, colon, path = name.partition(":")
    if not (module.strip() and colon and path.strip()):
        raise ConfigError(MERGER_KEY, name, _ALLOWED)
    try:
        found: object = importlib.import_module(module.strip())
        for part in path.strip().split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        hint = f"{error}. Every process that reads must be able to import it, also Spark's workers."
        raise ConfigError(MERGER_KEY, name, _ALLOWED, hint) from error
    if not callable(found):
        raise ConfigError(MERGER_KEY, name, _ALLOWED, f"It is a {type(found).__name__}.")
    merger: Merger = found
    return merger


def merge_versions(name: str, older: pa.Table, newer: pa.Table) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Call a merger, and hold it to its contract.

    Args:
        name: As in the option.
        older: One version of some rows.
        newer: The version of each that was written after it, in the same order and of the same schema.

    Returns:
        The merged rows with that schema, and for each row whether it is deleted.

    Raises:
        ConfigError: The function failed, or what it returned does not fit.
    """
    try:
        merged = load_merger(name)(older, newer)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(MERGER_KEY, name, "a function that merges these rows", f"{type(error).__name__}: {error}.") from error
    if isinstance(merged, pa.RecordBatch):
        merged = pa.Table.from_batches([merged])
    if not isinstance(merged, pa.Table):
        raise ConfigError(MERGER_KEY, name, _ALLOWED, f"It returned a {type(merged).__name__}.")
    if merged.num_rows != newer.num_rows:
        allowed = f"one row for each of {newer.num_rows} keys"
        raise ConfigError(MERGER_KEY, name, allowed, f"It returned {merged.num_rows} rows.")
    return _fitted(name, merged, newer), _deleted(merged)


def _fitted(name: str, merged: pa.Table, like: pa.Table) -> pa.Table:
    missing = [column for column in like.column_names if column not in merged.column_names]
    if missing:
        raise ConfigError(MERGER_KEY, name, "all columns of the table", f"It returned none of the name {missing[0]}.")
    try:
        rows = cast_table(merged.select(like.column_names), like.schema)
    except (pa.ArrowException, ValueError) as error:
        raise ConfigError(MERGER_KEY, name, "columns of the table's types", f"{error}.") from error
    if not rows.column("_hoodie_record_key").equals(like.column("_hoodie_record_key")):
        raise ConfigError(MERGER_KEY, name, "the record keys as they were given", "It changed _hoodie_record_key or the order.")
    return rows


def _deleted(merged: pa.Table) -> npt.NDArray[np.bool_]:
    import pyarrow.compute as pc

    if _DELETED not in merged.column_names:
        return np.zeros(merged.num_rows, bool)
    deleted: npt.NDArray[np.bool_] = pc.fill_null(merged.column(_DELETED).cast(pa.bool_()), False).to_numpy()
    return deleted
