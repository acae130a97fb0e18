"""What actors do, and how that ended: writes, reads and services, as a user of a table asks for them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS, Options
from hudimeta.engine import LocalEngine
from hudimeta.errors import CommitOutcomeUnknown, HudiError, NotFound, ValidationFailed
from hudimeta.read.incremental import Moment, range_of
from hudimeta.read.request import ScanRequest
from hudimeta.read.scan import Scan
from hudimeta.services import archival, clean, clustering, compaction, log_compaction
from hudimeta.services.indexing import create_beside, create_index, drop_index
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, Storage
from hudimeta.table.properties import load as load_properties
from hudimeta.testing.builders import simple_rows
from hudimeta.testing.model import Row
from hudimeta.testing.simulation.actors import Actor
from hudimeta.testing.simulation.consistency import PollSeen, ReadSeen, State, WriteDone, WriterOutcome, state_of
from hudimeta.testing.simulation.scheduler import Died
from hudimeta.timeline.archived import ArchivedRecords
from hudimeta.types import Action, Operation, QueryType
from hudimeta.write.row_changes import delete_where, update_where
from hudimeta.write.table_writer import write_rows

__all__ = ["CONDITIONS", "OF_LOGS", "Act", "ActKind", "Log", "perform", "published", "read_state", "recover"]

_NAME = "_simulated.write"
"""Key of a commit's metadata that tells which write it is."""
_INDEX = "bloom_filters"
_POLLS, _BETWEEN_POLLS_S = 3, 0.05
_MODE, _NON_BLOCKING = "hoodie.write.concurrency.mode", "NON_BLOCKING_CONCURRENCY_CONTROL"
_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


class ActKind(enum.Enum):
    """What is done."""

    WRITE = "write"
    CHANGE = "change rows"
    READ = "read"
    POLL = "poll"
    COMPACT = "compact"
    MERGE_LOGS = "merge logs"
    CLEAN = "clean"
    ARCHIVE = "archive"
    CLUSTER = "cluster"
    BUILD_INDEX = "build an index"
    BUILD_BESIDE = "build an index beside writers"
    DROP_INDEX = "drop an index"
    RECOVER = "recover"


OF_LOGS = (ActKind.COMPACT, ActKind.MERGE_LOGS)
"""What tables without log files do not need."""


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
        where: Which rows a change is about, one of `CONDITIONS`.
    """

    kind: ActKind
    name: str = ""
    operation: Operation = Operation.UPSERT
    ids: tuple[int, ...] = ()
    where: str = ""

    def changed(self, row: Row) -> Row | None:
        """What a change makes of a row of the model."""
        if not CONDITIONS[self.where](row):
            return row
        return None if self.operation is Operation.DELETE else {**row, "x": row["x"] * 2 + 1}

    def __str__(self) -> str:
        if self.kind is ActKind.CHANGE:
            return f"{'delete' if self.operation is Operation.DELETE else 'update'} where {self.where}"
        return (
            f"{self.operation.value.lower()} {','.join(map(str, self.ids))}" if self.kind is ActKind.WRITE else self.kind.value
        )


@dataclass
class Log:
    """What all actors saw.

    Attributes:
        writes, reads, polls: See there; reads and polls that were refused are left out.
        refusals: What else was refused: the act and the error.
    """

    writes: list[WriteDone] = field(default_factory=list)
    reads: list[ReadSeen] = field(default_factory=list)
    polls: list[PollSeen] = field(default_factory=list)
    refusals: list[tuple[str, HudiError]] = field(default_factory=list)


def perform(actor: Actor, act: Act, options: Mapping[str, str], log: Log) -> None:
    """Do one thing and write down what came of it. An error of the engine's own is an answer, any other one is not."""
    if act.kind in (ActKind.WRITE, ActKind.CHANGE):
        _write(actor, act, options, log)
        return
    try:
        if act.kind is ActKind.READ:
            begun = actor.now
            state = read_state(actor.storage)
            log.reads.append(ReadSeen(f"the read of {actor.name}", begun, actor.now, state))
        elif act.kind is ActKind.POLL:
            _poll(actor, log)
        else:
            _serve(actor.storage, act.kind, OPTIONS.read(options))
    except HudiError as error:
        log.refusals.append((f"{actor.name} {act.kind.value}", error))


def _write(actor: Actor, act: Act, options: Mapping[str, str], log: Log) -> None:
    begun = actor.now
    value = float(sum(ord(letter) * 31**at for at, letter in enumerate(act.name)) % 1_000_003)
    # Where nobody waits, readers go by the requested times of versions that are equally new: so there are none.
    ts = 1 + int(value) if options.get(_MODE) == _NON_BLOCKING else 1
    rows = simple_rows(act.ids, ts, value)

    def ended(outcome: WriterOutcome, completion: str | None = None, error: HudiError | None = None) -> None:
        text = "" if error is None else f"{type(error).__name__}: {error}"
        change = act.changed if act.kind is ActKind.CHANGE else None
        log.writes.append(WriteDone(act.name, act.operation, rows, begun, actor.now, outcome, completion, text, change))

    try:
        session = WriteSession(actor.storage, OPTIONS.read({**options, _NAME: act.name}), engine=LocalEngine(1))
        report = _change(session, act) if act.kind is ActKind.CHANGE else write_rows(session, act.operation, rows)
    except Died:
        ended(WriterOutcome.UNKNOWN)
        raise
    except CommitOutcomeUnknown as error:
        ended(WriterOutcome.UNKNOWN, None, error)
    except HudiError as error:
        ended(WriterOutcome.REFUSED, None, error)
        if isinstance(error, NotFound):
            raise ValidationFailed(f"{act.name} met a file that is gone: {error}") from error
    else:
        ended(WriterOutcome.ACKNOWLEDGED, report.completion)


def _change(session: WriteSession, act: Act) -> CommitReport:
    if act.operation is Operation.DELETE:
        return delete_where(session, act.where)
    return update_where(session, {"x": _DOUBLED}, act.where)


def _serve(storage: Storage, kind: ActKind, options: Options) -> None:
    if kind is ActKind.DROP_INDEX:
        if _INDEX in load_properties(storage).metadata_partitions:
            drop_index(storage, options, _INDEX)
        return
    session = WriteSession(storage, options, engine=LocalEngine(1))
    if kind is ActKind.COMPACT:
        compaction.compact(session)
    elif kind is ActKind.MERGE_LOGS:
        log_compaction.log_compact(session)
    elif kind is ActKind.CLEAN:
        clean.clean(session)
    elif kind is ActKind.CLUSTER:
        clustering.cluster(session)
    elif kind is ActKind.ARCHIVE:
        archival.archive(session)
    elif kind is ActKind.RECOVER:
        session.coordinator.recover()
    elif _INDEX not in session.properties.metadata_partitions:
        (create_index if kind is ActKind.BUILD_INDEX else create_beside)(session, kind=_INDEX)


def recover(actor: Actor, options: Mapping[str, str]) -> None:
    """What is done when all have come to their end."""
    WriteSession(actor.storage, OPTIONS.read(options), engine=LocalEngine(1)).coordinator.recover()


def read_state(storage: Storage) -> State:
    """All rows of the table, read as a user reads them."""

    return _rows(Moment(_opened(storage), None, 0), QueryType.SNAPSHOT)


def _rows(moment: Moment, kind: QueryType) -> State:
    return state_of(Scan(lambda: moment, ScanRequest(columns=("part", "id", "x"), query_type=kind)).to_table())


def _poll(actor: Actor, log: Log) -> None:
    """Read what changed since the last time, again and again, as a consumer of a table does."""
    begin = _newest(_opened(actor.storage))
    for _ in range(_POLLS):
        actor.pause(_BETWEEN_POLLS_S)
        snapshot = _opened(actor.storage)
        end = _newest(snapshot)
        found = _rows(Moment(snapshot, range_of(snapshot, begin, end), 0), QueryType.INCREMENTAL)
        log.polls.append(PollSeen(f"the poll of {actor.name}", begin, end, found))
        begin = end


def _opened(storage: Storage) -> Snapshot:
    return Snapshot.open(CountingStorage(storage), OPTIONS.read({}))


def _newest(snapshot: Snapshot) -> str:
    return max(i.completed_at for i in snapshot.timeline.writes)


def published(storage: Storage) -> dict[str, str]:
    """The completion time of each write on the timeline, active or archived, by its name.

    Raises:
        ValidationFailed: A write is there twice.
    """
    timeline = load_properties(storage).load_timeline(storage)
    archived = ArchivedRecords(timeline.history, _WRITES)
    records = {i.time: (i.completion, archived.metadata(i)) for i in archived.instants}
    records |= {i.time: (i.completion, timeline.metadata(i)) for i in timeline.writes}
    found: dict[str, str] = {}
    for completion, record in records.values():
        name = (record.get("extraMetadata") or {}).get(_NAME)
        if name is not None:
            if name in found:
                raise ValidationFailed(f"{name} was published twice, at {found[name]} and {completion}")
            found[name] = completion or ""
    return found
