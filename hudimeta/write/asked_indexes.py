"""Indexes that the options of a write ask for and that the table does not have yet: a writer builds them, as Hudi's do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.metadata import bloom_filters, record_index, secondary_index
from hudimeta.table.properties import TableProperties

__all__ = ["AskedIndex", "ensure_metadata", "missing_indexes"]


@dataclass(frozen=True)
class AskedIndex:
    """One index to build: the arguments of `services.indexing.build.create_index`, and the metadata partition it becomes."""

    partition: str
    kind: str
    columns: tuple[str, ...] = ()
    name: str | None = None


def ensure_metadata(session: WriteSession) -> bool:
    """Build what the table lacks: the metadata table, and indexes that the options name outright; True when something was.

    Call it when everything else about the write was checked: it is the first thing that changes the table.
    """
    built = session.ensure_metadata()
    missing = missing_indexes(session.options, session.properties) if session.properties.has_metadata_table else []
    for one in missing:
        from hudimeta.commit.index_build import create_index, planned_at

        planned = planned_at(session.properties.load_timeline(session.storage), one.partition)
        if planned is not None:
            session.notes.append(f"the options ask for {one.partition}, which is planned at {planned} and not built")
            continue
        report = create_index(session, kind=one.kind, columns=one.columns, name=one.name)
        session.notes.append(f"the options ask for {one.partition}, which the table did not have: {report}")
        built = True
    return built


def missing_indexes(options: Options, properties: TableProperties) -> list[AskedIndex]:
    """The indexes that options name outright, without those of the table; the record index before what rests on it."""
    return [one for one in _asked(options) if one.partition not in properties.metadata_partitions]


def _asked(options: Options) -> Iterator[AskedIndex]:
    if options.is_set(keys.BLOOM_FILTERS) and options.get(keys.BLOOM_FILTERS):
        yield AskedIndex(bloom_filters.PARTITION, bloom_filters.PARTITION)
    if any(options.is_set(key) and options.get(key) for key in (keys.RECORD_INDEX, keys.RECORD_INDEX_BY_PARTITION)):
        yield AskedIndex(record_index.PARTITION, record_index.PARTITION)
    columns, name = options.get(keys.SECONDARY_INDEX_COLUMNS), options.get(keys.INDEX_NAME)
    for column in columns:
        own = name if name is not None and len(columns) == 1 else column.replace(".", "_")
        short = own.removeprefix(secondary_index.PREFIX)
        yield AskedIndex(secondary_index.PREFIX + short, "secondary_index", (column,), short)
