"""The rows of any query of Spark's whose vectors lie nearest to one: they come one by one, and are held as they came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

from hudimeta.errors import ConfigError
from hudimeta.read.nearest import DISTANCE, Nearest, nearest_of, vector_field
from pyspark_hudimeta.arrow_types import arrow_schema
from pyspark_hudimeta.function_calls import ROWS

__all__ = ["NearestRows", "RowSearch"]

_AT = "at"


@dataclass(frozen=True)
class RowSearch:
    """What is looked for in rows of some columns.

    Attributes:
        nearest: The search, among vectors that are numbered.
        place: Of the vectors among the columns.
        kind: Type of the vectors.
        answer: The columns without the vectors, and the distance.
    """

    nearest: Nearest
    place: int
    kind: pa.DataType
    answer: StructType

    @classmethod
    def of(cls, columns: StructType, column: str, **wanted: Any) -> RowSearch:
        """A search.

        Args:
            columns: Of the rows.
            column: Of the vectors.
            wanted: See `nearest_of`.

        Raises:
            ConfigError: Arguments that do not fit, or a column with the name of the distance.
        """
        if DISTANCE in columns.names:
            raise ConfigError("columns", DISTANCE, "columns of other names than those of the answer", "Leave it out.")
        kinds = [_arrow(one) if isinstance(one.dataType, ArrayType) else pa.field(one.name, pa.null()) for one in columns]
        field = vector_field(pa.schema(kinds), column)
        place = columns.names.index(field.name)
        rest = [*columns.fields[:place], *columns.fields[place + 1 :], StructField(DISTANCE, DoubleType(), nullable=False)]
        nearest = nearest_of(pa.schema([pa.field(_AT, pa.int64()), field]), field.name, **wanted)
        return cls(nearest, place, field.type, StructType(rest))


def _arrow(field: StructField) -> pa.Field:
    return arrow_schema(StructType([field])).field(0)


class NearestRows:
    """Holds the nearest of the rows that it is given.

    Args:
        search: What is looked for.
    """

    def __init__(self, search: RowSearch) -> None:
        self._search = search
        self._waiting: list[Any] = []
        self._best: list[tuple[float, tuple[Any, ...]]] = []

    def add(self, row: Any) -> None:
        """One more row."""
        if row[self._search.place] is not None:
            self._waiting.append(row)
        if len(self._waiting) == ROWS:
            self._weigh()

    def _weigh(self) -> None:
        if not self._waiting:
            return
        nearest, place = self._search.nearest, self._search.place
        vectors = pa.array([row[place] for row in self._waiting], self._search.kind)
        found = nearest.rows([pa.record_batch({_AT: pa.array(range(len(vectors))), nearest.column: vectors})])
        for at, distance in zip(found[_AT].to_pylist(), found[DISTANCE].to_pylist(), strict=True):
            row = tuple(self._waiting[at])
            self._best.append((distance, (*row[:place], *row[place + 1 :], distance)))
        self._best = sorted(self._best, key=itemgetter(0))[: nearest.k]
        self._waiting = []

    def best(self) -> Iterator[tuple[Any, ...]]:
        """The nearest rows without their vectors, with their distances, the nearest first."""
        self._weigh()
        return (row for _, row in self._best)
