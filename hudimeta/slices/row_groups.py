"""What the footer of an open base file says: bounds of each row group, and range and bloom filter of the file's record keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from hudimeta.formats.parquet import ParquetFooter
    from hudimeta.predicate import Bound, ColumnBounds
    from hudimeta.slices.record_keys import WantedKeys

__all__ = ["judged_row_groups", "matching_row_groups"]

Mask = npt.NDArray[np.bool_]


def matching_row_groups(footer: ParquetFooter, bound: Bound, stated: Collection[str], keys: WantedKeys | None) -> Mask:
    """Row groups that may hold a row which a predicate keeps; only for rows that nothing is merged into.

    Args:
        footer: Of the file.
        bound: The predicate.
        stated: Columns whose values are not taken from the file.
        keys: Record keys that the predicate asks for; None when it does not.

    Returns:
        One bool a row group.
    """
    return judged_row_groups(footer, bound, stated, keys)[0]


def judged_row_groups(
    footer: ParquetFooter, bound: Bound, stated: Collection[str], keys: WantedKeys | None
) -> tuple[Mask, str]:
    """As `matching_row_groups`, and the part of the predicate that rules out the first of those that are ruled out."""
    from hudimeta.predicate import FileStats, may_match, to_sql

    groups = footer.metadata.num_row_groups
    if keys is not None and not _may_hold(footer, keys.texts):
        return np.zeros(groups, np.bool_), to_sql(keys.because)
    wanted = {c.name: c.type for c in bound.columns if c.path[0] not in stated and c.type is not None}
    verdict = may_match(bound, FileStats(groups, _bounds(footer, wanted)))
    out = np.flatnonzero(~verdict.keep)
    return verdict.keep, to_sql(bound.conjuncts[int(verdict.decided_by[out[0]])]) if len(out) else ""


def _may_hold(footer: ParquetFooter, texts: pa.StringArray) -> bool:
    """Whether a file may hold any of some record keys."""
    import pyarrow.compute as pc

    low, high = footer.min_key, footer.max_key
    if low is None or high is None:
        return True  # whoever wrote it recorded no keys
    # Java orders texts by UTF-16 units, which is the order of characters here as long as all are ASCII.
    if low.isascii() and high.isascii() and len(texts):
        inside = pc.and_(pc.greater_equal(texts, low), pc.less_equal(texts, high))
        texts = texts.filter(pc.or_(inside, pc.invert(pc.string_is_ascii(texts))))
    if not len(texts):
        return False
    bloom = footer.bloom
    return bloom is None or bloom.might_contain_any(texts)


def _bounds(footer: ParquetFooter, wanted: Mapping[str, pa.DataType]) -> dict[str, ColumnBounds]:
    """Bounds of some columns, one element a row group; columns without any are left out.

    Args:
        footer: Of the file.
        wanted: Name and type of each, as the table has it.
    """
    from hudimeta.slices.ordering import field_type

    schema, found = footer.metadata.schema, {}
    for at in range(footer.metadata.num_columns):
        leaf = schema.column(at)
        if leaf.path in wanted and not leaf.max_repetition_level:
            kind = field_type(footer.arrow_schema, leaf.path)
            usable = kind is not None and _is_ordered(kind) and _is_like(kind, wanted[leaf.path])
            bounds = _bounds_of(footer, at, kind) if usable else None
            if bounds is not None:
                widened = pa.types.is_float32(bounds.min.type) and pa.types.is_float64(wanted[leaf.path])
                found[leaf.path] = _as_doubles(bounds) if widened else bounds
    return found


def _as_doubles(bounds: ColumnBounds) -> ColumnBounds:
    """Bounds of a column that was widened: its rows show the doubles that the floats' texts stand for."""
    low, high = (side.cast(pa.string()).cast(pa.float64()) for side in (bounds.min, bounds.max))
    return replace(bounds, min=low, max=high)


def _is_ordered(kind: pa.DataType) -> bool:
    """Types whose bounds Parquet and Arrow order and spell alike."""
    t = pa.types
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


def _bounds_of(footer: ParquetFooter, at: int, kind: pa.DataType) -> ColumnBounds | None:
    from hudimeta.predicate import ColumnBounds

    low: list[Any] = []
    high: list[Any] = []
    nulls: list[int | None] = []
    rows: list[int] = []
    for number in range(footer.metadata.num_row_groups):
        group = footer.metadata.row_group(number)
        statistics = group.column(at).statistics
        known = statistics is not None and statistics.has_min_max
        try:
            low.append(statistics.min if known else None)
            high.append(statistics.max if known else None)
        except (ValueError, OverflowError):
            return None  # a moment that Python has no word for
        nulls.append(statistics.null_count if statistics is not None and statistics.has_null_count else None)
        rows.append(group.num_rows)
    counts = pa.array(nulls, pa.int64()), pa.array(rows, pa.int64())
    try:
        bounds = pa.array(low, kind), pa.array(high, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None  # written as another type than it is read as
    return ColumnBounds(*bounds, *counts, truncated=pa.types.is_string(kind))
