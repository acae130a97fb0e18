"""Writing log files of merge-on-read tables: a file for each file group and commit, more where one would grow too large.

A file holds data blocks, a delete block, or both. Rows stand in the block with their meta columns, and the bare file id where
a base file has its own name; whole, or of a partial update the columns that it sets. A delete states the ordering value of the
row that it deletes, in the type of the column: Hudi 1.0.2 cannot merge a slice in which a delete without one meets a newer row
of the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.commit.markers import Marker, MarkerKind, marked_output, write_marker
from hudimeta.formats.avro.narrowed import narrowed
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.log import (
    BlockType,
    HeaderKey,
    encode_avro_content,
    encode_delete_content,
    encode_hfile_content,
    encode_parquet_content,
    frame_block,
    seal_blocks,
)
from hudimeta.formats.parquet import column_bounds
from hudimeta.formats.plain_arrays import array_of, scalar_of
from hudimeta.formats.vectors import as_stored
from hudimeta.indexes.expression_index.facts import expression_records
from hudimeta.indexes.facts import FileFacts, KeyChanges
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import hide_meta_columns
from hudimeta.keys.partition_metafile import mark_partition
from hudimeta.metadata.statistics import file_statistics
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.slice_keys import SliceKeys
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import beside
from hudimeta.table.file_names import LogFileName, WriteToken
from hudimeta.table.key_file import KeyFile
from hudimeta.types import FileGroupId
from hudimeta.write.base_files import FileFormat
from hudimeta.write.keys_of_logs import KeysOfLogs

__all__ = ["Deletes", "LogContent", "LogFileWriter", "LogForm"]


@dataclass(frozen=True)
class Deletes:
    """Keys to delete in one file group, with the ordering values of the rows that they delete, one array a field."""

    keys: pa.StringArray
    ordering: tuple[pa.Array, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    def and_of(self, others: Deletes) -> Deletes:
        """These and others, whose keys are not among them."""
        if not len(self):
            return others
        columns = zip(self.ordering, others.ordering, strict=True)
        # Others may have come with rows by which the column becomes wider.
        ordering = tuple(pa.concat_arrays([one.cast(other.type), other]) for one, other in columns)
        return Deletes(pa.concat_arrays([self.keys, others.keys]), ordering)


@dataclass(frozen=True)
class LogContent:
    """What goes into the log of one file group.

    Attributes:
        rows: Rows, meta columns first; may be empty. With fewer columns than the table they are a partial update.
        deletes: Keys to delete.
        updated: How many of the rows, the last ones, stand for rows that are there already.
        facts: What indexes of keys want to know of the rows.
    """

    rows: pa.Table
    deletes: Deletes = field(default_factory=lambda: Deletes(array_of([], pa.string())))
    updated: int = 0
    facts: FileFacts | None = None


@dataclass(frozen=True)
class LogForm:
    """How log files are laid out.

    Attributes:
        block_format: "parquet", "avro" or "hfile", the form of data blocks.
        block_bytes: Size of a block's rows, as Arrow, that is not much exceeded: Java reads a block at once.
        file_bytes: Size from which the rest goes to another file.
    """

    block_format: str = "parquet"
    block_bytes: int = 256 << 20
    file_bytes: int = 1 << 30


class LogFileWriter:
    """Writes the log files of one write.

    Args:
        storage: Rooted at the table.
        instant: Of the write.
        file_format: Of the table's files.
        form: Of log files.
        false_positives: Share of foreign keys that what a file tells of its keys lets pass; None for files that tell nothing.
    """

    def __init__(
        self,
        storage: Storage,
        instant: str,
        file_format: FileFormat,
        form: LogForm | None = None,
        false_positives: float | None = None,
    ) -> None:
        self._storage, self._instant, self._format, self._form = storage, instant, file_format, form or LogForm()
        self._rate = false_positives

    def may_have_late(self, below: KeyFile, keys: pa.StringArray) -> bool:
        """Whether the log of a slice may have versions that lost against the rows of the base file.

        Readers put the versions in a log together first, and lay what comes of them over the base file then: columns that the
        newest version lacks would be those of the one that was late, not those of the row that is there.

        Args:
            below: The slice.
            keys: Of rows that stand as the base file has them.
        """
        return bool(below.logs) and SliceKeys(self._storage, self._rate).touched_by_logs(below, keys, keys)

    def append(
        self,
        group: FileGroupId,
        content: LogContent,
        token: WriteToken,
        below: KeyFile | None = None,
    ) -> list[WrittenFile]:
        """Write to the log of a file group: one file, or several where there is much to write.

        Args:
            group: The file group.
            content: What to write.
            token: Of the task.
            below: The slice that the log belongs to; None where it begins its file group.
        """
        fresh = content.rows.num_rows - content.updated
        return self._write(group, self._contents([content], group.partition_path), token, below, fresh, content.facts)

    def append_merged(
        self, group: FileGroupId, contents: Iterable[LogContent], stands_for: Sequence[str], token: WriteToken, below: KeyFile
    ) -> list[WrittenFile]:
        """Write what stands for earlier blocks of the log of a file group.

        Args:
            group: The file group.
            contents: What the earlier blocks come to, each key once; whole rows, rows with some columns, and deletes apart.
            stands_for: The instants of those blocks, the newest first.
            token: Of the task.
            below: The slice that the log belongs to.
        """
        wanted = self._format.facts
        facts = FileFacts(KeyChanges() if wanted.keys else None, {name: KeyChanges() for name, _, _ in wanted.values})
        held = self._contents(contents, group.partition_path, {HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(stands_for)})
        return self._write(group, held, token, below, 0, facts)

    def _write(
        self,
        group: FileGroupId,
        contents: Iterable[_Content],
        token: WriteToken,
        below: KeyFile | None,
        fresh: int,
        facts: FileFacts | None,
    ) -> list[WrittenFile]:
        """Write files, of whose rows the first `fresh` are new to the file group."""
        partition_path, file_id = group.partition_path, group.file_id
        files: list[WrittenFile] = []
        # Whoever tells the changes in a log needs the rows before it, and Apache Hudi finds them by the log's own stat.
        base = (below.name, *below.logs) if below is not None and self._format.changes is not None else ()
        keys = None if self._rate is None else KeysOfLogs(self._storage, self._rate, partition_path, below)
        for number, held in enumerate(contents, start=1):
            name = str(LogFileName(file_id, self._instant, number, token.of_log))
            size, own = self._put(join(partition_path, name), held, keys), held.rows
            inserted = min(max(fresh, 0), own.num_rows)
            fresh -= inserted
            files.append(
                WrittenFile(
                    partition_path,
                    file_id,
                    name,
                    size,
                    own.num_rows,
                    inserted,
                    own.num_rows - inserted,
                    held.deletes,
                    self._statistics(own, partition_path, name),
                    log_instant=self._instant,
                    facts=self._facts(_of_file(facts, number), own, partition_path, name, size),
                    begins_group=below is None and number == 1,
                    slice_names=(*base, *(file.name for file in files)) if base else (),
                )
            )
        if below is None:
            mark_partition(self._storage, self._instant, partition_path)
        return files

    def _put(self, path: str, held: _Content, keys: KeysOfLogs | None) -> int:
        """Write one file, its marker first. Returns its size."""
        marker, name = Marker(path, MarkerKind.CREATE), path.rpartition("/")[2]
        note = partial(write_marker, self._storage, self._instant, marker)
        entries = _entries(keys, name, held, note, self._storage)
        blocks = held.framed(entries)
        seal_blocks(blocks, name)
        with marked_output(self._storage, self._instant, marker, in_task=self._format.in_task, is_noted=True) as stream:
            for block in blocks:
                stream.write(block)
        size = sum(map(len, blocks))
        if keys is not None and entries:
            keys.wrote(size)
        return size

    def _facts(self, changes: FileFacts, rows: pa.Table, partition_path: str, name: str, size: int) -> FileFacts:
        wanted = self._format.facts.expressions
        records = expression_records(wanted, rows, partition_path, name, size) if wanted else {}
        return replace(changes, expressions=records)

    def _contents(
        self, contents: Iterable[LogContent], partition_path: str, extra: Mapping[HeaderKey, str] | None = None
    ) -> Iterator[_Content]:
        """What goes into each file.

        Args:
            contents: One after the other.
            partition_path: Of the file group.
            extra: Further entries of each block's header.
        """
        current = _Content()
        for block in self._blocks(contents, partition_path, {HeaderKey.INSTANT_TIME: self._instant, **(extra or {})}):
            if current.blocks and current.is_above(self._form.file_bytes):
                yield current
                current = _Content()
            current.blocks.append(block)
        yield current

    def _blocks(self, contents: Iterable[LogContent], partition_path: str, header: Mapping[HeaderKey, str]) -> Iterator[_Block]:
        encode: _Encode = self._parquet_block
        if self._form.block_format == "avro":
            encode = self._avro_block
        elif self._form.block_format == "hfile" and self._format.populate:  # its cells are sorted by stored keys
            encode = self._hfile_block
        for content in contents:
            rows = content.rows if self._format.populate else hide_meta_columns(content.rows, file_name=False)
            for part in self._parts(rows):
                stated = self._stated(part, header)
                without_rows = partial(self._parquet_block, part.slice(0, 0), stated)
                yield _Block(part, partial(encode, part, stated), without_rows, encode == self._parquet_block)
            if len(content.deletes):
                block = self._delete_block(content.deletes, partition_path, header)
                yield _Block(rows.slice(0, 0), partial(_as_it_is, block), deleted=content.deletes.keys)

    def _delete_block(self, deletes: Deletes, partition_path: str, header: Mapping[HeaderKey, str]) -> bytearray:
        paths = pa.repeat(scalar_of(partition_path, pa.string()), len(deletes))
        content = encode_delete_content(deletes.keys, paths, deletes.ordering)
        return frame_block(BlockType.DELETE, {HeaderKey.SCHEMA: self._format.avro_schema, **header}, content)

    def _parts(self, rows: pa.Table) -> Iterator[pa.Table]:
        if not rows.num_rows:
            return
        count = max(1, -(-rows.nbytes // max(1, self._form.block_bytes)))
        step = -(-rows.num_rows // count)
        yield from (rows.slice(start, step) for start in range(0, rows.num_rows, step))

    def _stated(self, rows: pa.Table, header: Mapping[HeaderKey, str]) -> Mapping[HeaderKey, str]:
        """A header with the schema of the rows, which may lack columns of the table."""
        whole = self._format.avro_schema
        if len(parse_json(whole)["fields"]) == rows.num_columns:
            return {**header, HeaderKey.SCHEMA: whole}
        return {**header, HeaderKey.IS_PARTIAL: "true", HeaderKey.SCHEMA: narrowed(whole, rows.column_names)}

    def _avro_block(self, rows: pa.Table, header: Mapping[HeaderKey, str], _: _Entries) -> bytearray:
        return frame_block(BlockType.AVRO_DATA, header, encode_avro_content(rows, header[HeaderKey.SCHEMA]))

    def _hfile_block(self, rows: pa.Table, header: Mapping[HeaderKey, str], _: _Entries) -> bytearray:
        return frame_block(BlockType.HFILE_DATA, header, encode_hfile_content(rows, header[HeaderKey.SCHEMA], KEY_COLUMN))

    def _parquet_block(self, rows: pa.Table, header: Mapping[HeaderKey, str], entries: _Entries) -> bytearray:
        stored = as_stored(rows, header[HeaderKey.SCHEMA])
        content = encode_parquet_content(stored, compression=self._format.parquet.compression, entries=entries)
        return frame_block(BlockType.PARQUET_DATA, header, content)

    def _statistics(self, rows: pa.Table, partition_path: str, name: str) -> pa.Table:
        """Of the rows in this file alone; a file of deletes has records without bounds and with counts of 0."""
        bounds = column_bounds(rows, self._format.statistics)
        return file_statistics(bounds, partition_path, name, self._format.regime, {}, keep_empty=True)


def _of_file(changes: FileFacts | None, number: int) -> FileFacts:
    """The changes of keys are stated once, with the first file; the others say that they change none."""
    if changes is None or number == 1:
        return changes or FileFacts()
    return FileFacts(None if changes.keys is None else KeyChanges(), {name: KeyChanges() for name in changes.values})


_Entries = Mapping[str, str] | None
"""What the footer of a Parquet block says besides."""
_Encode = Callable[[pa.Table, Mapping[HeaderKey, str], _Entries], bytearray]


def _as_it_is(block: bytearray, _: _Entries) -> bytearray:
    return block


@dataclass
class _Block:
    """A block of a log file, encoded when it is asked for.

    Attributes:
        rows: Those of a delete block are none.
        encode: Makes the block.
        without_rows: Makes a Parquet block of the same columns without rows; None for a delete block.
        is_parquet: Its footer takes entries.
        deleted: Keys that it deletes.
    """

    rows: pa.Table
    encode: Callable[[_Entries], bytearray]
    without_rows: Callable[[_Entries], bytearray] | None = None
    is_parquet: bool = False
    deleted: pa.StringArray | None = None

    @cached_property
    def plain(self) -> bytearray:
        """The block without entries."""
        return self.encode(None)


@dataclass
class _Content:
    """What one log file holds."""

    blocks: list[_Block] = field(default_factory=list)

    def is_above(self, limit: int) -> bool:
        """Whether the file has so many bytes; nothing is encoded to know that of one that is far from it."""
        if 2 * sum(block.rows.nbytes for block in self.blocks) < limit:
            return False
        return sum(len(block.plain) for block in self.blocks) >= limit

    def framed(self, entries: _Entries) -> list[bytearray]:
        """The blocks of the file, of which one says what the entries say."""
        data = [block for block in self.blocks if block.without_rows is not None]
        if not entries or not data:
            return [block.plain for block in self.blocks]
        if len(data) == 1 and data[0].is_parquet:
            return [block.encode(entries) if block is data[0] else block.plain for block in self.blocks]
        assert data[-1].without_rows is not None
        return [*(block.plain for block in self.blocks), data[-1].without_rows(entries)]

    @property
    def stored_bytes(self) -> int:
        """A guess at the bytes of the file, without encoding anything."""
        return sum(int(block.rows.nbytes) for block in self.blocks) // 2

    @property
    def holds_rows(self) -> bool:
        return any(block.without_rows is not None for block in self.blocks)

    @property
    def rows(self) -> pa.Table:
        """All rows; a column that some blocks lack is null there."""
        tables = [block.rows for block in self.blocks]
        held = [table for table in tables if table.num_rows] or tables[:1]
        return pa.concat_tables(held, promote_options="default")

    @property
    def deletes(self) -> int:
        return sum(len(block.deleted) for block in self.blocks if block.deleted is not None)

    @property
    def touched(self) -> pa.StringArray:
        """The keys of its rows, and those that it deletes."""
        parts = [chunk for block in self.blocks for chunk in block.rows[KEY_COLUMN].chunks]
        deleted = [block.deleted for block in self.blocks if block.deleted is not None]
        return pa.concat_arrays([array_of([], pa.string()), *(part.cast(pa.string()) for part in (*parts, *deleted))])


def _entries(keys: KeysOfLogs | None, name: str, held: _Content, note: Callable[[], None], storage: Storage) -> _Entries:
    """What a log file is to say of its keys and of those of the logs before it; its marker is written beside that."""
    if keys is None or not held.holds_rows:
        note()
        return None
    return beside(lambda: keys.of(name, held.touched, held.stored_bytes), note, storage)
