"""Smallest and greatest value and null count of every column, computed from the rows themselves.

Not from a footer: footers may cut long texts, and pyarrow's leave NaN out, although Spark orders NaN above every number, so
such a maximum would lose rows of `x > 5`. Here NaN counts as the greatest value; a smallest 0.0 is -0.0 and a greatest -0.0 is
0.0, since the two are equal; texts keep their full length and are ordered by code point.

Of texts, of which it takes long, pyarrow has computed the same when it has written them: it cuts none, and leaves out those
beyond 4,096 bytes. So texts that are known to be shorter are told from there (see `texts_in_statistics`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, scalar_of

__all__ = [
    "BoundsOfColumns",
    "column_bounds",
    "extremes",
    "leaf_names",
    "text_bounds",
    "texts_in_statistics",
    "typed_scalar",
    "union_of",
]

_SURELY_STATED = 1024
"""Bytes of a text that pyarrow's statistics hold whatever its version."""


def leaf_names(schema: pa.Schema) -> list[str]:
    """Dotted names of the columns that have bounds: scalar columns, and scalar fields of structs. Lists and maps have none."""
    return [name for name, _ in _leaves(schema, "")]


def _leaves(fields: Any, parent: str) -> Iterator[tuple[str, pa.DataType]]:
    for field in fields:
        name, kind = parent + field.name, field.type
        if pa.types.is_struct(kind):
            yield from _leaves([kind.field(i) for i in range(kind.num_fields)], name + ".")
        elif not (pa.types.is_nested(kind) or pa.types.is_null(kind)):
            yield name, kind


def column_bounds(rows: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Bounds of the rows of one file.

    Args:
        rows: Any table.
        columns: Dotted names to look at; None is all of `leaf_names`. Unknown names are left out.

    Returns:
        One row a column, in the order of `columns`: column string; min and max, dense unions whose scalars have the column's
        type (see `typed_scalar`), null without any value; null_count int64; value_count int64, the
        number of rows, nulls included. A field of a null struct is null.
    """
    found = BoundsOfColumns(columns)
    found.add(rows)
    return found.table()


@dataclass(frozen=True)
class _Bounds:
    kind: pa.DataType
    low: pa.Scalar
    high: pa.Scalar
    nulls: int
    values: int


class BoundsOfColumns:
    """Bounds of rows that come in batches of one schema."""

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self._wanted = None if columns is None else list(columns)
        self._found: dict[str, _Bounds] = {}

    def names(self, schema: pa.Schema) -> list[str]:
        """The columns of a schema that it keeps bounds of."""
        leaves = leaf_names(schema)
        known = set(leaves)
        return leaves if self._wanted is None else [name for name in self._wanted if name in known]

    def add(self, rows: pa.Table, without: Collection[str] = ()) -> None:
        """Widen the bounds by more rows.

        Args:
            rows: Of the one schema.
            without: Columns whose bounds will be told (see `tell`).
        """
        import pyarrow.compute as pc

        for name in self.names(rows.schema):
            if name in without:
                continue
            top, *rest = name.split(".") if name not in rows.schema.names else (name,)
            column = pc.struct_field(rows[top], rest) if rest else rows[top]
            new = _bounds(column)
            old = self._found.get(name)
            self._found[name] = new if old is None else _wider(old, new)

    def tell(self, column: str, low: pa.Scalar, high: pa.Scalar, nulls: int, values: int) -> None:
        """Take the bounds of a column as they are; it is none of those that `add` looks at."""
        self._found[column] = _Bounds(low.type, low, high, nulls, values)

    def table(self) -> pa.Table:
        """The bounds so far, as `column_bounds` gives them."""
        found = list(self._found.values())
        return pa.table(
            {
                "column": array_of(list(self._found), pa.string()),
                "min": union_of([b.low for b in found]),
                "max": union_of([b.high for b in found]),
                "null_count": array_of([b.nulls for b in found], pa.int64()),
                "value_count": array_of([b.values for b in found], pa.int64()),
            }
        )


def texts_in_statistics(rows: pa.Table, names: Collection[str]) -> list[str]:
    """Those of some columns whose bounds the statistics of a file of these rows will tell exactly: flat, short texts."""
    import pyarrow.compute as pc

    found = []
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if name in names and "." not in name and pa.types.is_string(column.type):  # a dot may lead into a struct
            longest = pc.max(pc.binary_length(column)).as_py()
            if longest is None or longest <= _SURELY_STATED:
                found.append(name)
    return found


def text_bounds(metadata: Any, columns: Collection[str]) -> dict[str, tuple[pa.Scalar, pa.Scalar, int, int]]:
    """Bounds of columns, by `texts_in_statistics`, of a file that was just written.

    Args:
        metadata: Pyarrow's of the file.
        columns: Their names.

    Returns:
        By name what `BoundsOfColumns.tell` takes.

    Raises:
        ValueError: The file does not tell.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    places = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    found = {}
    for name in columns:
        chunks = [group.column(places[name]) for group in groups]
        stated = [chunk.statistics for chunk in chunks]
        nulls = sum(one.null_count for one in stated)
        rows = sum(chunk.num_values for chunk in chunks)
        full = [one for one, chunk in zip(stated, chunks, strict=True) if one.null_count < chunk.num_values]
        if not all(one.has_min_max for one in full):
            raise ValueError(f"no statistics of the column {name}")
        low = min((one.min_raw for one in full), default=None)
        high = max((one.max_raw for one in full), default=None)
        found[name] = (*(scalar_of(side, pa.binary()).cast(pa.string()) for side in (low, high)), nulls, rows)
    return found


def _bounds(column: pa.ChunkedArray) -> _Bounds:
    import pyarrow.compute as pc

    coded = pa.types.is_dictionary(column.type)
    if coded and any(chunk.dictionary.null_count for chunk in column.chunks):
        column, coded = pc.cast(column, column.type.value_type), False
    values = _values_in_use(column) if coded else column
    low, high = extremes(values)
    return _Bounds(values.type, low, high, column.null_count, len(column))


def _values_in_use(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a dictionary column that its rows have: few; others may stand in the dictionary."""
    import pyarrow.compute as pc

    used = [chunk.dictionary.take(pc.unique(chunk.indices).drop_null()) for chunk in column.chunks]
    return pa.chunked_array(used, column.type.value_type)


def extremes(column: pa.ChunkedArray) -> tuple[pa.Scalar, pa.Scalar]:
    """Smallest and greatest value as typed scalars, null when there is none; NaN is the greatest (see the module's head)."""
    import pyarrow.compute as pc

    found = pc.min_max(column)
    if pa.types.is_floating(column.type):
        return _float_bounds(column, found["min"].as_py(), found["max"].as_py())
    return found["min"], found["max"]


def _float_bounds(column: pa.ChunkedArray, low: float | None, high: float | None) -> tuple[pa.Scalar, pa.Scalar]:
    """Arrow's minimum and maximum pass over NaN, unless there is nothing else."""
    import pyarrow.compute as pc

    if low is not None and bool(pc.any(pc.is_nan(column)).as_py()):
        high = math.nan
    low = -0.0 if low == 0 else low
    high = 0.0 if high == 0 else high
    return scalar_of(low, column.type), scalar_of(high, column.type)


def _wider(one: _Bounds, other: _Bounds) -> _Bounds:
    low, high = extremes(pa.chunked_array([array_of([one.low, one.high, other.low, other.high], one.kind)]))
    return _Bounds(one.kind, low, high, one.nulls + other.nulls, one.values + other.values)


def union_of(scalars: Sequence[pa.Scalar]) -> pa.Array:
    """Scalars of several types as one dense union array, a child per type; the inverse is `typed_scalar`."""
    kinds: dict[pa.DataType, int] = {}
    children: list[list[pa.Scalar]] = []
    codes, offsets = [], []
    for scalar in scalars:
        code = kinds.setdefault(scalar.type, len(kinds))
        if code == len(children):
            children.append([])
        codes.append(code)
        offsets.append(len(children[code]))
        children[code].append(scalar)
    arrays = [array_of(values, kind) for kind, values in zip(kinds, children, strict=True)]
    names = [str(kind) for kind in kinds]
    if not arrays:
        arrays, names = [pa.nulls(0)], ["null"]
    return pa.UnionArray.from_dense(array_of(codes, pa.int8()), array_of(offsets, pa.int32()), arrays, names)


def typed_scalar(column: pa.Array | pa.ChunkedArray, at: int) -> pa.Scalar:
    """An element of what `union_of` made, with the type of its scalar also where it is null: Arrow's own scalar forgets it.

    Args:
        column: A union, or chunks of it.
        at: Place of the element.
    """
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if at < len(chunk):
            scalar = chunk[at]
            codes = pa.Array.from_buffers(pa.int8(), len(chunk), [None, chunk.buffers()[1]], offset=chunk.offset)
            return scalar.value if scalar.is_valid else scalar_of(None, chunk.type.field(codes[at].as_py()).type)
        at -= len(chunk)
    raise IndexError(f"no element {at} beyond the end")
