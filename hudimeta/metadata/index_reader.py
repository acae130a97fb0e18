"""Reading the index partitions: the records of some keys, of some prefixes, or all, with logs merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from hudimeta.errors import NotFound
from hudimeta.formats.hfile import HFileReader, KeyValues
from hudimeta.formats.plain_arrays import array_of, no_rows
from hudimeta.metadata.group_files import FileGroup, group_stem
from hudimeta.metadata.groups import GroupFinder
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.keys import shard
from hudimeta.metadata.kinds import Codec, codec_of
from hudimeta.metadata.log_entries import LogEntry, arrange
from hudimeta.metadata.merging import LogRows, in_stretches, merge, merged_cells
from hudimeta.metadata.payload import column_of
from hudimeta.metadata.slice_files import Select, SliceFiles, shown
from hudimeta.metadata.stated_logs import only_logs_of
from hudimeta.storage.at_once import beside

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    from hudimeta.metadata.record import RecordLayout

    Rest = ParamSpec("Rest")

__all__ = ["IndexReader", "Logged"]

_NONE = slice(0, 0)

Answer = TypeVar("Answer")
Shaped = TypeVar("Shaped")


@dataclass(frozen=True)
class Logged:
    """What log files say: records, in the columns of the kind's codec, and keys (string) that they remove."""

    rows: pa.Table
    removed: pa.Array


def _looking_again(
    ask: Callable[Concatenate[IndexReader, str, Rest], Answer],
) -> Callable[Concatenate[IndexReader, str, Rest], Answer]:
    """Asks a second time where the partition was built anew since its files were named."""

    @wraps(ask)
    def asked(reader: IndexReader, partition: str, /, *args: Rest.args, **options: Rest.kwargs) -> Answer:
        try:
            return ask(reader, partition, *args, **options)
        except NotFound:
            if not reader.finder.began_again(partition):
                raise
            return ask(reader, partition, *args, **options)

    return asked


class IndexReader:
    """Reads every metadata partition but `files`.

    Attributes:
        finder: Finds the files.

    Args:
        finder: See there.
        sources: Reads them.
        definition: Of an index partition, None where there is none; asked only for expression indexes.
    """

    def __init__(self, finder: GroupFinder, sources: SliceFiles, definition: Callable[[str], IndexDefinition | None]) -> None:
        self.finder, self._sources, self._definition = finder, sources, definition

    def scan(self, partition: str, groups: Sequence[FileGroup] | None = None) -> pa.Table:
        """All live records, of some file groups or (None) of all."""
        of_groups = self.finder.listed(partition) if groups is None else groups
        return self._read(partition, [(group, HFileReader.scan) for group in of_groups])

    def pieces(self, partition: str, group: FileGroup, layout: RecordLayout) -> Iterator[KeyValues]:
        """Live records of one file group as they are to be written in some layout, in the order of their keys.

        Memory does not depend on the base file, of which one piece is there at a time, but on the logs. Records of which these
        say nothing are taken as the bytes that they are.
        """
        codec = codec_of(partition, self._definition)
        logs = self._log_rows(codec, [(group, HFileReader.scan)]).in_order_of(codec.key)

        def live(cells: KeyValues, schema: str, path: str) -> KeyValues:
            return codec.encode(merge(codec.decode(cells, schema, path), logs.stretch(_NONE, _NONE), codec.key), layout)

        def rewritten(cells: KeyValues, stretches: Sequence[slice]) -> KeyValues:
            base = codec.decode(cells, layout.schema_text, shown(group.base.path) if group.base else "")
            return codec.encode(merge(base, logs.stretch(*stretches), codec.key, codec.unite), layout)

        base = self._sources.cells(group.base, live, layout.schema_text) if group.base else ()
        return merged_cells(base, (column_of(logs.rows, codec.key), logs.deleted), rewritten)

    @_looking_again
    def prefixed(self, partition: str, prefixes: Sequence[bytes], every: bool = False) -> pa.Table:
        """Records whose keys begin with any prefix.

        Args:
            partition: Metadata partition.
            prefixes: Beginnings of keys.
            every: Make sure of every record, by a LIST. Without it those are missing that lie in file groups idle since before
                the last compaction, which a reader can do without.
        """
        legacy = self.finder.logs_name_base
        groups = self.finder.listed(partition) if legacy or every else self.finder.named(partition)
        select = _prefix_select(prefixes)
        return self._read(partition, [(group, select) for group in groups])

    @_looking_again
    def prefixed_pieces(self, partition: str, prefixes: Sequence[bytes], shaped: Callable[[pa.Table], Shaped]) -> list[Shaped]:
        """What a function makes of the records of `prefixed`, so that of large base files only one piece is there at a time."""
        codec, wanted = codec_of(partition, self._definition), sorted(prefixes)
        groups = self.finder.listed(partition) if self.finder.logs_name_base else self.finder.named(partition)
        large = [(group, group.base) for group in groups if group.base and self._sources.is_large(group.base)]
        select, apart = _prefix_select(wanted), {group.file_id for group, _ in large}
        found = [shaped(self._read(partition, [(group, select) for group in groups if group.file_id not in apart]))]
        self._sources.open_bases(base for _, base in large)
        for group, base in large:
            logs = self._log_rows(codec, [(group, select)])
            pieces = self._sources.pieces(base, codec.decode, lambda reader: reader.prefix_batches(wanted))
            found += [shaped(rows) for rows in _merged(pieces, logs, codec)]
        return found

    @_looking_again
    def sharded_prefixes(self, partition: str, prefixes: pa.Array, by_prefix: bool) -> pa.Table:
        """Records whose keys begin with any prefix.

        Args:
            partition: Metadata partition.
            prefixes: Binary, each once.
            by_prefix: Keys are sharded by this very prefix, so that one group each is asked.
        """
        groups = self.finder.numbered(partition)
        if not by_prefix:
            return self._read(partition, [(group, _prefix_select(prefixes.to_pylist())) for group in groups])
        at = shard(prefixes, len(groups))
        asked = [(group, prefixes.filter(array_of(at == number)).to_pylist()) for number, group in enumerate(groups)]
        return self._read(partition, [(group, _prefix_select(mine)) for group, mine in asked if mine])

    @_looking_again
    def lookup(self, partition: str, keys: pa.Array) -> pa.Table:
        """Records of some keys (string, each once); a file group is asked only for the keys that it can hold.

        Logs of the record index whose commits state that none of the keys is in them are not read.
        """
        stems: dict[str, list[FileGroup]] = {}
        for group in self.finder.numbered(partition):
            stems.setdefault(group_stem(group.file_id), []).append(group)
        asked: list[tuple[FileGroup, Select]] = []
        for groups in stems.values():
            at = shard(keys, len(groups)) if len(groups) > 1 else np.zeros(len(keys), np.int32)
            for number, group in enumerate(groups):
                mine = sorted(keys.filter(array_of(at == number)).cast(pa.binary()).to_pylist())
                if mine:
                    asked.append((group, _key_select(mine)))
        with_stated_logs = only_logs_of(self.finder, partition, keys, [group for group, _ in asked])
        if with_stated_logs is not None:
            asked = [(with_stated_logs(group), select) for group, select in asked]
        return self._read(partition, asked)

    @_looking_again
    def removed_after(self, partition: str, instant: str, keys: pa.Array) -> pa.Array:
        """Keys (string) that log files of later instants removed; what was merged into base files since is not among them.

        All of those that are asked for are there, and others may be.
        """
        groups = self.finder.numbered(partition)
        later = [replace(group, logs=tuple(log for log in group.logs if log.instant > instant)) for group in groups]
        with_stated_logs = only_logs_of(self.finder, partition, keys, later)
        if with_stated_logs is not None:
            later = [with_stated_logs(group) for group in later]
        logs = [log for group in later for log in group.logs]
        entries = arrange(self._sources.entries(logs), self.finder.is_visible)
        found = [array_of([], pa.string()), *(entry.deleted for entry in entries if entry.deleted is not None)]
        codec = codec_of(partition, self._definition)
        if "is_deleted" in codec.schema.names:
            tables = self._sources.decode([entry for entry in entries if entry.deleted is None], codec.decode)
            marked = pa.concat_tables([no_rows(codec.schema), *tables])
            found.append(column_of(marked.filter(marked.column("is_deleted")), codec.key))
        return pa.concat_arrays(found)

    @_looking_again
    def logged(self, partition: str, instants: frozenset[str]) -> Logged | None:
        """What log files of some instants say; None where one has none, as when it was merged into base files."""
        logs = [log for group in self.finder.named(partition) for log in group.logs if log.instant in instants]
        if {log.instant for log in logs} != instants:
            return None
        codec = codec_of(partition, self._definition)
        entries = arrange(self._sources.entries(logs), self.finder.is_visible)
        tables = self._sources.decode([entry for entry in entries if entry.deleted is None], codec.decode)
        removed = [entry.deleted for entry in entries if entry.deleted is not None]
        return Logged(
            pa.concat_tables([no_rows(codec.schema), *tables]), pa.concat_arrays([array_of([], pa.string()), *removed])
        )

    def _read(self, partition: str, selections: Iterable[tuple[FileGroup, Select]]) -> pa.Table:
        """Selected records, logs merged. Groups of one stem share no key, so they are merged together."""
        chosen = list(selections)
        codec = codec_of(partition, self._definition)
        bases, logs = [group.base for group, _ in chosen if group.base], [log for group, _ in chosen for log in group.logs]
        beside(lambda: self._sources.prefetch(logs), lambda: self._sources.open_bases(bases), self.finder.storage)
        stems: dict[str, list[tuple[FileGroup, Select]]] = {}
        for group, select in chosen:
            stems.setdefault(group_stem(group.file_id), []).append((group, select))
        tables = [self._read_stem(codec, part) for part in stems.values()]
        return pa.concat_tables(tables) if tables else no_rows(codec.schema)

    def _read_stem(self, codec: Codec, selections: Sequence[tuple[FileGroup, Select]]) -> pa.Table:
        chosen = [(group.base, select) for group, select in selections if group.base]
        bases = self._sources.selected(chosen, codec.decode)
        base = pa.concat_tables([no_rows(codec.schema), *bases])
        return merge(base, self._log_rows(codec, selections), codec.key, codec.unite)

    def _log_rows(self, codec: Codec, selections: Sequence[tuple[FileGroup, Select]]) -> LogRows:
        """What log files of some groups say."""
        logs, turns = [no_rows(codec.schema)], [np.empty(0, np.int64)]
        deleted, deleted_turns = [array_of([], pa.string())], [np.empty(0, np.int64)]
        turn = 0
        for group, select in selections:
            records: list[tuple[int, LogEntry]] = []
            for entry in arrange(self._sources.entries(group.logs), self._counts_in(group)):
                turn += 1
                if entry.deleted is not None:
                    deleted.append(entry.deleted)
                    deleted_turns.append(np.full(len(entry.deleted), turn, np.int64))
                else:
                    records.append((turn, entry))
            tables = self._sources.decode([entry for _, entry in records], codec.decode, select)
            for (at, _), table in zip(records, tables, strict=True):
                logs.append(table)
                turns.append(np.full(len(table), at, np.int64))
        removed, removed_turns = pa.concat_arrays(deleted), np.concatenate(deleted_turns)
        return LogRows(pa.concat_tables(logs), np.concatenate(turns), removed, removed_turns)

    def _counts_in(self, group: FileGroup) -> Callable[[str], bool]:
        """Which blocks count in a slice. Files of upgraded tables hold blocks of several instants, so each is judged itself."""
        base, finder = group.base, self.finder
        if base is None or finder.logs_name_base:
            return finder.is_visible
        since = base.since
        return lambda instant: finder.is_above(instant, since)


def _merged(pieces: Iterable[pa.Table], logs: LogRows, codec: Codec) -> Iterator[pa.Table]:
    """Pieces of a base file, in the order of their keys, with its logs."""
    ordered = logs.in_order_of(codec.key)
    logged = column_of(ordered.rows, codec.key), ordered.deleted
    for piece, (rows, deleted) in in_stretches(pieces, no_rows(codec.schema), codec.key, *logged):
        yield merge(piece, ordered.stretch(rows, deleted), codec.key, codec.unite)


def _key_select(keys: list[bytes]) -> Select:
    return lambda reader: reader.lookup(keys)


def _prefix_select(prefixes: Sequence[bytes]) -> Select:
    wanted = sorted(prefixes)
    return lambda reader: reader.prefix(wanted)
