"""Default values of columns for rows that come without these columns: only new rows of the table get them.

A default is an expression of SQL that reads no row. It is evaluated once for a write, so that all its rows get one value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.engine.machine import now_ms
from hudimeta.errors import ConfigError, HudiError
from hudimeta.indexes.expression_index.expressions import assigned_column
from hudimeta.schema import SchemaChange
from hudimeta.table.column_defaults import column_defaults
from hudimeta.write.batch import KeyedBatch

__all__ = ["DefaultValues"]

_TODAY = re.compile(r"\s*(?:current_date|curdate)\s*(?:\(\s*\))?\s*", re.IGNORECASE)
_NOW = re.compile(r"\s*(?:current_timestamp\s*(?:\(\s*\))?|now\s*\(\s*\))\s*", re.IGNORECASE)
_HINT = "Give the rows this column, write them by SQL, or state a default with ALTER COLUMN … SET DEFAULT that is a constant."


@dataclass(frozen=True)
class DefaultValues:
    """What the new rows of a write get.

    Attributes:
        values: One row, with those columns of the table that the rows lack and that have a default value.
    """

    values: pa.Table

    @classmethod
    def of(cls, properties: Mapping[str, str], change: SchemaChange) -> DefaultValues | None:
        """Evaluate the defaults of the columns that rows lack; None where no such column has one.

        Args:
            properties: Of the table.
            change: The rows' schema beside the table's.

        Raises:
            ConfigError: A default that only Spark can evaluate.
        """
        found = {name: text for name, text in column_defaults(properties).items() if name in change.missing}
        if not found:
            return None
        fields = [change.schema.field(name) for name in found]
        return cls(pa.table([_value(field, found[field.name]) for field in fields], schema=pa.schema(fields)))

    def given_to(self, batch: KeyedBatch, new: np.ndarray[Any, Any] | None = None) -> KeyedBatch:
        """Rows with these values.

        Args:
            batch: Has null in these columns.
            new: Positions of the new rows; None for all.
        """
        is_new = np.full(len(batch), new is None)
        is_new[[] if new is None else new] = True
        rows = batch.rows
        for field in self.values.schema:
            both = pa.concat_arrays([pa.nulls(1, field.type), *self.values[field.name].chunks])
            place = rows.schema.get_field_index(field.name)
            rows = rows.set_column(place, rows.schema.field(place), both.take(pa.array(is_new.astype(np.int64))))
        return replace(batch, rows=rows)


def _value(field: pa.Field, text: str) -> pa.ChunkedArray:
    """A default value, once."""
    value: Any = text
    now = datetime.fromtimestamp(now_ms() / 1000, timezone.utc)
    if _TODAY.fullmatch(text):
        value = now.date()
    elif _NOW.fullmatch(text):
        value = now
    try:
        return assigned_column(value, field, pa.table({"": [0]}))
    except HudiError as error:
        allowed = "an expression that can be evaluated without Spark"
        raise ConfigError(f"DEFAULT of {field.name}", text, allowed, _HINT) from error
