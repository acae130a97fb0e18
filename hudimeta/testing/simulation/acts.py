"""What actors do, and how that ended: writes, reads and services, as a user of a table asks for them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import pyarrow as pa

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS, Options
from hudimeta.engine import LocalEngine
from hudimeta.errors import CommitOutcomeUnknown, HudiError, MetadataOutOfSync, NotFound, UndoError, ValidationFailed
from hudimeta.services import archival, clean, clustering, compaction, log_compaction, savepoints, ttl
from hudimeta.services.indexing import beside_writers, create_beside, create_index, drop_index
from hudimeta.services.restore import restore
from hudimeta.services.rollback import roll_back
from hudimeta.storage import Storage
from hudimeta.table.properties import load as load_properties
from hudimeta.testing.builders import simple_place, simple_rows
from hudimeta.testing.model import ModelTable, Place, Row
from hudimeta.testing.simulation.actors import Actor
from hudimeta.testing.simulation.events import PollSeen, ReadSeen, UndoDone, WriteDone, WriterOutcome
from hudimeta.testing.simulation.ledger import NAME_KEY
from hudimeta.testing.simulation.readers import polls, state_now
from hudimeta.testing.simulation.scheduler import Died
from hudimeta.types import Action, Operation
from hudimeta.write.merge_builder import MergeBuilder
from hudimeta.write.row_changes import delete_where, update_where
from hudimeta.write.table_writer import write_rows

__all__ = [
    "CONDITIONS",
    "INDEXES",
    "MANY_INDEXES",
    "OF_CHANGES",
    "OF_INDEXES",
    "OF_LOGS",
    "OF_PLANS",
    "UNDOING",
    "WRITES",
    "Act",
    "ActKind",
    "Log",
    "perform",
    "recover",
]

INDEXES = ("bloom_filters", "record_index")
"""What may be built and dropped in usual histories."""
MANY_INDEXES: Mapping[str, Mapping[str, Any]] = {
    "bloom_filters": {"kind": "bloom_filters"},
    "record_index": {"kind": "record_index"},
    "column_stats": {"kind": "column_stats"},
    "secondary_index_ts": {"kind": "secondary_index", "name": "ts", "columns": ["ts"]},
    "secondary_index_part": {"kind": "secondary_index", "name": "part", "columns": ["part"]},
    "expr_index_up": {"kind": "column_stats", "name": "up", "columns": ["id"], "expression": "upper"},
    "expr_index_low": {"kind": "bloom_filters", "name": "low", "columns": ["id"], "expression": "lower"},
}
"""How each is asked for."""
_MODE, _NON_BLOCKING = "hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL"
_SECONDARY = "hoodie.metadata.index.secondary.column"
_LIFE = {"hoodie.partition.ttl.strategy.days.retain": "5"}
"""The rows from before a history are older than that; all that it writes is younger."""


class ActKind(enum.Enum):
    """What is done."""

    WRITE = "write"
    CHANGE = "change rows"
    MERGE = "merge rows"
    EXPIRE = "let partitions expire"
    READ = "read"
    POLL = "poll"
    POLL_CHANGES = "poll changes"
    COMPACT = "compact"
    MERGE_LOGS = "merge logs"
    CLEAN = "clean"
    ARCHIVE = "archive"
    CLUSTER = "cluster"
    BUILD_INDEX = "build an index"
    BUILD_BESIDE = "build an index beside writers"
    DROP_INDEX = "drop an index"
    SAVE = "save a moment"
    FORGET = "give a saved moment up"
    RESTORE = "restore"
    ROLL_BACK = "roll back"
    RECOVER = "recover"
    PLAN_COMPACTION = "plan a compaction"
    PLAN_LOGS = "plan to merge logs"
    PLAN_CLUSTERING = "plan a clustering"
    PLAN_INDEX = "plan an index"
    RUN_PLANS = "run what is planned"
    CANCEL = "take back what is planned"


WRITES = (ActKind.WRITE, ActKind.CHANGE, ActKind.MERGE, ActKind.EXPIRE)
"""What changes rows."""
OF_LOGS = (ActKind.COMPACT, ActKind.MERGE_LOGS)
"""What tables without log files do not need."""
OF_CHANGES = (ActKind.POLL_CHANGES,)
"""What tables that capture changes can do."""
_UNDOES = (ActKind.RESTORE, ActKind.ROLL_BACK)
UNDOING = (Action.RESTORE, Action.ROLLBACK)
"""What they leave on the timeline."""
OF_INDEXES = (ActKind.BUILD_INDEX, ActKind.BUILD_BESIDE, ActKind.DROP_INDEX, ActKind.PLAN_INDEX)
OF_PLANS = (
    ActKind.PLAN_COMPACTION,
    ActKind.PLAN_LOGS,
    ActKind.PLAN_CLUSTERING,
    ActKind.PLAN_INDEX,
    ActKind.RUN_PLANS,
    ActKind.CANCEL,
)
"""What makes plans, runs them or takes them back."""


CONDITIONS: Mapping[str, Callable[[Row], bool]] = {
    "x > 300000": lambda row: row["x"] > 300_000,
    "x < 10": lambda row: row["x"] < 10,
    "part = 'p0'": lambda row: row["part"] == "p0",
    "id in ('k0000', 'k0003')": lambda row: row["id"] in ("k0000", "k0003"),
    "x > 300000 or id = 'k0001'": lambda row: row["x"] > 300_000 or row["id"] == "k0001",
}
"""What a change asks of rows, in SQL and of the model."""
_DOUBLED = "x * 2 + 1"


@dataclass(frozen=True)
class Act:
    """One thing that an actor does; the rest is said of writes and changes.

    Attributes:
        kind: What.
        name: Of the write.
        operation: Of the write; a change deletes or updates.
        ids: Of its rows.
        where: Which rows a change or a read is about, one of `CONDITIONS`; "" for all.
        index: Which index is built or dropped.
    """

    kind: ActKind
    name: str = ""
    operation: Operation = Operation.UPSERT
    ids: tuple[int, ...] = ()
    where: str = ""
    index: str = ""

    @property
    def rows(self) -> pa.Table:
        """That it brings, all of one version."""
        return simple_rows(self.ids, 1, self._value)

    @property
    def versioned_rows(self) -> pa.Table:
        """That it brings, of a version that no other act has."""
        return simple_rows(self.ids, 1 + int(self._value), self._value)

    @property
    def _value(self) -> float:
        return float(sum(ord(letter) * 31**at for at, letter in enumerate(self.name)) % 1_000_003)

    def change(self, rows: pa.Table, seen: ModelTable) -> Mapping[Place, list[Row]]:
        """What a change, or a merge of some rows, makes of the rows of a model."""
        if self.kind is ActKind.MERGE:
            return {simple_place(row): _merged(row, seen) for row in rows.to_pylist()}
        new = {place: [new for row in rows if (new := self._changed(row)) is not None] for place, rows in seen.rows.items()}
        return {place: rows for place, rows in new.items() if rows != seen.rows[place]}

    def _changed(self, row: Row) -> Row | None:
        if not CONDITIONS[self.where](row):
            return row
        return None if self.operation is Operation.DELETE else {**row, "x": row["x"] * 2 + 1}

    def __str__(self) -> str:
        if self.kind is ActKind.CHANGE:
            return f"{'delete' if self.operation is Operation.DELETE else 'update'} where {self.where}"
        word = self.operation.value.lower() if self.kind is ActKind.WRITE else self.kind.value
        return f"{word} {self.where or self.index or ','.join(map(str, self.ids))}".strip()


def _merged(row: Row, seen: ModelTable) -> list[Row]:
    known = seen.rows.get(simple_place(row))
    return [row] if known is None else [{**old, "x": old["x"] + row["x"]} for old in known]


@dataclass
class Log:
    """What all actors saw.

    Attributes:
        writes, undos, reads, polls: See there; reads and polls that were refused are left out.
        refusals: What else was refused: the act and the error.
    """

    writes: list[WriteDone] = field(default_factory=list)
    undos: list[UndoDone] = field(default_factory=list)
    reads: list[ReadSeen] = field(default_factory=list)
    polls: list[PollSeen] = field(default_factory=list)
    refusals: list[tuple[str, HudiError]] = field(default_factory=list)


def perform(actor: Actor, act: Act, options: Mapping[str, str], log: Log) -> None:
    """Do one thing and write down what came of it. An error of the engine's own is an answer, any other one is not."""
    if act.kind in WRITES:
        _write(actor, act, options, log)
        return
    if act.kind in _UNDOES:
        _undo(actor, act.kind, options, log)
        return
    try:
        if act.kind is ActKind.READ:
            begun = actor.now
            state = state_now(actor.storage, act.where)
            asked = CONDITIONS.get(act.where)
            log.reads.append(ReadSeen(f"the read of {actor.name} {act.where}".rstrip(), begun, actor.now, state, asked))
        elif act.kind in (ActKind.POLL, ActKind.POLL_CHANGES):
            log.polls.extend(polls(actor, f"the poll of {actor.name}", changes=act.kind is ActKind.POLL_CHANGES))
        elif act.kind in OF_INDEXES:
            _index(actor.storage, act, OPTIONS.read(options))
        else:
            _SERVICES[act.kind](WriteSession(actor.storage, OPTIONS.read(options), engine=LocalEngine(1)))
    except HudiError as error:
        log.refusals.append((f"{actor.name} {act.kind.value}", error))


def _write(actor: Actor, act: Act, options: Mapping[str, str], log: Log) -> None:
    begun = actor.now
    # Where nobody waits, readers go by the requested times of versions that are equally new: so there are none.
    rows = act.versioned_rows if options.get(_MODE) == _NON_BLOCKING or _SECONDARY in options else act.rows

    def ended(outcome: WriterOutcome, completion: str | None = None, error: HudiError | None = None) -> None:
        text = "" if error is None else f"{type(error).__name__}: {error}"
        change = partial(act.change, rows) if act.kind in (ActKind.CHANGE, ActKind.MERGE) else None
        expires = act.kind is ActKind.EXPIRE
        done = WriteDone(act.name, act.operation, rows, begun, actor.now, outcome, completion, text, change, expires)
        log.writes.append(done)

    try:
        session = WriteSession(actor.storage, OPTIONS.read({**options, **_LIFE, NAME_KEY: act.name}), engine=LocalEngine(1))
        report = _written(session, act, rows)
    except Died:
        ended(WriterOutcome.UNKNOWN)
        raise
    except CommitOutcomeUnknown as error:
        ended(WriterOutcome.UNKNOWN, None, error)
    except HudiError as error:
        ended(WriterOutcome.REFUSED, None, error)
        if isinstance(error, (NotFound, MetadataOutOfSync)):
            raise ValidationFailed(f"{act.name} met a table that others had changed: {error}") from error
    else:
        ended(WriterOutcome.ACKNOWLEDGED, None if report is None else report.completion)


def _written(session: WriteSession, act: Act, rows: pa.Table) -> CommitReport | None:
    if act.kind is ActKind.EXPIRE:
        return ttl.expire(session).commit
    if act.kind is ActKind.MERGE:
        merge = MergeBuilder(rows, "id", "target", "source", lambda changes: changes(session))
        return merge.when_matched_update({"x": "target.x + source.x"}).when_not_matched_insert().execute()
    if act.kind is ActKind.WRITE:
        return write_rows(session, act.operation, rows)
    if act.operation is Operation.DELETE:
        return delete_where(session, act.where)
    return update_where(session, {"x": _DOUBLED}, act.where)


def _undo(actor: Actor, kind: ActKind, options: Mapping[str, str], log: Log) -> None:
    begun = actor.now

    def ended(outcome: WriterOutcome, instant: str | None = None, error: str = "") -> None:
        log.undos.append(UndoDone(actor.name, kind.value, begun, actor.now, outcome, instant, error))

    try:
        session = WriteSession(actor.storage, OPTIONS.read(options), engine=LocalEngine(1))
        timeline = session.properties.load_timeline(session.storage)
        newest = [i.time for i in timeline.by_completion]
        if kind is ActKind.ROLL_BACK:
            instant = roll_back(session, newest[-1]).instant
        else:
            instant = restore(session, max(timeline.savepoints, default=newest[-2:][0])).instant
    except Died:
        ended(WriterOutcome.UNKNOWN)
        raise
    except HudiError as error:
        refused = isinstance(error, UndoError)  # then nothing was changed; after any other error nobody knows
        ended(WriterOutcome.REFUSED if refused else WriterOutcome.UNKNOWN, None, f"{type(error).__name__}: {error}")
    else:
        ended(WriterOutcome.ACKNOWLEDGED, instant)


def _index(storage: Storage, act: Act, options: Options) -> None:
    there = act.index in load_properties(storage).metadata_partitions
    if act.kind is ActKind.DROP_INDEX:
        if there:
            drop_index(storage, options, act.index)
    elif not there:
        session = WriteSession(storage, options, engine=LocalEngine(1))
        _MAKING[act.kind](session, **MANY_INDEXES[act.index])


_MAKING: Mapping[ActKind, Callable[..., object]] = {
    ActKind.BUILD_INDEX: create_index,
    ActKind.BUILD_BESIDE: create_beside,
    ActKind.PLAN_INDEX: beside_writers.schedule,
}
_PLANNING: Mapping[Action, ModuleType] = {
    Action.COMPACTION: compaction,
    Action.LOG_COMPACTION: log_compaction,
    Action.CLUSTERING: clustering,
    Action.INDEXING: beside_writers,
}


def _planned(session: WriteSession) -> list[tuple[str, Action]]:
    """What is planned, oldest first."""
    timeline = session.properties.load_timeline(session.storage)
    return sorted((i.time, action) for action, service in _PLANNING.items() for i in service.pending(timeline))


def _run_plans(session: WriteSession) -> None:
    for instant, action in _planned(session):
        _PLANNING[action].execute(session, instant)


def _cancel(session: WriteSession) -> None:
    """Take the newest plan back; that of a compaction stays."""
    for instant, action in _planned(session)[-1:]:
        if action is not Action.COMPACTION:
            _PLANNING[action].cancel(session, instant)


def _forget(session: WriteSession) -> None:
    saved = savepoints.listed(session.properties.load_timeline(session.storage))
    if saved:
        savepoints.delete(session, saved[-1].instant)


_SERVICES: Mapping[ActKind, Callable[[WriteSession], object]] = {
    ActKind.COMPACT: compaction.compact,
    ActKind.MERGE_LOGS: log_compaction.log_compact,
    ActKind.CLEAN: clean.clean,
    ActKind.CLUSTER: clustering.cluster,
    ActKind.ARCHIVE: archival.archive,
    ActKind.SAVE: savepoints.save,
    ActKind.FORGET: _forget,
    ActKind.PLAN_COMPACTION: compaction.schedule,
    ActKind.PLAN_LOGS: log_compaction.schedule,
    ActKind.PLAN_CLUSTERING: clustering.schedule,
    ActKind.RUN_PLANS: _run_plans,
    ActKind.CANCEL: _cancel,
    ActKind.RECOVER: lambda session: session.coordinator.recover(),
}


def recover(actor: Actor, options: Mapping[str, str]) -> None:
    """What is done when all have come to their end."""
    WriteSession(actor.storage, OPTIONS.read(options), engine=LocalEngine(1)).coordinator.recover()
