"""Writing log files of merge-on-read tables: one file a file group and commit, with a data block, a delete block, or both.

Rows stand in the block whole, meta columns included, with the bare file id where a base file has its own name. A delete states
the ordering value of the row that it deletes, in the type of the column: Hudi 1.0.2 cannot merge a slice in which a delete
without one meets a newer row of the same key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from hudimeta.formats.log import (
    BlockType,
    HeaderKey,
    encode_avro_content,
    encode_block,
    encode_delete_content,
    encode_parquet_content,
)
from hudimeta.formats.parquet import column_bounds
from hudimeta.keys import hide_meta_columns
from hudimeta.metadata.statistics import file_statistics
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import LogFileName
from hudimeta.write.base_files import FileFormat, mark_partition
from hudimeta.write.expression_facts import expression_records
from hudimeta.write.index_facts import FileFacts
from hudimeta.write.markers import Marker, MarkerKind, write_marker
from hudimeta.write.written_file import WrittenFile

__all__ = ["Deletes", "LogFileWriter"]


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


class LogFileWriter:
    """Writes the log files of one write.

    Args:
        storage: Rooted at the table. instant: Of the write. file_format: Of the table's files.
        block_format: "parquet" or "avro", the form of data blocks.
    """

    def __init__(self, storage: Storage, instant: str, file_format: FileFormat, block_format: str = "parquet") -> None:
        self._storage, self._instant, self._format, self._block_format = storage, instant, file_format, block_format

    def append(
        self,
        partition_path: str,
        file_id: str,
        rows: pa.Table,
        deletes: Deletes,
        *,
        updated: int,
        task: int,
        attempt: int = 0,
        begins: bool = False,
        changes: FileFacts | None = None,
    ) -> WrittenFile:
        """Write one log file.

        Args:
            partition_path, file_id: The file group. rows: Whole rows, meta columns first; may be empty.
            deletes: Keys to delete. updated: How many of the rows stand for rows that are there already.
            task, attempt: For the write token. begins: The file begins its file group.
            changes: What indexes of keys want to know of the rows.
        """
        name = str(LogFileName(file_id, self._instant, 1, f"{task}-0-{attempt}"))
        path = join(partition_path, name)
        write_marker(self._storage, self._instant, Marker(path, MarkerKind.CREATE))
        if not self._format.populate:
            rows = hide_meta_columns(rows, file_name=False)
        data = self._blocks(rows, partition_path, deletes)
        with self._storage.open_output(path) as stream:
            stream.write(data)
        if begins:
            mark_partition(self._storage, self._instant, partition_path)
        return WrittenFile(
            partition_path,
            file_id,
            name,
            len(data),
            rows.num_rows,
            rows.num_rows - updated,
            updated,
            len(deletes),
            self._statistics(rows, partition_path, name),
            log_instant=self._instant,
            facts=self._facts(changes or FileFacts(), rows, partition_path, name, len(data)),
            begins_group=begins,
        )

    def _facts(self, changes: FileFacts, rows: pa.Table, partition_path: str, name: str, size: int) -> FileFacts:
        wanted = self._format.facts.expressions
        records = expression_records(wanted, rows, partition_path, name, size) if wanted else {}
        return replace(changes, expressions=records)

    def _blocks(self, rows: pa.Table, partition_path: str, deletes: Deletes) -> bytes:
        header = {HeaderKey.SCHEMA: self._format.avro_schema, HeaderKey.INSTANT_TIME: self._instant}
        blocks = []
        if rows.num_rows and self._block_format == "avro":
            blocks.append(encode_block(BlockType.AVRO_DATA, header, encode_avro_content(rows, self._format.avro_schema)))
        elif rows.num_rows:
            content = encode_parquet_content(rows, compression=self._format.codec)
            blocks.append(encode_block(BlockType.PARQUET_DATA, header, content))
        if len(deletes):
            paths = pa.repeat(pa.scalar(partition_path, pa.string()), len(deletes))
            blocks.append(encode_block(BlockType.DELETE, header, encode_delete_content(deletes.keys, paths, deletes.ordering)))
        return b"".join(blocks)

    def _statistics(self, rows: pa.Table, partition_path: str, name: str) -> pa.Table:
        """Of the rows in this file alone; a file of deletes has records without bounds and with counts of 0."""
        bounds = column_bounds(rows, self._format.statistics)
        return file_statistics(bounds, partition_path, name, self._format.regime, {}, keep_empty=True)
