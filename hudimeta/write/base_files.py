"""Writing base files: new file groups, and file groups whose base file is rewritten with changes.

Each file gets its marker first. Its statistics are computed from the rows in memory, in the pass that writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudimeta.commit.markers import Marker, MarkerKind, marked_output
from hudimeta.config import Options
from hudimeta.config.options import (
    BLOOM_FPP,
    BLOOM_IN_FILES,
    BLOOM_MOST_KEYS,
    BLOOM_TYPE,
    COMPRESSION,
    DICTIONARIES,
    INDEX_TYPE,
    PAGE_BYTES,
    ROW_GROUP_BYTES,
)
from hudimeta.formats.bloom import TypeCode
from hudimeta.formats.parquet import (
    BLOOM_TYPE_KEY,
    BaseFileSummary,
    BloomSettings,
    ParquetFooter,
    ParquetSettings,
    write_base_file,
)
from hudimeta.formats.parquet.known_keys import FileKeys, KnownKeys
from hudimeta.formats.plain_arrays import single_array
from hudimeta.formats.vectors import as_stored
from hudimeta.indexes.expression_index.facts import expression_records
from hudimeta.indexes.facts import NO_CHANGE, FileFacts, KeyChanges, WantedFacts, row_changes
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import add_meta_columns, hide_meta_columns, with_file_name
from hudimeta.keys.partition_metafile import mark_partition
from hudimeta.metadata.statistics import file_statistics
from hudimeta.slices.copied_files import CopiedFiles
from hudimeta.slices.fold import fold_log_records
from hudimeta.slices.kept_groups import KeptGroups
from hudimeta.slices.log_parts import DataPart, LogPart
from hudimeta.slices.merge import MergeCounts, SliceMerger
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules, PartialUpdateMode
from hudimeta.slices.stored_rows import StoredRows, with_inserts
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import BaseFileName, WriteToken, new_file_id, parse_base_file
from hudimeta.write.change_files import ChangeFormat, changed_rows, write_change_file

__all__ = ["BaseFileWriter", "FileFormat", "parquet_settings"]


@dataclass(frozen=True)
class FileFormat:
    """How base files of a table are written: plain data, the same for every file of a write.

    Attributes:
        avro_schema: The table's schema as JSON, meta columns included, for the footer.
        parquet: Codec, sizes and bloom filter of the files.
        statistics: Columns to compute statistics of; empty for a table that keeps none.
        regime: "V1" or "V2", the form of the statistics' bounds.
        facts: What other indexes want to know of each file.
        changes: How changes are captured; None for a table that captures none.
        populate: False for a table with virtual keys: rows carry meta columns here, files hold none of them but their name.
        in_task: Files are written by tasks that may outlive their write; see `marked_output`.
    """

    avro_schema: str
    parquet: ParquetSettings = field(default_factory=ParquetSettings)
    statistics: tuple[str, ...] = ()
    regime: str = "V1"
    facts: WantedFacts = field(default_factory=WantedFacts)
    changes: ChangeFormat | None = None
    populate: bool = True
    in_task: bool = False


def _keys_of(part: LogPart) -> pa.StringArray:
    keys = part.rows[KEY_COLUMN] if isinstance(part, DataPart) else part.keys
    return keys.combine_chunks().cast(pa.string())


def _keeps_rows(merged: pa.Table, base: pa.Table, rules: MergeRules) -> bool:
    """Whether each row of a base file is still there under its key; a merger of the user's might change that."""
    return rules.merger is None and merged.num_rows == base.num_rows


def parquet_settings(options: Options, *, filtered: bool = False) -> ParquetSettings:
    """How the options of a write want base files.

    Args:
        options: Of the write.
        filtered: They have bloom filters whatever the options say, because the table looks for keys by them.
    """
    asked = options.get(BLOOM_IN_FILES) or options.get(INDEX_TYPE) in _BY_FILTERS
    kind: TypeCode = "SIMPLE" if options.get(BLOOM_TYPE) == "SIMPLE" else "DYNAMIC_V0"
    return ParquetSettings(
        options.get(COMPRESSION) or "zstd",
        row_group_bytes=options.get(ROW_GROUP_BYTES),
        row_group_rows=None if options.is_set(ROW_GROUP_BYTES) else ParquetSettings.row_group_rows,
        page_bytes=options.get(PAGE_BYTES),
        dictionary=options.get(DICTIONARIES),
        bloom=BloomSettings(kind, options.get(BLOOM_FPP), options.get(BLOOM_MOST_KEYS)) if filtered or asked else None,
    )


_PARQUET = ".parquet"
_BY_FILTERS = ("BLOOM", "GLOBAL_BLOOM", "RECORD_WINDOW")
"""Index types that look for keys by the filters of base files."""


@dataclass(frozen=True)
class _File:
    """One base file to write.

    Attributes:
        partition_path: Where.
        name: Its name.
        rows: All rows, meta columns included.
        facts: What indexes want to know of the rows.
        inserted: How many are new.
        merged: What became of the others.
        previous: The base file that is superseded; None where it begins its file group.
        known: What the superseded file's footer tells of the keys.
        kept: What stays of the superseded file; None where it is written as a whole.
        anew: Columns of which cells changed, where the others of all rows stay; None where they do not.
    """

    partition_path: str
    name: BaseFileName
    rows: pa.Table
    facts: FileFacts
    inserted: int = 0
    merged: MergeCounts = field(default_factory=MergeCounts)
    previous: BaseFileName | None = None
    known: KnownKeys | None = None
    kept: KeptGroups | None = None
    anew: frozenset[str] | None = None


class BaseFileWriter:
    """Writes the base files of one write.

    Args:
        storage: Rooted at the table.
        instant: Of the write.
        file_format: See `FileFormat`.
        schema: Columns of the files, meta columns first.
        rules: Which version of a row wins.
    """

    def __init__(self, storage: Storage, instant: str, file_format: FileFormat, schema: pa.Schema, rules: MergeRules) -> None:
        self._storage, self._instant, self._format, self.schema = storage, instant, file_format, schema
        self._rules = rules

    def write_new(
        self,
        partition_path: str,
        rows: pa.Table,
        keys: pa.StringArray,
        token: WriteToken,
        file_id: str | None = None,
    ) -> WrittenFile:
        """Write the first base file of a new file group.

        Args:
            partition_path: Where.
            rows: Data columns.
            keys: Their record keys.
            token: Of the task, whose number is the first part of the rows' sequence numbers.
            file_id: Id of the file group; None for a new one.
        """
        name = BaseFileName(file_id or new_file_id(), str(token), self._instant)
        full = add_meta_columns(
            rows,
            instant=self._instant,
            task=token.task,
            record_keys=keys,
            partition_path=partition_path,
            file_name=str(name),
            coded=self._format.populate,
        )
        facts = row_changes(None, full, self._format.facts)
        return self._write(_File(partition_path, name, full, facts, inserted=rows.num_rows))

    def rewrite(
        self,
        partition_path: str,
        previous: BaseFileName,
        stored: StoredRows,
        changes: Sequence[LogPart],
        inserts: pa.Table,
        token: WriteToken,
    ) -> WrittenFile:
        """Write the next base file of a file group.

        Args:
            partition_path: Where.
            previous: The base file that is superseded.
            stored: Its rows, or those that a change may touch and what stays of it.
            changes: Rows and deletes to lay over them; those whose key the file does not have are dropped.
            inserts: Rows to append, meta columns included.
            token: Of the task.
        """
        base, rules = stored.rows, self._rules
        merger = SliceMerger(fold_log_records(changes, self.schema, rules), rules, every_row=True)
        merged = merger.merge(base)
        name = BaseFileName(previous.file_id, str(token), self._instant)
        touched = [_keys_of(part) for part in changes] + ([inserts[KEY_COLUMN].combine_chunks()] if inserts.num_rows else [])
        # Rows that only name what to delete need not have all columns, and nothing is inserted with them.
        same_keys = not inserts.num_rows and _keeps_rows(merged, base, rules)
        full = with_file_name(with_inserts(merged, inserts), str(name)).unify_dictionaries()
        facts = row_changes(base, full, self._format.facts, touched, same_keys)
        known = self._known_keys(stored, merged, inserts)
        kept, anew = self._kept(stored, merger, same_rows=_keeps_rows(merged, base, rules))
        counts = (inserts.num_rows, merger.counts)
        written = self._write(_File(partition_path, name, full, facts, *counts, previous, known, kept, anew))
        return self._with_changes(written, base, full, str(token), self._instant)

    def _kept(
        self, stored: StoredRows, merger: SliceMerger, *, same_rows: bool
    ) -> tuple[KeptGroups | None, frozenset[str] | None]:
        """What stays of the superseded file, and the columns that change where others can stay as well."""
        kept, anew = stored.kept, frozenset(merger.anew)
        if kept is None:
            return None, None
        if same_rows and kept.columns_stay(anew, self._format.parquet):
            return kept, anew
        return (kept, None) if kept.numbers else (None, None)

    def _known_keys(self, stored: StoredRows, merged: pa.Table, inserts: pa.Table) -> KnownKeys | None:
        """The keys as the superseded file's filter tells them; None where that may have others."""
        if not self._format.populate or not _keeps_rows(merged, stored.rows, self._rules):
            return None
        return KnownKeys([FileKeys.of(stored.footer)], inserts[KEY_COLUMN])

    @property
    def captures_changes(self) -> bool:
        """Whether change files are written beside base files that supersede others."""
        return self._format.changes is not None

    def _with_changes(
        self, written: WrittenFile, before: pa.Table, after: pa.Table, token: str, instant: str | None
    ) -> WrittenFile:
        """The file together with its change file, where the table captures changes; `instant` as `changed_rows` takes it."""
        form = self._format.changes
        if form is None:
            return written
        compare = self._rules.partial_mode is not PartialUpdateMode.NONE
        changes = changed_rows(before, after, instant, compare=compare)
        place = (written.partition_path, written.file_id)
        in_task = self._format.in_task
        file = write_change_file(self._storage, self._instant, form, *place, token, changes, in_task=in_task)
        return replace(written, change_files=(file,))

    def write_compacted(
        self,
        file_slice: FileSlice,
        rows: pa.Table,
        merger: SliceMerger | None,
        token: WriteToken,
        sides: tuple[pa.Table, pa.Table] | None = None,
    ) -> WrittenFile:
        """Write the rows of a file slice as its next base file.

        Args:
            file_slice: Of the file group.
            rows: All rows, meta columns included, which they keep but for the file name.
            merger: What merged them, if columns of the base file may stay; None if they may not, or if that is not known.
            token: Of the task.
            sides: The rows of the base file and those of the slice, with their keys; None where no changes are captured.
        """
        previous = parse_base_file(file_slice.base_file) if file_slice.base_file else None
        name = BaseFileName(file_slice.file_id, str(token), self._instant)
        # Of a file without change file Apache Hudi's readers of changes ask that all rows are told as new.
        new = rows.num_rows if previous is None and self.captures_changes else 0
        file = _File(file_slice.partition_path, name, with_file_name(rows, str(name)), NO_CHANGE, new, previous=previous)
        written = self._write(file if merger is None else self._with_columns_kept(file, file_slice, merger))
        return written if sides is None else self._with_changes(written, *sides, str(token), None)

    def _with_columns_kept(self, file: _File, file_slice: FileSlice, merger: SliceMerger) -> _File:
        """A file to write with the columns that stay; as it is where none do, or where rows of the base file are gone."""
        path = file_slice.base_path
        if path is None or not path.endswith(_PARQUET) or merger.counts.deleted or self._rules.merger is not None:
            return file
        found = KeptGroups.of_all_rows(self._storage, path, file_slice.base_size, self.schema)
        if found is None or not found[0].columns_stay(merger.anew, self._format.parquet):
            return file
        kept, footer = found
        known = KnownKeys([FileKeys.of(footer)], file.rows[KEY_COLUMN].slice(sum(kept.rows)))
        return replace(file, known=known, kept=kept, anew=frozenset(merger.anew))

    def write_clustered(self, partition_path: str, file_id: str, rows: pa.Table, token: WriteToken) -> WrittenFile:
        """Write rows that other file groups held as the first base file of a new one.

        Args:
            partition_path: Where.
            file_id: Of the new file group.
            rows: With meta columns, which they keep but for the file name.
            token: Of the task.
        """
        name = BaseFileName(file_id, str(token), self._instant)
        moved = KeyChanges(added=single_array(rows[KEY_COLUMN])) if self._format.facts.keys else None
        full, facts = with_file_name(rows, str(name)), FileFacts(moved)
        return self._write(_File(partition_path, name, full, facts, inserted=rows.num_rows))

    def write_kept(self, partition_path: str, file_id: str, rows: pa.Table, token: WriteToken) -> WrittenFile:
        """Write what is left of the rows of a file group as the first base file of one that takes its place.

        Arguments are those of `write_clustered`; of these rows every index hears.
        """
        name = BaseFileName(file_id, str(token), self._instant)
        full = with_file_name(rows, str(name))
        facts = row_changes(None, full, self._format.facts)
        return self._write(_File(partition_path, name, full, facts, inserted=rows.num_rows))

    def write_copied(self, partition_path: str, file_id: str, files: CopiedFiles, token: WriteToken) -> WrittenFile:
        """Write the row groups of base files of other file groups, as they are, as the first base file of a new one.

        Arguments are those of `write_clustered`.
            files: The base files.
        """
        name, form = BaseFileName(file_id, str(token), self._instant), self._format
        with marked_output(self._storage, self._instant, _marker(partition_path, name), in_task=form.in_task) as stream:
            written = files.write(stream, str(name), form.avro_schema, form.parquet.bloom, form.statistics)
        moved = KeyChanges(added=single_array(files.keys)) if form.facts.keys else None
        rows = files.columns([wanted.column for wanted in form.facts.expressions])
        return self._recorded(_File(partition_path, name, rows, FileFacts(moved), inserted=written.rows), written)

    def _write(self, file: _File) -> WrittenFile:
        marker = _marker(file.partition_path, file.name, merges=file.previous is not None)
        form, name = self._format, str(file.name)
        stored = as_stored(file.rows if form.populate else hide_meta_columns(file.rows, file_name=True), form.avro_schema)
        with marked_output(self._storage, self._instant, marker, in_task=form.in_task) as stream:
            if file.kept is not None:
                how = (form.avro_schema, form.parquet, form.statistics, file.known, file.anew)
                written = file.kept.write(stream, stored, name, *how)
            else:
                written = write_base_file(
                    stream,
                    stored,
                    avro_schema=form.avro_schema,
                    settings=form.parquet,
                    bounds_of=form.statistics,
                    known=file.known,
                    name=name,
                )
        return self._recorded(file, written)

    def _recorded(self, file: _File, written: BaseFileSummary) -> WrittenFile:
        partition_path, name, previous = file.partition_path, str(file.name), file.previous
        if previous is None:  # else the partition has its metafile from the first file of the group
            mark_partition(self._storage, self._instant, partition_path)
        statistics = file_statistics(written.bounds, partition_path, name, self._format.regime, written.column_bytes)
        return WrittenFile(
            partition_path,
            file.name.file_id,
            name,
            written.size,
            written.rows,
            file.inserted,
            file.merged.updated,
            file.merged.deleted,
            statistics,
            str(previous) if previous else None,
            previous.instant if previous else None,
            outdated=file.merged.outdated,
            groups_kept=0 if file.kept is None else len(file.kept.numbers),
            chunks_kept=0 if file.kept is None or file.anew is None else file.kept.chunks_that_stay(file.anew, len(file.rows)),
            facts=self._with_bloom(
                self._with_expressions(file.facts, file.rows, partition_path, name, written.size), written.footer
            ),
        )

    def _with_bloom(self, facts: FileFacts, footer: ParquetFooter) -> FileFacts:
        text = footer.bloom_text if self._format.facts.bloom else None
        return facts if text is None else replace(facts, bloom=(footer.key_value.get(BLOOM_TYPE_KEY, "SIMPLE"), text))

    def _with_expressions(self, facts: FileFacts, rows: pa.Table, partition_path: str, name: str, size: int) -> FileFacts:
        wanted = self._format.facts.expressions
        return replace(facts, expressions=expression_records(wanted, rows, partition_path, name, size)) if wanted else facts


def _marker(partition_path: str, name: BaseFileName, *, merges: bool = False) -> Marker:
    return Marker(join(partition_path, str(name)), MarkerKind.MERGE if merges else MarkerKind.CREATE)
