"""What an index to make is: its metadata partition and its definition, checked against the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, TableError, UnsupportedFeature
from hudimeta.formats.bloom import LEAST_P, size_of_filter
from hudimeta.indexes.expression_index.facts import (
    DEFAULT_KEYS,
    DEFAULT_P,
    WantedExpression,
    expression_of,
    stated_timezone,
)
from hudimeta.indexes.expression_index.matching import ARGUMENTS, FUNCTIONS, OF_FILTERS, indexed_expression, stated_options
from hudimeta.indexes.planned import (
    OF_STORED_COLUMNS,
    is_by_partition,
    record_index_definition,
    refuse_long_name,
    refuse_without_keys,
    secondary_index_definition,
)
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

__all__ = ["PLANNERS", "IndexPlan", "IndexRequest", "dependents", "plan_index"]

SECONDARY = "secondary_index"
_MOST_BITS = (1 << 31) - 1
"""Java counts them in an int."""


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
            by_partition = self.definition is not None and self.definition.is_partitioned
            return f"index {self.partition}{', one for each partition' if by_partition else ''}"
        fields = ", ".join(self.definition.source_fields)
        given = {k: v for k, v in self.definition.options.items() if k != "expr"}
        more = f" with {given}" if given else ""
        return f"index {self.partition}: {self.definition.kind} of {self.definition.function}({fields}){more}"


@dataclass(frozen=True)
class IndexRequest:
    """What somebody wants indexed, before it is checked.

    Attributes:
        properties: Of the table.
        schema: Data columns of the table.
        options: Of whoever makes the index.
        definitions: Of the indexes that the table has, by metadata partition.
        kind: One of `PLANNERS`.
        name: Of an index, where a table can have several of its kind.
        columns: What is indexed.
    """

    properties: TableProperties
    schema: pa.Schema
    options: Options
    definitions: Mapping[str, IndexDefinition]
    kind: str
    name: str | None = None
    columns: Sequence[str] = ()

    @property
    def one_column(self) -> str:
        """The column of an index over one.

        Raises:
            ConfigError: None or several, or one that holds no single values.
        """
        return _one_column(self.schema, self.columns)


def plan_index(
    properties: TableProperties,
    schema: pa.Schema,
    options: Options,
    definitions: Mapping[str, IndexDefinition],
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
        definitions: Of the indexes that the table has, by metadata partition.
        kind: One of `PLANNERS`.
        name: Of a secondary or expression index.
        columns: What is indexed.
        expression: Spark function over the column, such as `lower` or `from_unixtime`; None for the column itself.
        index_options: Further arguments of the function (`format`, `days`, `pos`, `len`, `pattern`, `replacement`, `idx`), and
            of filters (`filtertype`, `numentries`, `fpp`, `maxentries`).

    Raises:
        ConfigError: Something that does not fit the table.
        TableError: The table has that index.
        UnsupportedFeature: An expression that is not known here.
    """
    if kind not in PLANNERS:
        raise ConfigError("type", kind, ", ".join(PLANNERS))
    if expression is None:
        refuse_without_keys(properties, [kind])
    if properties.bootstrap_base_path is not None and kind in OF_STORED_COLUMNS:
        hint = (
            "Use a record index, bloom filters or a secondary index; or cluster a copy of the table that was not bootstrapped."
        )
        raise UnsupportedFeature(f"{kind} over rows whose columns lie in the files of a bootstrap's source", hint)
    request = IndexRequest(properties, schema, options, definitions, kind, name, columns)
    if expression is not None:
        plan = _expression(request, expression, index_options or {})
    else:
        plan = PLANNERS[kind](request)
    if plan.partition in properties.metadata_partitions:
        raise TableError(f"the table has the index {plan.partition} already", "Drop it first, with t.metadata.drop_index.")
    return plan


def _expression(asked: IndexRequest, expression: str, index_options: Mapping[str, str]) -> IndexPlan:
    kinds, kind = [one.value for one in ExpressionKind], asked.kind
    if kind not in kinds:
        raise ConfigError("type", kind, f"{' or '.join(kinds)} for an index over an expression")
    partition = expression_index.PREFIX + _name(asked.name)
    # Apache Hudi knows functions and their options by names in small letters, and fails each write on others.
    function = expression.lower()
    given = stated_options(function, index_options)
    version = "V2" if asked.properties.version >= 9 else None
    definition = IndexDefinition(partition, kind, function, (column := asked.one_column,), given, version)
    if "." in column:
        hint = "Column statistics can have bounds of the field itself: type='column_stats', columns=[…] without an expression."
        raise UnsupportedFeature(
            f"an expression index over {column}, a field of a struct: Apache Hudi then fails each write", hint
        )
    if kind != ExpressionKind.BLOOM_FILTERS.value and (strange := sorted(given.keys() & set(OF_FILTERS))):
        raise ConfigError("options", strange[0], f"options of {function}", "It is of filters: type='bloom_filters' makes them.")
    _check_filter(given)
    wanted, schema = WantedExpression(definition), with_meta_columns(asked.schema)
    if indexed_expression(definition, schema, "UTC") is None:
        raise _unknown(definition)
    expression_of(wanted, schema)
    stated_timezone(definition, asked.schema, asked.options, asked.properties)
    return IndexPlan(partition, definition)


def _check_filter(given: Mapping[str, str]) -> None:
    """Refuse options of filters by which none can be made, or none that anybody could read."""
    form, forms = given.get("filtertype"), keys.BLOOM_TYPE.allowed
    if form is not None and form.upper() not in forms.split(", "):
        raise ConfigError("filtertype", form, forms)
    whole = "a whole number, 1 or more"
    share = _number(given, "fpp", DEFAULT_P, LEAST_P, math.nextafter(1, 0), "a share of false positives above 0 and below 1")
    count = _number(given, "numentries", DEFAULT_KEYS, 1, math.inf, whole)
    _number(given, "maxentries", 1, 1, math.inf, whole)
    if size_of_filter(int(count), share)[0] > _MOST_BITS:
        raise ConfigError("numentries", int(count), f"keys whose filter has {_MOST_BITS:,} bits at most", "Raise fpp, too.")


def _number(given: Mapping[str, str], name: str, default: float, least: float, most: float, allowed: str) -> float:
    """An option of filters: whole where its default is."""
    try:
        number = type(default)(given.get(name, default))
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise ConfigError(name, given[name], allowed)
    return number


def _unknown(definition: IndexDefinition) -> UnsupportedFeature:
    """What an expression must be that nobody could keep an index over."""
    function, column = definition.function.lower(), definition.source_fields[0]
    given = {key: value for key, value in definition.options.items() if key != "expr"}
    hint = f"Take one of {', '.join(FUNCTIONS)}."
    if function in FUNCTIONS:
        takes = ", ".join(ARGUMENTS.get(function, ())) or "no options"
        hint = f"{function} takes {takes}, in this order, and a column of a type that it is for."
    return UnsupportedFeature(f"an index over {function}({column}){f' with {given}' if given else ''}", hint)


def _secondary(asked: IndexRequest) -> IndexPlan:
    if record_index.PARTITION not in asked.properties.metadata_partitions:
        hint = "Make one first: t.metadata.create_index(type='record_index')."
        raise ConfigError("type", SECONDARY, "a table with a record index, which tells where the rows are", hint)
    known = asked.definitions.get(record_index.PARTITION)
    if known is not None and known.is_partitioned:
        hint = "Its entries name keys, which may be rows in several partitions: make a record index over the whole table."
        raise UnsupportedFeature("a secondary index beside a record index that is kept by partition", hint)
    definition = secondary_index_definition(asked.schema, asked.one_column, asked.properties.version, asked.name)
    return IndexPlan(definition.name, definition)


def _column_stats(asked: IndexRequest) -> IndexPlan:
    regime = "V2" if asked.properties.version >= 9 else "V1"
    wanted = asked.columns or asked.options.get(keys.COLUMN_STATS_LIST)
    found = indexed_columns(asked.schema, wanted, asked.options.get(keys.COLUMN_STATS_MAX), regime)
    return IndexPlan(asked.kind, statistics_definition(found, asked.properties.version))


def _partition_stats(asked: IndexRequest) -> IndexPlan:
    _refuse_columns(asked)
    if column_stats.PARTITION not in asked.properties.metadata_partitions:
        raise ConfigError("type", asked.kind, "a table with column_stats, which they are made of")
    if not asked.properties.is_partitioned:
        raise ConfigError("type", asked.kind, "a table with partitions")
    return IndexPlan(asked.kind)


def _bloom_filters(asked: IndexRequest) -> IndexPlan:
    _refuse_columns(asked)
    return IndexPlan(asked.kind)


def _record_index(asked: IndexRequest) -> IndexPlan:
    _refuse_columns(asked)
    version = asked.properties.version
    by_partition = is_by_partition(asked.options, version, asked.properties.is_partitioned)
    return IndexPlan(asked.kind, record_index_definition(version, by_partition))


PLANNERS: dict[str, Callable[[IndexRequest], IndexPlan]] = {
    column_stats.PARTITION: _column_stats,
    partition_stats.PARTITION: _partition_stats,
    bloom_filters.PARTITION: _bloom_filters,
    record_index.PARTITION: _record_index,
    SECONDARY: _secondary,
}
"""What the type of an index may be. With an expression only the first and the third. A new kind is one line here."""


def _refuse_columns(asked: IndexRequest) -> None:
    if asked.columns:
        raise ConfigError("columns", ",".join(asked.columns), f"none for {asked.kind}, which is about the table's own keys")


def _name(name: str | None) -> str:
    if not name or not name.replace("_", "").isalnum() or name.lower() != name:
        raise ConfigError("name", name, "lower-case letters, digits and underscores")
    refuse_long_name("name", name)
    return name


def _one_column(schema: pa.Schema, columns: Sequence[str]) -> str:
    if len(columns) != 1:
        raise ConfigError("columns", ",".join(columns), "one column")
    kind = column_type(schema, columns[0])
    if kind is None or pa.types.is_nested(kind):
        single = [field.name for field in schema if not pa.types.is_nested(field.type)]
        raise ConfigError("columns", columns[0], f"a column with single values: {', '.join(single[:20])}")
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
