"""Statistics records of files that are being written, and of the partitions that they go to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.groups import extremes_of_groups, sums_of_groups
from hudimeta.formats.parquet import typed_scalar
from hudimeta.formats.plain_arrays import array_of, fill_null, no_rows, numpy_of, scalar_of, single_array, table_of
from hudimeta.metadata import column_stats, partition_stats
from hudimeta.metadata.bounds import wrap_bounds
from hudimeta.metadata.keys import column_stats_keys, partition_stats_keys
from hudimeta.metadata.record import RecordType
from hudimeta.metadata.value_types import is_raw, is_text, names_by_type, value_type_of

__all__ = [
    "file_statistics",
    "has_limits",
    "is_unlimited",
    "limits_of",
    "nothing_yet",
    "widened_partition_statistics",
    "without_limits",
]

_LONGEST_RAW_BOUND = 64
"""Bytes of a bound of a binary column."""


def file_statistics(
    bounds: pa.Table,
    partition_path: str,
    file_name: str,
    version: str,
    chunk_bytes: Mapping[str, tuple[int, int]],
    *,
    keep_empty: bool = False,
) -> pa.Table:
    """Statistics of one base file.

    Args:
        bounds: Of its indexed columns, as `formats.parquet.column_bounds` gives them.
        partition_path: Of the file.
        file_name: Of the file.
        version: "V1" or "V2", the regime of the bounds.
        chunk_bytes: Compressed and uncompressed bytes of each column in the file; (0, 0) where not known.
        keep_empty: Records also for a file without rows, as log files of deletes have them.

    Returns:
        Rows of `column_stats.SCHEMA`, one a column that the file has.
    """
    found: list[dict[str, Any]] = []
    counts = list(zip(*(bounds[name].to_pylist() for name in ("column", "value_count", "null_count")), strict=True))
    kept = [at for at, (_, rows, _) in enumerate(counts) if rows or keep_empty]
    sides = [_shortened(typed_scalar(bounds["min"], at), typed_scalar(bounds["max"], at)) for at in kept]
    for at, own in zip(kept, _wrapped(sides, version), strict=True):
        name, rows, nulls = counts[at]
        compressed, uncompressed = chunk_bytes.get(name, (0, 0))
        found.append(
            own
            | {
                "file_name": file_name,
                "column_name": name,
                "is_deleted": False,
                "value_count": rows,
                "null_count": nulls,
                "total_size": compressed,
                "total_uncompressed_size": uncompressed,
                # Exact, NaN included: records of Java are never tight, and their bounds of columns with NaN mean nothing.
                "is_tight_bound": True,
            }
        )
    return _keyed(found, partition_path)


def _shortened(low: pa.Scalar, high: pa.Scalar) -> tuple[pa.Scalar, pa.Scalar]:
    """Bounds of byte sequences, which may be whole pictures, cut so that they still enclose them; others as they are."""
    if not is_raw(low.type):
        return low, high
    least, greatest = low.as_py(), high.as_py()
    if least is not None:
        least = least[:_LONGEST_RAW_BOUND]
    if greatest is not None and len(greatest) > _LONGEST_RAW_BOUND:
        head = greatest[:_LONGEST_RAW_BOUND].rstrip(b"\xff")
        greatest = head[:-1] + bytes([head[-1] + 1]) if head else greatest
    return scalar_of(least, pa.binary()), scalar_of(greatest, pa.binary())


def _wrapped(sides: Sequence[tuple[pa.Scalar, pa.Scalar]], version: str) -> list[dict[str, Any]]:
    """Minima and maxima as records have them, those of one type at a time."""
    of_type: dict[pa.DataType, list[int]] = {}
    for at, (low, _) in enumerate(sides):
        of_type.setdefault(low.type, []).append(at)
    found: list[dict[str, Any]] = [{} for _ in sides]
    for kind, places in of_type.items():
        ordinal, info = value_type_of(kind)
        both = [(at, number) for number in (0, 1) for at in places]
        bounds = wrap_bounds(array_of([sides[at][number] for at, number in both], kind), version)
        for (at, number), wrapper, body in zip(both, bounds.kinds.tolist(), bounds.bodies.to_pylist(), strict=True):
            side = "max" if number else "min"
            found[at] |= {f"{side}_kind": wrapper, f"{side}_value": body}
        for at in places:
            found[at] |= {"value_type": int(ordinal), "value_type_info": info} if version == "V2" else {}
    return found


def _keyed(found: list[dict[str, Any]], partition_path: str) -> pa.Table:
    names = array_of([r["column_name"] for r in found], pa.string())
    where = array_of([partition_path] * len(found), pa.string())
    keys = column_stats_keys(names, where, array_of([r["file_name"] for r in found], pa.string()))
    for row, key in zip(found, keys.cast(pa.string()).to_pylist(), strict=True):
        row["key"], row["type"] = key, int(RecordType.COLUMN_STATS)
    return table_of(found, column_stats.SCHEMA)


def widened_partition_statistics(
    files: Sequence[tuple[str, pa.Table]],
    known: Mapping[str, pa.Table],
    columns: Mapping[str, pa.DataType],
    version: str,
    *,
    existing: Collection[str] = (),
    added: Collection[str] = (),
    tight: bool = True,
) -> tuple[pa.Table, pa.Array]:
    """Statistics of the partitions that new files went to: what was known of them, widened by the new files.

    The records are marked as replacing the older ones. They may be wider than the rows of today, never narrower. A partition
    that has files of which nothing is known (any more) gets bounds as wide as its type: Hudi's readers pass over a partition
    without a record.

    Args:
        files: Partition path and statistics (`file_statistics`) of each new file.
        known: Statistics so far, by column, as `MetadataTable.partition_stats` gives them; {} for a new table.
        columns: Arrow type of each indexed column.
        version: "V1" or "V2".
        existing: Partitions that had files before.
        added: Columns that no file had before: nothing is unknown of them.
        tight: False gives records of the new files alone, to be united with the older ones by whoever reads them: right also
            when an earlier write is completed later, whose records then lie below these.

    Returns:
        Rows of `partition_stats.SCHEMA`, and the keys (string) of records that must go because nothing bounds them any more,
        not even their type: Java takes a missing bound for "no such value", so a record without bounds would lose rows there.
    """
    parts, gone = [no_rows(partition_stats.SCHEMA)], [array_of([], pa.string())]
    every = _with_partitions(files)
    for kind, names in names_by_type(columns).items():
        together = _sides(every, names, known, kind, existing, added, tight)
        if not len(together):
            continue
        rows, lost = _united(together, kind, version, tight)
        parts.append(rows.filter(pc.invert(lost)))
        gone.append(single_array(rows["key"].filter(lost)))
    return pa.concat_tables(parts), pa.concat_arrays(gone)


def _sides(
    every: pa.Table,
    names: Sequence[str],
    known: Mapping[str, pa.Table],
    kind: pa.DataType,
    existing: Collection[str],
    added: Collection[str],
    tight: bool,
) -> pa.Table:
    """What is to be united of some columns of one type: the new files, what nobody knows, and what was known of the same."""
    own = every.filter(pc.is_in(every["column_name"], value_set=array_of(names, pa.string())))
    typed = column_stats.typed(own, kind).set_column(0, "partition_path", own["partition_path"])
    parts = [typed.append_column("column_name", own["column_name"])]
    for name in names:
        unbounded = set() if name in added else set(existing)
        if unbounded:
            unknown = unbounded - set(known[name]["partition_path"].to_pylist() if name in known else ())
            parts += [_named(_anything(sorted(unknown), typed.schema), name)] if unknown else []
    fresh = pa.concat_tables(parts)
    if not tight or not any(name in known for name in names):
        return fresh
    before = pa.concat_tables([_named(known[name].select(typed.column_names), name) for name in names if name in known])
    return pa.concat_tables([fresh, before.filter(pc.is_in(_places(before), value_set=single_array(_places(fresh))))])


def _places(rows: pa.Table) -> pa.ChunkedArray:
    """Column and partition of each row as one text."""
    return pc.binary_join_element_wise(rows["column_name"], rows["partition_path"], scalar_of("\0"))


def _named(rows: pa.Table, name: str) -> pa.Table:
    return rows.append_column("column_name", pa.repeat(scalar_of(name, pa.string()), len(rows)))


def _anything(partitions: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Typed statistics of partitions of which nothing is known: they may hold any value, and null."""
    count = len(partitions)
    given = {
        "partition_path": array_of(partitions, pa.string()),
        "value_count": array_of([2] * count, pa.int64()),
        "null_count": array_of([1] * count, pa.int64()),
    }
    return pa.table([given.get(f.name, pa.nulls(count, f.type)) for f in schema], schema=schema)


def nothing_yet(partitions: Sequence[str], added: Collection[str]) -> list[tuple[str, pa.Table]]:
    """What is known of columns in the files of before they were added: nothing but nulls.

    Partitions without such a record would be passed over by Hudi's readers, which take a missing one for "no such value", as
    soon as other partitions have one; and later writes could not tell it from files of which nothing is known.

    Args:
        partitions: Those that have files.
        added: Names of the columns.

    Returns:
        Partition path and rows of `column_stats.SCHEMA`, as `widened_partition_statistics` takes them.
    """
    if not added:
        return []
    nothing = {"min_kind": 0, "max_kind": 0, "value_count": 1, "null_count": 1, "is_deleted": False, "is_tight_bound": True}
    rows = table_of([{"column_name": name, **nothing} for name in sorted(added)], column_stats.SCHEMA)
    return [(path, rows) for path in partitions]


def _with_partitions(files: Sequence[tuple[str, pa.Table]]) -> pa.Table:
    """The statistics of all files in one table, so that a column's are decoded together, with the partition of each."""
    paths = pa.field("partition_path", pa.string())
    none = no_rows(column_stats.SCHEMA).append_column(paths, array_of([], pa.string()))
    parts = [rows.append_column(paths, pa.repeat(scalar_of(path, pa.string()), len(rows))) for path, rows in files]
    return pa.concat_tables([none, *parts])


_COUNTS = ("value_count", "null_count")
_BYTES = ("total_size", "total_uncompressed_size")


def _united(typed: pa.Table, kind: pa.DataType, version: str, tight: bool) -> tuple[pa.Table, pa.Array]:
    """One row of `partition_stats.SCHEMA` a column and partition, from typed statistics of its files and what was known of it.

    The second result says which rows have values that nothing bounds, not even their type. All numbers lie between minus
    infinity and NaN, which is stored as infinity.
    """
    # A side that is unknown although there were values (NaN among them, say) bounds nothing: then the union's is unknown too.
    with_values = fill_null(pc.greater(typed["value_count"], typed["null_count"]), True)
    coded = single_array(_places(typed)).dictionary_encode()
    count, of_group = len(coded.dictionary), numpy_of(coded.indices)
    _, first = np.unique(of_group, return_index=True)
    bounds, limits, lost = {}, limits_of(kind), np.zeros(count, np.bool_)
    for side in ("min", "max"):
        lacks = numpy_of(pc.and_(with_values, pc.is_null(typed[side])))
        unknown = np.bincount(of_group[lacks], minlength=count) > 0
        widest = scalar_of(None if limits is None else limits[side], kind)
        known = extremes_of_groups(single_array(typed[side]), of_group, count, side).cast(kind)
        bounds[side] = wrap_bounds(pc.if_else(array_of(unknown), widest, known), version)
        lost |= unknown & (limits is None)
    sums = {c: sums_of_groups(single_array(typed[c]), of_group, count) for c in (*_COUNTS, *_BYTES)}
    ordinal, info = value_type_of(kind)
    paths, names = (single_array(typed[c]).take(array_of(first)) for c in ("partition_path", "column_name"))
    columns = {
        "key": partition_stats_keys(names, paths).cast(pa.string()),
        "type": array_of([int(RecordType.PARTITION_STATS)] * count, pa.int32()),
        "file_name": paths,
        "column_name": names,
        "min_kind": array_of(bounds["min"].kinds, pa.int8()),
        "min_value": bounds["min"].bodies,
        "max_kind": array_of(bounds["max"].kinds, pa.int8()),
        "max_value": bounds["max"].bodies,
        **{c: sums[c] for c in _COUNTS},
        **{c: fill_null(sums[c], 0) for c in _BYTES},  # Apache Hudi adds them to those of the next record
        "is_deleted": pa.repeat(scalar_of(False), count),
        "is_tight_bound": pa.repeat(scalar_of(tight), count),
        "value_type": array_of([int(ordinal) if version == "V2" else None] * count, pa.int32()),
        "value_type_info": array_of([info if version == "V2" else None] * count, pa.string()),
    }
    return pa.table([columns[f.name] for f in partition_stats.SCHEMA], schema=partition_stats.SCHEMA), array_of(lost)


def has_limits(kind: pa.DataType) -> bool:
    """Whether values of a type of which nothing is known can be bounded all the same, by the type."""
    return limits_of(kind) is not None


def without_limits(stated: pa.Table, kind: pa.DataType) -> pa.Table:
    """Statistics of partitions with unknown bounds where records state what bounds a type: Arrow has values beyond these.

    Args:
        stated: Has min and max.
        kind: The type of these.
    """
    t = pa.types
    if not (t.is_date32(kind) or t.is_timestamp(kind) or is_text(kind) or is_raw(kind)):
        return stated  # all values lie within the limits
    for side, limit in (limits_of(kind) or {}).items():
        column = stated[side]
        told = pc.if_else(pc.equal(column, scalar_of(limit, kind)), scalar_of(None, kind), column)
        stated = stated.set_column(stated.column_names.index(side), side, told)
    return stated


def is_unlimited(stated: pa.Table, kind: pa.DataType) -> pa.ChunkedArray:
    """Which typed statistics (`column_stats.typed`) are as wide as the type."""
    limits = {"min": float("-inf"), "max": float("inf")} if pa.types.is_floating(kind) else limits_of(kind) or {}
    wide = pa.repeat(scalar_of(bool(limits)), len(stated))
    for side, limit in limits.items():
        wide = pc.and_(wide, fill_null(pc.equal(stated[side], scalar_of(limit, kind)), False))
    return wide


def limits_of(kind: pa.DataType) -> dict[str, Any] | None:
    """Smallest and greatest value of a type, as far as Spark has them; None for types whose values have no order here.

    Days and moments before the year 1 and after 9999, and texts of more than eight of the greatest letter, lie beyond.
    """
    t = pa.types
    found: tuple[Any, Any] | None = None
    if t.is_floating(kind):
        found = float("-inf"), float("nan")
    elif t.is_boolean(kind):
        found = False, True
    elif t.is_integer(kind):
        found = -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1
    elif t.is_decimal(kind):
        most = Decimal(10**kind.precision - 1).scaleb(-kind.scale, Context(prec=kind.precision + 1))
        found = most.copy_negate(), most  # a minus would round to the 28 digits of the context
    elif t.is_date32(kind):
        found = date.min, date.max
    elif t.is_timestamp(kind) and kind.unit in ("ms", "us"):
        zone = None if kind.tz is None else timezone.utc
        found = datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)
    elif is_text(kind):
        found = "", chr(0x10FFFF) * 8
    elif t.is_binary(kind):
        found = b"", b"\xff" * _LONGEST_RAW_BOUND
    return None if found is None else {"min": found[0], "max": found[1]}
