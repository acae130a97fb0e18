"""METADATA_ONLY: for each file of the source a skeleton of the five meta columns, and a commit that names the skeletons.

Ids of file groups follow from the files that they stand for, so that a bootstrap which died writes the same files again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.formats.base_file import open_base_file
from hudimeta.formats.parquet import ParquetSettings, write_base_file
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import KeyGenerator, PartitionLayout, add_meta_columns
from hudimeta.keys.partition_metafile import mark_partition
from hudimeta.metadata import column_stats
from hudimeta.schema import conform
from hudimeta.services.bootstrapping.plan import SourcePartition
from hudimeta.snapshot.partition_columns import path_values
from hudimeta.storage import Storage, join
from hudimeta.table.bootstrap_index import METADATA_ONLY_INSTANT, SourceFile
from hudimeta.table.file_names import BaseFileName, WriteToken
from hudimeta.types import META_COLUMNS

__all__ = ["SkeletonWork", "SourceRows", "WriteSkeleton", "commit_record", "skeleton_works"]

OPERATION = "BOOTSTRAP"
_IDS = uuid.UUID("6a3ed4ac-0a54-5c0f-9d36-0b8a2f8f4b1e")


@dataclass(frozen=True)
class SkeletonWork:
    """One task. Attributes: number: Of the task. source: The file that the skeleton stands for."""

    number: int
    source: SourceFile


def skeleton_works(root: str, partitions: Iterable[SourcePartition]) -> list[SkeletonWork]:
    """A task for each file of some partitions; `root` is the source's."""
    files = [
        SourceFile(one.path, str(uuid.uuid5(_IDS, f"{root}/{file.path}")), file.name, file.size, file.modified_ms)
        for one in partitions
        for file in one.files
    ]
    return [SkeletonWork(number, file) for number, file in enumerate(files)]


@dataclass(frozen=True)
class SourceRows:
    """Reads files of the source as rows of the table; a value, so that it can run in another process.

    Attributes:
        storage: Rooted at the source.
        schema: Columns of the table.
        properties: Of the table.
    """

    storage: Storage
    schema: pa.Schema
    properties: Mapping[str, str]

    def pieces(self, partition_path: str, path: str, columns: Sequence[str]) -> Iterable[pa.Table]:
        """Some columns of a file, those that only its folder states included."""
        layout = PartitionLayout.from_properties(self.properties)
        constants = path_values(pa.array([partition_path]), layout, self.schema, self.properties)
        wanted = pa.schema([self.schema.field(name) for name in columns])
        with open_base_file(self.storage, path) as file:
            stored = [name for name in columns if name in file.names] or list(file.names[:1])
            for piece in file.pieces(stored):
                for name in constants.column_names:
                    if name in columns and name not in piece.schema.names:
                        piece = piece.append_column(name, pa.repeat(constants[name][0], piece.num_rows))
                yield conform(piece, wanted)


@dataclass(frozen=True)
class WriteSkeleton:
    """Runs tasks; a value, so that it can run in another process.

    Attributes:
        table: Rooted at the table.
        rows: Reads the source.
        generator: Makes record keys.
        parquet: How the files are laid out.
    """

    table: Storage
    rows: SourceRows
    generator: KeyGenerator
    parquet: ParquetSettings

    def __call__(self, work: SkeletonWork) -> WrittenFile:
        one = work.source
        path = join(one.partition_path, one.name)
        names = self.generator.fixed_columns
        wanted = pa.schema([self.rows.schema.field(name) for name in names])
        rows = pa.concat_tables([wanted.empty_table(), *self.rows.pieces(one.partition_path, path, names)])
        name = BaseFileName(one.file_id, str(WriteToken(work.number)), METADATA_ONLY_INSTANT)
        full = add_meta_columns(
            rows,
            instant=METADATA_ONLY_INSTANT,
            task=work.number,
            record_keys=self.generator.record_keys(rows),
            partition_path=one.partition_path,
            file_name=str(name),
        ).select(list(META_COLUMNS))
        place = join(one.partition_path, str(name))
        with self.table.open_output(place) as stream:
            written = write_base_file(stream, full, avro_schema=_SCHEMA, settings=self.parquet, name=str(name))
        mark_partition(self.table, METADATA_ONLY_INSTANT, one.partition_path)
        now = self.rows.storage.stat(path)
        if now is None or now.size != one.size:
            raise CorruptFileError(path, 0, f"a file of {one.size} bytes", "another one: the source changes")
        count, statistics = full.num_rows, column_stats.SCHEMA.empty_table()
        return WrittenFile(one.partition_path, one.file_id, str(name), written.size, count, count, 0, 0, statistics)


def commit_record(files: Iterable[WrittenFile], avro_schema: str) -> dict[str, Any]:
    """The metadata of the commit at `METADATA_ONLY_INSTANT`."""
    stats: dict[str, list[dict[str, Any]]] = {}
    for file in files:
        stats.setdefault(file.partition_path, []).append(file.stat())
    extra = {"schema": avro_schema}
    return {"partitionToWriteStats": stats, "compacted": False, "operationType": OPERATION, "extraMetadata": extra}


_FIELDS = ", ".join(f'{{"name":"{name}","type":["null","string"],"doc":"","default":null}}' for name in META_COLUMNS)
_SCHEMA = f'{{"type":"record","name":"HoodieRecordKey","doc":"","fields":[{_FIELDS}]}}'
"""As Apache Hudi's skeletons have it in their footers."""
