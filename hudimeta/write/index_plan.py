"""What an index to make is: its metadata partition and its definition, checked against the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, TableError
from hudimeta.indexes.expression_index.facts import WantedExpression, expression_of
from hudimeta.indexes.planned import record_index_definition, secondary_index_definition
from hudimeta.metadata import (
    bloom_filters,
    column_stats,
    expression_index,
    files,
    partition_stats,
    record_index,
    secondary_index,
)
from hudimeta.metadata.expression_index import ExpressionKind
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.indexed_columns import column_type, indexed_columns, statistics_definition
from hudimeta.schema import with_meta_columns
from hudimeta.table.properties import TableProperties

__all__ = ["KINDS", "IndexPlan", "plan_index"]

SECONDARY = "secondary_index"
KINDS = (column_stats.PARTITION, partition_stats.PARTITION, bloom_filters.PARTITION, record_index.PARTITION, SECONDARY)
"""What `type` may be. With an expression only the first and the third."""


@dataclass(frozen=True)
class IndexPlan:
    """An index to make.

    Attributes:
        partition: Metadata partition.
        definition: None for kinds that have none.
    """

    partition: str
    definition: IndexDefinition | None = None

    def __str__(self) -> str:
        if self.definition is None or not self.definition.source_fields:
            return f"index {self.partition}"
        fields = ", ".join(self.definition.source_fields)
        given = {k: v for k, v in self.definition.options.items() if k != "expr"}
        more = f" with {given}" if given else ""
        return f"index {self.partition}: {self.definition.kind} of {self.definition.function}({fields}){more}"


def plan_index(
    properties: TableProperties,
    schema: pa.Schema,
    options: Options,
    *,
    kind: str,
    name: str | None = None,
    columns: Sequence[str] = (),
    expression: str | None = None,
    index_options: Mapping[str, str] | None = None,
) -> IndexPlan:
    """Plan an index; writes nothing.

    Args:
        properties: Of the table.
        schema: Data columns of the table.
        options: Of whoever makes it.
        kind: One of `KINDS`.
        name: Of a secondary or expression index.
        columns: What is indexed.
        expression: Spark function over the column, such as `lower` or `from_unixtime`; None for the column itself.
        index_options: Further arguments of the function (`format`, `days`, `pos`, `len`, `pattern`, `replacement`, `idx`), and
            of filters (`filterType`, `numEntries`, `fpp`, `maxEntries`).

    Raises:
        ConfigError: Something that does not fit the table.
        TableError: The table has that index.
        UnsupportedFeature: An expression that is not known here.
    """
    if kind not in KINDS:
        raise ConfigError("type", kind, ", ".join(KINDS))
    if expression is not None:
        plan = _expression(properties, schema, kind, name, columns, expression, index_options or {})
    elif kind == SECONDARY:
        plan = _secondary(properties, schema, name, columns)
    else:
        plan = _of_the_table(properties, schema, options, kind, columns)
    if plan.partition in properties.metadata_partitions:
        raise TableError(f"the table has the index {plan.partition} already", "Drop it first, with t.metadata.drop_index.")
    return plan


def _version(properties: TableProperties, newer: str) -> str | None:
    return newer if properties.version >= 9 else None


def _expression(
    properties: TableProperties,
    schema: pa.Schema,
    kind: str,
    name: str | None,
    columns: Sequence[str],
    expression: str,
    index_options: Mapping[str, str],
) -> IndexPlan:
    kinds = [one.value for one in ExpressionKind]
    if kind not in kinds:
        raise ConfigError("type", kind, f"{' or '.join(kinds)} for an index over an expression")
    column = _one_column(schema, columns)
    partition = expression_index.PREFIX + _name(name)
    given = {"expr": expression, **{key: str(value) for key, value in index_options.items()}}
    definition = IndexDefinition(partition, kind, expression, (column,), given, _version(properties, "V2"))
    expression_of(WantedExpression(definition), with_meta_columns(schema))
    return IndexPlan(partition, definition)


def _secondary(properties: TableProperties, schema: pa.Schema, name: str | None, columns: Sequence[str]) -> IndexPlan:
    if record_index.PARTITION not in properties.metadata_partitions:
        hint = "Make one first: t.metadata.create_index(type='record_index')."
        raise ConfigError("type", SECONDARY, "a table with a record index, which tells where the rows are", hint)
    definition = secondary_index_definition(schema, _one_column(schema, columns), properties.version, name)
    return IndexPlan(definition.name, definition)


def _of_the_table(
    properties: TableProperties, schema: pa.Schema, options: Options, kind: str, columns: Sequence[str]
) -> IndexPlan:
    if kind == column_stats.PARTITION:
        regime = "V2" if properties.version >= 9 else "V1"
        wanted = columns or options.get(keys.COLUMN_STATS_LIST)
        found = indexed_columns(schema, wanted, options.get(keys.COLUMN_STATS_MAX), regime)
        return IndexPlan(kind, statistics_definition(found, properties.version))
    if columns:
        raise ConfigError("columns", ",".join(columns), f"none for {kind}, which is about the table's own keys")
    if kind == partition_stats.PARTITION:
        if column_stats.PARTITION not in properties.metadata_partitions:
            raise ConfigError("type", kind, "a table with column_stats, which they are made of")
        if not properties.is_partitioned:
            raise ConfigError("type", kind, "a table with partitions")
    return IndexPlan(kind, record_index_definition(properties.version) if kind == record_index.PARTITION else None)


def _name(name: str | None) -> str:
    if not name or not name.replace("_", "").isalnum() or name.lower() != name:
        raise ConfigError("name", name, "lower-case letters, digits and underscores")
    return name


def _one_column(schema: pa.Schema, columns: Sequence[str]) -> str:
    if len(columns) != 1:
        raise ConfigError("columns", ",".join(columns), "one column")
    kind = column_type(schema, columns[0])
    if kind is None or pa.types.is_nested(kind):
        raise ConfigError("columns", columns[0], f"a column with single values: {', '.join(schema.names[:20])}")
    return columns[0]


def dependents(partition: str, ready: Sequence[str]) -> list[str]:
    """Indexes of a table that need another one."""
    if partition == column_stats.PARTITION:
        return [partition_stats.PARTITION] if partition_stats.PARTITION in ready else []
    if partition == record_index.PARTITION:
        return [name for name in ready if name.startswith(secondary_index.PREFIX)]
    if partition == files.PARTITION:
        return [name for name in ready if name != files.PARTITION]
    return []
