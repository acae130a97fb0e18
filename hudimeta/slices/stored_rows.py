"""Base files that are read to be written anew: their rows, and what their footers say.

Texts of few values stand in a Parquet file as codes of a dictionary. Where nobody looks at such a column on the way it stays
so, as an Arrow dictionary, and neither reading nor writing makes a text of every row. Rows that come as texts are coded once
where they are many, since each step after that is cheaper: taking the rows of a file, their bounds, writing them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.formats import bulk_texts
from hudimeta.formats.base_file import damage_named, pages_named
from hudimeta.formats.parquet import READ_INT96, ParquetFooter, coded_texts, footer_of
from hudimeta.formats.parquet.page_counts import check_counts
from hudimeta.formats.parquet.quick_columns import quick_columns, read_group
from hudimeta.formats.parquet.small_file import schema_bytes
from hudimeta.formats.parquet.verified import read_metadata
from hudimeta.keys import KeyGenerator
from hudimeta.schema import SchemaHistory, conform
from hudimeta.slices.bootstrap import METADATA_ONLY_INSTANT
from hudimeta.slices.kept_groups import KeptGroups, Touched
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules, PartialUpdateMode
from hudimeta.slices.slice_keys import with_virtual_keys
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import parse_base_file

__all__ = ["StoredRows", "StoredRowsReader", "codable_columns", "with_codes", "with_inserts"]

CODES = pa.dictionary(pa.int32(), pa.string())
_FIRST_ROWS, _FEW_AT_FIRST, _FEW = 4096, 64, 256
"""A text has few values if so many rows have no more than the second, and all rows no more than the third."""
_WORTH_CODING = 50_000
"""Rows below which coding saves nothing that could be measured."""


@dataclass(frozen=True)
class StoredRows:
    """A base file.

    Attributes:
        rows: In the writer's schema, but for columns of `CODES`; without those of `kept`.
        footer: Of the file.
        kept: What may stay as it is; None where nothing can.
    """

    rows: pa.Table
    footer: ParquetFooter
    kept: KeptGroups | None = None


@dataclass(frozen=True)
class StoredRowsReader:
    """Reads base files.

    Attributes:
        storage: Rooted at the table.
        schema: Of the rows that come out, meta columns first.
        history: Of a table that was altered.
        virtual: Makes keys that are not stored.
        codable: Columns that may be codes.
        sources: Reads the rows of skeletons together with the files of the source, in a bootstrapped table; None in all others.
    """

    storage: Storage
    schema: pa.Schema
    history: SchemaHistory | None
    virtual: KeyGenerator | None
    codable: Collection[str] = ()
    sources: SliceRows | None = None

    def __call__(self, partition_path: str, name: str, size: int, touched: Touched | None = None) -> StoredRows:
        """The rows of a file.

        Args:
            partition_path: Where it is.
            name: Its name.
            size: Its bytes.
            touched: What a write has for it; row groups of which it touches no row may be left out. None for all rows.

        Raises:
            CorruptFileError: It is not what was written.
        """
        import pyarrow.parquet as pq

        path = join(partition_path, name)
        file_name = parse_base_file(name)
        if self.sources is not None and file_name is not None and file_name.instant == METADATA_ONLY_INSTANT:
            return self._whole(FileSlice(partition_path, file_name.file_id, file_name.instant, name, size), self.sources)
        with self.storage.open_input(path) as opened, damage_named(path):
            source, content = _at_hand(opened)
            metadata = read_metadata(source, path, size)
            footer = footer_of(metadata, path)
            coded, how = self._coded(metadata), {"coerce_int96_timestamp_unit": READ_INT96}
            # Damage that went unnoticed here would have a right checksum in the new file.
            file = pq.ParquetFile(source, metadata=metadata, read_dictionary=coded, page_checksum_verification=True, **how)
            with pages_named(path, source, metadata, range(metadata.num_row_groups), None):
                asked = touched if self.history is None and self.virtual is None else None
                kept = KeptGroups.of(self.storage, path, int(source.size()), file, self.schema, asked, content)
                groups = [n for n in range(metadata.num_row_groups) if kept is None or n not in kept.numbers]
                rows = footer.moments.of(_read_groups(file, groups, source, footer))
                check_counts(source, metadata, groups, None, path)
        expected = sum(metadata.row_group(number).num_rows for number in groups)
        if rows.num_rows != expected:
            raise CorruptFileError(path, 0, f"{expected} rows", rows.num_rows)
        return StoredRows(self._fitted(rows, name, coded), footer, kept)

    def _whole(self, skeleton: FileSlice, sources: SliceRows) -> StoredRows:
        """The rows that a skeleton stands for, with the columns of its source."""
        path = skeleton.base_path or ""
        with self.storage.open_input(path) as source, damage_named(path):
            footer = footer_of(read_metadata(source, path, skeleton.base_size), path)
        return StoredRows(conform(sources.columns(skeleton, self.schema.names), self.schema), footer)

    def _coded(self, metadata: Any) -> list[str]:
        """The columns that stand in a file as codes alone."""
        return coded_texts(metadata, self.codable) if self.history is None and self.virtual is None else []

    def _fitted(self, rows: pa.Table, name: str, coded: Collection[str]) -> pa.Table:
        file = parse_base_file(name)
        if self.history is not None and file is not None:
            fitted = conform(self.history.with_newest_names(rows, file.instant), self.schema, altered=True)
        else:
            kept = [n for n in coded if rows.schema.field(n).type == CODES]
            fitted = conform(rows.drop_columns(kept), pa.schema([f for f in self.schema if f.name not in kept]))
            if kept:
                together = {**_columns(fitted), **_columns(rows.select(kept).unify_dictionaries())}
                schema = pa.schema([f.with_type(CODES) if f.name in kept else f for f in self.schema])
                fitted = pa.Table.from_arrays([together[n] for n in schema.names], schema=schema)
        return fitted if self.virtual is None else with_virtual_keys(fitted, self.virtual)


def _at_hand(file: Any) -> tuple[Any, pa.Buffer | None]:
    """A file to read any part of, and the bytes of one that is far away, which are fetched at once: all go into the next file,
    changed or as they are."""
    if isinstance(file, pa.MemoryMappedFile):
        return file, None
    content = file.read_buffer()
    return pa.BufferReader(content), content


def _read_groups(file: Any, groups: list[int], source: Any, footer: ParquetFooter) -> pa.Table:
    """The rows of some row groups of a file that is at hand."""
    names = footer.arrow_schema.names

    def read(offset: int, length: int) -> bytes:
        return bytes(source.read_at(length, offset))

    begin = cache(lambda: schema_bytes(footer.metadata))
    quick = [quick_columns(footer.metadata, group, names, read, footer.arrow_schema, begin) for group in groups]
    if not any(columns.names for columns in quick):
        return file.read_row_groups(groups)
    pieces = [read_group(file, group, names, columns) for group, columns in zip(groups, quick, strict=True)]
    return pa.concat_tables(piece.select(names) for piece in pieces)


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(rows.column_names, rows.columns, strict=True))


def codable_columns(schema: pa.Schema, rules: MergeRules, looked_at: Collection[str]) -> frozenset[str]:
    """The columns of which nobody needs the texts between reading and writing.

    Args:
        schema: Of the files.
        rules: Of merging; those that look at every cell leave none.
        looked_at: Columns that indexes need.
    """
    if rules.merger is not None or rules.partial_mode is not PartialUpdateMode.NONE:
        return frozenset()
    needed = {KEY_COLUMN, rules.delete_field, *(name.partition(".")[0] for name in (*rules.ordering_fields, *looked_at))}
    return frozenset(f.name for f in schema if f.type == pa.string() and f.nullable and f.name not in needed)


def with_inserts(rows: pa.Table, inserts: pa.Table) -> pa.Table:
    """Rows of a file, some of whose columns may be codes, and after them others that are plain."""
    if not inserts.num_rows:
        return rows
    given = [inserts[name] for name in rows.column_names]
    fitted = [c.dictionary_encode() if f.type == CODES else c for f, c in zip(rows.schema, given, strict=True)]
    return pa.concat_tables([rows, pa.Table.from_arrays(fitted, schema=rows.schema)])


def with_codes(rows: pa.Table, codable: Collection[str]) -> pa.Table:
    """Rows with texts of few values as codes, as they will stand in a file; as they are where they are few.

    Args:
        rows: Plain.
        codable: Columns that may be codes.
    """
    if rows.num_rows < _WORTH_CODING:
        return rows
    for at, field in enumerate(rows.schema):
        column = rows.column(at)
        if field.name in codable and len(column[:_FIRST_ROWS].unique()) <= _FEW_AT_FIRST:
            codes = bulk_texts.coded(column)
            if codes.type == CODES and len(codes.chunk(0).dictionary) <= _FEW:
                rows = rows.set_column(at, field.with_type(CODES), codes)
    return rows
