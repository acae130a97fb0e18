"""The last step of a routed write before it is published: tasks write what it changes in the large indexes.

The record index, secondary indexes and bloom filters get a record for each row or much text for each file; so a task gathers
the staged facts of some file groups of one index, asks the index's own keeper what they change, and writes the log files of
those file groups. The driver gets their names. What is unique about a key is settled within its file group, where all of its
changes meet. All of this happens under the table lock, between the beginning of the metadata table's commit and its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import pyarrow as pa

from hudimeta.commit.markers import MarkerKind, marked
from hudimeta.commit.strays import delete_metadata_strays, metadata_marker
from hudimeta.engine import LocalEngine
from hudimeta.errors import CommitConflict, MetadataError
from hudimeta.formats.plain_arrays import array_of, no_rows
from hudimeta.indexes.apart import WrittenApart
from hudimeta.indexes.built_meanwhile import built_since
from hudimeta.indexes.facts import FileFacts, WantedFacts, row_changes
from hudimeta.indexes.protocol import CommitChange, IndexDelta
from hudimeta.indexes.record_index.keep import too_many
from hudimeta.indexes.registry import maintainer_for, wanted_facts
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable, bloom_filters, column_stats, record_index, secondary_index
from hudimeta.metadata.delta import MetadataDelta
from hudimeta.metadata.keys import bloom_filter_keys, shard_to_write
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.metadata.writer import MetadataWriter, WrittenLog
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.storage import Storage, join
from hudimeta.table.positions import positions_by_number
from hudimeta.timeline import InstantGenerator, SystemClock, Timeline
from hudimeta.write.routed.context import RoutedWrite
from hudimeta.write.routed.exchange import Span, read_spans, rows_of
from hudimeta.write.routed.executors import Executors
from hudimeta.write.routed.files import FactsSpec, RoutedFiles, key_facts, laid_aside

__all__ = ["IndexShares"]

_TASK_ROWS = 500_000
_FOOTER_BYTES = 1 << 18
"""Of a file whose bloom filter is read: the end of it with the filter, as made for the default number of keys."""
_Share = Sequence[tuple[tuple[WrittenFile, ...], Sequence[Span]]]
"""Of one share of an index: files, and their staged facts."""


@dataclass(frozen=True)
class _Item:
    """Some shares of one index, each with its files and their staged facts; for bloom filters files alone."""

    partition: str
    shares: Sequence[_Share]

    @property
    def size(self) -> int:
        """About how many bytes pass through memory."""
        parts = [part for share in self.shares for part in share]
        return sum(sum(span.size for span in spans) if spans else len(files) * _FOOTER_BYTES for files, spans in parts)


@dataclass(frozen=True)
class _ShareWritten:
    """What a task hands back: its log files, and what became of the index's completeness."""

    partition: str
    logs: tuple[WrittenLog, ...]
    complete: bool
    note: str


class IndexShares:
    """Writes the large indexes of one commit with the help of executors; see `IndexesApart`.

    Args:
        write: The write.
        executors: Run the tasks.
        spec: The indexes of keys when the write began.
        files: All its files.
    """

    def __init__(self, write: RoutedWrite, executors: Executors, spec: FactsSpec, files: Sequence[RoutedFiles]) -> None:
        self._write, self._executors, self._spec, self._files = write, executors, spec, files

    def keeps(self, partition: str) -> bool:
        """See `IndexesApart`."""
        large = (record_index.PARTITION, bloom_filters.PARTITION)
        return partition in large or partition.startswith(secondary_index.PREFIX)

    def write(self, change: CommitChange, names: Sequence[str], groups: Mapping[str, int]) -> WrittenApart:
        """See `IndexesApart`."""
        replaced = self._of_replaced(change)
        items: list[_Item] = []
        added: dict[str, int] = {}
        known = {index.partition: index for index in self._spec.indexes}
        anew = built_since(change.table, change.instant)
        for name in names:
            if name == bloom_filters.PARTITION:
                items += _of_filters(change.written, groups[name])
            elif name in known and name in anew:
                raise CommitConflict("write", (), anew[name], what=f"the index {name}", did="built meanwhile")
            elif name in known:
                added[name] = sum(part.added.get(name, 0) for part in self._files)
                items += _items(name, _shares(name, [*self._files, *replaced]))
            else:
                hint = "Run the write again: the table got this index after the write had begun."
                raise MetadataError(f"the files were written without saying what they change in {name}", hint)
        task = _ShareWriter(self._write, _Shared.of(change), dict(groups), added)
        written = self._executors.map(task, items, sum(item.size for item in items))
        kept = {join(log.partition, log.name) for one in written for log in one.logs}
        delete_metadata_strays(change.storage, self._write.instant, kept)
        return _settled(names, written, change, added)

    def _of_replaced(self, change: CommitChange) -> list[RoutedFiles]:
        """The facts of file groups that leave the table."""
        if not any(change.replaced.values()) or not self._spec.indexes:
            return []
        slices = list(slices_of(change.replaced_slices))
        task = _SliceFacts(self._write, _Shared.of(change), self._spec)
        return self._executors.map(task, list(enumerate(slices)), sum(one.base_size + sum(one.log_sizes) for one in slices))


@dataclass(frozen=True)
class _Shared:
    """Of a `CommitChange` what tasks need: plain data."""

    timeline: Timeline
    schema: pa.Schema
    same_rows: bool
    timezone: str | None
    proven: frozenset[str]
    proof_limit: int
    least_groups: int

    @classmethod
    def of(cls, change: CommitChange) -> _Shared:
        return cls(
            change.timeline,
            change.schema,
            change.same_rows,
            change.timezone,
            change.proven,
            change.proof_limit,
            change.least_groups,
        )


@dataclass(frozen=True)
class _SliceFacts:
    """Reads the keys of a slice that leaves the table, and lays them aside as removed."""

    write: RoutedWrite
    shared: _Shared
    spec: FactsSpec

    def __call__(self, item: tuple[int, FileSlice], attempt: int) -> RoutedFiles:
        opened = self.write.opened()
        number, one = item
        wanted = WantedFacts() if opened.table.snapshot.metadata is None else wanted_facts(opened.table.snapshot.metadata)
        keys_only = WantedFacts(wanted.keys, wanted.values)
        session, shared = opened.session, self.shared
        reader = SliceRows.at(opened.storage, session.properties, shared.schema, shared.timeline, session.options.texts)
        rows = reader.columns(one, [column for _, column, _ in wanted.values])
        facts = row_changes(rows, rows.slice(0, 0), keys_only)
        file = replace(_bare(one.partition_path, one.file_id, one.base_file or one.file_id), facts=facts)
        path = self.write.staged_path("replaced", number, attempt)
        return RoutedFiles((replace(file, facts=FileFacts()),), laid_aside(opened.storage, path, self.spec, [file]))


@dataclass(frozen=True)
class _ShareWriter:
    """Writes the log files of some shares of one index."""

    write: RoutedWrite
    shared: _Shared
    groups: dict[str, int]
    added: dict[str, int]

    def __call__(self, item: _Item, attempt: int) -> _ShareWritten:
        opened = self.write.opened()
        properties, shared, name = opened.session.properties, self.shared, item.partition
        table = MetadataTable.open(opened.storage, properties, shared.timeline)
        times = InstantGenerator(SystemClock(), properties.zone)
        writer = MetadataWriter(opened.storage, properties.version, times)
        # How many keys are asked for goes by all of the commit's, not by those of a share.
        limit = shared.proof_limit
        asks = self.added.get(name, 0) <= limit
        change = CommitChange(
            storage=opened.storage,
            properties=properties,
            engine=LocalEngine(1),
            table=table,
            layout=writer.layout,
            instant=self.write.instant,
            schema=shared.schema,
            written=_files_of(opened.storage, item),
            same_rows=shared.same_rows,
            timezone=shared.timezone,
            proven=shared.proven,
            proof_limit=limit if asks else 0,
            least_groups=shared.least_groups,
        )
        delta = maintainer_for(name).delta(name, change)
        changes = MetadataDelta([part for part in delta.parts if len(part)])
        written: dict[MarkerKind, list[str]] = {kind: [] for kind in MarkerKind}

        def announce(path: str) -> AbstractContextManager[None]:
            marker = metadata_marker(path)
            written[marker.kind].append(join(METADATA_ROOT, path))
            return marked(opened.storage.sub(METADATA_ROOT), self.write.instant, marker)

        logs = writer.write_logs(self.write.instant, changes, self.groups, token=f"1-0-{attempt}", announce=announce)
        self.write.refuse_when_over(opened.storage, written[MarkerKind.APPEND], written[MarkerKind.CREATE])
        return _ShareWritten(name, tuple(logs), delta.complete, delta.note)


def _files_of(storage: Storage, item: _Item) -> list[WrittenFile]:
    """The files with the facts of the item's shares."""
    found: list[WrittenFile] = []
    for share in item.shares:
        for files, spans in share:
            if not spans:
                found += files
                continue
            rows = read_spans(storage, spans)
            numbers = rows["file"].unique().to_pylist()
            found += [replace(files[n], facts=key_facts(rows, item.partition, n)) for n in sorted(numbers)]
    return found


def _shares(partition: str, parts: Sequence[RoutedFiles]) -> Mapping[int | str, _Share]:
    found: dict[int | str, list[tuple[tuple[WrittenFile, ...], Sequence[Span]]]] = {}
    for part in parts:
        bare = tuple(_bare(file.partition_path, file.file_id, file.name) for file in part.files)
        for (name, share), spans in part.facts.items():
            if name == partition:
                found.setdefault(share, []).append((bare, spans))
    return found


def _items(partition: str, shares: Mapping[int | str, _Share]) -> list[_Item]:
    items: list[list[_Share]] = []
    rows = 0
    for share in shares.values():
        own = sum(rows_of(spans) for _, spans in share)
        if not items or rows + own > _TASK_ROWS:
            items.append([])
            rows = 0
        items[-1].append(share)
        rows += own
    return [_Item(partition, tuple(some)) for some in items]


def _of_filters(written: Sequence[WrittenFile], groups: int) -> list[_Item]:
    """Bloom filters, by the file group of the index: their tasks read them in the files."""
    base = [file for file in written if file.log_instant is None]
    if not base:
        return []
    paths, names = (array_of([getattr(f, a) for f in base], pa.string()) for a in ("partition_path", "name"))
    at = shard_to_write(bloom_filter_keys(paths, names), groups)
    items = []
    for _, places in positions_by_number(at):
        own = [base[n] for n in places.tolist()]
        items.append(_Item(bloom_filters.PARTITION, (((tuple(_bare(f.partition_path, f.file_id, f.name) for f in own), ()),),)))
    return items


def _bare(partition_path: str, file_id: str, name: str) -> WrittenFile:
    """A file of which only the place is known."""
    return WrittenFile(partition_path, file_id, name, 0, 0, 0, 0, 0, no_rows(column_stats.SCHEMA))


def _settled(
    names: Sequence[str],
    written: Sequence[_ShareWritten],
    change: CommitChange,
    added: Mapping[str, int],
) -> WrittenApart:
    logs = [log for one in written for log in one.logs]
    deltas = {}
    for name in names:
        notes = [one.note for one in written if one.partition == name and not one.complete]
        count = added.get(name, 0)
        if notes and name == record_index.PARTITION and count > change.proof_limit:
            notes = [too_many(count)]
        deltas[name] = IndexDelta((), not notes, notes[0] if notes else "")
    return WrittenApart(logs, deltas)
