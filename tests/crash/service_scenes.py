"""What changes a table as a whole, each as a scene: expiry, maintenance, version, type, savepoints, metadata table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hudimeta.commit.session import WriteSession
from hudimeta.config.options import TABLE_TYPE
from hudimeta.engine import LocalEngine
from hudimeta.services import clean, clustering, compaction, maintenance, savepoints, table_type, ttl
from hudimeta.services.bucket_rescaling import rescale_buckets
from hudimeta.services.metadata_table import create, delete
from hudimeta.services.repair import deduplicate
from hudimeta.services.versions import change_version
from hudimeta.testing.builders import simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation, TableType
from hudimeta.write.altering import set_defaults
from hudimeta.write.row_changes import delete_where
from tests.crash.starts import MERGED_SOON, SHORT, Make, Starts, on

__all__ = ["SERVICE_SCENES"]

EXPIRY = {
    "hoodie.partition.ttl.strategy.days.retain": "1",
    "hoodie.partition.ttl.strategy.partition.selected": "p1",
}
NEW_KEYS = simple_rows([900, 901], 900)


def _start(name: str) -> Callable[[Starts, str], tuple[str, ModelTable]]:
    def start(starts: Starts, type: str) -> tuple[str, ModelTable]:
        table = getattr(starts, name)(type)
        return table.path, table.model

    return start


def _meeting_new_keys(make: Make) -> Make:
    """The scene, after which nobody changes rows that were there."""
    return lambda starts, type: replace(make(starts, type), comes=NEW_KEYS)


def _without_p1(model: ModelTable) -> None:
    model.write(Operation.DELETE_PARTITION, simple_rows([1], 0))


def _version(to: int, verb: str) -> Callable[[WriteSession], object]:
    return lambda session: change_version(session.storage, session.options, to, verb)


def _change_type(session: WriteSession) -> None:
    """To the one that the options do not say."""
    begun_as = session.options.get(TABLE_TYPE)
    free = WriteSession(session.storage, session.options.without(TABLE_TYPE), engine=LocalEngine(1))
    table_type.change_type(free, "COW" if begun_as == TableType.MERGE_ON_READ.value else "MOR")


def _rescale(session: WriteSession) -> None:
    rescale_buckets(session, "p1,3;.*,4")


def _make_metadata(session: WriteSession) -> None:
    if not session.properties.metadata_partitions:
        create(session)


def _maintain(session: WriteSession) -> None:
    maintenance.maintain(session.storage, session.options)


def _newest_of_each(model: ModelTable) -> None:
    for place, found in model.rows.items():
        model.rows[place] = [max(found, key=lambda row: row["ts"])]


def _give_up_savepoint(session: WriteSession) -> None:
    timeline = session.properties.load_timeline(session.storage)
    for found in savepoints.listed(timeline):
        savepoints.delete(session, found.instant)


def _cancel(session: WriteSession) -> None:
    for plan in clustering.pending(session.properties.load_timeline(session.storage)):
        clustering.cancel(session, plan.time)


def _clean_by_steps(session: WriteSession) -> None:
    instant = clean.schedule(session)
    if instant is not None:
        clean.execute(session, instant)


def _compact_by_steps(session: WriteSession) -> None:
    instant = compaction.schedule(session)
    if instant is not None:
        compaction.execute(session, instant)


SERVICE_SCENES: Mapping[str, Make] = {
    "delete where": on(
        _start("young"),
        lambda session: delete_where(session, "ts = 2"),
        lambda model: model.change(lambda row: None if row["ts"] == 2 else row),
    ),
    "expiry": on(_start("old"), ttl.expire, _without_p1, EXPIRY),
    "maintenance": on(_start("worn"), _maintain, given={**SHORT, **MERGED_SOON}, again=_maintain, kept=1),
    "clean by steps": on(_start("worn"), _clean_by_steps, given=SHORT, again=clean.clean, kept=1),
    "compaction by steps": on(_start("young"), _compact_by_steps, again=compaction.compact),
    "cancelled clustering": _meeting_new_keys(on(_start("planned"), _cancel, again=_cancel)),
    "savepoint given up": on(_start("pinned"), _give_up_savepoint, again=_give_up_savepoint),
    "upgrade": on(_start("young"), _version(9, "upgrade"), again=_version(9, "upgrade")),
    "downgrade": on(_start("nine"), _version(8, "downgrade"), again=_version(8, "downgrade")),
    "other type": on(_start("young"), _change_type),
    "deduplication": _meeting_new_keys(on(_start("doubled"), deduplicate, _newest_of_each, again=deduplicate, kept=0)),
    "rescaling": _meeting_new_keys(on(_start("bucketed"), _rescale, again=_rescale, kept=0)),
    "default values": on(
        _start("young"),
        lambda session: set_defaults(session, {"x": "1.0D"}),
        again=lambda session: set_defaults(session, {"x": "1.0D"}),
    ),
    "making of the metadata table": on(_start("bare"), _make_metadata, again=_make_metadata),
    "removal of the metadata table": on(_start("young"), delete),
}
"""Scenes by name; those of `LOGS_ALONE` among them are of merge-on-read tables."""
