"""The newest state of the partition `files`: a base file, and what every later instant changed.

Later instants follow from the data table's own metadata where that is certain (see `file_deltas`), else from their log files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import MetadataOutOfSync
from hudimeta.formats.plain_arrays import array_of, fill_null, no_rows, numpy_of, single_array, texts
from hudimeta.metadata import file_deltas, files
from hudimeta.metadata.group_files import FileGroup, GroupBaseFile
from hudimeta.metadata.groups import GroupFinder
from hudimeta.metadata.kept import SMALL_ROWS, keep
from hudimeta.metadata.keys import ALL_PARTITIONS, to_key_partition
from hudimeta.metadata.log_entries import LogEntry, arrange
from hudimeta.metadata.merging import in_stretches, merged_cells
from hudimeta.metadata.payload import column_of
from hudimeta.metadata.slice_files import SliceFiles, shown
from hudimeta.metering import NO_METER, Meter, Metric, timed
from hudimeta.storage.at_once import beside

if TYPE_CHECKING:
    from hudimeta.formats.hfile import KeyValues
    from hudimeta.metadata.record import RecordLayout

__all__ = ["FileListing"]

KEPT_KEYS = 16
"""A look-up of more partitions is not kept."""


class FileListing:
    """Answers what partitions and files a table has.

    Args:
        finder: Finds the files of the metadata table.
        sources: Reads them.
        meter: Counts look-ups.
        kept: Records of base files that were looked up for earlier moments, by path, size and key.
    """

    def __init__(
        self,
        finder: GroupFinder,
        sources: SliceFiles,
        meter: Meter = NO_METER,
        kept: dict[tuple[str, int, str], pa.Table] | None = None,
    ) -> None:
        self._meter, self._kept = meter, {} if kept is None else kept
        self._finder, self._sources = finder, sources
        self._looked_up: dict[str, pa.Table] = {}
        self._again: pa.Table | None = None

    def name_again(self, gone: Sequence[tuple[str, str]]) -> None:
        """Name files, by partition path and name, that were removed after the moment that is looked at; see `cleaned_since`.

        Their sizes do not matter: they are gone.
        """
        if gone:
            keys, names = texts([to_key_partition(p) for p, _ in gone]), texts([name for _, name in gone])
            self._again = pa.table({"key": keys, "name": names, "size": array_of([1] * len(gone), pa.int64())})

    @property
    def names_cleaned(self) -> bool:
        """True when files are listed that are not there any more, see `name_again`."""
        return self._again is not None

    def open(self) -> None:
        """Read what every look-up needs, however many partitions there are: where records lie, and what came after them."""
        if self._base is not None:
            self._sources.open_bases([self._base])
        _ = self._changes

    @property
    def has_base(self) -> bool:
        """True when there is a base file, whoever tells of it."""
        return self._base is not None

    @cached_property
    def _base(self) -> GroupBaseFile | None:
        """The base file; without one in any commit, the folder is listed before believing that there is none."""
        if not self._finder.logs_name_base:
            bases = self._finder.newest_bases(files.PARTITION)
            if bases:
                return next(iter(bases.values()))
        return self._group.base

    @cached_property
    def _group(self) -> FileGroup:
        groups = self._finder.listed(files.PARTITION)
        if len(groups) != 1:
            raise MetadataOutOfSync(files.PARTITION, f"its one file group (it has {len(groups)})")
        return groups[0]

    @cached_property
    def _changes(self) -> tuple[pa.Table, frozenset[str]]:
        """All logs folded, and the keys that delete blocks removed from whatever lies below."""
        with timed(self._meter, Metric.SCAN_DURATION, Metric.SCAN_COUNT):
            return self._folded()

    def _folded(self) -> tuple[pa.Table, frozenset[str]]:
        entries = arrange(self._log_entries(), self._finder.is_visible)
        rows: list[pa.Table] = []
        removed: set[str] = set()
        for entry in entries:
            if entry.deleted is not None:
                keys = entry.deleted.to_pylist()
                removed.update(keys)
                rows = [_without(table, keys) for table in rows]
            else:
                rows.append(entry.rows if entry.rows is not None else next(self._sources.decode([entry], files.decode_values)))
        return files.fold(pa.concat_tables(rows)) if rows else no_rows(files.SCHEMA), frozenset(removed)

    def _log_entries(self) -> list[LogEntry]:
        finder, base = self._finder, self._base
        if finder.logs_name_base or finder.lost:
            return self._sources.entries(self._group.logs)
        since = base.since if base else ""
        commits = [i for i in finder.deltas if finder.completion(i.time) >= since]
        finder.prefetch_data(commits)
        stated: list[LogEntry] = []
        unclear = []
        for commit in commits:
            instant = finder.data_instant(commit.time)
            rows = file_deltas.derive(instant, finder.data.metadata(instant)) if instant else None
            if rows is not None:
                stated.append(LogEntry(commit.time, "", rows=rows))
            else:
                unclear.append(commit)
        finder.timeline.prefetch(unclear)
        logs = {log.path: log for commit in unclear for _, log in finder.logs_in(commit, files.PARTITION)}
        known = {entry.instant for entry in stated}
        read = self._sources.entries(sorted(logs.values(), key=lambda log: log.order))
        return sorted([*stated, *(e for e in read if e.instant not in known)], key=lambda e: e.instant)

    def partitions(self) -> pa.StringArray:
        """Keys of the partitions ("." for a table without), sorted."""
        found = single_array(self._lookup([ALL_PARTITIONS]).column("name"))
        if self._again is not None:
            found = pa.concat_arrays([found, single_array(self._again.column("key"))]).unique()
        return found.sort()

    def of_partitions(self, keys: Sequence[str]) -> pa.Table:
        """Live files of some partitions: key, name, size."""
        return self._with_again(self._lookup(keys), keys)

    def all(self) -> pa.Table:
        """Live files of all partitions: key, name, size."""
        return self._with_again(files.without_partition_list(self.records()), None)

    def all_in_pieces(self) -> Iterator[pa.Table]:
        """The same, those of a partition together: some at a time where the base file is large."""
        if self._again is not None or self._base is None or not self._sources.is_large(self._base):
            yield self.all()
        else:
            yield from map(files.without_partition_list, self._pieces())

    def _with_again(self, found: pa.Table, keys: Sequence[str] | None) -> pa.Table:
        import pyarrow.compute as pc

        again = self._again
        if again is None:
            return found
        if keys is not None:
            again = again.filter(pc.is_in(again.column("key"), value_set=texts(list(keys))))
        named, listed = (pc.binary_join_element_wise(part["key"], part["name"], "\0") for part in (again, found))
        again = again.filter(pc.invert(pc.is_in(named, value_set=single_array(listed))))
        return pa.concat_tables([found, again.select(found.schema.names).cast(found.schema)])

    def records(self) -> pa.Table:
        """All live entries, the list of partitions included."""
        file = self._base
        return self._merged_with(
            lambda: no_rows(files.SCHEMA) if file is None else self._sources.scan(file, files.decode_values)
        )

    def cells(self, layout: RecordLayout) -> Iterator[KeyValues]:
        """The same as they are to be written in some layout, in the order of their keys; see `IndexReader.pieces`."""
        logs, removed = self._changes_by_key
        gone = texts(sorted(removed, key=str.encode))

        def live(cells: KeyValues, schema: str, path: str) -> KeyValues:
            entries = files.live(files.decode_values(cells, schema, path))
            return files.encode_values(files.as_live_entries(entries), layout)

        def rewritten(cells: KeyValues, stretches: Sequence[slice]) -> KeyValues:
            path = shown(self._base.path) if self._base else ""
            base = _without(files.decode_values(cells, layout.schema_text, path), removed)
            entries = files.live(files.apply_to_base(base, _stretch(logs, stretches[0])))
            return files.encode_values(files.as_live_entries(entries), layout)

        base = self._sources.cells(self._base, live, layout.schema_text) if self._base else ()
        return files.with_partition_list(merged_cells(base, (column_of(logs, "key"), gone), rewritten), layout)

    @cached_property
    def _changes_by_key(self) -> tuple[pa.Table, frozenset[str]]:
        import pyarrow.compute as pc

        logs, removed = self._changes
        return logs.take(pc.sort_indices(column_of(logs, "key"))), removed

    def _pieces(self) -> Iterator[pa.Table]:
        """All live entries, some keys at a time in their order."""
        logs, removed = self._changes_by_key
        base = self._sources.pieces(self._base, files.decode_values) if self._base else ()
        for piece, (rows,) in in_stretches(base, no_rows(files.SCHEMA), "key", column_of(logs, "key")):
            yield files.live(files.apply_to_base(_without(piece, removed), _stretch(logs, rows)))

    def _lookup(self, keys: Sequence[str]) -> pa.Table:
        missing = sorted({k for k in keys if k not in self._looked_up}, key=str.encode)
        if missing:
            self._looked_up.update(_by_key(self._merged_with(lambda: self._in_base(missing)), missing))
        return pa.concat_tables([self._looked_up[k] for k in dict.fromkeys(keys)])

    def _in_base(self, keys: Sequence[str]) -> pa.Table:
        """What the base file says of some keys, sorted; of a few it is kept, for the next write looks up the same."""
        base = self._base
        if base is None:
            return no_rows(files.SCHEMA)
        if len(keys) > KEPT_KEYS:
            return self._look_in_base(base, keys)
        places = {key: (base.path, base.size or 0, key) for key in keys}
        known = {key: found for key, place in places.items() if (found := self._kept.get(place)) is not None}
        new = [key for key in keys if key not in known]
        if new:
            found = self._look_in_base(base, new)
            known |= _by_key(found, new)
            for key in new if len(found) <= len(new) * SMALL_ROWS else ():
                keep(self._kept, places[key], known[key])
        return pa.concat_tables([known[key] for key in keys])

    def _look_in_base(self, base: GroupBaseFile, keys: Sequence[str]) -> pa.Table:
        return self._sources.lookup(base, [key.encode() for key in keys], files.decode_values)

    def _merged_with(self, base: Callable[[], pa.Table]) -> pa.Table:
        """What stands in the base file, and what came after it: where the former is known, neither needs the other."""
        if self._base is None:
            return self._merged(base())
        return self._merged(beside(base, lambda: self._changes, self._finder.storage))

    def _merged(self, base: pa.Table) -> pa.Table:
        logs, removed = self._changes
        return files.live(files.apply_to_base(_without(base, removed), logs))


def _by_key(table: pa.Table, keys: Sequence[str]) -> dict[str, pa.Table]:
    """The rows of each of some keys; one pass however many there are."""
    import pyarrow.compute as pc

    if len(keys) == 1:
        return {keys[0]: table.filter(pc.equal(table.column("key"), texts(keys)[0]))}
    number = fill_null(pc.index_in(table.column("key"), value_set=texts(keys)), -1)
    table = table.take(pc.sort_indices(number))
    sizes = np.bincount(numpy_of(number) + 1, minlength=len(keys) + 1)
    ends = np.cumsum(sizes)
    return {key: table.slice(int(end - size), int(size)) for key, size, end in zip(keys, sizes[1:], ends[1:], strict=True)}


def _stretch(table: pa.Table, rows: slice) -> pa.Table:
    return table.slice(rows.start, rows.stop - rows.start)


def _without(table: pa.Table, keys: Sequence[str] | frozenset[str]) -> pa.Table:
    if not keys or not len(table):
        return table
    import pyarrow.compute as pc

    return table.filter(pc.invert(pc.is_in(table.column("key"), texts(list(keys)))))
