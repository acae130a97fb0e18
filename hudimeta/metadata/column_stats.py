"""Partition `column_stats` (type 3): minimum, maximum and counts of one column in one base or log file, per record.

    fileName, columnName                                       [null, string]
    minValue, maxValue                                         union of wrappers, see bounds
    valueCount, nullCount, totalSize, totalUncompressedSize    [null, long]; valueCount counts nulls too
    isDeleted, isTightBound                                    boolean
    valueType (layout 9)                                       [null, {typeOrdinal int, additionalInfo [null, string]}]

As a table, one row per record:

    key string, type int32, file_name string, column_name string, min_kind int8, min_value binary, max_kind int8,
    max_value binary, value_count, null_count, total_size, total_uncompressed_size int64, is_deleted, is_tight_bound bool,
    value_type int32 (None where not recorded), value_type_info string
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.parquet import of_any_calendar
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of, single_array
from hudimeta.metadata.bounds import Bounds, encode_bounds, order_value, read_bounds, typed_bounds
from hudimeta.metadata.datum import DatumCursor, Spans, encode_longs, encode_texts, join_binary
from hudimeta.metadata.keys import column_id
from hudimeta.metadata.payload import Cells, column_of, decode_payloads, encode_payloads, sorted_cells
from hudimeta.metadata.record import RecordLayout, RecordType, layout_of
from hudimeta.metadata.value_types import ValueType, is_raw, is_text, names_by_type

__all__ = [
    "PARTITION",
    "SCHEMA",
    "bounds_of",
    "decode_values",
    "encode_values",
    "merge_rows",
    "prefixes",
    "typed",
    "typed_columns",
]

PARTITION = "column_stats"
_COUNTS = {
    "valueCount": "value_count",
    "nullCount": "null_count",
    "totalSize": "total_size",
    "totalUncompressedSize": "total_uncompressed_size",
}
_MOST_PREFIXES = 512
"""Beyond so many (column, partition) pairs a whole column is read and filtered, which costs less than the look-ups."""
_LEAST_DROPPED = 2048
"""Bytes that a value has at least where Parquet's Java writer leaves the statistics of a column out of a footer: it does when
smallest and greatest value together have 4096."""
_YEAR_10000_MS = 253_402_300_800_000
"""The first millisecond that Spark has no name for."""
_ABOVE_16_BITS = r"[\x{10000}-\x{10FFFF}]"
_ABOVE_SURROGATES = r"[\x{E000}-\x{FFFF}]"
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("type", pa.int32()),
        ("file_name", pa.string()),
        ("column_name", pa.string()),
        ("min_kind", pa.int8()),
        ("min_value", pa.binary()),
        ("max_kind", pa.int8()),
        ("max_value", pa.binary()),
        *[(name, pa.int64()) for name in _COUNTS.values()],
        ("is_deleted", pa.bool_()),
        ("is_tight_bound", pa.bool_()),
        ("value_type", pa.int32()),
        ("value_type_info", pa.string()),
    ]
)
"""Columns of `decode_values`."""


def decode_values(cells: Cells, schema_text: str, path: str = "") -> pa.Table:
    """Records to a table of `SCHEMA`, in the order of the cells.

    Raises:
        CorruptFileError: Bytes that are not such records.
    """
    layout = layout_of(schema_text, path)
    batches = []
    for types, columns in decode_payloads(
        cells.values, layout, "ColumnStatsMetadata", lambda cursor: _read(cursor, layout), path
    ):
        columns["type"] = array_of(types.astype(np.int32))
        rows = len(types)
        arrays = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in SCHEMA if f.name != "key"]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA.remove(0)))
    table = pa.Table.from_batches(batches, SCHEMA.remove(0))
    return table.add_column(0, SCHEMA.field("key"), cells.keys.cast(pa.string()))


def _read(cursor: DatumCursor, layout: RecordLayout) -> dict[str, pa.Array]:
    out: dict[str, pa.Array] = {}
    for field in layout.statistics:
        if field in ("fileName", "columnName"):
            out["file_name" if field == "fileName" else "column_name"] = cursor.optional_bytes().column(pa.string())
        elif field in ("minValue", "maxValue"):
            bounds = read_bounds(cursor, layout)
            out[field[:3] + "_kind"], out[field[:3] + "_value"] = array_of(bounds.kinds), bounds.bodies
        elif field in _COUNTS:
            numbers, present = cursor.optional_long()
            out[_COUNTS[field]] = array_of(numbers, mask=None if present.all() else ~present)
        elif field == "valueType":
            out["value_type"], out["value_type_info"] = _read_value_type(cursor)
        else:
            out["is_deleted" if field == "isDeleted" else "is_tight_bound"] = array_of(cursor.boolean())
    if "is_tight_bound" not in out:
        out["is_tight_bound"] = array_of(np.zeros(len(cursor.pos), np.bool_))
    return out


def _read_value_type(cursor: DatumCursor) -> tuple[pa.Array, pa.Array]:
    ordinals = np.zeros(len(cursor.pos), np.int32)
    start, end = np.zeros(len(cursor.pos), np.int64), np.zeros(len(cursor.pos), np.int64)
    infos: list[Spans] = []
    numbers: list[Any] = []

    def read(part: DatumCursor) -> None:
        numbers.append(part.long())
        infos.append(part.optional_bytes())

    rows = cursor.optional(read)
    present, informed = np.zeros(len(ordinals), np.bool_), np.zeros(len(ordinals), np.bool_)
    present[rows] = True
    start[:], end[:] = cursor.pos, cursor.pos
    if infos:
        ordinals[rows] = numbers[0]
        start[rows], end[rows] = infos[0].start, infos[0].end
        informed[rows] = True if infos[0].present is None else infos[0].present
    # Starts must ascend for the gather: a datum without information stands at its own position, as set above.
    text = Spans(cursor.buffer, start, end, informed).column(pa.string())
    return array_of(ordinals, mask=~present), text


def encode_values(table: pa.Table, layout: RecordLayout) -> KeyValues:
    """The inverse of `decode_values`: rows of `SCHEMA` to records sorted by key.

    Args:
        table: Keys must be unique. A missing column `type` means type 3; missing optional columns mean null.
        layout: Layout 8 has no place for `value_type`, which is then left out.

    Raises:
        ValueError: A key twice, or a bound that the layout cannot hold.
    """
    rows = len(table)
    given = set(table.column_names)
    fields: list[pa.Array | bytes] = []
    for field in layout.statistics:
        if field in ("fileName", "columnName"):
            fields += [b"\x02", encode_texts(column_of(table, "file_name" if field == "fileName" else "column_name"))]
        elif field in ("minValue", "maxValue"):
            fields.append(encode_bounds(bounds_of(table, field[:3]), layout))
        elif field in _COUNTS:
            fields.append(_optional_longs(column_of(table, _COUNTS[field])))
        elif field == "valueType":
            fields.append(_value_types(table) if "value_type" in given else b"\x00")
        else:
            flags = column_of(table, "is_deleted" if field == "isDeleted" else "is_tight_bound")
            fields.append(_bytes_of(numpy_of(flags).astype(np.uint8)))
    kinds = column_of(table, "type") if "type" in given else array_of(np.full(rows, RecordType.COLUMN_STATS, np.int32))
    values = encode_payloads(numpy_of(kinds).astype(np.int64), layout, "ColumnStatsMetadata", join_binary(*fields))
    return KeyValues(*sorted_cells(column_of(table, "key"), values))


def _optional_longs(column: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    encoded = encode_longs(numpy_of(fill_null(column, 0)), b"\x02")
    return encoded if not column.null_count else pc.if_else(column.is_valid(), encoded, scalar_of(b"\x00", pa.binary()))


def _value_types(table: pa.Table) -> pa.Array:
    import pyarrow.compute as pc

    ordinals = column_of(table, "value_type")
    infos = pa.nulls(len(ordinals), pa.string())
    if "value_type_info" in table.column_names:
        infos = column_of(table, "value_type_info")
    info = join_binary(b"\x02", encode_texts(fill_null(infos, "")))
    info = pc.if_else(infos.is_valid(), info, scalar_of(b"\x00", pa.binary()))
    whole = join_binary(encode_longs(numpy_of(fill_null(ordinals, 0)), b"\x02"), info)
    return pc.if_else(ordinals.is_valid(), whole, scalar_of(b"\x00", pa.binary()))


def _bytes_of(values: np.ndarray[Any, np.dtype[np.uint8]]) -> pa.Array:
    borders = np.arange(len(values) + 1, dtype=np.int32)
    data = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(borders), pa.py_buffer(data)])


def bounds_of(table: pa.Table, side: str) -> Bounds:
    """The bounds of one side ("min" or "max") of a table of `SCHEMA`."""
    return Bounds(numpy_of(column_of(table, side + "_kind")), column_of(table, side + "_value"))


def prefixes(columns: Mapping[str, pa.DataType], partitions: Sequence[str] | None) -> list[bytes]:
    """What the keys of some columns' records begin with.

    Args:
        columns: By name.
        partitions: Only files of these; None for all.
    """
    heads = [column_id(name) for name in columns]
    if partitions is None or len(partitions) * len(heads) > _MOST_PREFIXES:
        return heads
    tails = [column_id(path) for path in partitions]
    return [head + tail for head in heads for tail in tails]


def typed(table: pa.Table, wanted: pa.DataType) -> pa.Table:
    """Statistics of one column as planners want them.

    Args:
        table: Rows of `SCHEMA`, all of one column.
        wanted: The column's Arrow type.

    Returns:
        file_name string, min and max of `wanted` (None: unknown), value_count, null_count, total_size,
        total_uncompressed_size int64, is_tight_bound bool. A file whose null_count equals its value_count holds only nulls.
        A null_count that cannot be believed is None. A bound of a floating column proves that no value beyond it is there,
        NaN included, which is the greatest of all.
    """
    ordinals = numpy_of(fill_null(column_of(table, "value_type"), 0)).astype(np.int64)
    infos = column_of(table, "value_type_info")
    low = typed_bounds(bounds_of(table, "min"), wanted, ordinals, infos)
    high = typed_bounds(bounds_of(table, "max"), wanted, ordinals, infos)
    if pa.types.is_floating(wanted):
        low, high = _without_lost_bounds(low, high, column_of(table, "is_tight_bound"))
    if pa.types.is_timestamp(wanted):
        doubtful = (ordinals == 0) & ~numpy_of(fill_null(column_of(table, "is_tight_bound"), False))
        low, high = (_in_one_unit(bounds, doubtful) for bounds in (low, high))
    if pa.types.is_date32(wanted) or pa.types.is_timestamp(wanted):
        low, high = of_any_calendar(low, high, column_of(table, "is_tight_bound"))  # which footers tell, but no record
    if is_text(wanted):
        low, high = _in_byte_order(low, high, column_of(table, "is_tight_bound"))
    if is_raw(wanted):
        low, high = _without_signed_order(low, high, table)
    if is_text(wanted) or is_raw(wanted):
        table = _without_lost_counts(table)
    kept = ["file_name", *_COUNTS.values(), "is_tight_bound"]
    return table.select(kept).add_column(1, "min", low).add_column(2, "max", high)


def typed_columns(rows: pa.Table, columns: Mapping[str, pa.DataType]) -> dict[str, pa.Table]:
    """The rows of each column, typed. Keys begin with the column, so that its rows lie together: one stretch a file group.

    Args:
        rows: As `decode_values` gives them.
        columns: Arrow type by column.
    """
    coded = single_array(rows.column("column_name")).dictionary_encode()
    numbers, names = numpy_of(coded.indices), coded.dictionary.to_pylist()
    first = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()] if len(numbers) else []
    stretches: dict[str, list[pa.Table]] = {}
    for start, end in zip(first, [*first[1:], len(numbers)], strict=False):
        stretches.setdefault(names[numbers[start]], []).append(rows.slice(start, end - start))
    none, found = rows.slice(0, 0), dict[str, pa.Table]()
    for kind, of_kind in names_by_type(columns).items():
        parts = [pa.concat_tables(stretches.get(name, [none])) for name in of_kind]
        together, start = typed(pa.concat_tables(parts), kind), 0
        for name, part in zip(of_kind, parts, strict=True):
            found[name] = together.slice(start, len(part))
            start += len(part)
    return {name: found[name] for name in columns}


def _without_lost_bounds(low: pa.Array, high: pa.Array, tight: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Unknown where Java wrote 0 for both bounds: so it does for a file whose footer has none because it holds NaN.

    Records of ours are tight and say what they mean.
    """
    import pyarrow.compute as pc

    zero = pc.and_(pc.equal(low, scalar_of(0, low.type)), pc.equal(high, scalar_of(0, high.type)))
    lost = pc.and_(fill_null(zero, False), pc.invert(fill_null(tight, False)))
    nothing = scalar_of(None, low.type)
    return pc.if_else(lost, nothing, low), pc.if_else(lost, nothing, high)


def _in_one_unit(bounds: pa.Array, doubtful: npt.NDArray[np.bool_]) -> pa.Array:
    """Unknown where a number may count another unit than the column's.

    V1 records do not say the unit of a file, which can hold milliseconds although the table's schema says microseconds
    (`hoodie.parquet.outputTimestampType`). A number that is no moment of this era in the other unit is in the column's.
    """
    if bounds.type.unit not in ("ms", "us"):
        return bounds
    numbers = numpy_of(fill_null(bounds.view(pa.int64()), 0))
    small = np.abs(numbers) < _YEAR_10000_MS
    unclear = doubtful & (numbers != 0) & (small if bounds.type.unit == "us" else ~small)
    if not unclear.any():
        return bounds
    import pyarrow.compute as pc

    return pc.if_else(array_of(unclear), scalar_of(None, bounds.type), bounds)


def _in_byte_order(low: pa.Array, high: pa.Array, tight: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Unknown where Java's order of texts, by which it unites bounds of row groups and files, is not that of their bytes.

    By UTF-16 units characters above U+FFFF stand before U+E000 to U+FFFF. A smallest text without the former is the smallest
    in either order, and so is a greatest text without the latter. Records of ours are tight, and compared by bytes.
    """
    import pyarrow.compute as pc

    if all(pc.all(pc.string_is_ascii(bounds)).as_py() is not False for bounds in (low, high)):
        return low, high
    nothing, loose = scalar_of(None, low.type), pc.invert(fill_null(tight, False))
    lost_low = pc.and_(loose, fill_null(pc.match_substring_regex(low, _ABOVE_16_BITS), False))
    lost_high = pc.and_(loose, fill_null(pc.match_substring_regex(high, _ABOVE_SURROGATES), False))
    return pc.if_else(lost_low, nothing, low), pc.if_else(lost_high, nothing, high)


def _without_signed_order(low: pa.Array, high: pa.Array, table: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Unknown for log files of Java, which takes bytes above 0x7F for negative there. Records of ours are tight."""
    import pyarrow.compute as pc

    is_log = fill_null(pc.starts_with(column_of(table, "file_name"), "."), True)
    lost = pc.and_(is_log, pc.invert(fill_null(column_of(table, "is_tight_bound"), False)))
    nothing = scalar_of(None, low.type)
    return pc.if_else(lost, nothing, low), pc.if_else(lost, nothing, high)


def _without_lost_counts(table: pa.Table) -> pa.Table:
    """Rows without the null_count that Java makes up for a footer without statistics: as many as there are values.

    Footers lack them for long values; a column that holds only nulls takes far fewer bytes than one of those.
    """
    import pyarrow.compute as pc

    counts = {name: column_of(table, name) for name in ("null_count", "value_count", "total_uncompressed_size")}
    unbounded = array_of((bounds_of(table, "min").kinds == 0) & (bounds_of(table, "max").kinds == 0))
    loose = pc.invert(fill_null(column_of(table, "is_tight_bound"), False))
    all_null = fill_null(pc.greater_equal(counts["null_count"], counts["value_count"]), False)
    long = pc.greater_equal(fill_null(counts["total_uncompressed_size"], 0), scalar_of(_LEAST_DROPPED))
    lost = pc.and_(pc.and_(unbounded, loose), pc.and_(all_null, long))
    if not pc.any(lost).as_py():
        return table
    believed = pc.if_else(lost, scalar_of(None, pa.int64()), counts["null_count"])
    return table.set_column(table.schema.get_field_index("null_count"), "null_count", believed)


def merge_rows(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """Two records of one key: the newer one wins if either is deleted or the newer is tight, else both are united.

    Kept for the few keys that were written twice; everything else never meets this rule.

    Args:
        older: A row of `SCHEMA` as a dictionary.
        newer: The one written after it.
    """
    if older["is_deleted"] or newer["is_deleted"] or newer["is_tight_bound"]:
        return newer
    merged = dict(newer)
    for name in _COUNTS.values():
        merged[name] = (older[name] or 0) + (newer[name] or 0)
    for side, pick in (("min", min), ("max", max)):
        merged[side + "_kind"], merged[side + "_value"] = _extreme(older, newer, side, pick)
    return merged


def _extreme(older: dict[str, Any], newer: dict[str, Any], side: str, pick: Any) -> tuple[int, bytes]:
    bounds = [(row[side + "_kind"], row[side + "_value"]) for row in (older, newer)]
    known = [b for b in bounds if b[0]]
    types = [(row["value_type"], row["value_type_info"]) for row in (older, newer)]
    if len(known) < 2:
        # A side without a bound saw no value at all when its counts say so; otherwise nothing bounds the union.
        unknown = [r for r in (older, newer) if not r[side + "_kind"] and (r["value_count"] or 0) > (r["null_count"] or 0)]
        return known[0] if known and not unknown else (0, b"")
    if known[0][0] != known[1][0] or types[0] != types[1]:
        return (0, b"")
    is_decimal = types[0][0] == ValueType.DECIMAL
    chosen: tuple[int, bytes] = pick(known, key=lambda b: _place(b[0], b[1], is_decimal))
    return chosen


def _place(kind: int, body: bytes, is_decimal: bool) -> tuple[bool, Any]:
    """What bounds of one kind and type are sorted by; NaN is the greatest value."""
    if is_decimal:
        return False, int.from_bytes(body, "big", signed=True)
    value = order_value(kind, body)
    return (True, 0) if value != value else (False, value)
