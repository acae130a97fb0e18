"""The work of one clustering task: a group's file slices are read whole, sorted together, and cut into new files.

Rows keep all that they hold but the name of their file. Nothing is read that is not verified, since damage would be permanent.
Ids of the new file groups come with the task, so that one which is run again writes the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine import Engine, LocalEngine
from hudimeta.errors import CommitConflict, ConfigError
from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.bucket.consistent_hashing import HashRing
from hudimeta.indexes.bucket.hash_keys import ring_hashes
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import KeyGenerator
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.services.clustering_report import FilesRead, files_read
from hudimeta.services.space_curves import Numbers, bits_each, by_columns, hilbert_keys, ordinals, places, tiles, z_order_keys
from hudimeta.slices.bootstrap import METADATA_ONLY_INSTANT
from hudimeta.slices.copied_files import CopiedFiles
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.ordering import ordering_columns
from hudimeta.slices.read_task import ReadTask
from hudimeta.slices.reader import SliceReader
from hudimeta.slices.slice_keys import with_virtual_keys
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.storage import Storage
from hudimeta.table.file_names import WriteToken
from hudimeta.write.base_files import BaseFileWriter
from hudimeta.write.bulk_sort import bulk_sort_columns

__all__ = ["ClusterGroup", "GroupWork", "RowOrder", "WrittenGroup"]

_SPELLED = {"LINEAR": "LINEAR", "ZORDER": "ZORDER", "Z-ORDER": "ZORDER", "HILBERT": "HILBERT"}
_CURVES = {"ZORDER": "z-order", "HILBERT": "Hilbert curve"}
_STATED = frozenset(option.key for option in (keys.CLUSTER_SORT, keys.LAYOUT_STRATEGY, keys.LAYOUT_CURVE, keys.LAYOUT_SAMPLE))
_MOST_BYTES = 1 << 30
"""Of a column that is taken as one array: offsets of texts have 31 bits."""
_PIECE = 1 << 16


@dataclass(frozen=True)
class RowOrder:
    """How rows are sorted.

    Attributes:
        columns: By which columns; none leaves rows as they are.
        layout: LINEAR, ZORDER or HILBERT.
        sample: Rows of the sample whose ranks stand for values on a curve; None for their distances.
    """

    columns: tuple[str, ...] = ()
    layout: str = "LINEAR"
    sample: int | None = None

    @staticmethod
    def asked(options: Options, *, copies: bool = False) -> RowOrder:
        """As options ask for it: without columns of its own a clustering sorts as bulk inserts do, as Apache Hudi's.

        Args:
            options: Of the clustering.
            copies: Row groups are to be put together as they are: then only what it is asked for itself sorts them.
        """
        columns = options.get(keys.CLUSTER_SORT)
        if not columns:
            return RowOrder(() if copies else bulk_sort_columns(options))
        layout = _SPELLED.get(options.get(keys.LAYOUT_STRATEGY) or "", "LINEAR")
        sample = options.get(keys.LAYOUT_SAMPLE) if options.get(keys.LAYOUT_CURVE) == "SAMPLE" else None
        return RowOrder(columns, layout, sample)

    @staticmethod
    def stated(parameters: Mapping[str, str], options: Options, *, copies: bool = False) -> RowOrder:
        """As a plan states it; Apache Hudi's say the columns, and leave the rest to the options of the run."""
        known = {key: text for key, text in parameters.items() if key in _STATED}
        return RowOrder.asked(options.having({keys.CLUSTER_SORT.key: "", **known}), copies=copies)

    def parameters(self) -> dict[str, str]:
        """For a plan: by the names of options."""
        if not self.columns:
            return {}
        found = {keys.CLUSTER_SORT.key: ",".join(self.columns), keys.LAYOUT_STRATEGY.key: self.layout}
        if self.sample is not None:
            found |= {keys.LAYOUT_CURVE.key: "SAMPLE", keys.LAYOUT_SAMPLE.key: str(self.sample)}
        return found

    def __str__(self) -> str:
        return f"by {', '.join(self.columns)}" + (f" along a {_CURVES[self.layout]}" if self.layout in _CURVES else "")

    def check(self, schema: pa.Schema, key: str) -> None:
        """Refuse columns that cannot be sorted by.

        Args:
            schema: Of the table, meta columns included.
            key: Of the option, for the error.
        """
        for name in self.columns:
            kind = column_type(schema, name)
            if kind is None or pa.types.is_nested(kind):
                allowed = "columns of the table with a single value each"
                raise ConfigError(key, name, allowed, f"The table has {', '.join(schema.names)}.")

    def of(
        self, columns: Sequence[pa.ChunkedArray], values: Sequence[Numbers], counts: Sequence[int]
    ) -> npt.NDArray[np.int64] | None:
        """Where rows go; None where they stay.

        Args:
            columns: To sort by.
            values: Their `ordinals`.
            counts: Rows of each file: by several columns every file is a tile of their own, and the curve runs inside of it.
        """
        if not columns:
            return None
        if self.layout == "LINEAR" or len(columns) == 1:
            return by_columns(columns)
        bits = bits_each(len(columns))
        axes = [places(one, bits, self.sample) for one in values]
        keys = hilbert_keys(axes, bits) if self.layout == "HILBERT" else z_order_keys(axes, bits)
        return np.concatenate([rows[np.argsort(keys[rows], kind="stable")] for rows in tiles(values, counts)])


@dataclass(frozen=True)
class GroupWork:
    """One task.

    Attributes:
        number: Of the task.
        slices: With the sizes of their files.
        file_ids: Of the file groups to write, as many as there may be.
        ring: The hash ring that says which row goes to which of these, and the columns that it hashes; None where rows may go
            anywhere.
    """

    number: int
    slices: tuple[FileSlice, ...]
    file_ids: tuple[str, ...]
    ring: tuple[HashRing, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class WrittenGroup:
    """What a task made.

    Attributes:
        files: None where no row was left.
        read: Of a filter on each column that rows were sorted by.
        decoded: Why the group was not copied as it was asked to be; "" where it was, or was not asked to be.
    """

    files: tuple[WrittenFile, ...]
    read: tuple[FilesRead, ...]
    decoded: str = ""


@dataclass(frozen=True)
class ClusterGroup:
    """Runs tasks; a value, so that it can run in another process.

    Attributes:
        storage: Rooted at the table.
        task: How slices are read: all columns.
        writer: Of the new files.
        order: Of their rows.
        virtual: Makes record keys that are not stored; None where they are.
        threads: Of each task; as many as there are cores when None.
        copies: Put row groups together without decoding them, where that can be.
    """

    storage: Storage
    task: ReadTask
    writer: BaseFileWriter
    order: RowOrder
    virtual: KeyGenerator | None = None
    threads: int | None = None
    copies: bool = False

    def __call__(self, work: GroupWork) -> WrittenGroup:
        engine = LocalEngine(self.threads)
        decoded = ""
        if self.copies:
            copied = self._copied(engine, work)
            if not isinstance(copied, str):
                return copied
            decoded = copied
        pieces = engine.map(self._read, work.slices)
        rows = pa.concat_tables(pieces)
        if not rows.num_rows:
            return WrittenGroup((), tuple(FilesRead(0.0, 0.0) for _ in self.order.columns))
        if work.ring is not None:
            return self._to_buckets(engine, work, rows, *work.ring)
        columns = ordering_columns(rows, self.order.columns)
        values = engine.map(ordinals, columns)
        counts = _cut(rows.num_rows, len(work.file_ids))
        order = self.order.of(columns, values, counts)
        del columns
        files = self._write(engine, work, rows, order, counts)
        before = [piece.num_rows for piece in pieces]
        return WrittenGroup(files, tuple(files_read(one, before, counts, order) for one in values), decoded)

    def _to_buckets(
        self, engine: Engine, work: GroupWork, rows: pa.Table, ring: HashRing, fields: Sequence[str]
    ) -> WrittenGroup:
        """Every row to the bucket that its key belongs to; a bucket without rows gets no file."""
        places = ring.numbers(ring_hashes(single_array(rows[KEY_COLUMN]), fields))
        ids = [f"{ring.nodes[place].prefix}-0" for place in np.unique(places).tolist()]
        strange = [name for name in ids if name not in work.file_ids]
        if strange:
            groups = [(ring.partition, name) for name in strange]
            raise CommitConflict("clustering", groups, "another clustering", did="split or merged meanwhile")

        def write(place: int) -> tuple[WrittenFile, list[FilesRead]]:
            own = rows.filter(pa.array(places == place))
            columns = ordering_columns(own, self.order.columns)
            values = [ordinals(column) for column in columns]
            order = self.order.of(columns, values, [own.num_rows])
            taken = own if order is None else _taken(own, order)
            name = f"{ring.nodes[place].prefix}-0"
            file = self.writer.write_clustered(work.slices[0].partition_path, name, taken, WriteToken(work.number))
            return file, [files_read(one, [own.num_rows], [own.num_rows], order) for one in values]

        made = engine.map(write, np.unique(places).tolist())
        return WrittenGroup(tuple(file for file, _ in made), tuple(made[0][1]))

    def _copied(self, engine: Engine, work: GroupWork) -> WrittenGroup | str:
        """The group without decoding its files; why not, where that cannot be."""
        if self.order.columns:
            return "rows are sorted"
        if self.virtual is not None:
            return "record keys are not stored"
        if self.task.history is not None:
            return "columns were altered"
        if any(one.log_files or one.base_path is None or one.base_instant == METADATA_ONLY_INSTANT for one in work.slices):
            return "there are slices with log files, or whose rows lie elsewhere"
        parts = _parted(work.slices, len(work.file_ids))
        schema = self.writer.schema
        with ExitStack() as opened:
            sources = [opened.enter_context(CopiedFiles(self.storage, _files(part), schema)) for part in parts]
            refusal = next((one.refusal for one in sources if one.refusal), None)
            if refusal is not None:
                return refusal

            def write(at: int) -> WrittenFile:
                partition = work.slices[0].partition_path
                return self.writer.write_copied(partition, work.file_ids[at], sources[at], WriteToken(work.number))

            return WrittenGroup(tuple(engine.map(write, range(len(parts)))), ())

    def _read(self, one: FileSlice) -> pa.Table:
        rows = pa.concat_tables([self.task.output_schema.empty_table(), *SliceReader(self.task, self.storage).tables(one)])
        return rows if self.virtual is None else with_virtual_keys(rows, self.virtual)

    def _write(
        self,
        engine: Engine,
        work: GroupWork,
        rows: pa.Table,
        order: npt.NDArray[np.int64] | None,
        counts: Sequence[int],
    ) -> tuple[WrittenFile, ...]:
        partition = work.slices[0].partition_path
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).tolist()

        def write(at: int) -> WrittenFile:
            first, count = starts[at], counts[at]
            own = rows.slice(first, count) if order is None else _taken(rows, order[first : first + count])
            return self.writer.write_clustered(partition, work.file_ids[at], own, WriteToken(work.number))

        return tuple(engine.map(write, range(len(counts))))


def _files(slices: Sequence[FileSlice]) -> list[tuple[str, int]]:
    return [(one.base_path or "", one.base_size) for one in slices]


def _parted(slices: Sequence[FileSlice], files: int) -> list[list[FileSlice]]:
    """Slices of each of at most so many files, of about the same size, in their order; no file is without any."""
    ends = np.cumsum([one.base_size for one in slices])
    middles = ends - np.array([one.base_size for one in slices]) / 2
    numbers = np.minimum((middles * files / max(int(ends[-1]), 1)).astype(np.int64), files - 1)
    return [[slices[at] for at in np.flatnonzero(numbers == number).tolist()] for number in np.unique(numbers)]


def _taken(rows: pa.Table, order: npt.NDArray[np.int64]) -> pa.Table:
    """Rows in another order."""
    at = pa.array(order)
    return pa.Table.from_arrays([_taken_of(column, at) for column in rows.columns], schema=rows.schema)


def _taken_of(column: pa.ChunkedArray, at: pa.Array) -> pa.ChunkedArray:
    """Column by column, since a chunked one is taken faster as one array."""
    kind = column.type
    if column.nbytes < _MOST_BYTES or not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return pa.chunked_array([single_array(column).take(at)], type=kind)
    large = single_array(column.cast(pa.large_string() if pa.types.is_string(kind) else pa.large_binary()))
    return pa.chunked_array([large.take(at.slice(first, _PIECE)).cast(kind) for first in range(0, len(at), _PIECE)], type=kind)


def _cut(rows: int, files: int) -> list[int]:
    """Rows of each file, about the same in all; no file is empty."""
    files = min(rows, files)
    return [rows // files + (at < rows % files) for at in range(files)]
