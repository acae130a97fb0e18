"""The one record of the metadata table: its Avro schema in two layouts, and what a schema text says about a layout.

Every value in every partition of a metadata table is one Avro datum of `HoodieMetadataRecord`:

    5 x [null, string]   meta fields, ignored by readers (only in the schema that files embed)
    key                  string, always empty in the stored value: the real key is the HFile row
    type                 int, see RecordType
    filesystemMetadata, BloomFilterMetadata, ColumnStatsMetadata, recordIndexMetadata, SecondaryIndexMetadata
                         [null, ...] unions of which at most one is not null

Layout 8 is what table version 8 embeds, layout 9 adds the branch `ArrayWrapper` to the bounds of column statistics and the
field `valueType` after them. Writers of both kinds meet in one table, so a value is decoded with the layout that its own file
embeds, and written with the layout found in the base file of its slice.
"""

from __future__ import annotations

import enum
import functools
import json
from dataclasses import dataclass
from typing import Any

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.json_text import parse_json

__all__ = ["META_FIELDS", "BoundKind", "RecordLayout", "RecordType", "layout_of", "schema_text"]

META_FIELDS = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
_PAYLOADS = (
    "filesystemMetadata",
    "BloomFilterMetadata",
    "ColumnStatsMetadata",
    "recordIndexMetadata",
    "SecondaryIndexMetadata",
)
_STATISTICS = (
    "fileName",
    "columnName",
    "minValue",
    "maxValue",
    "valueCount",
    "nullCount",
    "totalSize",
    "totalUncompressedSize",
    "isDeleted",
    "isTightBound",
    "valueType",
)


class RecordType(enum.IntEnum):
    """What a record is, its field `type`."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTER = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


class BoundKind(enum.IntEnum):
    """How a minimum or maximum is wrapped; the number is its branch in the unions of layout 9."""

    NULL = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    DATE = 8
    DECIMAL = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    LOCAL_DATE = 12
    ARRAY = 13


_WRAPPERS = {
    "BooleanWrapper": BoundKind.BOOLEAN,
    "IntWrapper": BoundKind.INT,
    "LongWrapper": BoundKind.LONG,
    "FloatWrapper": BoundKind.FLOAT,
    "DoubleWrapper": BoundKind.DOUBLE,
    "BytesWrapper": BoundKind.BYTES,
    "StringWrapper": BoundKind.STRING,
    "DateWrapper": BoundKind.DATE,
    "DecimalWrapper": BoundKind.DECIMAL,
    "TimeMicrosWrapper": BoundKind.TIME_MICROS,
    "TimestampMicrosWrapper": BoundKind.TIMESTAMP_MICROS,
    "LocalDateWrapper": BoundKind.LOCAL_DATE,
    "ArrayWrapper": BoundKind.ARRAY,
}
_WRAPPED_TYPES: dict[str, Any] = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": {"type": "string", "avro.java.string": "String"},
    "DateWrapper": "int",
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": "long",
    "LocalDateWrapper": "int",
}


@dataclass(frozen=True)
class RecordLayout:
    """What a schema text says about the bytes of a record.

    Attributes:
        schema_text: The text as it was found or made; writers embed it unchanged.
        meta_fields: How many [null, string] fields stand before `key` (5 in files, 0 in commit metadata).
        payloads: The payload unions after `type`, in order.
        statistics: The fields of ColumnStatsMetadata, in order.
        branches: The branches of the bound unions, in order; the first is NULL.
    """

    schema_text: str
    meta_fields: int
    payloads: tuple[str, ...]
    statistics: tuple[str, ...]
    branches: tuple[BoundKind, ...]


@functools.lru_cache(maxsize=64)
def layout_of(text: str, path: str = "") -> RecordLayout:
    """Read the layout from an embedded schema.

    Args:
        text: Avro schema as JSON.
        path: File that embeds it, for the error.

    Raises:
        CorruptFileError: Not the JSON of a metadata record.
        UnsupportedFeature: A metadata record with fields that are not known here.
    """
    try:
        fields = parse_json(text)["fields"]
        names = [f["name"] for f in fields]
        lead, payloads = names.index("key"), tuple(names[names.index("key") + 2 :])
        types = {f["name"]: f["type"] for f in fields}
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(path, 0, "the Avro schema of a metadata record", text[:80]) from error
    unknown = [n for n in payloads if n not in _PAYLOADS]
    if unknown or names[lead + 1 : lead + 2] != ["type"]:
        raise UnsupportedFeature(f"the metadata record field {', '.join(unknown) or 'order'} in {path or 'a schema'}")
    statistics: tuple[str, ...] = ()
    branches: tuple[BoundKind, ...] = (BoundKind.NULL,)
    if "ColumnStatsMetadata" in types:
        stats = types["ColumnStatsMetadata"][1]["fields"]
        statistics = tuple(f["name"] for f in stats)
        bound = next(f["type"] for f in stats if f["name"] == "minValue")
        wrappers = [b if isinstance(b, str) else b["name"] for b in bound]
        unknown = [n for n in statistics if n not in _STATISTICS]
        unknown += [n for n in wrappers if n != "null" and n not in _WRAPPERS]
        if unknown:
            raise UnsupportedFeature(f"the column statistics field {', '.join(unknown)} in {path or 'a schema'}")
        branches = tuple(_WRAPPERS.get(n, BoundKind.NULL) for n in wrappers)
    return RecordLayout(text, lead, payloads, statistics, branches)


@functools.lru_cache(maxsize=8)
def schema_text(version: int, meta_fields: bool = True) -> str:
    """The schema that tables of a version embed, as compact JSON without documentation.

    Args:
        version: Table version; 9 and above give layout 9, below layout 8.
        meta_fields: With the five meta fields (files and log blocks) or without (`extraMetadata.schema` of commits).
    """
    return json.dumps(_schema(version >= 9, meta_fields), separators=(",", ":"))


def _schema(v9: bool, meta_fields: bool) -> dict[str, Any]:
    text = _WRAPPED_TYPES["StringWrapper"]
    fields = [_field("_hoodie_" + n, ["null", "string"], None) for n in META_FIELDS] if meta_fields else []
    file_info = _record("HoodieMetadataFileInfo", _field("size", "long"), _field("isDeleted", "boolean"))
    bloom = _record(
        "HoodieMetadataBloomFilter",
        _field("type", text),
        _field("timestamp", text),
        _field("bloomFilter", "bytes"),
        _field("isDeleted", "boolean"),
    )
    location = _record(
        "HoodieRecordIndexInfo",
        _optional("partitionName", text),
        _optional("fileIdHighBits", "long"),
        _optional("fileIdLowBits", "long"),
        _optional("fileIndex", "int"),
        _optional("fileId", text),
        _optional("instantTime", "long"),
        _field("fileIdEncoding", "int", 0),
        _optional("position", "long"),
    )
    fields += [
        _field("key", text),
        _field("type", "int"),
        _field("filesystemMetadata", ["null", {"type": "map", "values": file_info, "avro.java.string": "String"}]),
        _optional("BloomFilterMetadata", bloom),
        _optional("ColumnStatsMetadata", _statistics_schema(v9, text)),
        _optional("recordIndexMetadata", location),
        _optional("SecondaryIndexMetadata", _record("HoodieSecondaryIndexInfo", _field("isDeleted", "boolean"))),
    ]
    return {"namespace": "org.apache.hudi.avro.model"} | _record("HoodieMetadataRecord", *fields)


def _statistics_schema(v9: bool, text: Any) -> dict[str, Any]:
    wrappers: list[Any] = [_record(n, _field("value", t)) for n, t in _WRAPPED_TYPES.items()]
    names = list(_WRAPPED_TYPES)
    if v9:
        items = {"type": "array", "items": ["null", *names]}
        wrappers.append(_record("ArrayWrapper", _optional("wrappedValues", items)))
        names.append("ArrayWrapper")
    fields = [_optional("fileName", text), _optional("columnName", text)]
    fields += [_field("minValue", ["null", *wrappers], None), _field("maxValue", ["null", *names], None)]
    fields += [_optional(n, "long") for n in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")]
    fields += [_field("isDeleted", "boolean"), _field("isTightBound", "boolean", False)]
    if v9:
        info = _record("HoodieValueTypeInfo", _field("typeOrdinal", "int"), _optional("additionalInfo", text))
        fields.append(_optional("valueType", info))
    return _record("HoodieMetadataColumnStats", *fields)


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _field(name: str, kind: Any, *default: Any) -> dict[str, Any]:
    return {"name": name, "type": kind} | ({"default": default[0]} if default else {})


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return _field(name, ["null", kind], None)
