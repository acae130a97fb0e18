"""Bounds of the columns of an open base file, as its footer states them of row groups and its page index of pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of

if TYPE_CHECKING:
    from hudimeta.formats.parquet import ParquetFooter
    from hudimeta.formats.parquet.page_index import PageBounds, PageIndex
    from hudimeta.predicate import ColumnBounds

__all__ = ["BoundedLeaf", "BoundsOfPages", "bounded_leaves", "bounds_of_groups", "bounds_of_pages"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BoundedLeaf:
    """A column with bounds that can be used. Attributes: path: Dotted. at: Its number. kind: Its type in the file. wanted: Its
    type in the table."""

    path: str
    at: int
    kind: pa.DataType
    wanted: pa.DataType

    def bounds(self, low: pa.Array, high: pa.Array, nulls: pa.Array | None, rows: pa.Array) -> ColumnBounds:
        """Bounds of what the column is in the table."""
        from hudimeta.predicate import ColumnBounds

        found = ColumnBounds(low, high, nulls, rows, truncated=pa.types.is_string(self.kind))
        widened = pa.types.is_float32(self.kind) and pa.types.is_float64(self.wanted)
        return _as_doubles(found) if widened else found


def bounded_leaves(footer: ParquetFooter, wanted: Mapping[str, pa.DataType]) -> Iterator[BoundedLeaf]:
    """Those of some columns whose bounds can be used.

    Args:
        footer: Of the file.
        wanted: Name and type of each, as the table has it.
    """
    from hudimeta.slices.ordering import field_type

    for at, path in enumerate(footer.leaf_paths):
        if path in wanted and not footer.metadata.schema.column(at).max_repetition_level:
            kind = field_type(footer.arrow_schema, path)
            if kind is not None and _is_ordered(kind, footer) and _is_like(kind, wanted[path]):
                yield BoundedLeaf(path, at, kind, wanted[path])


@dataclass(frozen=True)
class BoundsOfPages:
    """Bounds of rows that share their pages in all columns of a predicate.

    Attributes:
        first: int64, the first of them in each row group, row group by row group, each ending in its number of rows.
        bounds: One element for the rows from each number to the next.
    """

    first: list[Rows]
    bounds: Mapping[str, ColumnBounds]


def bounds_of_pages(footer: ParquetFooter, index: PageIndex, leaves: Sequence[BoundedLeaf]) -> BoundsOfPages | None:
    """Bounds of pages; None where one of the columns has only bounds of row groups."""
    groups = range(footer.metadata.num_row_groups)
    borders: list[list[Rows]] = []
    for group in groups:
        places = index.places(group, [leaf.at for leaf in leaves]) if leaves else None
        if places is None:
            return None
        borders.append([places[leaf.at].borders for leaf in leaves])
    first = [np.unique(np.concatenate(row)) if len(row) > 1 else row[0] for row in borders]
    rows = array_of(np.concatenate([np.diff(starts) for starts in first]))
    found: dict[str, ColumnBounds] = {}
    for number, leaf in enumerate(leaves):
        pages = _joined([index.bounds(group, leaf.at) for group in groups])
        counts = [len(row[number]) - 1 for row in borders]
        if pages is None and not _has_bounds(footer, leaf):
            continue
        sides = None if pages is None else pages.typed(footer.metadata.schema.column(leaf.at).physical_type, leaf.kind)
        if pages is None or sides is None or len(pages.low) != sum(counts):
            return None
        nulls = None if pages.nulls is None else array_of(pages.nulls, pa.int64())
        if sum(counts) != len(rows):
            of_page = [
                np.searchsorted(row[number], starts[:-1], "right") - 1 for row, starts in zip(borders, first, strict=True)
            ]
            taken = array_of(np.concatenate(of_page) + np.repeat(np.cumsum([0, *counts[:-1]]), [len(page) for page in of_page]))
            sides, nulls = (sides[0].take(taken), sides[1].take(taken)), None if nulls is None else nulls.take(taken)
        found[leaf.path] = leaf.bounds(*sides, nulls, rows)
    return BoundsOfPages(first, found)


def _has_bounds(footer: ParquetFooter, leaf: BoundedLeaf) -> bool:
    found = (footer.metadata.row_group(group).column(leaf.at).statistics for group in range(footer.metadata.num_row_groups))
    return any(statistics is not None and statistics.has_min_max for statistics in found)


def _joined(pages: Sequence[PageBounds | None]) -> PageBounds | None:
    """Bounds of the pages of all row groups; None where one of these has none."""
    known = [page for page in pages if page is not None]
    if len(known) < len(pages) or len(pages) == 1:
        return pages[0] if len(pages) == 1 else None
    nulls = [page.nulls for page in known if page.nulls is not None]
    return replace(
        known[0],
        low=list(chain.from_iterable(page.low for page in known)),
        high=list(chain.from_iterable(page.high for page in known)),
        nulls=list(chain.from_iterable(nulls)) if len(nulls) == len(known) else None,
    )


def _as_doubles(bounds: ColumnBounds) -> ColumnBounds:
    """Bounds of a column that was widened: its rows show the doubles that the floats' texts stand for."""
    low, high = (side.cast(pa.string()).cast(pa.float64()) for side in (bounds.min, bounds.max))
    return replace(bounds, min=low, max=high)


def _is_ordered(kind: pa.DataType, footer: ParquetFooter) -> bool:
    """Types whose bounds Parquet and Arrow order and spell alike, unless a file has moments of an older calendar."""
    t = pa.types
    if t.is_temporal(kind) and not footer.moments.are_plain:
        return False
    if t.is_timestamp(kind):
        return kind.unit in ("ms", "us")
    simple = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_date32(kind)
    return bool(simple or t.is_string(kind) or t.is_boolean(kind)) and not t.is_float16(kind)


def _is_like(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """True when values stay what they are on the way from the file's type to the table's, widths and units apart."""
    t = pa.types
    if t.is_timestamp(kind) and t.is_timestamp(wanted):
        return (kind.tz is None) == (wanted.tz is None)
    families = (t.is_integer, t.is_floating, t.is_decimal, t.is_date, t.is_string, t.is_boolean)
    return any(is_one(kind) and is_one(wanted) for is_one in families)


def bounds_of_groups(footer: ParquetFooter, leaf: BoundedLeaf) -> ColumnBounds | None:
    """Bounds of a column, one element a row group; None where they cannot be told."""
    low: list[Any] = []
    high: list[Any] = []
    nulls: list[int | None] = []
    rows: list[int] = []
    for number in range(footer.metadata.num_row_groups):
        group = footer.metadata.row_group(number)
        statistics = group.column(leaf.at).statistics
        known = statistics is not None and statistics.has_min_max
        try:
            low.append(statistics.min if known else None)
            high.append(statistics.max if known else None)
        except (ValueError, OverflowError):
            return None  # a moment that Python has no word for
        nulls.append(statistics.null_count if statistics is not None and statistics.has_null_count else None)
        rows.append(group.num_rows)
    counts = array_of(nulls, pa.int64()), array_of(rows, pa.int64())
    try:
        bounds = array_of(low, leaf.kind), array_of(high, leaf.kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None  # written as another type than it is read as
    return leaf.bounds(*bounds, *counts)
