"""Schema history of tables that were altered by SQL: columns keep an id through renames, so old files stay readable.

`latest_schema` in a commit's extra metadata, and every entry of a schema commit, is JSON of one version::

    {"max_column_id":11, "version_id":20261121033656461, "type":"record",
     "fields":[{"id":5, "name":"id", "optional":true, "type":"string", "doc":"…"}, …]}

`.hoodie/.schema/<requested>_<completed>.schemacommit` is `{"schemas":[…]}`, newest first, all versions so far. Version 0 is the
schema before the first ALTER, any other version is the instant of its ALTER. Types are names (`int`, `decimal(10, 2)`,
`vector[4, FLOAT, FIXED_BYTES]`) or objects: `{"type":"record","fields":[…]}`, `{"type":"array","element_id":…,"element":…,
"element_optional":…}`, `{"type":"map","key_id":…,"key":…,"value_id":…,"value":…,"value_optional":…}`. Ids are never used again.

Release 1.2.0 of Apache Hudi writes `timestamp-millis`, `local-timestamp-micros` and their like, and cannot read them: it takes
the whole history for none, and does not find renamed columns by names. It reads `local_timestamp_micros`, as written here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError, SchemaError
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.vectors import Vector
from hudimeta.schema.conform import assemble, list_runs
from hudimeta.schema.hudi_types import HUDI_TYPE_KEY
from hudimeta.schema.promotion import Fit, fit
from hudimeta.types import META_COLUMNS

__all__ = [
    "SCHEMA_FOLDER",
    "SCHEMA_SUFFIX",
    "SchemaColumn",
    "InternalSchema",
    "SchemaHistory",
    "completed_schema_files",
    "decode_schema",
    "encode_history",
    "encode_schema",
]

SCHEMA_FOLDER = ".hoodie/.schema"
SCHEMA_SUFFIX = ".schemacommit"
"""Where schema commits lie; requested and inflight files beside them are empty."""

_COMPLETED = re.compile(r"\d{14,17}(_\d{14,17})?\.schemacommit")
MAX_DEPTH = 64
DAMAGED = "The schema history is damaged: restore the file, or read with the table's present schema only."

Json = Any

_NAMES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "time-millis": pa.time32("ms"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
}
_TYPED = ("fields", "element", "key", "value")
"""What holds types, in the JSON of one."""
_DECIMAL = re.compile(r"decimal(?:_fixed|_bytes)?\((\d{1,2}),\s*(\d{1,2})\)(?:\[\d+\])?")
_FIXED = re.compile(r"fixed\[(\d{1,6})\]")


@dataclass(frozen=True)
class SchemaColumn:
    """A column or nested field of one version.

    Attributes:
        id: Stays the same through renames.
        name: In this version.
        optional: Nullable.
        type: Arrow type, names inside as in this version.
        children: Fields of a struct, the element of a list, key and value of a map.
        stored: The type as JSON has it.
        doc: None when there is none.
    """

    id: int
    name: str
    optional: bool
    type: pa.DataType
    children: tuple[SchemaColumn, ...]
    stored: Json
    doc: str | None = None

    @property
    def field(self) -> pa.Field:
        """As an Arrow field."""
        vector = Vector.in_history(self.stored)
        return pa.field(self.name, self.type, self.optional, vector and {HUDI_TYPE_KEY: str(vector).encode()})


@dataclass(frozen=True)
class InternalSchema:
    """One version of the columns.

    Attributes:
        version: 0, or the instant of the ALTER as a number.
        max_column_id: The greatest id ever given.
        columns: In order, the five meta columns included when the version has them.
    """

    version: int
    max_column_id: int
    columns: tuple[SchemaColumn, ...]

    @property
    def arrow(self) -> pa.Schema:
        """The data columns, without meta columns."""
        return pa.schema([c.field for c in self.columns if c.name not in META_COLUMNS])

    def places(self) -> Iterator[tuple[str, SchemaColumn]]:
        """Columns, fields, elements, keys and values at every depth, by dotted names."""
        return _places(self.columns, "")

    def sources(self, wanted: InternalSchema) -> dict[str, str | None]:
        """For each column of `wanted`, its name in a file of this version; None when the file has no such column."""
        names = {c.id: c.name for c in self.columns}
        return {c.name: names.get(c.id) for c in wanted.columns}

    def read_as(self, rows: pa.Table, wanted: InternalSchema) -> pa.Table:
        """Rows of a file of this version under the names of another one.

        Args:
            rows: As the file has them; columns that the version does not know keep their names.
            wanted: The version to show.

        Returns:
            Columns with the names of `wanted`, at every depth; columns whose id it does not have are gone. Types are still
            the file's, and new columns are missing: `conform(…, altered=True)` does the rest.
        """
        own = {c.name: c for c in self.columns}
        shown = {c.id: c for c in wanted.columns}
        names, columns = [], []
        for name in rows.column_names:
            column, values = own.get(name), rows[name]
            target = None if column is None else shown.get(column.id)
            if column is None and not any(c.name == name for c in wanted.columns):
                names.append(name)
                columns.append(values)
            elif column is not None and target is not None:
                names.append(target.name)
                chunks = [_rename(chunk, column, target) for chunk in values.chunks]
                columns.append(pa.chunked_array(chunks) if chunks else values)
        return pa.table(columns, names=names)


def _rename(values: pa.Array, own: SchemaColumn, target: SchemaColumn) -> pa.Array:
    """The array with nested fields renamed and dropped by id; its buffers are shared."""
    kind = values.type
    if _same_names(own, target) or len(own.children) == 0:
        return values
    if pa.types.is_struct(kind):
        shown = {c.id: c for c in target.children}
        by_name = {c.name: c for c in own.children}
        parts = []
        for i, child in enumerate(values.flatten()):
            column = by_name.get(kind.field(i).name)
            new = None if column is None else shown.get(column.id)
            if column is not None and new is not None:
                parts.append((new.name, _rename(child, column, new)))
        fields = [pa.field(name, array.type) for name, array in parts]
        # Where no field is left, only the mask tells how many there are.
        mask = values.is_null() if values.null_count or not parts else None
        return pa.StructArray.from_arrays([array for _, array in parts], fields=fields, mask=mask)
    valid = values.is_valid() if values.null_count else None
    offsets, inner = list_runs(values, own.name)
    if pa.types.is_list(kind):
        element = _rename(inner, own.children[-1], target.children[-1])
        new_kind = pa.list_(kind.value_field.with_type(element.type))
        return assemble(new_kind, len(values), valid, [offsets], [element])
    element = _rename(inner.field(1), own.children[-1], target.children[-1])
    new_kind = pa.map_(kind.key_field, kind.item_field.with_type(element.type))
    pairs = pa.StructArray.from_arrays([inner.field(0), element], fields=[new_kind.key_field, new_kind.item_field])
    return assemble(new_kind, len(values), valid, [offsets], [pairs])


def _same_names(own: SchemaColumn, target: SchemaColumn) -> bool:
    """Whether nothing below is renamed or gone."""
    if [(c.id, c.name) for c in own.children] != [(c.id, c.name) for c in target.children]:
        return False
    return all(_same_names(a, b) for a, b in zip(own.children, target.children, strict=True))


@dataclass(frozen=True)
class SchemaHistory:
    """All versions of a table's schema, oldest first."""

    versions: tuple[InternalSchema, ...]

    @classmethod
    def decode(cls, text: str | bytes, path: str = "") -> SchemaHistory:
        """Read a schema commit.

        Args:
            text: Its content.
            path: For errors.

        Raises:
            CorruptFileError: It is not one.
        """
        try:
            parsed = _parse(text)
            entries = parsed.get("schemas") if isinstance(parsed, dict) else None
            if not isinstance(entries, list) or not entries:
                raise SchemaError("the schema history holds no schemas", DAMAGED)
            return cls(tuple(sorted((_schema(e) for e in entries), key=lambda s: s.version)))
        except SchemaError as error:
            raise CorruptFileError(path, 0, "a schema history", error.message, DAMAGED) from error

    @property
    def latest(self) -> InternalSchema:
        """The newest version."""
        return self.versions[-1]

    @cached_property
    def goes_by_names(self) -> bool:
        """Whether names lead to every column in all files, as in a table that never was altered.

        So it is while columns are added, moved, dropped, and made as wide as any write may make them. Where one was renamed, or
        its name meant another one before, or numbers became decimals, files are read by the version that was valid for them. So
        are they where a struct lost a field, which may be all that a file has of it, and says whether the struct is null.
        """
        return not self._found_otherwise

    def keeps(self, column: str) -> bool:
        """Whether the name of a column, dotted for a field of a struct, leads to it in all files, whatever became of others."""
        return column not in self._found_otherwise

    @cached_property
    def _found_otherwise(self) -> frozenset[str]:
        """Names of today that do not lead to their columns in all files."""
        now = {column.id: (path, column) for path, column in self.latest.places()}
        names = {path for path, _ in now.values()}
        found = set()
        for path, column in (place for version in self.versions for place in version.places()):
            name, later = now.get(column.id, (None, None))
            if path in names and name != path:
                found.add(path)
            if name is not None and later is not None and (path != name or not _widens(column, later)):
                found.add(name)
        return frozenset(found)

    def at(self, instant: str) -> InternalSchema:
        """The version that was valid at an instant: the newest that is not later; the oldest for instants before all."""
        moment = int(instant[:17].ljust(17, "0"))
        return next((v for v in reversed(self.versions) if v.version <= moment), self.versions[0])

    def until(self, instant: str) -> SchemaHistory:
        """The history as it was at an instant: the version that was valid then, and those before it."""
        valid = self.at(instant)
        return SchemaHistory(tuple(v for v in self.versions if v.version <= valid.version))

    def with_newest_names(self, rows: pa.Table, instant: str) -> pa.Table:
        """Rows of a file or block written at `instant` under the names of the newest version (see `read_as`)."""
        return self.at(instant).read_as(rows, self.latest)


def _places(columns: Sequence[SchemaColumn], above: str) -> Iterator[tuple[str, SchemaColumn]]:
    for column in columns:
        yield f"{above}{column.name}", column
        yield from _places(column.children, f"{above}{column.name}.")


def _widens(column: SchemaColumn, later: SchemaColumn) -> bool:
    if column.children or later.children:
        left = {child.id for child in column.children} <= {child.id for child in later.children}
        return left and type(column.type) is type(later.type)
    return fit(column.type, later.type) in (Fit.SAME, Fit.PROMOTED)


def completed_schema_files(names: Iterable[str]) -> list[str]:
    """The schema commits of a listing of `SCHEMA_FOLDER` that are completed, newest first.

    Args:
        names: File names; leave out those of instants that are not completed on the table's timeline.
    """
    return sorted((name for name in names if _COMPLETED.fullmatch(name)), reverse=True)


def decode_schema(text: str) -> InternalSchema:
    """Read one version (`latest_schema`). Raises SchemaError when it is not one."""
    return _schema(_parse(text))


def encode_schema(schema: InternalSchema) -> str:
    """One version as Hudi writes it; the inverse of `decode_schema`."""
    return json.dumps(_schema_json(schema), separators=(",", ":"), ensure_ascii=False)


def encode_history(history: SchemaHistory) -> str:
    """Content of a schema commit, newest version first; the inverse of `SchemaHistory.decode`."""
    entries = [_schema_json(s) for s in reversed(history.versions)]
    return json.dumps({"schemas": entries}, separators=(",", ":"), ensure_ascii=False)


def _schema_json(schema: InternalSchema) -> Json:
    head = {"max_column_id": schema.max_column_id, "version_id": schema.version, "type": "record"}
    return head | {"fields": [_column_json(c) for c in schema.columns]}


def _column_json(column: SchemaColumn) -> Json:
    entry = {"id": column.id, "name": column.name, "optional": column.optional, "type": _readable(column.stored)}
    return entry if column.doc is None else entry | {"doc": column.doc}


def _readable(stored: Json) -> Json:
    """A type with every name as Apache Hudi can read it, at every depth."""
    if isinstance(stored, str):
        return stored.replace("-", "_")
    if isinstance(stored, list):
        return [entry | {"type": _readable(entry["type"])} for entry in stored]
    return {key: _readable(part) if key in _TYPED else part for key, part in stored.items()}


def _parse(text: str | bytes) -> Json:
    try:
        return parse_json(text)
    except ValueError as error:
        raise SchemaError(f"the schema history is not JSON: {error}", DAMAGED) from error


def _schema(entry: Json) -> InternalSchema:
    try:
        columns = tuple(_columns(entry["fields"], 0))
        highest = max(_ids(columns), default=-1)
        return InternalSchema(int(_key(entry, "version_id")), int(entry.get("max_column_id", highest)), columns)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemaError(f"the schema history is malformed at {error}", DAMAGED) from error


def _ids(columns: tuple[SchemaColumn, ...]) -> Iterator[int]:
    for column in columns:
        yield column.id
        yield from _ids(column.children)


def _key(entry: Mapping[str, Json], name: str) -> Json:
    """Some releases write `version-id` where others write `version_id`."""
    return entry[name] if name in entry else entry[name.replace("_", "-")]


def _columns(fields: list[Json], depth: int) -> Iterator[SchemaColumn]:
    for f in fields:
        kind, children = _type(f["type"], depth)
        yield SchemaColumn(int(f["id"]), f["name"], bool(f["optional"]), kind, children, f["type"], f.get("doc"))


def _type(stored: Json, depth: int) -> tuple[pa.DataType, tuple[SchemaColumn, ...]]:
    if depth > MAX_DEPTH:
        raise SchemaError(f"the schema history nests deeper than {MAX_DEPTH} levels", DAMAGED)
    if isinstance(stored, str):
        vector = Vector.in_history(stored)
        return _leaf(stored.lower()) if vector is None else vector.arrow, ()
    if stored["type"] == "record":
        fields = tuple(_columns(stored["fields"], depth + 1))
        return pa.struct([c.field for c in fields]), fields
    if stored["type"] == "array":
        element = _child(stored, "element", bool(stored["element_optional"]), depth)
        return pa.list_(element.field), (element,)
    if stored["type"] == "map":
        key = _child(stored, "key", False, depth)
        value = _child(stored, "value", bool(stored["value_optional"]), depth)
        return pa.map_(key.type, value.field), (key, value)
    raise ValueError(f"the type {stored['type']!r}")


def _child(stored: Json, name: str, optional: bool, depth: int) -> SchemaColumn:
    kind, children = _type(stored[name], depth + 1)
    return SchemaColumn(int(_key(stored, f"{name}_id")), name, optional, kind, children, stored[name])


def _leaf(name: str) -> pa.DataType:
    decimal, fixed = _DECIMAL.fullmatch(name), _FIXED.fullmatch(name)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if fixed:
        return pa.binary(int(fixed[1]))
    known = _NAMES.get(name.replace("_", "-"))
    if known is None:
        raise ValueError(f"the type {name!r}")
    return known
