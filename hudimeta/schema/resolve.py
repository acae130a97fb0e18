"""Which schema a table has, now or as of an instant.

In this order: the schema in the metadata of the newest commit (by requested time) whose operation can change it; the schema
that the table was created with; the columns of a base file. Commits of COMPACT, LOG_COMPACT and CLUSTER copy a schema that may
be older than the newest, so they count only when nothing else says anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.errors import CorruptFileError, SchemaError, SchemaUnknown
from hudimeta.schema.avro_arrow import avro_to_arrow
from hudimeta.schema.internal_schema import DAMAGED, InternalSchema, decode_schema
from hudimeta.schema.names import strip_meta_columns, with_meta_columns
from hudimeta.types import COPYING_OPERATIONS

__all__ = ["ResolvedSchema", "resolve_table_schema", "version_in"]

SCHEMA_KEY = "schema"
LATEST_SCHEMA_KEY = "latest_schema"
_PROPERTIES = ".hoodie/hoodie.properties"


@dataclass(frozen=True)
class ResolvedSchema:
    """A table's columns at one moment.

    Attributes:
        data: Data columns, without meta columns; columns that live only in partition folders stand last.
        source: Where it comes from: `commit <instant>`, `create schema` or `base file`.
        avro: The Avro JSON that it was read from, None for a base file.
        internal: The version with column ids when the commit carries one (tables altered by SQL), else None.
    """

    data: pa.Schema
    source: str
    avro: str | None = None
    internal: InternalSchema | None = None

    @property
    def full(self) -> pa.Schema:
        """The five meta columns, all nullable strings, and the data columns."""
        return with_meta_columns(self.data)


def resolve_table_schema(
    commits: Iterable[tuple[str, Callable[[], Mapping[str, Any]]]],
    *,
    create_schema: str | None = None,
    base_file_schema: Callable[[], pa.Schema | None] | None = None,
    partition_fields: Iterable[str] = (),
    as_of: str | None = None,
    file_of: Callable[[str], str] | None = None,
) -> ResolvedSchema:
    """Find a table's schema with as few reads as possible.

    Args:
        commits: Completed commits that write data, newest requested time first: requested time, and a function that reads the
            commit's metadata (`operationType`, `extraMetadata`). Only as many are read as are needed.
        create_schema: `hoodie.table.create.schema`.
        base_file_schema: Reads the columns of any base file; None as its answer when there is no file.
        partition_fields: Fields that files may lack (`hoodie.datasource.write.drop.partition.columns`); they are appended as
            nullable strings when the schema does not have them.
        as_of: Only commits with a requested time up to this one count; None for all.
        file_of: Where a commit of a requested time stands, for errors.

    Raises:
        SchemaUnknown: Nothing tells the schema.
        CorruptFileError: What tells it is no schema.
    """
    found = _from_commits(((t, read) for t, read in commits if as_of is None or t <= as_of), file_of or "commit {}".format)
    if found is None and create_schema:
        found = ResolvedSchema(strip_meta_columns(avro_to_arrow(create_schema, _PROPERTIES)), "create schema", create_schema)
    if found is None and base_file_schema is not None:
        columns = base_file_schema()
        if columns is not None:
            found = ResolvedSchema(strip_meta_columns(columns.remove_metadata()), "base file")
    if found is None:
        raise SchemaUnknown
    missing = [pa.field(f, pa.string()) for f in partition_fields if f not in found.data.names and "." not in f]
    if not missing:
        return found
    data = pa.schema([*found.data, *missing], metadata=found.data.metadata)
    return ResolvedSchema(data, found.source, found.avro, found.internal)


def _from_commits(
    commits: Iterable[tuple[str, Callable[[], Mapping[str, Any]]]], file_of: Callable[[str], str]
) -> ResolvedSchema | None:
    fallback: tuple[str, Mapping[str, Any]] | None = None
    for time, read in commits:
        metadata = read()
        extra = metadata.get("extraMetadata") or {}
        if not extra.get(SCHEMA_KEY):
            continue
        if metadata.get("operationType") not in COPYING_OPERATIONS:
            return _resolved(time, extra, file_of)
        fallback = fallback or (time, extra)
    return None if fallback is None else _resolved(*fallback, file_of)


def _resolved(time: str, extra: Mapping[str, Any], file_of: Callable[[str], str]) -> ResolvedSchema:
    avro = str(extra[SCHEMA_KEY])
    versioned = extra.get(LATEST_SCHEMA_KEY)
    internal = version_in(versioned, file_of(time)) if versioned else None
    return ResolvedSchema(strip_meta_columns(avro_to_arrow(avro, file_of(time))), f"commit {time}", avro, internal)


def version_in(text: str, path: str) -> InternalSchema:
    """The version of the columns that a commit states. Raises CorruptFileError when it is none; `path` is the commit's."""
    try:
        return decode_schema(text)
    except SchemaError as error:
        raise CorruptFileError(path, 0, f"a version of the columns in {LATEST_SCHEMA_KEY}", error.message, DAMAGED) from error
