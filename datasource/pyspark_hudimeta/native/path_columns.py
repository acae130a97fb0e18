"""Partition columns of listed files, as partition paths state them and not as the files hold them.

A row that Apache Hudi found by an index of the whole table can have stayed in its partition when the column changed: its file
then holds another value than readers of the table show. Spark knows of the rows of a file which file it is, and a manifest says
what it likes about a file's modification time: here that time is the number of the file's partition, in milliseconds, and the
column is the element of an array of all values at that number.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.keys import PartitionLayout
from hudimeta.snapshot.partition_columns import path_values
from pyspark_hudimeta.arrow_types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["PathColumns"]


@dataclass(frozen=True)
class PathColumns:
    """What partition paths say of some files.

    Attributes:
        numbers: For each file the number of its partition, int64.
        values: A row for each partition, a column for each partition column that is read and that paths state; no columns when
            there is none.
    """

    numbers: pa.Array
    values: pa.Table

    @classmethod
    def of(cls, snapshot: Snapshot, paths: pa.ChunkedArray, wanted: Collection[str]) -> PathColumns:
        """Of files.

        Args:
            snapshot: The table.
            paths: The partition path of each file.
            wanted: The columns that are read.
        """
        coded = pc.dictionary_encode(paths).combine_chunks()
        properties = snapshot.properties
        if not any(name in wanted for name in properties.partition_fields):
            return cls(coded.indices.cast(pa.int64()), pa.table({}))
        layout = PartitionLayout.from_properties(properties)
        values = path_values(coded.dictionary, layout, snapshot.schema.arrow, properties)
        return cls(coded.indices.cast(pa.int64()), values.select([n for n in values.column_names if n in wanted]))

    def numbered(self, files: pa.Table) -> pa.Table:
        """Files whose times are the numbers.

        Args:
            files: Columns of `manifest.MANIFEST_FILES`, in the order of the paths.
        """
        at = files.schema.get_field_index("modified_ms")
        return files.set_column(at, files.schema.field(at), self.numbers) if self.values.num_columns else files

    def shown(self, frame: DataFrame) -> DataFrame:
        """The rows with the columns as paths state them.

        Args:
            frame: Of the numbered files.
        """
        from pyspark.sql.functions import element_at, from_json, lit, unix_millis
        from pyspark.sql.types import ArrayType, BinaryType

        if not self.values.num_columns:
            return frame
        number = unix_millis(frame.metadataColumn("_metadata")["file_modification_time"]).cast("int") + 1
        columns = {}
        for column in spark_schema(self.values.schema):
            texts = json.dumps([None if v is None else _text(v) for v in self.values.column(column.name).to_pylist()])
            kind = "array<binary>" if column.dataType == BinaryType() else "array<string>"
            # As a literal: in the text of an expression Spark would replace `${...}`.
            values = from_json(lit(texts), kind).cast(ArrayType(column.dataType))
            columns[column.name] = element_at(values, number)
        return frame.withColumns(columns)


def _text(value: object) -> str:
    """A value as Spark casts it from a text, or reads bytes from JSON."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value).lower() if isinstance(value, bool) else str(value)
