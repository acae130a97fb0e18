"""What a write must know of the rows of one file slice: their keys, and the ordering values of some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.formats.log import BlockType, KeyProbe, LogBlock
from hudimeta.formats.parquet import read_key_column
from hudimeta.formats.plain_arrays import array_of, numpy_of, single_array
from hudimeta.keys import KeyGenerator
from hudimeta.slices.log_damage import LogFileRules, read_log_file
from hudimeta.slices.log_keys import LogKeys
from hudimeta.slices.log_parts import deletes_of, rows_of
from hudimeta.slices.merge_rules import KEY_COLUMN
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import parse_base_file
from hudimeta.table.key_file import KeyFile

__all__ = [
    "SliceKeys",
    "read_live_keys",
    "read_ordering",
    "rows_may_be_in",
    "slice_of",
    "touched_keys",
    "with_virtual_keys",
]


@dataclass(frozen=True)
class SliceKeys:
    """Reads the keys of file slices of one table that stores them.

    Args:
        storage: Rooted at the table.
        false_positives: Share of foreign keys that what log files tell of their keys lets pass; None not to ask them.
    """

    storage: Storage
    false_positives: float | None = None

    def __call__(self, file: KeyFile, wanted: pa.StringArray | None) -> pa.StringArray | None:
        """Keys of the base file and of rows in log files; deleted ones may be among them, which does no harm.

        Args:
            file: The slice.
            wanted: Keys that are looked for: of log files that surely have none of them, or none but those of the base file, no
                keys are read. None for all keys that are there.

        Returns:
            None when nothing that is known of the files lets a wanted key be there.
        """
        found = None
        if file.name:
            path = join(file.partition_path, file.name)
            with self.storage.open_input(path) as source:
                found = read_key_column(source, KEY_COLUMN, wanted, path, file.size)
        logs = dict(zip(file.logs, file.log_sizes, strict=True))
        if wanted is not None and self.false_positives is not None:
            missing = None if found is None else ~_is_in(wanted, found)
            names = self._logs.touching(file.partition_path, logs, self._probe(wanted), missing)
            logs = {name: logs[name] for name in names}
        if not logs:
            return found
        parts = [found] if found is not None else []
        parts += [self._keys_of_rows(join(file.partition_path, name), size) for name, size in logs.items()]
        return pa.concat_arrays([array_of([], pa.string()), *parts])

    def touched_by_logs(self, file: KeyFile, wanted: pa.StringArray, found: pa.StringArray) -> bool:
        """False when the log files of a slice surely neither change nor delete any of the wanted keys that were found."""
        there = _is_in(wanted, found)
        if self.false_positives is None or not there.any():
            return bool(there.any())
        logs = dict(zip(file.logs, file.log_sizes, strict=True))
        return bool(self._logs.touching(file.partition_path, logs, self._probe(wanted), there))

    def _probe(self, wanted: pa.StringArray) -> KeyProbe:
        """Keys that are looked for in several slices, hashed once."""
        last = self._last.get("probe")
        if last is None or last.keys is not wanted:
            last = self._last["probe"] = KeyProbe(wanted)
        return last

    @cached_property
    def _last(self) -> dict[str, KeyProbe]:
        return {}

    @cached_property
    def _logs(self) -> LogKeys:
        return LogKeys(self.storage)

    def _keys_of_rows(self, path: str, size: int) -> pa.StringArray:
        """Keys of the rows of a log file: of ours the key column alone is read, any other is remembered."""
        tail = self._logs.tail(path, size) if self.false_positives is not None and size else None
        if tail is not None and tail.rows:
            column = tail.read_column(KEY_COLUMN, partial(self.storage.read_range, path))
            return single_array(column).cast(pa.string())
        blocks = read_log_file(LogFileRules(self.storage), path, size).blocks
        rows = _of_rows(blocks)
        if self.false_positives is not None and tail is None:
            self._logs.remember(path, size, pa.concat_arrays([rows, _of_deletes(blocks)]), self.false_positives)
        return rows


def touched_keys(storage: Storage, path: str, size: int) -> pa.StringArray:
    """Keys of all rows that a log file changes or deletes.

    Args:
        storage: Rooted at the table, which stores record keys.
        path: Of the log file.
        size: Its bytes.
    """
    blocks = read_log_file(LogFileRules(storage), path, size).blocks
    return pa.concat_arrays([_of_rows(blocks), _of_deletes(blocks)])


def _is_in(keys: pa.StringArray, others: pa.StringArray) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = numpy_of(pc.is_in(keys, value_set=others))
    return mask


def _of_rows(blocks: Sequence[LogBlock]) -> pa.StringArray:
    """Keys of the rows in blocks."""
    parts = [single_array(rows_of(b, [KEY_COLUMN])[KEY_COLUMN]).cast(pa.string()) for b in blocks if b.type.holds_records]
    return pa.concat_arrays([array_of([], pa.string()), *parts])


def _of_deletes(blocks: Sequence[LogBlock]) -> pa.StringArray:
    """Keys that blocks delete."""
    deletes = [deletes_of(block)["record_key"] for block in blocks if block.type is BlockType.DELETE]
    return pa.concat_arrays([array_of([], pa.string()), *(single_array(keys).cast(pa.string()) for keys in deletes)])


def slice_of(file: KeyFile) -> FileSlice:
    """The file slice that a reader merges."""
    base = parse_base_file(file.name)
    began = base.instant if base is not None else ""
    return FileSlice(file.partition_path, file.file_id, began, file.name or None, file.size, file.logs, file.log_sizes)


def rows_may_be_in(files: Sequence[KeyFile]) -> Iterator[KeyFile]:
    """Where to look for any row: the base files first, each alone, and only then whole slices, whose logs must be merged."""
    yield from (replace(file, logs=(), log_sizes=()) for file in files if file.name)
    yield from (file for file in files if file.logs)


def read_live_keys(stored: SliceKeys, rows: SliceRows, file: KeyFile, wanted: pa.StringArray | None) -> pa.StringArray | None:
    """As `SliceKeys`, without keys that log files have deleted.

    Args:
        stored: Reads what the files have.
        rows: Merges slices; asked only where the slice has a wanted key that its log files may touch.
        file: The slice.
        wanted: Keys that are looked for; None for all that are there.
    """
    found = stored(file, wanted)
    if found is None or not file.logs:
        return found
    if wanted is not None and not stored.touched_by_logs(file, wanted, found):
        return found
    return single_array(rows.columns(slice_of(file), ())[KEY_COLUMN])


def with_virtual_keys(rows: pa.Table, generator: KeyGenerator) -> pa.Table:
    """Rows with the record keys that their table does not store."""
    at = rows.schema.get_field_index(KEY_COLUMN)
    return rows.set_column(at, rows.schema.field(at), generator.record_keys(rows))


def read_ordering(
    rows: SliceRows, fields: Sequence[str], virtual: KeyGenerator | None, file: KeyFile, wanted: pa.StringArray
) -> tuple[pa.Array, ...]:
    """Ordering values of keys in one file slice.

    Args:
        rows: Reads slices of the table.
        fields: Ordering fields; () gives ().
        virtual: Makes keys that are not stored.
        file: The slice.
        wanted: The keys.

    Returns:
        One array a field, in the order of `wanted`; null for a key that the slice does not have any more.
    """
    if not fields:
        return ()
    found = rows.columns(slice_of(file), (*fields, *(() if virtual is None else virtual.record_fields)))
    if virtual is not None:
        found = with_virtual_keys(found, virtual)
    at = pc.index_in(wanted, value_set=single_array(found[KEY_COLUMN]))
    values = []
    for field in fields:
        head, *rest = field.split(".")
        column = pc.struct_field(found[head], rest) if rest else found[head]
        values.append(single_array(column).take(at))
    return tuple(values)
