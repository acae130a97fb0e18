"""The slices of a moment as rows of mapped files, and what later commits did to them.

A row number is the id of a slice. Rows of a partition lie together, and a table of ranges finds them. Later commits change no
row: ids of slices that went are tombstones, and the slices that came stand in a small table of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.formats.plain_arrays import booleans, integers, no_rows, numbers, single_array, texts
from hudimeta.metadata.keys import ALL_PARTITIONS, from_key_partition
from hudimeta.table.file_names import parse_names
from hudimeta.table.slices import slices_and_waiting

if TYPE_CHECKING:
    from hudimeta.table.visibility import Visibility

__all__ = ["RANGES", "Manifest", "NotTold", "log_instants"]

Ids: TypeAlias = npt.NDArray[np.int64]

RANGES = pa.schema([("path", pa.string()), ("first", pa.int64()), ("count", pa.int64())])
"""Columns of `Manifest.ranges`."""
_FILES = pa.schema([("partition_path", pa.string()), ("name", pa.string()), ("size", pa.int64())])


class NotTold(Exception):
    """Commits changed something that cannot be applied to a kept plan; the text says what."""


@dataclass(frozen=True)
class Manifest:
    """The slices of a moment.

    Attributes:
        rows: Columns of `table.slices.slices_schema()`, a row a slice, those of a partition together.
        ranges: path string, first and count int64: the rows of each partition of the table, by path.
        gone: Ids of rows that do not count any more, sorted.
        newer: Slices that came since, in the columns of `rows`.
        paths: Paths of all partitions, sorted.
    """

    rows: pa.Table
    ranges: pa.Table
    gone: Ids
    newer: pa.Table
    paths: pa.StringArray

    @classmethod
    def of(cls, slices: pa.Table, paths: pa.StringArray) -> Manifest:
        """All slices of a moment.

        Args:
            slices: Columns of `table.slices.slices_schema()`.
            paths: Paths of all partitions, sorted.
        """
        coded = single_array(slices.column("partition_path")).dictionary_encode()
        codes = numbers(coded.indices)
        firsts = np.flatnonzero(np.diff(codes, prepend=-1))
        if len(firsts) > len(coded.dictionary):
            order = np.argsort(codes, kind="stable")
            slices, codes = slices.take(integers(order)), codes[order]
            firsts = np.flatnonzero(np.diff(codes, prepend=-1))
        known = coded.dictionary.take(integers(codes[firsts]))
        at = pc.index_in(known, value_set=paths)
        if at.null_count:
            raise NotTold("a file in a partition that the metadata table does not list")
        columns = np.zeros((2, len(paths)), np.int64)
        columns[:, numbers(at)] = firsts, np.diff(np.append(firsts, len(slices)))
        ranges = pa.Table.from_arrays([paths, *map(integers, columns)], schema=RANGES)
        return cls(slices, ranges, np.empty(0, np.int64), no_rows(slices.schema), paths)

    @property
    def count(self) -> int:
        """How many slices there are."""
        return len(self.rows) - len(self.gone) + len(self.newer)

    def slices(self, partitions: Sequence[str] | None = None) -> pa.Table:
        """The slices of some partitions, or (None) of all; parts of what is mapped, not copies.

        Args:
            partitions: Partition paths.
        """
        if partitions is None:
            return pa.concat_tables([*self._without_gone(0, len(self.rows)), self.newer])
        wanted = texts(list(dict.fromkeys(partitions)))
        at = pc.index_in(wanted, value_set=single_array(self.ranges.column("path"))).drop_null()
        first, count = (numbers(single_array(self.ranges.column(name)).take(at)) for name in ("first", "count"))
        parts = [part for start, length in _joined(first, count) for part in self._without_gone(start, length)]
        newer = self.newer.filter(pc.is_in(self.newer.column("partition_path"), value_set=wanted))
        return pa.concat_tables([no_rows(self.rows.schema), *parts, newer])

    def _without_gone(self, start: int, length: int) -> Iterator[pa.Table]:
        end = start + length
        low, high = np.searchsorted(self.gone, [start, end])
        for gone in self.gone[low:high]:
            if gone > start:
                yield self.rows.slice(start, int(gone) - start)
            start = int(gone) + 1
        if end > start:
            yield self.rows.slice(start, end - start)

    def after(self, changes: pa.Table, visibility: Visibility, replacing: frozenset[str]) -> Manifest:
        """The slices after some commits.

        Args:
            changes: What these did to the listing: rows of `metadata.files.SCHEMA`, oldest first.
            visibility: Of the later moment.
            replacing: The replacecommits among them.

        Raises:
            NotTold: They did something that only a new plan shows.
        """
        key = changes.column("key")
        of_list = pc.equal(key, ALL_PARTITIONS)
        new_paths = [from_key_partition(name) for name in changes.filter(of_list).column("name").to_pylist()]
        paths = pa.concat_arrays([self.paths, texts(new_paths)]).unique().sort() if new_paths else self.paths
        of_files = changes.filter(pc.invert(of_list))
        folders = texts([from_key_partition(text) for text in of_files.column("key").to_pylist()])
        files = pa.Table.from_arrays([folders, single_array(of_files["name"]), single_array(of_files["size"])], schema=_FILES)
        deleted = of_files.column("is_deleted")
        came, went = files.filter(pc.invert(deleted)), files.filter(deleted)
        gone, left, touched = self._taken_out(_groups_of(files))
        there = pa.concat_tables([_files_of(touched), came])
        if len(_paths(there).unique()) != len(there):
            raise NotTold("a commit that names a file again")
        built, waiting = slices_and_waiting([there], visibility)
        if waiting:
            raise NotTold("files of a write that is not completed")
        if pc.any(pc.is_in(_paths(went), value_set=_paths(_files_of(built)))).as_py():
            raise NotTold("a clean that removed a file of a newest slice")  # only a new plan shows what is behind it
        changed = Manifest(self.rows, self.ranges, gone, pa.concat_tables([left, built]).combine_chunks(), paths)
        return changed._without_replaced(visibility, replacing)

    def _without_replaced(self, visibility: Visibility, replacing: frozenset[str]) -> Manifest:
        replaced = visibility.replaced
        if not replacing or replaced is None:
            return self
        hidden = replaced.filter(pc.is_in(replaced.column("instant"), value_set=texts(sorted(replacing))))
        gone, left, _ = self._taken_out(hidden.select(["partition_path", "file_id"]))
        return Manifest(self.rows, self.ranges, gone, left, self.paths)

    def _taken_out(self, groups: pa.Table) -> tuple[Ids, pa.Table, pa.Table]:
        """All tombstones, and what is left of the newer slices, once some file groups are taken out; and their slices.

        Args:
            groups: partition_path and file_id of each.
        """
        pairs = _pairs(groups)
        in_newer = pc.is_in(_pairs(self.newer), value_set=pairs)
        touched, gone = [self.newer.filter(in_newer)], [self.gone]
        folders = groups.column("partition_path").combine_chunks()
        wanted = folders.unique()
        at = pc.index_in(wanted, value_set=single_array(self.ranges.column("path"))).drop_null()
        first, count = (numbers(single_array(self.ranges.column(name)).take(at)) for name in ("first", "count"))
        ids = groups.column("file_id").combine_chunks().unique()
        for start, length in _joined(first, count):
            part = self.rows.slice(start, length)
            # File ids are all but unique: only the few that match are compared together with their partition.
            hits = np.flatnonzero(_bools(pc.is_in(part.column("file_id"), value_set=ids)))
            hits = hits[~np.isin(hits + start, self.gone)]
            if len(hits):
                few = pa.concat_tables([part.slice(int(hit), 1) for hit in hits]).combine_chunks()
                same = _bools(pc.is_in(_pairs(few), value_set=pairs))
                touched.append(few.filter(booleans(same)))
                gone.append(hits[same] + start)
        left = self.newer.filter(pc.invert(in_newer))
        return np.unique(np.concatenate(gone)), left, pa.concat_tables(touched)


def _joined(first: Ids, count: Ids) -> Iterator[tuple[int, int]]:
    """Ranges of rows in ascending order, neighbours as one; empty ones left out."""
    order = np.argsort(first, kind="stable")
    start, end = 0, 0
    for at, length in zip(first[order].tolist(), count[order].tolist(), strict=True):
        if not length:
            continue
        if at != end:
            if end > start:
                yield start, end - start
            start = at
        end = at + length
    if end > start:
        yield start, end - start


def _bools(mask: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.asarray(mask)
    return found


def _pairs(groups: pa.Table) -> pa.Array:
    """Partition and file id in one text."""
    columns: list[Any] = [single_array(groups.column(name)) for name in ("partition_path", "file_id")]
    return pc.binary_join_element_wise(*columns, texts(["\0"])[0])


def _groups_of(files: pa.Table) -> pa.Table:
    """partition_path and file_id of the file groups that some files belong to."""
    parsed = parse_names(single_array(files.column("name")))
    whole = booleans(parsed.valid)
    ids = parsed.file_ids.cast(pa.string())
    return pa.table({"partition_path": files.column("partition_path").filter(whole), "file_id": ids.filter(whole)})


def _files_of(slices: pa.Table) -> pa.Table:
    """The files of some slices, a row a file."""
    columns = {name: single_array(slices.column(name)) for name in slices.column_names}
    with_base = columns["base_file"].is_valid()
    folders, logs = columns["partition_path"], columns["log_files"]
    base = [column.filter(with_base) for column in (folders, columns["base_file"], columns["base_size"])]
    of_logs = [folders.take(pc.list_parent_indices(logs)), pc.list_flatten(logs), pc.list_flatten(columns["log_sizes"])]
    return pa.concat_tables([pa.Table.from_arrays(part, schema=_FILES) for part in (base, of_logs)])


def _paths(files: pa.Table) -> pa.Array:
    """Partition and name of each file in one text."""
    return pc.binary_join_element_wise(single_array(files["partition_path"]), single_array(files["name"]), texts(["/"])[0])


def log_instants(slices: pa.Table) -> set[str]:
    """Instants, as 17 digits, of the log files of some slices."""
    from hudimeta.table.text_arrays import instant_text

    names = pc.list_flatten(single_array(slices.column("log_files")))
    if not len(names):
        return set()
    found = np.unique(parse_names(single_array(names)).instants)
    return set(instant_text(found).to_pylist())
