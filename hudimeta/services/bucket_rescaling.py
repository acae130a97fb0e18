"""Other numbers of buckets for partitions of a table with a fixed bucket index: rows move to their new buckets, in one commit.

The rules that say how many (`partition_rules`) count from that commit on. Of two numbers of buckets with the greatest common
divisor g, the rows of old buckets that are equal modulo g go to new ones that are equal to them modulo g: these are one task.
Rows keep their commit times. The commit takes the old file groups out, as an overwrite does.

Every writer must see the new rules: one of hudimeta that began before notices at its end, and begins anew. Apache Hudi asks for
the rules when it opens a table, so its writers are to be stopped, as for its own procedure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from hudimeta.commit.attempts import until_no_conflict
from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.commit.published_schema import published_schema
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, TableError, UnsupportedFeature
from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.bucket.look_up import SimpleBuckets, bucket_of_file_id
from hudimeta.indexes.bucket.partition_rules import RULES_KEY, PartitionRules, put_rules
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import KeyGenerator
from hudimeta.reports import Report
from hudimeta.services.planned_slices import reading, report_of
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.read_task import ReadTask
from hudimeta.slices.reader import SliceReader
from hudimeta.slices.slice_keys import with_virtual_keys
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.planned_groups import groups_in_plans
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage
from hudimeta.storage.at_once import engine_of_files
from hudimeta.table.file_names import WriteToken
from hudimeta.table.properties import update
from hudimeta.timeline import Timeline
from hudimeta.types import FileGroupId, Operation
from hudimeta.write.base_files import BaseFileWriter
from hudimeta.write.table_files import TableFiles

__all__ = ["RescalePlan", "RescaleReport", "RescaledPartition", "rescale_buckets"]

_MOST_SHOWN = 20


@dataclass(frozen=True)
class RescaledPartition:
    """A partition whose rows move.

    Attributes:
        path: Of the partition.
        before: Buckets that it has.
        after: Buckets that it gets.
        slices: Its file slices.
    """

    path: str
    before: int
    after: int
    slices: tuple[FileSlice, ...]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(one.size for one in self.slices)


@dataclass(frozen=True, repr=False)
class RescalePlan(Report):
    """What new rules change; prints as a list.

    Attributes:
        rules: The new ones.
        former: Those that the table goes by, "" for none.
        partitions: Those whose rows move.
    """

    rules: str
    former: str
    partitions: tuple[RescaledPartition, ...]

    def __str__(self) -> str:
        if self.rules == self.former and not self.partitions:
            return f"the table goes by {self.rules}: nothing to do"
        size, groups = sum(one.size for one in self.partitions), sum(len(one.slices) for one in self.partitions)
        count = f"{len(self.partitions):,} partitions with {groups:,} file groups, {size:,} bytes"
        lines = [f"buckets by {self.rules}" + (f", not by {self.former}" if self.former else ""), f"  rows move in {count}"]
        shown = self.partitions[:_MOST_SHOWN]
        lines += [f"  {one.path or 'the table'}: {one.before:,} -> {one.after:,} buckets, {one.size:,} bytes" for one in shown]
        more = len(self.partitions) - _MOST_SHOWN
        return "\n".join([*lines, f"  and {more:,} more"] if more > 0 else lines)


@dataclass(frozen=True, repr=False)
class RescaleReport(Report):
    """What a rescale did.

    Attributes:
        plan: What it was going to do.
        commit: The commit; None of a dry run, and where there was nothing to do.
        notes: What else is to be known.
    """

    plan: RescalePlan
    commit: CommitReport | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        did = "" if self.commit is None else f"RESCALED at {self.commit.instant}: "
        return "\n".join([f"{did}{self.plan}", *self.notes])


def rescale_buckets(session: WriteSession, rules: str, *, dry_run: bool = False) -> RescaleReport:
    """Give partitions other numbers of buckets.

    Args:
        session: The table.
        rules: In the form of `PartitionRules`; `.*,8` as the last rule is for all other partitions.
        dry_run: Only plan.

    Raises:
        ConfigError: Rules that cannot be read; a table without a bucket index, or in other buckets than its options say.
        UnsupportedFeature: Consistent hashing, whose buckets a clustering splits and merges.
        TableError: A service is planned for a file group that has to be written anew.
        CommitConflict: Other writers were first, several times.
    """
    if not rules.strip():
        raise ConfigError("rules", rules, "a rule for some partitions at least, such as .*,8", "Give rules.")
    PartitionRules(rules, 1).check()
    if dry_run:
        rescale = _Rescale.planned(session, session.snapshot_now(), rules)
        return RescaleReport(rescale.plan, notes=tuple(session.notes))
    plans: list[RescalePlan] = []
    report = until_no_conflict(_run)(session, rules, plans.append)
    return RescaleReport(plans[-1], report if report.completion is not None else None, tuple(session.notes))


def _run(session: WriteSession, rules: str, tell: Callable[[RescalePlan], None]) -> CommitReport:
    timings, operation = Timings(), Operation.INSERT_OVERWRITE
    snapshot = session.snapshot_now()
    rescale = _Rescale.planned(session, snapshot, rules)
    tell(rescale.plan)
    if rescale.plan.former == rules and not rescale.plan.partitions:
        return CommitReport("", None, operation.value)
    with session.coordinator.writing(operation, snapshot.timeline) as (write, begun):
        if begun is not snapshot.timeline:  # dead writes were rolled back
            snapshot = session.snapshot_at(begun)
            rescale = _Rescale.planned(session, snapshot, rules)
            tell(rescale.plan)
        with timings.phase("rewrite"):
            files = rescale.written(session, snapshot, write)
        return _published(session, snapshot, write, rescale, files, timings)


def _published(
    session: WriteSession,
    snapshot: Snapshot,
    write: OpenWrite,
    rescale: _Rescale,
    files: Sequence[WrittenFile],
    timings: Timings,
) -> CommitReport:
    replaced = {one.path: [of.file_id for of in one.slices] for one in rescale.plan.partitions}
    stated = published_schema(snapshot.file_schema, session.properties.name, snapshot.history, write.instant)

    def decides(_: Timeline) -> None:
        put_rules(session.storage, replace(rescale.after, instant=write.instant))
        update(session.storage, {RULES_KEY: write.instant})

    publication = Publication(
        files,
        snapshot.file_schema,
        stated.avro,
        replaced,
        {**session.extra_metadata(), **stated.extra},
        keyed_partitions=None,  # new partitions of others, too, are in buckets by the rules of before
        known=snapshot.metadata,
        history=stated.history,
        decides=decides,
    )
    with timings.phase("publish"):
        completion = session.coordinator.publish(write, publication)
    counts = {"file_groups_added": len(files), "file_groups_replaced": sum(map(len, replaced.values()))}
    report = report_of(session, write, completion, files, timings, rolled_back=write.rolled_back, **counts)
    return session.reported(replace(report, partitions=len(replaced)), write.action)


@dataclass(frozen=True)
class _Rescale:
    """A plan together with what carries it out.

    Attributes:
        plan: For people.
        before: Rules that the table goes by.
        after: New ones.
        fields: Key fields that are hashed.
    """

    plan: RescalePlan
    before: PartitionRules
    after: PartitionRules
    fields: tuple[str, ...]

    @classmethod
    def planned(cls, session: WriteSession, snapshot: Snapshot, rules: str) -> _Rescale:
        table = TableFiles(session, snapshot)
        settings = table.lookup.choice.buckets
        if settings is None:
            raise ConfigError(
                keys.INDEX_TYPE.key, None, "BUCKET: the table has no buckets", f"Set {keys.INDEX_TYPE.key}=BUCKET."
            )
        if settings.consistent:
            raise UnsupportedFeature(
                "rescaling buckets of consistent hashing", "Cluster the table: that splits and merges them."
            )
        before = table.lookup.bucket_rules
        after = PartitionRules(rules, before.default).check()
        slices: dict[str, list[FileSlice]] = {}
        for one in slices_of(snapshot.slices()):
            slices.setdefault(one.partition_path, []).append(one)
        counts = {path: (before.count_of(path), after.count_of(path)) for path in sorted(slices)}
        moved = [path for path, (old, new) in counts.items() if old != new]
        partitions = tuple(RescaledPartition(path, *counts[path], tuple(slices[path])) for path in moved)
        _refuse_planned(snapshot, partitions)
        for partition in partitions:
            for one in partition.slices:
                _bucket(one, partition.before)  # so that a dry run says it too
        return cls(RescalePlan(rules, before.expressions, partitions), before, after, settings.fields)

    def written(self, session: WriteSession, snapshot: Snapshot, write: OpenWrite) -> list[WrittenFile]:
        """Write the rows into their new buckets."""
        table = TableFiles(session, snapshot)
        run = _MoveRows(
            session.storage,
            reading(session, snapshot, snapshot.file_schema, snapshot.history),
            table.writer(write.instant, snapshot.file_schema),
            None if session.properties.populate_meta else table.generator(),
            self.before,
            self.after,
            self.fields,
        )
        works = [work for one in self.plan.partitions for work in self._works(one)]
        works = [replace(work, number=number) for number, work in enumerate(works)]
        sizes = [sum(of.size for of in work.slices) for work in works]
        engine = engine_of_files(session.engine, session.storage, sizes)
        return [file for files in engine.map(run, works) for file in files]

    def _works(self, one: RescaledPartition) -> Iterator[_Work]:
        step, ids = math.gcd(one.before, one.after), SimpleBuckets(self.after, self.fields)
        shares: dict[int, list[FileSlice]] = {}
        for of in one.slices:
            shares.setdefault(_bucket(of, one.before) % step, []).append(of)
        for share, slices in sorted(shares.items()):
            numbers = range(share, one.after, step)
            yield _Work(0, one, tuple(slices), {n: ids.new_file_id(one.path, n, again=True) for n in numbers})


def _refuse_planned(snapshot: Snapshot, partitions: Sequence[RescaledPartition]) -> None:
    busy = groups_in_plans(snapshot.timeline)
    for one in (of for partition in partitions for of in partition.slices):
        if FileGroupId(one.partition_path, one.file_id) in busy:
            why = f"a service is planned for file group {one.file_id} in {one.partition_path!r}, whose rows are to move"
            raise TableError(why, "Run the plan or cancel it, then rescale.")


def _bucket(one: FileSlice, count: int) -> int:
    """The bucket of a file group. One id in forty of a table without buckets begins with eight digits, too."""
    number = bucket_of_file_id(one.file_id)
    if number is None or number >= count:
        raise _of_other_buckets(one, count)
    return number


def _of_other_buckets(one: FileSlice, count: int) -> ConfigError:
    allowed = f"what the table was written with: file group {one.file_id} in {one.partition_path!r} has rows of other buckets"
    return ConfigError(keys.BUCKET_COUNT.key, count, allowed, "Give the number of buckets of the table's other writers.")


@dataclass(frozen=True)
class _Work:
    """One task.

    Attributes:
        number: Of the task.
        partition: Whose rows move.
        slices: That are read.
        file_ids: By the number of a bucket the file group that its rows go to.
    """

    number: int
    partition: RescaledPartition
    slices: tuple[FileSlice, ...]
    file_ids: Mapping[int, str]


@dataclass(frozen=True)
class _MoveRows:
    """Runs tasks; a value, so that it can run in another process."""

    storage: Storage
    task: ReadTask
    writer: BaseFileWriter
    virtual: KeyGenerator | None
    before: PartitionRules
    after: PartitionRules
    fields: tuple[str, ...]

    def __call__(self, work: _Work) -> list[WrittenFile]:
        path = work.partition.path
        rows = pa.concat_tables([self.task.output_schema.empty_table(), *map(self._rows_of, work.slices)])
        numbers = SimpleBuckets(self.after, self.fields).numbers(path, single_array(rows[KEY_COLUMN]).cast(pa.string()))
        write = partial(self.writer.write_kept, path)
        token = WriteToken(work.number)
        return [
            write(file_id, rows.filter(pa.array(numbers == number)), token)
            for number, file_id in work.file_ids.items()
            if (numbers == number).any()
        ]

    def _rows_of(self, one: FileSlice) -> pa.Table:
        rows = pa.concat_tables([self.task.output_schema.empty_table(), *SliceReader(self.task, self.storage).tables(one)])
        rows = rows if self.virtual is None else with_virtual_keys(rows, self.virtual)
        numbers = SimpleBuckets(self.before, self.fields).numbers(
            one.partition_path, single_array(rows[KEY_COLUMN]).cast(pa.string())
        )
        count = self.before.count_of(one.partition_path)
        if np.any(numbers != _bucket(one, count)):
            raise _of_other_buckets(one, count)
        return rows
