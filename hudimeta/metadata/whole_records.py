"""Records of all partitions of the metadata table in one shape: that of the records which Apache Hudi stores.

    key                    string; of statistics and bloom filters a hash, of a secondary index `value$record key`
    type                   int32, see `RecordType`
    filesystemMetadata     map of file or partition name to (size, isDeleted); types 1 and 2
    BloomFilterMetadata    type 4
    ColumnStatsMetadata    types 3 and 6; bounds lie in the member of their wrapper, as `minValue.member6.value`
    recordIndexMetadata    type 5
    SecondaryIndexMetadata type 7

What a record is not about is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.plain_arrays import single_array
from hudimeta.metadata import bloom_filters, column_stats, files, record_index
from hudimeta.metadata.bounds import unscaled_decimals
from hudimeta.metadata.datum import chunks
from hudimeta.metadata.record import BoundKind, RecordType
from hudimeta.metadata.record_index import halves_of

if TYPE_CHECKING:
    from hudimeta.metadata.metadata_table import MetadataTable

__all__ = ["WHOLE_RECORD", "whole_records"]

_ALL_PARTITIONS, _NO_PARTITION = "__all_partitions__", "."
_FILE = pa.struct([("size", pa.int64()), ("isDeleted", pa.bool_())])
_DECIMAL_SCALE = 15
_WRAPPED: tuple[tuple[BoundKind, pa.DataType], ...] = (
    (BoundKind.BOOLEAN, pa.bool_()),
    (BoundKind.INT, pa.int32()),
    (BoundKind.LONG, pa.int64()),
    (BoundKind.FLOAT, pa.float32()),
    (BoundKind.DOUBLE, pa.float64()),
    (BoundKind.BYTES, pa.binary()),
    (BoundKind.STRING, pa.string()),
    (BoundKind.DATE, pa.int32()),
    (BoundKind.DECIMAL, pa.decimal128(30, _DECIMAL_SCALE)),
    (BoundKind.TIME_MICROS, pa.int64()),
    (BoundKind.TIMESTAMP_MICROS, pa.int64()),
    (BoundKind.LOCAL_DATE, pa.int32()),
)
"""The members of a bound, in the order of the union's branches."""
_BOUND = pa.struct([(f"member{n}", pa.struct([("value", kind)])) for n, (_, kind) in enumerate(_WRAPPED)])
_BLOOM = pa.struct([("type", pa.string()), ("timestamp", pa.string()), ("bloomFilter", pa.binary()), ("isDeleted", pa.bool_())])
_COUNTS = {
    "valueCount": "value_count",
    "nullCount": "null_count",
    "totalSize": "total_size",
    "totalUncompressedSize": "total_uncompressed_size",
}
_STATISTICS = pa.struct(
    [
        ("fileName", pa.string()),
        ("columnName", pa.string()),
        ("minValue", _BOUND),
        ("maxValue", _BOUND),
        *((name, pa.int64()) for name in _COUNTS),
        ("isDeleted", pa.bool_()),
        ("isTightBound", pa.bool_()),
    ]
)
_LOCATION = pa.struct(
    [
        ("partitionName", pa.string()),
        ("fileIdHighBits", pa.int64()),
        ("fileIdLowBits", pa.int64()),
        ("fileIndex", pa.int32()),
        ("fileId", pa.string()),
        ("instantTime", pa.int64()),
        ("fileIdEncoding", pa.int32()),
        ("position", pa.int64()),
    ]
)
WHOLE_RECORD = pa.schema(
    [
        ("key", pa.string()),
        ("type", pa.int32()),
        ("filesystemMetadata", pa.map_(pa.string(), _FILE)),
        ("BloomFilterMetadata", _BLOOM),
        ("ColumnStatsMetadata", _STATISTICS),
        ("recordIndexMetadata", _LOCATION),
        ("SecondaryIndexMetadata", pa.struct([("isDeleted", pa.bool_())])),
    ]
)
"""Columns of `whole_records`."""


def whole_records(metadata: MetadataTable) -> Iterator[pa.Table]:
    """Every live record, in tables of `WHOLE_RECORD`: of one metadata partition after the other."""
    for partition in metadata.ready:
        records = metadata.records(partition)
        if partition == files.PARTITION:
            yield _of_files(records)
        elif records.schema.equals(column_stats.SCHEMA):
            statistics = _statistics(records)
            yield _filled(single_array(records["key"]), records["type"], {"ColumnStatsMetadata": statistics})
        elif records.schema.equals(bloom_filters.SCHEMA):
            yield _filled(single_array(records["key"]), RecordType.BLOOM_FILTER, {"BloomFilterMetadata": _blooms(records)})
        elif records.schema.equals(record_index.SCHEMA):
            locations = {"recordIndexMetadata": _locations(records)}
            yield _filled(single_array(records["record_key"]), RecordType.RECORD_INDEX, locations)
        else:
            flags = pa.StructArray.from_arrays([single_array(records["is_deleted"])], ["isDeleted"])
            yield _filled(single_array(records["key"]), RecordType.SECONDARY_INDEX, {"SecondaryIndexMetadata": flags})


def _filled(keys: pa.Array, kind: RecordType | pa.ChunkedArray, given: Mapping[str, pa.Array]) -> pa.Table:
    """Records of which one column says something."""
    types = pa.repeat(pa.scalar(int(kind), pa.int32()), len(keys)) if isinstance(kind, RecordType) else kind
    rest = [given.get(f.name, pa.nulls(len(keys), f.type)) for f in list(WHOLE_RECORD)[2:]]
    return pa.table([keys, types, *rest], schema=WHOLE_RECORD)


def _of_files(found: pa.Table) -> pa.Table:
    """A record for each partition, and the one that lists them."""
    found = found.sort_by([("partition_path", "ascending"), ("name", "ascending")])
    paths = single_array(found["partition_path"])
    shown = pc.if_else(pc.equal(paths, ""), _NO_PARTITION, paths)
    coded = shown.dictionary_encode()
    counts = np.bincount(coded.indices.to_numpy(), minlength=len(coded.dictionary))
    names = pa.concat_arrays([coded.dictionary, single_array(found["name"])])
    sizes = pa.concat_arrays([pa.array(np.zeros(len(counts), np.int64)), single_array(found["size"])])
    entries = pa.StructArray.from_arrays([sizes, pa.array(np.zeros(len(sizes), bool))], fields=list(_FILE))
    offsets = np.cumsum([0, len(counts), *counts]).astype(np.int32)
    keys = pa.concat_arrays([pa.array([_ALL_PARTITIONS]), coded.dictionary])
    types = pa.chunked_array([pa.array([int(RecordType.ALL_PARTITIONS), *[int(RecordType.FILES)] * len(counts)], pa.int32())])
    return _filled(keys, types, {"filesystemMetadata": pa.MapArray.from_arrays(pa.array(offsets), names, entries)})


def _blooms(records: pa.Table) -> pa.StructArray:
    columns = [single_array(records[name]) for name in ("type_code", "instant", "bloom", "is_deleted")]
    return pa.StructArray.from_arrays([c.cast(f.type) for c, f in zip(columns, _BLOOM, strict=True)], fields=list(_BLOOM))


def _statistics(records: pa.Table) -> pa.StructArray:
    ends = [_bounds(records, end) for end in ("min", "max")]
    named = [single_array(records[name]) for name in ("file_name", "column_name")]
    counts = [single_array(records[name]) for name in _COUNTS.values()]
    flags = [single_array(records[name]) for name in ("is_deleted", "is_tight_bound")]
    return pa.StructArray.from_arrays([*named, *ends, *counts, *flags], fields=list(_STATISTICS))


def _bounds(records: pa.Table, end: str) -> pa.StructArray:
    """One end of the bounds: each in the member of its wrapper, null where there is none."""
    kinds, bodies = records[f"{end}_kind"].to_numpy(), single_array(records[f"{end}_value"])
    members = []
    for number, (kind, of) in enumerate(_WRAPPED):
        at = np.flatnonzero(kinds == kind)
        place = np.full(len(kinds), -1, np.int64)
        place[at] = np.arange(len(at))
        values = _unwrapped(bodies.take(pa.array(at)), kind, of).take(pa.array(place, mask=place < 0))
        members.append(
            pa.StructArray.from_arrays([values], fields=list(_BOUND.field(number).type), mask=pa.array(kinds != kind))
        )
    return pa.StructArray.from_arrays(members, fields=list(_BOUND), mask=pa.array(kinds == BoundKind.NULL))


def _unwrapped(bodies: pa.Array, kind: BoundKind, of: pa.DataType) -> pa.Array:
    """What the bytes inside of a wrapper mean."""
    if kind is BoundKind.DECIMAL:
        return unscaled_decimals(bodies, _DECIMAL_SCALE, of)
    if pa.types.is_binary(of) or pa.types.is_string(of):
        return bodies.cast(of)
    if kind in (BoundKind.BOOLEAN, BoundKind.FLOAT, BoundKind.DOUBLE):
        width = np.dtype(np.bool_) if kind is BoundKind.BOOLEAN else np.dtype(of.to_pandas_dtype()).newbyteorder("<")
        return pa.array(np.frombuffer(b"".join(bodies.to_pylist()), width), of)
    return pa.array(np.concatenate([np.zeros(0, np.int64), *(cursor.long() for cursor in chunks(bodies))])).cast(of)


def _locations(records: pa.Table) -> pa.StructArray:
    """Where keys are: the halves and the index of a file id that is a UUID, else its text."""
    ids = single_array(records["file_id"].unify_dictionaries())
    halves = [halves_of(name) for name in ids.dictionary.to_pylist()]
    high, low, index = (
        pa.array([half and half[n] for half in halves], of) for n, of in enumerate((pa.int64(), pa.int64(), pa.int32()))
    )
    encoding = pa.array([0 if half else 1 for half in halves], pa.int32())
    text = pc.if_else(pc.equal(encoding, 0), "", ids.dictionary)
    each = [column.take(ids.indices) for column in (high, low, index, text)]
    path, instant, position = (single_array(records[name]) for name in ("partition_path", "instant_ms", "position"))
    return pa.StructArray.from_arrays([path, *each, instant, encoding.take(ids.indices), position], fields=list(_LOCATION))
