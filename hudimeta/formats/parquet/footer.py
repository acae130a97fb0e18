"""What the end of a base file tells: row count, Hudi's keys, column sizes and statistics.

Key/value entries that Hudi puts into a Parquet footer (a file without any of them is a good base file, too):

====================================  ================================================================================
key                                   value
====================================  ================================================================================
`org.apache.hudi.bloomfilter`         base64 of a bloom filter over the record keys (`com.uber.hoodie.bloomfilter` once)
`hoodie_bloom_filter_type_code`       `DYNAMIC_V0` or `SIMPLE`; SIMPLE when absent
`hudimeta.bloomfilter.crc32`           CRC-32 of the filter's text, hexadecimal; only hudimeta writes and reads it
`hoodie_min_record_key`, `…max…`      smallest and greatest record key; absent in a file without rows
`parquet.avro.schema`                 Avro JSON of the file's columns, meta columns included
`writer.model.name`                   `avro`
====================================  ================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet.bounds import extremes, union_of
from hudimeta.formats.parquet.moments import CALENDAR_KEY, Moments
from hudimeta.formats.parquet.seal import own_entries

if TYPE_CHECKING:
    from hudimeta.formats.bloom import BloomFilter

__all__ = [
    "AVRO_SCHEMA_KEY",
    "BLOOM_CHECKSUM_KEY",
    "BLOOM_KEY",
    "BLOOM_TYPE_KEY",
    "CALENDAR_KEY",
    "MAX_KEY_KEY",
    "MIN_KEY_KEY",
    "MODEL_KEY",
    "ParquetFooter",
    "footer_of",
    "read_footer",
]

BLOOM_KEY = "org.apache.hudi.bloomfilter"
LEGACY_BLOOM_KEY = "com.uber.hoodie.bloomfilter"
BLOOM_CHECKSUM_KEY = "hudimeta.bloomfilter.crc32"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY_KEY, MAX_KEY_KEY = "hoodie_min_record_key", "hoodie_max_record_key"
AVRO_SCHEMA_KEY = "parquet.avro.schema"
MODEL_KEY = "writer.model.name"

NAN_IS_COUNTED_BY = "parquet-mr"
"""Java's writers, whose name begins so, record NaN as the maximum; others leave NaN out of the bounds."""


@dataclass(frozen=True)
class ParquetFooter:
    """A decoded footer; everything but the counts is worked out when it is asked for.

    Attributes:
        num_rows: Rows of the file.
        entries: Entries, both sides as text, where they are known; None for those of `metadata`.
        metadata: pyarrow's `FileMetaData`.
        path: For errors.
    """

    num_rows: int
    entries: dict[str, str] | None
    metadata: Any
    path: str = ""

    @cached_property
    def key_value(self) -> dict[str, str]:
        """Entries, both sides as text (bytes that are not UTF-8 are replaced)."""
        if self.entries is not None:
            return self.entries
        return {_text(k): _text(v) for k, v in own_entries(self.metadata).items()}

    @property
    def avro_schema(self) -> str | None:
        """Avro JSON of the columns; None where the writer was not Hudi's Avro writer."""
        return self.key_value.get(AVRO_SCHEMA_KEY)

    @property
    def min_key(self) -> str | None:
        """Smallest record key, None when not recorded."""
        return self.key_value.get(MIN_KEY_KEY)

    @property
    def max_key(self) -> str | None:
        """Greatest record key, None when not recorded."""
        return self.key_value.get(MAX_KEY_KEY)

    @property
    def bloom_text(self) -> str | None:
        """The bloom filter as it stands in the file, base64; None when there is none."""
        return self.key_value.get(BLOOM_KEY) or self.key_value.get(LEGACY_BLOOM_KEY)

    @cached_property
    def bloom(self) -> BloomFilter | None:
        """The bloom filter over record keys. Raises CorruptFileError when its bytes are not one."""
        from hudimeta.formats.bloom import BloomFilter

        text = self.bloom_text
        return None if text is None else BloomFilter.from_base64(text, self.key_value.get(BLOOM_TYPE_KEY, "SIMPLE"), self.path)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns as they are read (all three list layouts), without metadata."""
        with _damage_told(self.path, "columns that Arrow knows"):
            return self.moments.schema(self.metadata.schema.to_arrow_schema().remove_metadata())

    @cached_property
    def moments(self) -> Moments:
        """What its dates and moments are."""
        return Moments(self.metadata, self.path)

    @cached_property
    def leaf_paths(self) -> list[str]:
        """Dotted paths of the leaf columns."""
        schema = self.metadata.schema
        return [schema.column(at).path for at in range(self.metadata.num_columns)]

    @cached_property
    def chunk_bytes(self) -> dict[str, tuple[int, int]]:
        """Compressed and uncompressed bytes of each leaf column over all row groups, by dotted path."""
        sizes: dict[str, tuple[int, int]] = {}
        with _damage_told(self.path, "readable column chunks"):
            for group in range(self.metadata.num_row_groups):
                row_group = self.metadata.row_group(group)
                for at in range(row_group.num_columns):
                    chunk = row_group.column(at)
                    packed, plain = sizes.get(chunk.path_in_schema, (0, 0))
                    packed, plain = packed + chunk.total_compressed_size, plain + chunk.total_uncompressed_size
                    sizes[chunk.path_in_schema] = (packed, plain)
        return sizes

    @cached_property
    def statistics(self) -> pa.Table:
        """What the footer says of each leaf column, over all row groups.

        Returns:
            One row a leaf: column string, the dotted path; repeated bool, true inside lists and maps; min and max, dense
            unions of typed scalars (see `column_bounds`), null where unknown; null_count int64, null where unknown;
            value_count int64, rows, or elements inside lists; compressed_size, uncompressed_size int64.
            Bounds enclose the values: where NaN may have been left out, a maximum is NaN.
        """
        names = list(self.chunk_bytes) if self.metadata.num_row_groups else []
        with _damage_told(self.path, "readable statistics"):
            rows = [self._column(at) for at in range(len(names))]
        return pa.table(
            {
                "column": pa.array(names, pa.string()),
                "repeated": pa.array([r[0] for r in rows], pa.bool_()),
                "min": union_of([r[1] for r in rows]),
                "max": union_of([r[2] for r in rows]),
                "null_count": pa.array([r[3] for r in rows], pa.int64()),
                "value_count": pa.array([r[4] for r in rows], pa.int64()),
                "compressed_size": pa.array([self.chunk_bytes[n][0] for n in names], pa.int64()),
                "uncompressed_size": pa.array([self.chunk_bytes[n][1] for n in names], pa.int64()),
            }
        )

    def _column(self, at: int) -> tuple[bool, pa.Scalar, pa.Scalar, int | None, int]:
        chunks = [self.metadata.row_group(g).column(at) for g in range(self.metadata.num_row_groups)]
        column = self.metadata.schema.column(at)
        if any((c.path_in_schema, c.physical_type) != (column.path, column.physical_type) for c in chunks):
            # Asked for its statistics all the same, pyarrow would end the process.
            raise CorruptFileError(self.path, 0, f"chunks of column {column.path}", "chunks of another column")
        repeated = column.max_repetition_level > 0
        kind = self._kind_of(chunks[0].path_in_schema)
        found = [c.statistics for c in chunks]
        counts = [s.null_count if s is not None and s.has_null_count else None for s in found]
        nulls = None if None in counts else sum(c for c in counts if c is not None)
        low, high = self._bounds(found, counts, chunks, kind)
        return repeated, low, high, nulls, sum(c.num_values for c in chunks)

    def _bounds(
        self, found: list[Any], counts: list[int | None], chunks: list[Any], kind: pa.DataType
    ) -> tuple[pa.Scalar, pa.Scalar]:
        """Bounds over all row groups; unknown as soon as one group with values has none."""
        unknown = pa.scalar(None, kind), pa.scalar(None, kind)
        if pa.types.is_null(kind) or pa.types.is_nested(kind) or (_is_moment(kind) and not self.moments.are_plain):
            return unknown
        values: list[Any] = []
        for statistics, nulls, chunk in zip(found, counts, chunks, strict=True):
            if statistics is None or not statistics.has_min_max:
                if nulls != chunk.num_values:
                    return unknown
                continue
            values += [statistics.min_raw, statistics.max_raw] if _is_moment(kind) else [statistics.min, statistics.max]
        if not values:
            return unknown
        if _is_moment(kind):  # as numbers: Python has no word for moments after the year 9999, nor for nanoseconds
            low, high = pa.array([min(values), max(values)], pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
            return low, high
        if not pa.types.is_floating(kind):
            low, high = pa.array([min(values), max(values)], kind)
            return low, high
        if not (self.metadata.created_by or "").startswith(NAN_IS_COUNTED_BY):
            values.append(float("nan"))
        return extremes(pa.chunked_array([pa.array(values, kind)]))

    def _kind_of(self, path: str) -> pa.DataType:
        """Arrow type of a leaf that lies in structs only; the null type inside lists and maps."""
        top, *rest = path.split(".")
        at = self.arrow_schema.get_field_index(path)
        if at >= 0:
            return self.arrow_schema.field(at).type
        kind = self.arrow_schema.field(top).type
        for name in rest:
            if not pa.types.is_struct(kind):
                return pa.null()
            kind = kind.field(name).type
        return kind


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


@contextmanager
def _damage_told(path: str, expected: str) -> Iterator[None]:
    """What pyarrow raises for damaged parts of a footer, which it reads only when asked, becomes CorruptFileError."""
    try:
        yield
    except (pa.ArrowException, ValueError, LookupError, OverflowError, OSError) as error:
        raise CorruptFileError(path, 0, expected, str(error).partition("\n")[0]) from error


def read_footer(source: bytes | memoryview | Any, path: str = "", size: int = 0) -> ParquetFooter:
    """Read a Parquet file's footer.

    Args:
        source: The whole file as bytes, or a seekable file (`Storage.open_input`), of which only the end is read.
        path: For errors, and because a footer of ours knows the file's name.
        size: Bytes that the file should have, if known.

    Raises:
        CorruptFileError: The bytes do not end as a Parquet file does, or are not those that were written.
    """
    from hudimeta.formats.parquet.verified import read_metadata

    file = pa.BufferReader(source) if isinstance(source, (bytes, bytearray, memoryview)) else source
    return footer_of(read_metadata(file, path, size), path)


def footer_of(metadata: Any, path: str = "") -> ParquetFooter:
    """The footer of a file that is open: `metadata` is pyarrow's `FileMetaData`."""
    return ParquetFooter(metadata.num_rows, None, metadata, path)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
