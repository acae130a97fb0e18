"""Which indexes a metadata table gets that is built once more: those that it had, as far as the table still allows them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.indexes.planned import FIRST_WITH_INDEX_VERSIONS, PlannedIndex, planned_indexes
from hudimeta.metadata import column_stats, partition_stats, record_index, secondary_index
from hudimeta.metadata.index_definitions import DEFAULT_PATH, IndexDefinition, decode_definitions
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.storage import Storage
from hudimeta.table.properties import TableProperties

__all__ = ["planned_again"]

_EXPRESSIONS = "expr_index_"
_ORDER = ("files", column_stats.PARTITION)


def planned_again(
    storage: Storage, properties: TableProperties, names: Iterable[str], schema: pa.Schema, options: Options
) -> tuple[list[PlannedIndex], tuple[str, ...]]:
    """The indexes to lay out, in this order, and the names of those that cannot be built again.

    Args:
        storage: Rooted at the table.
        properties: Of the table.
        names: Metadata partitions that it had.
        schema: Data columns of the table.
        options: Of whoever builds: they define what has no definition.

    Raises:
        ConfigError: A definition is lost, and the options do not fit the table.
    """
    path = properties.index_defs_path or DEFAULT_PATH
    try:
        definitions = decode_definitions(storage.read(path), path)
    except (NotFound, CorruptFileError):
        definitions = {}
    wanted = {"files", *names}
    asked: dict[str, IndexDefinition | None] = {}
    rests_on = {column_stats.PARTITION} if partition_stats.PARTITION in wanted else set()
    if any(_is_defined(name, properties.version) for name in (wanted | rests_on) - definitions.keys()):
        asked_for = planned_indexes(schema, options, properties.version, properties.is_partitioned)
        asked = {one.partition: one.definition for one in asked_for}
    planned: list[PlannedIndex] = []
    left_out: list[str] = []
    if partition_stats.PARTITION in wanted and {**definitions, **asked}.get(column_stats.PARTITION) is not None:
        wanted.add(column_stats.PARTITION)  # Apache Hudi keeps the one only beside the other, and may have died dropping both
    for name in sorted(wanted, key=_place):
        definition = definitions.get(name) or asked.get(name)
        bare = name == partition_stats.PARTITION and column_stats.PARTITION not in {one.partition for one in planned}
        if not bare and _can_be_built(name, definition, schema, properties.version):
            planned.append(PlannedIndex(name, definition))
        else:
            left_out.append(name)
    return planned, tuple(left_out)


def _place(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER) + (name == partition_stats.PARTITION), name)


def _is_defined(name: str, version: int) -> bool:
    """Whether an index is nothing without a definition; only of those are options asked, which may not fit the table."""
    if name == record_index.PARTITION:
        return version >= FIRST_WITH_INDEX_VERSIONS
    return name == column_stats.PARTITION or name.startswith((secondary_index.PREFIX, _EXPRESSIONS))


def _can_be_built(name: str, definition: IndexDefinition | None, schema: pa.Schema, version: int) -> bool:
    if definition is None:
        return name != column_stats.PARTITION and not name.startswith((secondary_index.PREFIX, _EXPRESSIONS))
    if definition.is_partitioned and version < FIRST_WITH_INDEX_VERSIONS:
        return False
    if name == column_stats.PARTITION:
        return True
    meta = ("_hoodie_",)
    return all(c.startswith(meta) or column_type(schema, c) is not None for c in definition.source_fields)
