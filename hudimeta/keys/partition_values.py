"""The values of partition fields back from partition paths, for pruning and for tables whose files lack the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.errors import HudiError
from hudimeta.formats import plain_arrays
from hudimeta.keys.joda import tokens
from hudimeta.keys.kinds import KeyGeneratorType, generator_type, split_fields
from hudimeta.keys.partition_path import DEFAULT_PARTITION, LEGACY_DEFAULT_PARTITION, unescape
from hudimeta.keys.timestamp_partition import PREFIXES
from hudimeta.schema.promotion import is_bytes

__all__ = ["PartitionLayout", "partition_values", "type_of"]


@dataclass(frozen=True)
class PartitionLayout:
    """What the folders of a table stand for.

    Attributes:
        fields: Names of the partition fields, in order; empty when the table is not partitioned.
        plain: Per field: True when the folder is the column's value, False when it is a rendering of it (time-based).
        levels: Per field: how many folders it takes.
        hive: `field=value` folders.
        encoded: Values are URL encoded.
    """

    fields: tuple[str, ...]
    plain: tuple[bool, ...]
    levels: tuple[int, ...]
    hive: bool = False
    encoded: bool = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> PartitionLayout:
        """The layout of a table; needs less than a `KeyGenerator`, so that every table can be read."""
        stored = split_fields(properties.get("hoodie.table.partition.fields"))
        names = tuple(name.partition(":")[0].strip() for name in stored)
        timed = _time_based(properties, stored)
        encoded = properties.get("hoodie.datasource.write.partitionpath.urlencode", "").lower() == "true"
        hive = properties.get("hoodie.datasource.write.hive_style_partitioning", "").lower() == "true"
        format_levels = 1 if encoded else _levels(properties)
        return cls(names, tuple(not t for t in timed), tuple(format_levels if t else 1 for t in timed), hive, encoded)

    def values(self, paths: pa.Array, schema: pa.Schema) -> pa.Table:
        """`partition_values` of this layout, typed by the table's schema; time-based fields are left out."""
        kept = {f: p for f, p in zip(self.fields, self.plain, strict=True) if p}
        typed = [pa.field(f, type_of(schema, f)) for f in self.fields]
        table = partition_values(paths, typed, hive=self.hive, encoded=self.encoded, levels=self.levels)
        return table.select([name for name in table.column_names if name in kept])


def partition_values(
    paths: pa.Array, fields: Sequence[pa.Field], *, hive: bool, encoded: bool, levels: Sequence[int] | None = None
) -> pa.Table:
    """Cut partition paths into typed values.

    Args:
        paths: Relative partition paths (strings, no nulls).
        fields: Partition fields with the column types that are wanted.
        hive: `field=value` folders; a prefix that is there is cut off in any case.
        encoded: Values are URL encoded.
        levels: Folders that each field takes; None is one each.

    Returns:
        One column per field, one row per path. Null stands for the default partition. A field is left out when a path does not
        have as many folders as the fields take (a value with unencoded slashes), or when a value is not of the wanted type:
        then nothing is known about it, and nothing may be pruned by it. One field alone takes the whole path.
    """
    wanted = list(levels or [1] * len(fields))
    texts: list[list[str | None]] = [[] for _ in fields]
    whole = True
    for path in paths.to_pylist():
        parts = path.split("/") if path else []
        if len(fields) > 1 and len(parts) != sum(wanted):
            whole = False
            break
        start = 0
        for i, field in enumerate(fields):
            part = path if len(fields) == 1 else "/".join(parts[start : start + wanted[i]])
            start += wanted[i]
            texts[i].append(_value(part, field, encoded))
    if not whole:
        return pa.table({})
    columns = {f.name: _typed(values, f.type) for f, values in zip(fields, texts, strict=True)}
    return pa.table({name: values for name, values in columns.items() if values is not None})


def _value(part: str, field: pa.Field, encoded: bool) -> str | None:
    text = part.removeprefix(f"{field.name}=")
    text = unescape(text) if encoded else text
    if text == DEFAULT_PARTITION:
        return None
    legacy = text == LEGACY_DEFAULT_PARTITION and not pa.types.is_string(field.type)
    return None if legacy else text


def _typed(texts: list[str | None], kind: pa.DataType) -> pa.Array | None:
    """Texts as values of a type: the inverse of Java's text. None when one of them is not such a value."""
    import pyarrow.compute as pc

    known = [text for text in texts if text is not None]
    values = plain_arrays.texts(known) if len(known) == len(texts) else pa.array(texts, pa.string())
    types = pa.types
    try:
        if types.is_timestamp(kind):
            return pc.cast(pc.cast(values, pa.int64()), kind)
        if types.is_date(kind):
            return pc.cast(pc.replace_substring_regex(values, r"^\+", ""), pa.date32())
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
            return pc.cast(values, kind)
        if is_bytes(kind):
            return pa.array([None if text is None else bytes.fromhex(text) for text in texts], kind)
        return values if types.is_string(kind) else None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return None


def type_of(schema: pa.Schema, name: str) -> pa.DataType:
    """Type of a (dotted) column; text when the schema does not have it."""
    top, *rest = name.split(".")
    kind = schema.field(top).type if top in schema.names else pa.string()
    for part in rest:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return pa.string()
        kind = kind.field(part).type
    return kind


def _time_based(properties: Mapping[str, str], stored: Sequence[str]) -> list[bool]:
    try:
        kind = generator_type(properties)
    except HudiError:  # a user's own generator: its folders may mean anything
        return [True] * len(stored)
    if kind is KeyGeneratorType.CUSTOM:
        # Tables before version 8 do not store the types: such a field may be time-based.
        return [name.partition(":")[2].strip().upper() != "SIMPLE" for name in stored]
    return [kind is KeyGeneratorType.TIMESTAMP] * len(stored)


def _levels(properties: Mapping[str, str]) -> int:
    pattern = next((properties[p + "output.dateformat"] for p in PREFIXES if p + "output.dateformat" in properties), "")
    return 1 + sum(t.text.count("/") for t in tokens(pattern) if not t.letter)
