"""Writing log files of merge-on-read tables: a file for each file group and commit, more where one would grow too large.

A file holds data blocks, a delete block, or both. Rows stand in the block with their meta columns, and the bare file id where
a base file has its own name; whole, or of a partial update the columns that it sets. A delete states the ordering value of the
row that it deletes, in the type of the column: Hudi 1.0.2 cannot merge a slice in which a delete without one meets a newer row
of the same key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudimeta.commit.markers import Marker, MarkerKind, marked_output
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
from hudimeta.indexes.expression_index.facts import expression_records
from hudimeta.indexes.facts import FileFacts, KeyChanges
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import hide_meta_columns
from hudimeta.metadata.statistics import file_statistics
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import LogFileName
from hudimeta.table.key_file import KeyFile
from hudimeta.types import FileGroupId
from hudimeta.write.base_files import FileFormat, WriteToken, mark_partition

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
        ordering = tuple(pa.concat_arrays([one, other.cast(one.type)]) for one, other in columns)
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
    deletes: Deletes = field(default_factory=lambda: Deletes(pa.array([], pa.string())))
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
    """

    def __init__(self, storage: Storage, instant: str, file_format: FileFormat, form: LogForm | None = None) -> None:
        self._storage, self._instant, self._format, self._form = storage, instant, file_format, form or LogForm()

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
        partition_path, file_id, rows = group.partition_path, group.file_id, content.rows
        if not self._format.populate:
            rows = hide_meta_columns(rows, file_name=False)
        files: list[WrittenFile] = []
        # Whoever tells the changes in a log needs the rows before it, and Apache Hudi finds them by the log's own stat.
        base = (below.name, *below.logs) if below is not None and self._format.changes is not None else ()
        fresh = rows.num_rows - content.updated
        for number, held in enumerate(self._contents(rows, partition_path, content.deletes), start=1):
            name = str(LogFileName(file_id, self._instant, number, str(token)))
            path = join(partition_path, name)
            marker = Marker(path, MarkerKind.CREATE)
            seal_blocks(held.blocks, name)
            with marked_output(self._storage, self._instant, marker, in_task=self._format.in_task) as stream:
                for block in held.blocks:
                    stream.write(block)
            own = held.rows
            inserted = min(max(fresh, 0), own.num_rows)
            fresh -= inserted
            files.append(
                WrittenFile(
                    partition_path,
                    file_id,
                    name,
                    held.size,
                    own.num_rows,
                    inserted,
                    own.num_rows - inserted,
                    held.deletes,
                    self._statistics(own, partition_path, name),
                    log_instant=self._instant,
                    facts=self._facts(_of_file(content.facts, number), own, partition_path, name, held.size),
                    begins_group=below is None and number == 1,
                    slice_names=(*base, *(file.name for file in files)) if base else (),
                )
            )
        if below is None:
            mark_partition(self._storage, self._instant, partition_path)
        return files

    def _facts(self, changes: FileFacts, rows: pa.Table, partition_path: str, name: str, size: int) -> FileFacts:
        wanted = self._format.facts.expressions
        records = expression_records(wanted, rows, partition_path, name, size) if wanted else {}
        return replace(changes, expressions=records)

    def _contents(self, rows: pa.Table, partition_path: str, deletes: Deletes) -> Iterator[_Content]:
        """What goes into each file."""
        current = _Content(rows.slice(0, 0))
        for part in self._parts(rows):
            if current.size >= self._form.file_bytes:
                yield current
                current = _Content(rows.slice(0, 0))
            current.add(self._data_block(part), part)
        if len(deletes):
            if current.size >= self._form.file_bytes:
                yield current
                current = _Content(rows.slice(0, 0))
            paths = pa.repeat(pa.scalar(partition_path, pa.string()), len(deletes))
            header = {HeaderKey.SCHEMA: self._format.avro_schema, HeaderKey.INSTANT_TIME: self._instant}
            content = encode_delete_content(deletes.keys, paths, deletes.ordering)
            current.add(frame_block(BlockType.DELETE, header, content))
            current.deletes = len(deletes)
        yield current

    def _parts(self, rows: pa.Table) -> Iterator[pa.Table]:
        if not rows.num_rows:
            return
        count = max(1, -(-rows.nbytes // max(1, self._form.block_bytes)))
        step = -(-rows.num_rows // count)
        yield from (rows.slice(start, step) for start in range(0, rows.num_rows, step))

    def _data_block(self, rows: pa.Table) -> bytearray:
        schema = self._format.avro_schema
        header = {HeaderKey.INSTANT_TIME: self._instant}
        stated = parse_json(schema)
        if len(stated["fields"]) > rows.num_columns:
            stated["fields"] = [f for f in stated["fields"] if f["name"] in rows.column_names]
            schema = json.dumps(stated)
            header[HeaderKey.IS_PARTIAL] = "true"
        header[HeaderKey.SCHEMA] = schema
        if self._form.block_format == "avro":
            return frame_block(BlockType.AVRO_DATA, header, encode_avro_content(rows, schema))
        if self._form.block_format == "hfile" and self._format.populate:  # its cells are sorted by stored keys
            return frame_block(BlockType.HFILE_DATA, header, encode_hfile_content(rows, schema, KEY_COLUMN))
        content = encode_parquet_content(rows, compression=self._format.codec)
        return frame_block(BlockType.PARQUET_DATA, header, content)

    def _statistics(self, rows: pa.Table, partition_path: str, name: str) -> pa.Table:
        """Of the rows in this file alone; a file of deletes has records without bounds and with counts of 0."""
        bounds = column_bounds(rows, self._format.statistics)
        return file_statistics(bounds, partition_path, name, self._format.regime, {}, keep_empty=True)


def _of_file(changes: FileFacts | None, number: int) -> FileFacts:
    """The changes of keys are told once, with the first file; the others say that they change none."""
    if changes is None or number == 1:
        return changes or FileFacts()
    return FileFacts(None if changes.keys is None else KeyChanges(), {name: KeyChanges() for name in changes.values})


@dataclass
class _Content:
    """What one log file holds."""

    rows: pa.Table
    blocks: list[bytearray] = field(default_factory=list)
    deletes: int = 0

    @property
    def size(self) -> int:
        return sum(map(len, self.blocks))

    def add(self, block: bytearray, rows: pa.Table | None = None) -> None:
        self.blocks.append(block)
        if rows is not None:
            self.rows = pa.concat_tables([self.rows, rows])
