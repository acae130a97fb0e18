"""The columns of a table: from the newest write, and whatever the files themselves do not hold.

Hudi stores the schema of the data, without meta columns, in the metadata of every write. To it come the five meta columns and,
where the table leaves them out of its files, the partition columns at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.errors import SchemaUnknown, UnsupportedFeature
from hudimeta.schema import (
    avro_to_arrow,
    normalise_type,
    resolve_table_schema,
    shown_metadata,
    strip_meta_columns,
    vector_of,
    with_meta_columns,
)
from hudimeta.table.properties_file import PROPERTIES_PATH
from hudimeta.table.remembered import refuse_other_table
from hudimeta.timeline.archived import ArchivedRecords

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.table.properties import TableProperties
    from hudimeta.timeline import History, Timeline
    from hudimeta.types import Instant

__all__ = [
    "TableSchema",
    "as_it_was",
    "file_schema",
    "files_hold",
    "plain_schema",
    "refuse_foreign_write",
    "resolve_schema",
]

_NO_COLUMNS = '{"type":"record","name":"none","fields":[]}'


@dataclass(frozen=True)
class TableSchema:
    """Columns of a table.

    Attributes:
        arrow: All of them, nullable, in types that Spark has too, meta columns in front.
        stored: Data columns in the types that the table's Avro schema states: timestamps in their own unit, for example.
        dropped: Partition columns whose values only partition paths tell: files need not hold them.
        avro_json: The Avro schema as stored; None when only a file could tell the columns.
    """

    arrow: pa.Schema
    stored: pa.Schema
    dropped: tuple[str, ...] = ()
    avro_json: str | None = None


def resolve_schema(snapshot: Snapshot) -> TableSchema:
    """The schema of a snapshot's table: of its newest write, else of its creation, else of its newest base file.

    Raises:
        SchemaError: Nothing tells the columns, or they cannot be read.
        UnsupportedFeature: They cannot be read.
        CorruptFileError: The newest write knows the table as another one, or what tells the columns is no schema.
    """
    properties = snapshot.properties
    found = resolve_table_schema(
        _commits(snapshot),
        create_schema=properties.create_schema,
        base_file_schema=lambda: _schema_of_a_file(snapshot),
        file_of=partial(_file_of, snapshot.timeline),
    )
    refuse_foreign_write(properties, snapshot.timeline)
    return _shown(properties, found.data, found.avro)


def _shown(properties: TableProperties, data: pa.Schema, avro: str | None) -> TableSchema:
    columns = plain_schema(data)
    dropped = _dropped_columns(properties, columns)
    shown = with_meta_columns(pa.schema([*columns, *(f for f in dropped if f.name not in columns.names)]))
    return TableSchema(shown, data, tuple(f.name for f in dropped), avro)


def file_schema(properties: TableProperties, timeline: Timeline) -> pa.Schema | None:
    """The data columns of a table's files; None for a table without a commit and without a schema in its properties."""
    found = timeline.latest_schema()
    text, path = (found[1], timeline.path_of(found[0])) if found else (properties.create_schema, PROPERTIES_PATH)
    return None if text is None else files_hold(strip_meta_columns(avro_to_arrow(text, path)), properties)


def files_hold(schema: pa.Schema, properties: TableProperties) -> pa.Schema:
    """Those of some columns that files hold: partition columns may be in partition paths alone."""
    gone = properties.partition_fields if properties.drop_partition_columns else ()
    return pa.schema([f for f in schema if f.name not in gone], schema.metadata) if gone else schema


def refuse_foreign_write(properties: TableProperties, timeline: Timeline) -> None:
    """Refuse a table whose newest write knows it as another one.

    Raises:
        CorruptFileError: With both tables.
    """
    for write in timeline.writes[-1:]:
        refuse_other_table(properties, timeline.metadata(write), timeline.path_of(write))


def as_it_was(latest: TableSchema, snapshot: Snapshot) -> TableSchema:
    """The columns that the table had as of the snapshot's moment, under the names and in the types of that time.

    Args:
        latest: Columns of today: of a moment that no write tells, where the table was not altered since.
        snapshot: Of the moment.
    """
    try:
        then = resolve_table_schema(_commits_then(snapshot), file_of=partial(_file_of, snapshot.timeline))
    except SchemaUnknown:  # no write of that time carries a schema
        history = snapshot.history
        return latest if history is None else _shown(snapshot.properties, history.latest.arrow, None)
    return _shown(snapshot.properties, _partitions_of_today(then.data, latest, snapshot.properties), then.avro)


def _partitions_of_today(then: pa.Schema, latest: TableSchema, properties: TableProperties) -> pa.Schema:
    """Partition columns have today's types at all moments, as in Apache Hudi: an UPDATE of its own may turn one into text."""
    today = {name: latest.stored.field(name).type for name in properties.partition_fields if name in latest.stored.names}
    return pa.schema([f.with_type(today.get(f.name, f.type)) for f in then], then.metadata)


def _commits(snapshot: Snapshot) -> Iterator[tuple[str, Callable[[], Mapping[str, Any]]]]:
    timeline = snapshot.timeline
    return ((i.time, partial(timeline.metadata, i)) for i in reversed(timeline.writes))


def _commits_then(snapshot: Snapshot) -> Iterator[tuple[str, Callable[[], Mapping[str, Any]]]]:
    """The writes up to a moment. Before the active timeline, where only savepointed ones are left, archived ones count too."""
    moment, timeline = snapshot.as_of or "", snapshot.timeline
    active = ((time, read) for time, read in _commits(snapshot) if time <= moment)
    if moment >= (timeline.first_active_write or ""):
        yield from active
        return
    held = {time: (time, read) for time, read in active}
    archived = [i for i in timeline.history.instants() if i.action.writes_data and i.time <= moment and i.time not in held]
    held |= {i.time: (i.time, partial(_archived_record, timeline.history, i)) for i in archived}
    yield from (held[time] for time in sorted(held, reverse=True))


def _archived_record(history: History, instant: Instant) -> Mapping[str, Any]:
    return ArchivedRecords(history, (instant.action,), instant.time, instant.time).metadata(instant)


def _file_of(timeline: Timeline, time: str) -> str:
    """Where the record of a write stands, that of an archived one among others of its folder."""
    instant = timeline.get(time)
    return timeline.history.folder if instant is None else timeline.path_of(instant)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """A stored schema as readers see it: everything nullable, types that Spark has too; of metadata, `hudi_type` alone."""
    return pa.schema([pa.field(f.name, _plain_column(f), metadata=shown_metadata(f)) for f in schema])


def _plain_column(field: pa.Field) -> pa.DataType:
    # Of small integers only vectors have any, whose lists tell by their type how wide their elements are in files.
    return pa.list_(field.type.value_type) if vector_of(field) is not None else _plain_type(field.type, field.name)


def _plain_type(kind: pa.DataType, path: str) -> pa.DataType:
    types = pa.types
    if types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([pa.field(f.name, _plain_type(f.type, f"{path}.{f.name}")) for f in fields])
    if types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type, f"{path}.key"), _plain_type(kind.item_type, f"{path}.value"))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type, f"{path}.element"))
    if types.is_time(kind):
        return kind
    return normalise_type(kind, path)


def _dropped_columns(properties: TableProperties, columns: pa.Schema) -> list[pa.Field]:
    """Partition columns that partition paths alone can be asked for.

    Typed as the newest write has them, since Apache Hudi's writes may name them although no base file holds them; else as at
    the table's creation, else as text.
    """
    if not properties.drop_partition_columns or not properties.partition_fields:
        return []
    from hudimeta.keys import PartitionLayout

    layout = PartitionLayout.from_properties(properties)
    rendered = [name for name, plain in zip(layout.fields, layout.plain, strict=True) if not plain]
    if rendered:
        raise UnsupportedFeature(
            f"partition column {rendered[0]} that is neither in the files nor, being time-based, in the partition path",
            "Read the table with Apache Hudi.",
        )
    created = plain_schema(strip_meta_columns(avro_to_arrow(properties.create_schema or _NO_COLUMNS, PROPERTIES_PATH)))
    known = {**{f.name: f for f in created}, **{f.name: f for f in columns}}
    return [known.get(name, pa.field(name, pa.string())) for name in properties.partition_fields]


def _schema_of_a_file(snapshot: Snapshot) -> pa.Schema | None:
    """Columns of the newest base file: for tables whose commits do not carry the schema; None without base files."""
    import pyarrow.compute as pc

    slices = snapshot.slices()
    with_base = slices.filter(pc.is_valid(slices.column("base_file")))
    if not with_base.num_rows:
        return None
    from hudimeta.formats.base_file import schema_of_base_file
    from hudimeta.storage import join

    newest = with_base.sort_by([("base_instant", "descending")]).slice(0, 1).to_pylist()[0]
    return schema_of_base_file(snapshot.storage, join(newest["partition_path"], newest["base_file"]))
