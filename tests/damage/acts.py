"""What is done over a damage: writes, services, repairs, each by a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.engine.machine import ThisMachine, running_on
from hudimeta.types import TableType
from tests.damage.serviced import BINARY, MERGED_SOON
from tests.damage.subjects import Subject

__all__ = ["ACTS", "Act"]

_EXPIRY = {
    "hoodie.partition.ttl.strategy.days.retain": "1",
    "hoodie.partition.ttl.strategy.partition.selected": "p1,part=p1",
}
_DAYS_LATER = 3


@dataclass(frozen=True)
class Act:
    """Something that is done to a table.

    Attributes:
        do: It itself.
        changes: Rows change, where there are such rows.
        publishes_early: Its plan is what readers go by from then on, or it publishes several times, before it is refused.
    """

    do: Callable[[Table, Subject], object]
    changes: bool = False
    publishes_early: bool = False


class _Steps(Protocol):
    """A service by steps."""

    def schedule(self) -> str | None: ...

    def execute(self, instant: str) -> object: ...


class _DaysLater(ThisMachine):
    """This machine, some days from now."""

    threads = False  # others would be on this machine today

    def now_ms(self) -> int:
        return super().now_ms() + _DAYS_LATER * 86_400_000


def _first_rows(subject: Subject) -> pa.Table:
    return subject.later.slice(0, 2)


def _step_by_step(steps: _Steps) -> object:
    instant = steps.schedule()
    return None if instant is None else steps.execute(instant)


def _with(table: Table, subject: Subject, options: Mapping[str, str]) -> Table:
    return Table(table.path, {**subject.options, **options})


def _update(table: Table, subject: Subject) -> object:
    names = subject.later.column_names
    where = "n > 70" if "n" in names else None
    return table.update({"n": "n + 1"} if "n" in names else {names[-1]: None}, where=where)


def _delete_where(table: Table, subject: Subject) -> object:
    names = subject.later.column_names
    return table.delete(where="n > 70" if "n" in names else f"`{names[0]}` IS NOT NULL")


def _merge(table: Table, subject: Subject) -> object:
    builder = table.merge(subject.later, list(table.properties.record_keys))
    return builder.when_matched_update().when_not_matched_insert().execute()


def _expire(table: Table, subject: Subject) -> object:
    with running_on(_DaysLater()):
        return _with(table, subject, _EXPIRY).expire_partitions()


def _change_type(table: Table) -> object:
    return table.change_type("COW" if table.properties.type is TableType.MERGE_ON_READ else "MOR")


def _index_beside(table: Table, subject: Subject) -> object:
    steps = table.services.indexing
    return steps.execute(steps.schedule("secondary_index", "later_beside", subject.later.column_names[0]))


def _advise(table: Table, subject: Subject) -> object:
    """Advice for the subject's own predicates."""
    learning = _with(table, subject, {"hudimeta.learn": "true"})
    for where in subject.predicates:
        learning.scan(where).to_table()
    return learning.advise(apply=True)


def _metadata_anew(table: Table) -> None:
    table.metadata.delete()
    table.metadata.create()


def _write(do: Callable[[Table, Subject], object]) -> Act:
    return Act(do, changes=True)


def _service(do: Callable[[Table], object]) -> Act:
    return Act(lambda table, subject: do(table))


def _in_parts(do: Callable[[Table], object], *, changes: bool = False) -> Act:
    return Act(lambda table, subject: do(table), changes=changes, publishes_early=True)


def _newest(table: Table) -> str:
    return table.timeline.writes[-1].time


_WRITES: Mapping[str, Act] = {
    "upsert": _write(lambda table, subject: table.upsert(subject.later)),
    "insert": _write(lambda table, subject: table.insert(subject.later)),
    "bulk_insert": _write(lambda table, subject: table.bulk_insert(subject.later)),
    "delete": _write(lambda table, subject: table.delete(_first_rows(subject))),
    "delete where": _write(_delete_where),
    "update": _write(_update),
    "merge": _write(_merge),
    "insert_overwrite": _write(lambda table, subject: table.insert_overwrite(_first_rows(subject))),
    "insert_overwrite_table": _write(lambda table, subject: table.insert_overwrite_table(_first_rows(subject))),
    "delete_partition": _write(lambda table, subject: table.delete_partition("p1")),
    "expire": _write(_expire),
    "alter": _write(lambda table, subject: table.alter(add={"brand_new": pa.int32()})),
}
_SERVICES: Mapping[str, Act] = {
    "compact": _in_parts(lambda table: table.compact()),
    "compact by steps": _service(lambda table: _step_by_step(table.services.compaction)),
    "log_compact": Act(lambda table, subject: _with(table, subject, MERGED_SOON).log_compact(), publishes_early=True),
    "log_compact by steps": Act(
        lambda table, subject: _step_by_step(_with(table, subject, MERGED_SOON).services.log_compaction)
    ),
    "cluster": Act(lambda table, subject: table.cluster(subject.later.column_names[0]), publishes_early=True),
    "cluster by copies": Act(lambda table, subject: _with(table, subject, BINARY).cluster(), publishes_early=True),
    "cluster by steps": _service(lambda table: _step_by_step(table.services.clustering)),
    "clean": _service(lambda table: table.clean()),
    "clean by steps": _service(lambda table: _step_by_step(table.services.cleaning)),
    "archive": _service(lambda table: table.archive()),
    "maintain": Act(lambda table, subject: _with(table, subject, MERGED_SOON).maintain(), publishes_early=True),
    "advise": Act(_advise, publishes_early=True),
}
_UNDOING: Mapping[str, Act] = {
    "recover": _service(lambda table: table.recover()),
    "savepoint": _service(lambda table: table.savepoint()),
    "restore": Act(lambda table, subject: table.restore(subject.moments[-1]), changes=True, publishes_early=True),
    "rollback": _in_parts(lambda table: table.rollback(_newest(table)), changes=True),
}
_CHANGES: Mapping[str, Act] = {
    "upgrade": _in_parts(lambda table: table.upgrade()),
    "downgrade": _in_parts(lambda table: table.downgrade()),
    "change_type": _in_parts(_change_type),
    "rename": _service(lambda table: table.rename("another")),
    "deduplicate": _service(lambda table: table.repair.deduplicate()),
    "orphans": _service(lambda table: table.repair.orphans(dry_run=False)),
    "metafiles": _service(lambda table: table.repair.metafiles()),
    "cleans": _service(lambda table: table.repair.cleans()),
    "properties": _service(lambda table: table.repair.properties()),
}
_INDEXES: Mapping[str, Act] = {
    "validate": _service(lambda table: table.metadata.validate()),
    "validate deep": _service(lambda table: table.metadata.validate(deep=True)),
    "prove": _service(lambda table: table.metadata.validate(prove=True)),
    "rebuild": _service(lambda table: table.metadata.rebuild()),
    "metadata anew": _service(_metadata_anew),
    "create_index": Act(
        lambda table, subject: table.metadata.create_index("later", "secondary_index", subject.later.column_names[0])
    ),
    "create_index beside": Act(_index_beside),
    "drop_index": _service(lambda table: table.metadata.drop_index("partition_stats")),
    "resize_index": _service(lambda table: table.metadata.resize_index(5)),
}
ACTS: Mapping[str, Act] = {**_WRITES, **_SERVICES, **_UNDOING, **_CHANGES, **_INDEXES}
"""What is done over the damage, by name."""
