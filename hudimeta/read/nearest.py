"""The rows whose vectors lie nearest to some others: every row is looked at, the nearest are held.

Distances are those of Apache Hudi's `hudi_vector_search`, whose columns the answer has, computed in doubles.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import ConfigError
from hudimeta.formats.plain_arrays import array_of, no_rows, numpy_of
from hudimeta.read.column_names import found_column
from hudimeta.schema.hudi_types import vector_of

if TYPE_CHECKING:
    from hudimeta.slices.read_task import ReadTask

__all__ = ["DISTANCE", "QUERY_INDEX", "Metric", "Nearest", "answer_schema", "nearest_of", "nearest_rows", "vector_field"]

DISTANCE, QUERY_INDEX = "_hudi_distance", "_hudi_query_index"
_ELEMENTS = (pa.float32(), pa.float64(), pa.int8())
_BLOCK_BYTES = 8 << 20
"""So many bytes of vectors, as doubles, are at work at a time."""
_HELD = 4
"""Times k: of the rows that were the nearest so far, so many are held before the others are let go."""

Doubles = np.ndarray[Any, np.dtype[np.float64]]


class Metric(enum.Enum):
    """What is taken for the distance of two vectors."""

    COSINE = "cosine"
    """1 - cos(a, b), from 0 to 2; 1 for a vector of zeros."""
    L2 = "l2"
    DOT_PRODUCT = "dot_product"
    """-(a · b), so that the nearest has the least."""

    @classmethod
    def named(cls, word: str) -> Metric:
        """The metric by any of its names. Raises ConfigError."""
        name = _ALSO.get(word.strip().lower(), word.strip().lower())
        if name not in {metric.value for metric in cls}:
            raise ConfigError("metric", word, "cosine, l2 (euclidean) or dot_product (inner_product)")
        return cls(name)

    def between(self, vectors: Doubles, query: Doubles) -> Doubles:
        """Distances of some vectors, one a row, to one."""
        if self is Metric.L2:
            lengths: Doubles = np.linalg.norm(vectors - query, axis=1)
            return lengths
        products: Doubles = vectors @ query
        if self is Metric.DOT_PRODUCT:
            return -products
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
        with np.errstate(invalid="ignore", over="ignore"):
            cosines: Doubles = np.divide(products, lengths, out=np.zeros_like(products), where=lengths != 0)
        return (1 - cosines).clip(0, 2)


_ALSO = {"euclidean": "l2", "inner_product": "dot_product"}


@dataclass(frozen=True)
class Nearest:
    """What is looked for, and in what rows. Make one with `nearest_of`.

    Attributes:
        column: Of the vectors.
        queries: One a row.
        k: Rows for each.
        metric: What the distance is.
        schema: Columns of the answer: those of the rows but for the vectors, the number of the query where there may be
            several, the distance.
    """

    column: str
    queries: Doubles
    k: int
    metric: Metric
    schema: pa.Schema

    def rows(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        """The nearest rows to each query, the nearest first.

        Args:
            batches: All rows; those without a vector are left out.

        Returns:
            Columns of `schema`.

        Raises:
            ConfigError: A row's vector has another length than those that are looked for, or no number in a place.
        """
        kept = [_Held(self.k) for _ in self.queries]
        for rows, vectors in _blocks(batches, self.column, self.queries.shape[1]):
            for held, query in zip(kept, self.queries, strict=True):
                held.add(rows, self.metric.between(vectors, query))
        return pa.concat_tables(self._answer(number, *held.best()) for number, held in enumerate(kept))

    def _answer(self, number: int, rows: pa.Table | None, distances: Doubles) -> pa.Table:
        if rows is None:
            return no_rows(self.schema)
        numbered = [array_of(np.full(len(rows), number))] if QUERY_INDEX in self.schema.names else []
        return pa.Table.from_arrays([*rows.columns, *numbered, array_of(distances)], schema=self.schema)


def nearest_of(schema: pa.Schema, column: str, vectors: Any, k: int, metric: str) -> Nearest:
    """What a user looks for.

    Args:
        schema: Of the rows.
        column: Its name, in any case of letters where that tells one.
        vectors: A list of numbers or a list of such lists, as Python, NumPy and Arrow have them.
        k: Rows for each.
        metric: Any name of one.

    Raises:
        ConfigError: No such column, or one without vectors; vectors that it could not hold; no rows; no such metric.
    """
    field = vector_field(schema, column)
    if k < 1:
        raise ConfigError("k", k, "a number of rows, 1 or more")
    queries, single = _queries(field, vectors)
    return Nearest(field.name, queries, k, Metric.named(metric), answer_schema(schema, field, several=not single))


def nearest_rows(
    task: ReadTask, read: Callable[[ReadTask], Iterable[pa.RecordBatch]], column: str, vectors: Any, k: int, metric: str
) -> pa.Table:
    """What a read finds. See `nearest_of` for what is raised.

    Args:
        task: What it reads; the vectors are read beside that where it does not bring them.
        read: Reads all rows.
        column: See `nearest_of`, as the others.
        vectors: What is looked for.
        k: Rows for each.
        metric: Any name of one.
    """
    if found_column(column, task.output_schema)[0] not in task.output_schema.names:
        task = replace(task, columns=(*task.columns, vector_field(task.table_schema, column).name))
    return nearest_of(task.output_schema, column, vectors, k, metric).rows(read(task))


def vector_field(schema: pa.Schema, column: str) -> pa.Field:
    """The column of vectors that a name means. Raises ConfigError: there is none, or it holds something else."""
    name, hint = found_column(column, schema)
    if name is None or name not in schema.names:
        raise ConfigError("column", column, f"a column of vectors among {', '.join(schema.names)}", hint)
    field = schema.field(name)
    if not pa.types.is_list(field.type) or field.type.value_type not in _ELEMENTS:
        raise ConfigError("column", f"{name} ({field.type})", "a column of vectors: lists of float, double or int8")
    return field


def answer_schema(schema: pa.Schema, field: pa.Field, *, several: bool) -> pa.Schema:
    """The columns of an answer: see `Nearest.schema`. Raises ConfigError: the rows have one of that name."""
    added = [pa.field(QUERY_INDEX, pa.int64(), nullable=False)] if several else []
    added.append(pa.field(DISTANCE, pa.float64(), nullable=False))
    rows = schema.remove(schema.get_field_index(field.name))
    for name in {one.name for one in added} & set(rows.names):
        raise ConfigError("columns", name, "columns of other names than those of the answer", "Leave it out.")
    return pa.schema([*rows, *added])


def _queries(field: pa.Field, given: Any) -> tuple[Doubles, bool]:
    """Vectors to look for, one a row, as a column holds them; and whether it was one alone."""
    given = given.to_pylist() if isinstance(given, (pa.Array, pa.ChunkedArray)) else given
    vector = vector_of(field)
    length = f"of {vector.dimension} numbers" if vector is not None else "of numbers"
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    if found.ndim not in (1, 2) or found.size == 0 or (vector is not None and found.shape[-1] != vector.dimension):
        raise ConfigError("vectors", given, f"a list {length}, or a list of such lists")
    kind = field.type.value_type.to_pandas_dtype()
    with np.errstate(over="ignore", invalid="ignore"):
        held = found.astype(kind).astype(np.float64)
    if kind is np.int8 and not np.array_equal(held, found):
        raise ConfigError("vectors", given, f"whole numbers from -128 to 127, as {field.name} holds them")
    return np.atleast_2d(held), found.ndim == 1


class _Held:
    """The nearest rows so far, and some that were."""

    def __init__(self, k: int) -> None:
        self._k, self._rows, self._distances = k, list[pa.Table](), list[Doubles]()

    def add(self, rows: pa.Table, distances: Doubles) -> None:
        chosen = _least(distances, self._k)
        self._rows.append(rows.take(array_of(chosen)))
        self._distances.append(distances[chosen])
        if sum(map(len, self._distances)) > _HELD * self._k:
            best, far = self.best()
            self._rows, self._distances = [] if best is None else [best], [far]

    def best(self) -> tuple[pa.Table | None, Doubles]:
        """Rows and distances, the nearest first; of equal ones the first that came."""
        if not self._rows:
            return None, np.empty(0)
        distances = np.concatenate(self._distances)
        chosen = np.argsort(distances, kind="stable")[: self._k]
        return pa.concat_tables(self._rows).take(array_of(chosen)), distances[chosen]


def _least(distances: Doubles, k: int) -> np.ndarray[Any, Any]:
    """Places of the k least, as they came; what is no number is the greatest."""
    if len(distances) <= k:
        return np.arange(len(distances))
    return np.sort(np.argpartition(distances, k - 1)[:k])


def _blocks(batches: Iterable[pa.RecordBatch], column: str, dimension: int) -> Iterator[tuple[pa.Table, Doubles]]:
    """Rows that have a vector, without it, and their vectors."""
    size = max(1, _BLOCK_BYTES // (8 * dimension))
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            rows = pa.Table.from_batches([batch.slice(start, size)])
            rows = rows.filter(pc.is_valid(rows.column(column)))
            if len(rows):
                lists = rows.column(column).combine_chunks()
                yield rows.drop_columns([column]), _vectors(lists, dimension, column)


def _vectors(lists: pa.ListArray, dimension: int, column: str) -> Doubles:
    lengths = pc.list_value_length(lists)
    if not pc.all(pc.equal(lengths, dimension)).as_py():
        other = next(n for n in lengths.to_pylist() if n != dimension)
        expected = f"as long as those of {column}, of which one has {other}"
        raise ConfigError("vectors", f"{dimension} numbers", expected, "A column of the type VECTOR(n) has one length.")
    flat = lists.flatten()
    if flat.null_count:
        hint = "Leave out rows with such a list by a predicate."
        raise ConfigError("column", column, "a column of vectors without nulls in them", hint)
    found: Doubles = numpy_of(flat).astype(np.float64).reshape(len(lists), dimension)
    return found
