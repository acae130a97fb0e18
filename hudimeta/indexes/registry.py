"""Every kind of index that commits keep in step. A new kind is one line here."""

from __future__ import annotations

from collections.abc import Iterator

from hudimeta.errors import UnsupportedFeature
from hudimeta.indexes.bloom_filters.keep import BloomFiltersKeep
from hudimeta.indexes.column_stats.keep import ColumnStatsKeep, PartitionStatsKeep
from hudimeta.indexes.expression_index.facts import WantedExpression
from hudimeta.indexes.expression_index.keep import ExpressionIndexKeep, definition_of
from hudimeta.indexes.facts import WantedFacts
from hudimeta.indexes.files.keep import FilesKeep
from hudimeta.indexes.lost_definitions import refuse_lost_definitions
from hudimeta.indexes.protocol import IndexMaintainer
from hudimeta.indexes.record_index.keep import RecordIndexKeep
from hudimeta.indexes.secondary_index.keep import SecondaryIndexKeep
from hudimeta.metadata import MetadataTable, bloom_filters, expression_index, record_index, secondary_index

__all__ = ["MAINTAINERS", "maintainer_for", "maintainer_of", "wanted_facts"]

MAINTAINERS: tuple[IndexMaintainer, ...] = (
    FilesKeep(),
    ColumnStatsKeep(),
    RecordIndexKeep(),
    SecondaryIndexKeep(),
    PartitionStatsKeep(),
    BloomFiltersKeep(),
    ExpressionIndexKeep(),
)
"""In the order in which the metadata partitions of a new table are laid out."""


def maintainer_of(partition: str) -> IndexMaintainer | None:
    """Who keeps a metadata partition; None for a kind that is not known, which no commit may leave behind."""
    return next((one for one in MAINTAINERS if one.keeps(partition)), None)


def maintainer_for(partition: str) -> IndexMaintainer:
    """The same.

    Raises:
        UnsupportedFeature: A kind that is not known.
    """
    found = maintainer_of(partition)
    if found is None:
        raise UnsupportedFeature(f"keeping the metadata partition {partition} up to date")
    return found


def wanted_facts(table: MetadataTable, timezone: str | None = "UTC") -> WantedFacts:
    """What the indexes of a table want to know of every file that is written.

    Args:
        table: The metadata table.
        timezone: Of expressions over moments; None when nobody knows.

    Raises:
        CorruptFileError: The definition of one is gone.
    """
    refuse_lost_definitions(table)
    expressions = [name for name in table.ready if name.startswith(expression_index.PREFIX)]
    return WantedFacts(
        keys=record_index.PARTITION in table.ready,
        values=tuple(_wanted_values(table)),
        bloom=bloom_filters.PARTITION in table.ready,
        expressions=tuple(WantedExpression(definition_of(table.index_definitions, name), timezone) for name in expressions),
    )


def _wanted_values(table: MetadataTable) -> Iterator[tuple[str, str, bool]]:
    for name in table.ready:
        if name.startswith(secondary_index.PREFIX):
            definition = table.index_definitions.get(name)
            if definition is None or len(definition.source_fields) != 1:
                raise UnsupportedFeature(
                    f"keeping {name}, whose definition does not name one column", "Drop that index with Apache Hudi."
                )
            yield name, definition.source_fields[0], definition.is_v2
