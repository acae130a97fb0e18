"""What an expression index records of one file: bounds of the expression's values, or a bloom filter of them.

Values are computed as predicates compute them. Where an expression turns moments into dates or texts, the zone is that in which
the table's first such index was built. Apache Hudi takes the zone of its Spark session, and records none: of an index that it
built, writers who are not told the zone state what holds in any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudimeta.config.options import INDEX_TIMEZONE, SESSION_TIMEZONE
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.formats.bloom import BloomFilter
from hudimeta.formats.parquet import BoundsOfColumns, column_bounds, typed_scalar
from hudimeta.formats.plain_arrays import array_of, no_rows, numpy_of, scalar_of, single_array
from hudimeta.metadata import bloom_filters
from hudimeta.metadata.expression_index import PREFIX, ExpressionKind
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.indexed_columns import has_statistics
from hudimeta.metadata.keys import bloom_filter_keys
from hudimeta.metadata.record import BoundKind
from hudimeta.metadata.statistics import file_statistics, limits_of
from hudimeta.schema import with_meta_columns
from hudimeta.table.file_names import parse_base_file, parse_log_file

if TYPE_CHECKING:
    from hudimeta.config import Options
    from hudimeta.indexes.expression_index.matching import IndexedExpression
    from hudimeta.predicate import Bound
    from hudimeta.table.properties import TableProperties

__all__ = [
    "DEFAULT_KEYS",
    "DEFAULT_P",
    "WantedExpression",
    "expression_of",
    "expression_record",
    "expression_records",
    "filter_rows",
    "index_timezone",
    "stated_timezone",
]

DEFAULT_KEYS, _DEFAULT_MOST_KEYS, DEFAULT_P = 60_000, 100_000, 1e-9
_TEXTUAL = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)
"""Types whose values have one spelling, days one more: see `_spellings`."""


@dataclass(frozen=True)
class WantedExpression:
    """An expression index to keep.

    Attributes:
        definition: Of the index.
        timezone: In which moments are looked at; None when nobody knows.
    """

    definition: IndexDefinition
    timezone: str | None = "UTC"

    @property
    def partition(self) -> str:
        """Its metadata partition."""
        return self.definition.name

    @property
    def column(self) -> str:
        """The column that the expression is about, dotted when nested."""
        return self.definition.source_fields[0]

    @property
    def kind(self) -> ExpressionKind:
        """What the index holds."""
        return ExpressionKind(self.definition.kind)

    @property
    def regime(self) -> str:
        """Form of the bounds."""
        return "V2" if self.definition.is_v2 else "V1"


def index_timezone(options: Options, properties: Mapping[str, str]) -> str | None:
    """The time zone in which a table's expression indexes look at moments; None when nobody knows.

    Args:
        options: Of whoever writes or builds.
        properties: Of the table, which name the zone from the first such index on.
    """
    given = options.get(INDEX_TIMEZONE) if options.is_set(INDEX_TIMEZONE) else None
    return given or properties.get(INDEX_TIMEZONE.key) or options.get(INDEX_TIMEZONE) or options.get(SESSION_TIMEZONE)


def stated_timezone(
    definition: IndexDefinition, schema: pa.Schema, options: Options, properties: TableProperties
) -> str | None:
    """The zone that a table's properties must name once an index is there; None where it does not matter to it.

    Args:
        definition: Of the index.
        schema: Data columns of the table.
        options: Of whoever builds it.
        properties: Of the table.

    Raises:
        ConfigError: The options name another zone than the table's other indexes have.
    """
    from hudimeta.indexes.expression_index.matching import indexed_expression

    zone, stated = index_timezone(options, properties) or "UTC", properties.get(INDEX_TIMEZONE.key)
    indexed = indexed_expression(definition, with_meta_columns(schema), zone)
    if not definition.name.startswith(PREFIX) or indexed is None or not indexed.zoned:
        return None
    if stated and stated != zone:
        hint = "Drop these first, or leave the option out."
        raise ConfigError(INDEX_TIMEZONE.key, zone, f"the zone of the table's other expression indexes: {stated}", hint)
    return zone


def expression_of(wanted: WantedExpression, schema: pa.Schema) -> tuple[IndexedExpression, Bound]:
    """The expression over the columns of a schema.

    Raises:
        UnsupportedFeature: It is not known here, or its values have no order, or (of filters) more than one spelling.
    """
    from hudimeta.indexes.expression_index.matching import indexed_expression
    from hudimeta.predicate import bind_value

    definition = wanted.definition
    zone = wanted.timezone or "UTC"
    indexed = indexed_expression(definition, schema, zone)
    shown = f"{definition.function}({', '.join(definition.source_fields)})"
    if indexed is None or pa.types.is_nested(indexed.type):
        raise UnsupportedFeature(
            f"keeping the index {definition.name} over {shown} up to date",
            "Drop the index with t.metadata.drop_index, or write with Apache Hudi.",
        )
    if wanted.kind is ExpressionKind.BLOOM_FILTERS and not any(fits(indexed.type) for fits in _TEXTUAL):
        raise UnsupportedFeature(f"a bloom filter of {shown}, which is {indexed.type}", "Use column_stats for it.")
    if wanted.kind is ExpressionKind.COLUMN_STATS and not has_statistics(indexed.type, wanted.regime):
        hint = "Tables below version 9 have bounds of decimals of up to 30 digits, 15 of them after the point."
        raise UnsupportedFeature(f"statistics of {shown}, which is {indexed.type}", hint)
    return indexed, bind_value(indexed.expr, schema, timezone=zone)


def expression_record(
    wanted: WantedExpression,
    pieces: Iterable[pa.Table],
    schema: pa.Schema,
    *,
    partition_path: str,
    name: str,
    size: int,
    instant: str,
    is_log: bool,
) -> pa.Table:
    """The record of one file.

    Args:
        wanted: The index.
        pieces: Rows of the file with at least the column.
        schema: Of the rows.
        partition_path: Of the file.
        name: Of the file.
        size: Of the file in bytes.
        instant: Of the write.
        is_log: Whether it is a log file.

    Returns:
        Rows of `column_stats.SCHEMA` or of `bloom_filters.SCHEMA`: one, or none for a file that gets no record.
    """
    from hudimeta.predicate import evaluate

    indexed, bound = expression_of(wanted, schema)
    values = (evaluate(bound, rows) for rows in pieces)
    in_any_zone = indexed.zoned and wanted.timezone is None
    if wanted.kind is ExpressionKind.BLOOM_FILTERS:
        unknown = is_log or in_any_zone  # readers open files without a filter
        return no_rows(bloom_filters.SCHEMA) if unknown else _filter(wanted, values, partition_path, name, instant)
    found = BoundsOfColumns([wanted.column])
    for some in values:
        found.add(pa.table({wanted.column: some}))
    bounds = found.table()
    if not len(bounds):
        bounds = column_bounds(pa.table({wanted.column: pa.nulls(0, _type_of(bound))}), [wanted.column])
    elif in_any_zone:
        bounds = _of_any_zone(bounds, indexed, wanted.column)
    # Sizes are those of the whole file, as Apache Hudi records them for expressions.
    sizes = {wanted.column: (size, 2 * size)}
    return _moments(
        file_statistics(bounds, partition_path, name, wanted.regime, sizes, keep_empty=is_log), wanted, _type_of(bound)
    )


def expression_records(
    wanted: Sequence[WantedExpression], rows: pa.Table, partition_path: str, name: str, size: int
) -> dict[str, pa.Table]:
    """The records of a file that is being written, by metadata partition; see `expression_record`.

    Rows that only say what to delete need not have the column: then whoever commits the file reads it once more.
    """
    base, log = parse_base_file(name), parse_log_file(name)
    instant = base.instant if base is not None else log.instant if log is not None else ""
    return {
        one.partition: expression_record(
            one,
            [rows],
            rows.schema,
            partition_path=partition_path,
            name=name,
            size=size,
            instant=instant,
            is_log=base is None,
        )
        for one in wanted
        if one.column.split(".")[0] in rows.schema.names
    }


def _of_any_zone(bounds: pa.Table, indexed: IndexedExpression, column: str) -> pa.Table:
    """Bounds that hold in whatever zone readers have; Apache Hudi takes one that is missing for no value at all."""
    from hudimeta.indexes.expression_index.matching import widened

    sides = {side: typed_scalar(bounds[side], 0) for side in ("min", "max")}
    if not any(side.is_valid for side in sides.values()):
        return bounds
    limits = limits_of(indexed.type) or {}
    stated = pa.table({side: array_of([value], indexed.type) for side, value in sides.items()})
    known = widened(stated, indexed) if indexed.can_be_widened else None
    for side in sides:
        shifted = None if known is None else known[side][0]
        sides[side] = shifted if shifted is not None and shifted.is_valid else scalar_of(limits[side], indexed.type)
    told = BoundsOfColumns([column])
    told.tell(column, sides["min"], sides["max"], bounds["null_count"][0].as_py(), bounds["value_count"][0].as_py())
    return told.table()


def _type_of(bound: Bound) -> pa.DataType:
    kind = bound.expr.type
    assert kind is not None
    return kind


def _moments(rows: pa.Table, wanted: WantedExpression, kind: pa.DataType) -> pa.Table:
    """Bounds that are moments as Apache Hudi's first form has them: of a kind of their own, beside whole numbers."""
    if not pa.types.is_timestamp(kind) or wanted.regime == "V2":
        return rows
    for side in ("min_kind", "max_kind"):
        codes = numpy_of(rows[side])
        codes = np.where(codes == BoundKind.LONG, BoundKind.TIMESTAMP_MICROS, codes).astype(np.int8)
        rows = rows.set_column(rows.schema.get_field_index(side), rows.schema.field(side), array_of(codes))
    return rows


def _filter(
    wanted: WantedExpression, values: Iterable[pa.ChunkedArray], partition_path: str, name: str, instant: str
) -> pa.Table:
    texts = [spelled for some in values for spelled in _spellings(some.drop_null())]
    together = single_array(pa.chunked_array([chunk for some in texts for chunk in some.chunks], pa.string()))
    given = {key.lower(): value for key, value in wanted.definition.options.items()}
    p, count = float(given.get("fpp", DEFAULT_P)), int(given.get("numentries", DEFAULT_KEYS))
    if given.get("filtertype", "DYNAMIC_V0").upper() == "SIMPLE":
        bloom = BloomFilter.create_simple(together, p, count)
    else:
        bloom = BloomFilter.create_dynamic(together, p, count, int(given.get("maxentries", _DEFAULT_MOST_KEYS)))
    return filter_rows([(partition_path, name, instant, bloom.type_code, bloom.to_base64())])


def _spellings(values: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """The texts by which readers ask for values; Apache Hudi asks for a day by its number, though it writes `2026-03-01`."""
    yield values.cast(pa.string())
    if pa.types.is_date32(values.type):
        yield values.cast(pa.int32()).cast(pa.string())


def filter_rows(files: Iterable[tuple[str, str, str, str, str]]) -> pa.Table:
    """Rows of `bloom_filters.SCHEMA`.

    Args:
        files: Partition path, name and instant of each file, and type code and base64 text of its filter.
    """
    found = list(files)
    paths, names, instants, codes, texts = (array_of([row[i] for row in found], pa.string()) for i in range(5))
    keys = bloom_filter_keys(paths, names).cast(pa.string())
    flags = array_of(np.zeros(len(found), np.bool_))
    return pa.table([keys, codes, instants, texts.cast(pa.large_binary()), flags], schema=bloom_filters.SCHEMA)
