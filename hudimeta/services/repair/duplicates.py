"""Rows with the same record key in one partition: all but the newest go, in one commit.

Inserts do not look keys up, so a key may come to live twice. Of the rows of one key the one with the greatest ordering value
stays, in a table that goes by commits, or where these are equal, the one of the latest commit, then the one in the latest file.

Every file group that has such a key is read whole and written anew as another file group, which takes its place: the indexes
hear of all its rows, so that each key is found where its row is. Rows keep their commit time and sequence number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.commit.attempts import until_no_conflict
from hudimeta.commit.coordinator import OpenWrite, Publication
from hudimeta.commit.published_schema import published_schema
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.engine import nearby_if_small
from hudimeta.errors import TableError
from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.bucket.consistent_hashing import HashRings
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import KeyGenerator
from hudimeta.reports import Report
from hudimeta.services.planned_slices import reading, report_of
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules
from hudimeta.slices.ordering import order_codes, ordering_columns
from hudimeta.slices.read_task import ReadTask
from hudimeta.slices.reader import SliceReader
from hudimeta.slices.slice_keys import with_virtual_keys
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.named_partitions import named_partitions
from hudimeta.snapshot.planned_groups import groups_in_plans
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import Storage
from hudimeta.table.file_names import WriteToken, new_file_id
from hudimeta.types import FileGroupId, Operation
from hudimeta.write.base_files import BaseFileWriter
from hudimeta.write.renewed_rings import bucket_after, rings_of, take_out
from hudimeta.write.table_files import TableFiles

__all__ = ["DuplicatesPlan", "DuplicatesReport", "deduplicate"]

TIME_COLUMN = "_hoodie_commit_time"
_BUCKET_DIGITS = 8
"""Of a file id in a table of buckets: the number of its bucket."""
_MOST_SHOWN = 20


@dataclass(frozen=True)
class _Doubled:
    """A slice with rows of doubled keys.

    Attributes:
        slice: With the sizes of its files.
        gone: Keys whose rows all go, because the row that stays is in another slice.
        dropped: How many rows go.
    """

    slice: FileSlice
    gone: pa.StringArray
    dropped: int


@dataclass(frozen=True, repr=False)
class DuplicatesPlan(Report):
    """What a deduplication found; prints as a list.

    Attributes:
        rows: The rows whose key another row of the partition has: partition_path, record_key, commit_time, file_id, kept.
        slices: The slices that are written anew.
    """

    rows: pa.Table
    slices: tuple[_Doubled, ...]

    @property
    def dropped(self) -> int:
        """How many rows go."""
        return sum(one.dropped for one in self.slices)

    @property
    def replaced(self) -> dict[str, list[str]]:
        """By partition the file groups that are written anew."""
        found: dict[str, list[str]] = {}
        for one in self.slices:
            found.setdefault(one.slice.partition_path, []).append(one.slice.file_id)
        return found

    def __str__(self) -> str:
        if not self.slices:
            return "no key is there twice"
        size = sum(one.slice.size for one in self.slices)
        lines = [f"drop {self.dropped:,} rows of {self._keys():,} keys: {len(self.slices):,} file groups anew, {size:,} bytes"]
        for row in self.rows.slice(0, _MOST_SHOWN).to_pylist():
            fate = "stays" if row["kept"] else "goes"
            time = f" of {row['commit_time']}" if row["commit_time"] else ""
            lines.append(f"  {row['partition_path'] or 'the table'} {row['record_key']}{time} in {row['file_id']}: {fate}")
        more = self.rows.num_rows - _MOST_SHOWN
        return "\n".join([*lines, f"  and {more:,} more"] if more > 0 else lines)

    def _keys(self) -> int:
        return int(sum(self.rows["kept"].to_pylist()))


@dataclass(frozen=True, repr=False)
class DuplicatesReport(Report):
    """What a deduplication did.

    Attributes:
        plan: What it found.
        commit: The commit; None of a dry run, and where there was nothing to do.
        notes: What else is to be known.
    """

    plan: DuplicatesPlan
    commit: CommitReport | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        did = "" if self.commit is None else f"DEDUPLICATED at {self.commit.instant}: "
        return "\n".join([f"{did}{self.plan}", *self.notes])


def deduplicate(session: WriteSession, partitions: Sequence[str] = (), *, dry_run: bool = False) -> DuplicatesReport:
    """Drop all but the newest of the rows that have a key in common within their partition.

    Args:
        session: The table.
        partitions: Only these, by their paths; none for all.
        dry_run: Only find them.

    Raises:
        ConfigError: No such partition.
        TableError: A service is planned for a file group that has to be written anew.
        CommitConflict: Other writers were first, several times.
    """
    if dry_run:
        plan = _plan(session, session.snapshot_now(), partitions)
        return DuplicatesReport(plan, notes=tuple(session.notes))
    plans: list[DuplicatesPlan] = []
    report = until_no_conflict(_run)(session, partitions, plans.append)
    return DuplicatesReport(plans[-1], report if report.completion is not None else None, tuple(session.notes))


def _run(session: WriteSession, partitions: Sequence[str], tell: Callable[[DuplicatesPlan], None]) -> CommitReport:
    timings, operation = Timings(), Operation.INSERT_OVERWRITE
    snapshot = session.snapshot_now()
    plan = _plan(session, snapshot, partitions)
    tell(plan)
    if not plan.slices:
        return CommitReport("", None, operation.value)
    with session.coordinator.writing(operation, snapshot.timeline) as (write, begun):
        if begun is not snapshot.timeline:  # dead writes were rolled back
            snapshot = session.snapshot_at(begun)
            plan = _plan(session, snapshot, partitions)
            tell(plan)
        table = TableFiles(session, snapshot)
        virtual = None if session.properties.populate_meta else table.generator()
        run = _DropRows(
            session.storage,
            reading(session, snapshot, snapshot.file_schema, snapshot.history),
            table.writer(write.instant, snapshot.file_schema),
            _Newest.of(session.rules),
            virtual,
        )
        rings = rings_of(session, table)
        works = [_Work(number, one, _new_id(table, rings, one.slice)) for number, one in enumerate(plan.slices)]
        with timings.phase("rewrite"):
            size = sum(one.slice.size for one in plan.slices)
            written = nearby_if_small(session.engine, size).map(run, works)
        if rings is not None:
            take_out(session, rings, write.instant, plan.replaced)
        return _published(session, snapshot, write, plan, [file for file in written if file is not None], timings)


def _published(
    session: WriteSession,
    snapshot: Snapshot,
    write: OpenWrite,
    plan: DuplicatesPlan,
    files: Sequence[WrittenFile],
    timings: Timings,
) -> CommitReport:
    replaced = plan.replaced
    stated = published_schema(snapshot.file_schema, session.properties.name, snapshot.history, write.instant)
    extra = {**session.extra_metadata(), **stated.extra}
    publication = Publication(
        files, snapshot.file_schema, stated.avro, replaced, extra, known=snapshot.metadata, history=stated.history
    )
    with timings.phase("publish"):
        completion = session.coordinator.publish(write, publication)
    counts = {"deleted": plan.dropped, "file_groups_added": len(files), "file_groups_replaced": len(plan.slices)}
    report = report_of(session, write, completion, files, timings, rolled_back=write.rolled_back, **counts)
    return session.reported(replace(report, partitions=len(replaced)), write.action)


def _new_id(table: TableFiles, rings: HashRings | None, one: FileSlice) -> str:
    """Id of the file group that takes the place of a slice's; in a table of buckets it is of the same bucket."""
    fresh = new_file_id()
    if rings is not None:
        return bucket_after(rings, one.partition_path, one.file_id) or fresh
    return one.file_id[:_BUCKET_DIGITS] + fresh[_BUCKET_DIGITS:] if table.lookup.fixes_places else fresh


# Finding them


@dataclass(frozen=True)
class _Newest:
    """Which of several rows is the newest.

    Attributes:
        fields: Ordering fields; none where commits alone decide.
    """

    fields: tuple[str, ...]

    @staticmethod
    def of(rules: MergeRules) -> _Newest:
        return _Newest(tuple(rules.ordering_fields) if rules.by_event_time else ())

    def order(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Numbers that are the greater, the newer a row is; of two equal ones the later row is."""
        columns = [*ordering_columns(rows, self.fields), rows[TIME_COLUMN]]
        return order_codes(columns)


def _plan(session: WriteSession, snapshot: Snapshot, partitions: Sequence[str]) -> DuplicatesPlan:
    names = list(partitions)
    chosen: list[str] | None = None
    if names:
        chosen, missing = named_partitions(snapshot, names)
        session.notes += [f"no partition {name!r} has rows" for name in missing]
    by_partition: dict[str, list[FileSlice]] = {}
    for one in slices_of(snapshot.slices(chosen)):
        if chosen is None or one.partition_path in chosen:
            by_partition.setdefault(one.partition_path, []).append(one)
    reader = SliceRows.of(snapshot)
    newest = _Newest.of(session.rules)
    find = _FindKeys(
        reader, newest.fields, None if session.properties.populate_meta else TableFiles(session, snapshot).generator()
    )
    parts = [_doubled_in(session, find, newest, slices) for _, slices in sorted(by_partition.items())]
    slices = tuple(one for found, _ in parts for one in found)
    busy = groups_in_plans(snapshot.timeline)
    for doubled in slices:
        if FileGroupId(doubled.slice.partition_path, doubled.slice.file_id) in busy:
            why = f"a service is planned for file group {doubled.slice.file_id}, which has doubled keys"
            raise TableError(why, "Run the plan or cancel it, then deduplicate.")
    return DuplicatesPlan(pa.concat_tables([_NO_ROWS.empty_table(), *(rows for _, rows in parts)]), slices)


_NO_ROWS = pa.schema(
    [
        ("partition_path", pa.string()),
        ("record_key", pa.string()),
        ("commit_time", pa.string()),
        ("file_id", pa.string()),
        ("kept", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class _FindKeys:
    """Reads the keys of a slice and what says which of its rows is newest; a value, so that it can run in another process."""

    reader: SliceRows
    fields: tuple[str, ...]
    virtual: KeyGenerator | None

    def __call__(self, one: FileSlice) -> pa.Table:
        named = () if self.virtual is None else self.virtual.record_fields
        rows = self.reader.columns(one, [TIME_COLUMN, *self.fields, *named])
        return rows if self.virtual is None else with_virtual_keys(rows, self.virtual)


def _doubled_in(
    session: WriteSession, find: _FindKeys, newest: _Newest, slices: Sequence[FileSlice]
) -> tuple[list[_Doubled], pa.Table]:
    """The slices of one partition that have doubled keys, and the rows of these."""
    slices = sorted(slices, key=lambda one: (one.base_instant, one.file_id))
    pieces = nearby_if_small(session.engine, sum(one.size for one in slices)).map(find, slices)
    rows = pa.concat_tables(pieces)
    at = np.repeat(np.arange(len(slices)), [len(piece) for piece in pieces])
    codes = single_array(rows[KEY_COLUMN]).dictionary_encode().indices.to_numpy()
    places = np.flatnonzero(np.bincount(codes)[codes] > 1) if len(codes) else np.zeros(0, np.int64)
    if not len(places):
        return [], _NO_ROWS.empty_table()
    rows, at, codes = rows.take(pa.array(places)), at[places], codes[places]
    kept = _winners(codes, newest.order(rows))
    home = np.empty(codes.max() + 1, np.int64)
    home[codes[kept]] = at[kept]
    keys = single_array(rows[KEY_COLUMN])
    found = []
    for number in np.unique(at).tolist():
        own = at == number
        gone = keys.filter(pa.array(own & (home[codes] != number))).unique()
        found.append(_Doubled(slices[number], gone, int((own & ~kept).sum())))
    order = pa.array(np.lexsort((~kept, codes)))
    ids = pa.array([slices[number].file_id for number in at.tolist()], pa.string())
    paths = pa.repeat(pa.scalar(slices[0].partition_path, pa.string()), len(keys))
    times = single_array(rows[TIME_COLUMN])
    return found, pa.table([paths, keys, times, ids, pa.array(kept)], schema=_NO_ROWS).take(order)


def _winners(codes: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which rows are the newest of their key."""
    sorted_at = np.lexsort((np.arange(len(codes)), order, codes))
    last = np.r_[codes[sorted_at][1:] != codes[sorted_at][:-1], True]
    kept = np.zeros(len(codes), dtype=bool)
    kept[sorted_at[last]] = True
    return kept


# Writing file groups without them


@dataclass(frozen=True)
class _Work:
    """One task: a slice, and the file group that takes its place."""

    number: int
    doubled: _Doubled
    file_id: str


@dataclass(frozen=True)
class _DropRows:
    """Runs tasks; a value, so that it can run in another process."""

    storage: Storage
    task: ReadTask
    writer: BaseFileWriter
    newest: _Newest
    virtual: KeyGenerator | None

    def __call__(self, work: _Work) -> WrittenFile | None:
        one = work.doubled.slice
        rows = pa.concat_tables([self.task.output_schema.empty_table(), *SliceReader(self.task, self.storage).tables(one)])
        rows = rows if self.virtual is None else with_virtual_keys(rows, self.virtual)
        rows = rows.filter(pc.invert(pc.is_in(rows[KEY_COLUMN], value_set=work.doubled.gone)))
        if rows.num_rows:
            codes = single_array(rows[KEY_COLUMN]).dictionary_encode().indices.to_numpy()
            rows = rows.filter(pa.array(_winners(codes, self.newest.order(rows))))
        if not rows.num_rows:
            return None
        return self.writer.write_kept(one.partition_path, work.file_id, rows, WriteToken(work.number))
