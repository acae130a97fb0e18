"""The driver of a routed write: five steps, of which it sees the counts alone, and the publication that every write has.

rows arrive     each task gives its rows keys and lays them aside (`arrival`)
look-up         rows of one key meet, and the index says where they belong (`looking_up`)
placement       here, from counts (`pieces`)
files           each task merges and writes some file groups (`writing`)
publication     conflicts, the metadata table, completion; tasks write the large indexes (`index_shares`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc

from hudimeta.commit.attempts import until_no_conflict
from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.commit.strays import delete_strays
from hudimeta.commit.timings import Timings
from hudimeta.indexes.tagging import IndexKind, look_up_text
from hudimeta.metadata import record_index
from hudimeta.types import Operation, TableType
from hudimeta.write.asked_indexes import ensure_metadata
from hudimeta.write.duplicates import combines
from hudimeta.write.no_rows import NO_ROWS, commits_no_rows, nothing_left
from hudimeta.write.placement import FileSizing
from hudimeta.write.placing import check_ages, older_than
from hudimeta.write.routed.arrival import MANY_PATHS, Arrived, Route
from hudimeta.write.routed.context import OpenedTable, RoutedWrite
from hudimeta.write.routed.counted import CountingExecutors
from hudimeta.write.routed.exchange import Span
from hudimeta.write.routed.executors import Executors
from hudimeta.write.routed.files import FactsSpec, RoutedFiles
from hudimeta.write.routed.index_shares import IndexShares
from hudimeta.write.routed.looking_up import LookUp, LookUpItem, looks_up
from hudimeta.write.routed.pieces import Piece, ages_of, pieces_of
from hudimeta.write.routed.places import PlacedRows, Role
from hudimeta.write.routed.slots import Slots, packed
from hudimeta.write.routed.sources import At, RowSource
from hudimeta.write.routed.writing import PieceWriter, shared_out
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import (
    Prepared,
    overwritten,
    publish,
    replaced_by,
)
from hudimeta.write.write_result import WriteResult

__all__ = ["ROUTED", "write_routed"]

ROUTED = (
    Operation.UPSERT,
    Operation.INSERT,
    Operation.BULK_INSERT,
    Operation.DELETE,
    Operation.INSERT_OVERWRITE,
    Operation.INSERT_OVERWRITE_TABLE,
)
"""The operations that are routed."""
_SLOTS = 256
_KEY_SHARE = 1 / 16
"""Of a base file one column, about."""
_TASKS_NOTE = "routed: "
"""Begins the note of what tasks did."""


@until_no_conflict
def write_routed(session: WriteSession, source: RowSource, executors: Executors) -> CommitReport:
    """Write rows that tasks hold, read or compute.

    Args:
        session: The table.
        source: Where the rows come from; each attempt asks for them anew.
        executors: Run the tasks, and hold the rows that come from outside.

    Raises:
        SchemaError, ConfigError: Rows, a predicate or clauses that do not fit; nothing was written, or it was rolled back.
        CommitError: Several changes of one row, and no ordering column says which.
        CommitConflict: Other writers were first, several times.
        HudiError: Anything else, what computes the rows may raise included; the write was rolled back.
    """
    timings = Timings()
    session.requests_elsewhere.clear()
    # What the tasks of an attempt did that lost to another writer is no part of the write.
    session.notes[:] = [note for note in session.notes if not note.startswith(_TASKS_NOTE)]
    operation = source.operation
    with timings.phase("check"):
        table = TableFiles.now(session)
        checked = source.checked(session, table)
    built = ensure_metadata(session)  # before there is a coordinator, which has to know of it
    undone = session.coordinator.recover_from_tasks()
    if built or undone:
        # Whoever else committed meanwhile may have changed the schema.
        table = TableFiles.now(session)
        checked = source.checked(session, table)
    with session.coordinator.writing(operation, table.snapshot.timeline) as (begun, timeline):
        # What tasks lay aside goes when the markers go.
        write = replace(begun, by_many=True)
        if timeline is not table.snapshot.timeline:
            table = TableFiles.at(session, timeline)
            checked = source.checked(session, table)
        run = _Run(session, table, write, checked, executors, timings)
        try:
            outcome = run.outcome(source)
            if not run.rows and not commits_no_rows(session, operation):
                return nothing_left(session, operation, NO_ROWS, write)
            delete_strays(session.storage, write.instant, outcome.files)
            session.notes.append(run.tasks_note())
            apart = IndexShares(run.routed, run.executors, run.facts, run.written)
            report = publish(session, table, write, checked.schema, outcome, timings, apart)
        finally:
            run.routed.forget()
    rolled_back = (*undone, *report.rolled_back)
    return replace(report, rolled_back=rolled_back)


class _Run:
    """One attempt, from the rows to the files."""

    def __init__(
        self,
        session: WriteSession,
        table: TableFiles,
        write: OpenWrite,
        checked: Prepared,
        executors: Executors,
        timings: Timings,
    ) -> None:
        self.session, self.table, self._write = session, table, write
        self._timings, self._only, self._rests_on_rows = timings, checked.only, checked.rests_on_rows
        self._has_keys = checked.batch.keys is not None
        location, options = session.storage.root, session.options
        schema, defaults = checked.schema, checked.defaults
        self.routed = RoutedWrite(location, options, write, table.snapshot.timeline, schema, defaults)
        self.executors = CountingExecutors(executors, self.routed, session.requests_elsewhere)
        self.facts = FactsSpec.of(table.snapshot.metadata)
        self.at = At(session, table, self.routed, self.executors, self.facts)
        self.written: list[RoutedFiles] = []
        self.rows = 0
        self._emptied: frozenset[str] = frozenset()

    def outcome(self, source: RowSource) -> WriteResult:
        """Do everything that comes before the publication."""
        opened = OpenedTable(self.session.storage, self.session, self.table)
        operation = self._write.operation
        looking = looks_up(opened, operation) and (source.knows_keys or self._has_keys)
        with self._timings.phase("rows"):
            arrived = self._arrived(source, looking)
        placed = [one.placed for one in arrived]
        self.written = [one.files for one in arrived if one.files.files]
        if any(one.slots for one in arrived):
            with self._timings.phase("look-up"):
                placed = self._looked_up(arrived, looking, source.knows_keys)
        with self._timings.phase("place"):
            work, grown = self._pieces(placed)
        if work:
            with self._timings.phase("write"):
                writer = PieceWriter(self.routed, self.facts, self._only)
                size = sum(piece.size for piece in work)
                self.written += self.executors.map(writer, shared_out(work, self.executors.parallelism), size)
        return self._result(placed, grown, looking)

    def _arrived(self, source: RowSource, looking: bool) -> list[Arrived]:
        session, table, operation = self.session, self.table, self._write.operation
        keyed = operation in (Operation.UPSERT, Operation.DELETE)
        keyed = keyed or (self._has_keys and not operation.overwrites and combines(session.options, operation))
        whole_table = keyed and table.lookup.choice.is_global
        meets = self._has_keys and (
            looking or combines(session.options, operation) or (operation.overwrites and table.lookup.fixes_places)
        )
        route = Route.BY_SLOT if meets else Route.AT_ONCE if operation.begins_groups else Route.BY_PARTITION
        slots = Slots.of(_SLOTS, whole_table=whole_table, groups=self._index_groups() if whole_table else 1)
        arrived = source.arrived(self.at, route, slots, whole_table)
        self.rows = sum(one.rows for one in arrived)
        self._emptied = frozenset().union(*(one.emptied for one in arrived))
        return arrived

    def _secondary_indexes(self) -> list[str]:
        return [index.partition for index in self.facts.indexes if index.partition != record_index.PARTITION]

    def _index_groups(self) -> int:
        """File groups of the record index; 1 without one."""
        return next((max(1, i.groups) for i in self.facts.indexes if i.partition == record_index.PARTITION), 1)

    def _looked_up(self, arrived: Sequence[Arrived], looking: bool, known: bool) -> list[PlacedRows]:
        slots: dict[int, list[Span]] = {}
        for one in arrived:
            for slot, spans in one.slots.items():
                slots.setdefault(slot, []).extend(spans)
        tasks = packed(sorted(slots.items()), self.executors.parallelism)
        paths = dict.fromkeys(span.path for one in arrived for spans in one.slots.values() for span in spans)
        order = {path: number for number, path in enumerate(paths)}
        # In the order in which the rows came, because of equal rows the last one wins; a file's together.
        items = [
            LookUpItem(number, sorted((s for own in task for s in own), key=lambda s: (order[s.path], s.batch, s.start)))
            for number, task in enumerate(tasks)
        ]
        if looking and self.table.lookup.choice.window is not None:
            # What it does not know yet is read once, by tasks of its own, instead of by each of those that ask it.
            window = self.table.window.opened(self.table.snapshot.key_files, ())
            read = [f"the record window read {window.read_anew:,} file slices anew"] if window.read_anew else []
            self.session.notes += [*read, *window.notes]
        searched = self._searched(arrived) if looking else 0
        staged = sum(span.size for item in items for span in item.spans)
        look_up = LookUp(self.routed, known)
        return self.executors.map(look_up, items, None if searched is None else staged + searched)

    def _searched(self, arrived: Sequence[Arrived]) -> int | None:
        """About how many bytes of files are read to find the keys; None where to know that takes looking at many files."""
        choice = self.table.lookup.choice
        if choice.kind is IndexKind.RECORD_INDEX or choice.buckets is not None:
            return 0
        paths = {path for one in arrived for path in one.paths or ()}
        if choice.is_global or len(paths) > MANY_PATHS or any(one.paths is None for one in arrived):
            return None
        if self.table.snapshot.metadata is None:
            return None  # its folders would have to be listed
        slices = self.table.snapshot.slices(sorted(paths))
        bases, logs = (pc.sum(column).as_py() or 0 for column in (slices["base_size"], pc.list_flatten(slices["log_sizes"])))
        return int(bases * _KEY_SHARE + logs)

    def _pieces(self, placed: Sequence[PlacedRows]) -> tuple[list[Piece], set[str]]:
        session, table, write = self.session, self.table, self._write
        sizing = FileSizing.of(session, table.snapshot.timeline, write.operation)
        fresh = sorted({place.partition_path for one in placed for place in one.spans if place.role is Role.FRESH})
        fills = sizing.small_limit and write.operation in (Operation.INSERT, Operation.UPSERT)
        small = older_than(write.instant, table.snapshot.key_files(fresh)) if fills and fresh else {}
        buckets = table.lookup.choice.buckets if table.lookup.fixes_places else None
        appends = session.properties.type is TableType.MERGE_ON_READ
        found = pieces_of(
            placed,
            small,
            sizing,
            one_bucket=buckets is not None and not buckets.consistent,
            # A secondary index asks for the values that are overwritten.
            read_for_log=None if not appends else _KEY_SHARE * len(self._secondary_indexes()),
        )
        check_ages(ages_of(found.pieces), write)
        return found.pieces, found.grown

    def _result(self, placed: Sequence[PlacedRows], grown: set[str], looking: bool) -> WriteResult:
        session, table, operation = self.session, self.table, self._write.operation
        files = [file for part in self.written for file in part.files]
        session.notes += list(dict.fromkeys(n for one in placed for n in one.notes if n not in session.notes))
        replaced: dict[str, list[str]] = {}
        sole: frozenset[str] | None = frozenset(grown) if looking and operation is not Operation.DELETE else frozenset()
        if operation.overwrites:
            own = {file.partition_path for file in files} | self._emptied
            touched = overwritten(session, table.snapshot, operation, own)
            replaced, sole = replaced_by(table.snapshot, operation, touched), frozenset(touched)
        if looking and sole and table.lookup.choice.is_global:
            sole = None  # a row of the same key could have come anywhere
        asked, hits, moved, outdated = (sum(getattr(p, n) for p in placed) for n in ("asked", "hits", "moved", "outdated"))
        return WriteResult(
            files,
            replaced,
            sole,
            _index_text(placed, asked, hits, moved, outdated),
            sum(p.unmatched for p in placed),
            sum(p.dropped for p in placed),
            asked,
            hits,
            moved,
            rests_on_rows=self._rests_on_rows,
            window_runs=tuple(run for part in self.written for run in part.window),
        )

    def tasks_note(self) -> str:
        """What the report says of the tasks."""
        run = self.executors
        text = f"{_TASKS_NOTE}{self.rows:,} rows through {run.tasks:,} tasks, {run.collected:,} bytes of summaries collected"
        text += "; the driver did the rest, which was little" if run.nearby else ""
        return f"{text}; {run.way}" if run.way else text


def _index_text(placed: Sequence[PlacedRows], asked: int, hits: int, moved: int, outdated: int) -> str:
    """The look-ups of all tasks in words, as `KeyLookup` has it for one."""
    looked = [one for one in placed if one.looked_up]
    if not looked:
        return ""
    sums = {name: sum(getattr(one, name) for one in looked) for name in ("by_range", "by_bloom", "read")}
    text = look_up_text(replace(looked[0], **sums), asked, hits)
    text += f"; {moved:,} rows move to another partition" if moved else ""
    return text + (f"; {outdated:,} rows left out, because the row in another partition is newer" if outdated else "")
