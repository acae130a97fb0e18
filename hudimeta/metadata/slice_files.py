"""Reading base and log files of the metadata table: each once, several at a time, decoded by whoever asks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import pyarrow as pa

from hudimeta.errors import CorruptFileError, MetadataFileMissing, NotFound
from hudimeta.formats.hfile import HFileReader, KeyValues, StorageRange
from hudimeta.metadata.group_files import NAME_KEY, GroupBaseFile, LogFile
from hudimeta.metadata.kept import MOST_LOGS, SMALL_BYTES, SMALL_LOG_BYTES, Kept, keep
from hudimeta.metadata.log_entries import LogEntry, read_entries
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import Storage, join
from hudimeta.storage.at_once import at_once, files_at_once

__all__ = ["Batches", "Decode", "Select", "SliceFiles", "shown"]

Decode: TypeAlias = Callable[[KeyValues, str, str], pa.Table]
"""Cells, schema text and path to a table."""

Select: TypeAlias = Callable[[HFileReader], KeyValues]
"""Which records of a file are wanted."""

TOGETHER_BYTES = 1 << 20
SCAN_BYTES, FETCH_BYTES = 4 << 20, 64 << 20
"""Of a large base file so much is unpacked at a time, and so much fetched: requests cost more than packed bytes in memory."""
LARGE_BYTES, PIECE_BYTES = 4 << 20, 16 << 20
"""A base file beyond the first is read in pieces that unpack to the second; decoding takes some times as much."""


Batches: TypeAlias = Callable[[HFileReader], Iterable[KeyValues]]
"""The same, some of them at a time."""


def _whole(reader: HFileReader) -> Iterator[KeyValues]:
    return reader.scan_batches(PIECE_BYTES, FETCH_BYTES)


class SliceFiles:
    """The files of one metadata table; keeps what it opened, because they never change.

    Args:
        storage: Rooted at the metadata table.
        torn_tails: Accept unfinished blocks at the end of log files (version 6).
        kept: What was read for earlier moments; None keeps nothing for later ones.
        counts: Whether an instant is completed. Logs of others may be written anew.
    """

    def __init__(
        self,
        storage: Storage,
        torn_tails: bool = False,
        kept: Kept | None = None,
        counts: Callable[[str], bool] = lambda _: False,
    ) -> None:
        # Log files of version 6 may be appended to.
        self._kept = None if torn_tails else kept
        self._storage, self._torn_tails, self._counts = storage, torn_tails, counts
        self._bases: dict[str, HFileReader] = {}
        self._logs: dict[str, list[LogEntry]] = {}

    def follow(self, earlier: SliceFiles, counted: Callable[[str], bool]) -> None:
        """Take over what was opened for an earlier moment of the same metadata table.

        Args:
            earlier: What was opened.
            counted: Whether an instant was completed then. Logs of others may have been written anew since.
        """
        self._bases |= earlier._bases
        logs = earlier._logs.copy()  # another thread may be reading by the earlier moment just now
        self._logs |= {path: found for path, found in logs.items() if all(counted(entry.instant) for entry in found)}

    def base(self, file: GroupBaseFile) -> HFileReader:
        """A base file, opened: one request, which brings a file of at most 1 MiB whole."""
        if file.path not in self._bases:
            self._bases[file.path] = self._kept_base(file) or self._opened(file)
        return self._bases[file.path]

    def _kept_base(self, file: GroupBaseFile) -> HFileReader | None:
        found = self._kept.bases.get(file.path) if self._kept is not None else None
        return found if found is not None and found.size == file.size else None

    def _opened(self, file: GroupBaseFile) -> HFileReader:
        path = shown(file.path)
        with _telling_what_is_gone():
            reader = HFileReader(StorageRange(self._storage, file.path, file.size, path), path)
        check_name(reader, path)
        if self._kept is not None and reader.size <= SMALL_BYTES:
            keep(self._kept.bases, file.path, reader)
        return reader

    def entries(self, logs: Sequence[LogFile]) -> list[LogEntry]:
        """What some log files say, in the order given; one request for each that was not read before."""
        self.prefetch(logs)
        return [entry for log in logs for entry in self._logs[log.path]]

    def prefetch(self, logs: Iterable[LogFile]) -> None:
        """Read log files at once."""
        missing = {log.path: log.size for log in logs if log.path not in self._logs}
        if self._kept is not None:
            self._logs |= {path: found for path in missing if (found := self._kept.logs.get(path)) is not None}
        sizes = {path: size for path, size in missing.items() if path not in self._logs}
        with _telling_what_is_gone():
            read = at_once(self._storage.read, list(sizes), self._storage)
        for path, data in zip(sizes, read, strict=True):
            found = self._logs[path] = read_entries(data, shown(path), self._torn_tails, sizes[path])
            if self._kept is not None and len(data) <= SMALL_LOG_BYTES and all(self._counts(entry.instant) for entry in found):
                keep(self._kept.logs, path, found, MOST_LOGS)

    def is_large(self, file: GroupBaseFile) -> bool:
        """Whether a base file is better read in pieces."""
        return (file.size if file.size is not None else self.base(file).size) > LARGE_BYTES

    def open_bases(self, files: Iterable[GroupBaseFile]) -> None:
        """Open base files at once."""
        at_once(self.base, [file for file in files if file.path not in self._bases], self._storage)

    def scan(self, file: GroupBaseFile, decode: Decode) -> pa.Table:
        """All records of a base file; of a large one some at a time, so that their bytes are never in memory all at once."""
        reader, path = self.base(file), shown(file.path)
        schema = schema_of(reader, path)
        with _telling_what_is_gone():
            tables = [decode(cells, schema, path) for cells in reader.scan_batches(SCAN_BYTES, FETCH_BYTES)]
        return pa.concat_tables(tables) if tables else decode(KeyValues.empty(), schema, path)

    def pieces(self, file: GroupBaseFile, decode: Decode, batches: Batches = _whole) -> Iterator[pa.Table]:
        """Records of a base file in the order of their keys, some mebibytes at a time.

        Args:
            file: The base file.
            decode: Makes tables of them.
            batches: Which are wanted; all of them if not given.

        Raises:
            CorruptFileError: Keys are in no order.
        """
        reader, path = self.base(file), shown(file.path)
        schema = schema_of(reader, path)
        for cells in self._in_order(reader, path, batches):
            yield decode(cells, schema, path)

    @staticmethod
    def _in_order(reader: HFileReader, path: str, batches: Batches) -> Iterator[KeyValues]:
        last = None
        with _telling_what_is_gone():
            for cells in batches(reader):
                if len(cells):
                    _check_order(cells.keys, last, path)
                    last = cells.keys[-1]
                    yield cells

    def cells(
        self, file: GroupBaseFile, live: Callable[[KeyValues, str, str], KeyValues], schema_text: str
    ) -> Iterator[KeyValues]:
        """Records of a base file as they are written by a schema, in the order of their keys, some mebibytes at a time.

        What we wrote by it is taken as it is: no record there says that it is deleted, as some of Apache Hudi's do.

        Args:
            file: The base file.
            live: From cells, schema text and path to the same records as they are to be, without deleted ones.
            schema_text: The schema.
        """
        reader, path = self.base(file), shown(file.path)
        schema = schema_of(reader, path)
        ours = NAME_KEY in reader.file_info and schema == schema_text
        for cells in self._in_order(reader, path, _whole):
            yield cells if ours else live(cells, schema, path)

    def lookup(self, file: GroupBaseFile, keys: list[bytes], decode: Decode) -> pa.Table:
        """The records of some keys (sorted, unique) of a base file."""
        return self.select(file, lambda reader: reader.lookup(keys), decode)

    def select(self, file: GroupBaseFile, select: Select, decode: Decode) -> pa.Table:
        """Some records of a base file."""
        reader, path = self.base(file), shown(file.path)
        with _telling_what_is_gone():
            return decode(select(reader), schema_of(reader, path), path)

    def selected(self, chosen: Sequence[tuple[GroupBaseFile, Select]], decode: Decode) -> list[pa.Table]:
        """Some records of each of several base files, in order."""
        return files_at_once(lambda one: self.select(*one, decode), chosen, self._storage)

    def decode(self, entries: Sequence[LogEntry], decode: Decode, select: Select = HFileReader.scan) -> Iterator[pa.Table]:
        """Some records of log entries that have any, in their order.

        Logs of a few records are usual, and decoding takes as long for one as for a thousand: small ones go together.

        Yields:
            A table for each entry.
        """
        for schema, run in groupby(entries, lambda entry: schema_of(_reader_of(entry), entry.path)):
            waiting: list[tuple[KeyValues, str]] = []
            for entry in run:
                cells = select(_reader_of(entry))
                waiting.append((cells, entry.path))
                if sum(part.values.nbytes for part, _ in waiting) > TOGETHER_BYTES:
                    yield from _decoded(waiting, schema, decode)
                    waiting = []
            yield from _decoded(waiting, schema, decode)


def _check_order(keys: pa.Array, before: pa.Scalar | None, path: str) -> None:
    """Refuse keys in no order, or not after the last key of the piece before."""
    import pyarrow.compute as pc

    ordered = pc.all(pc.less(keys[:-1], keys[1:]), min_count=0).as_py()
    if not ordered or (before is not None and not before.as_py() < keys[0].as_py()):
        raise CorruptFileError(path, 0, "records in the order of their keys, each key once", "others")


def _reader_of(entry: LogEntry) -> HFileReader:
    if entry.reader is None:
        raise ValueError("the log entry holds no records")
    return entry.reader


def _decoded(parts: Sequence[tuple[KeyValues, str]], schema: str, decode: Decode) -> Iterator[pa.Table]:
    """Cells of several files, each with its path, decoded at once, a row a cell; an error names the file that it is in."""
    if len(parts) < 2:
        yield from (decode(cells, schema, path) for cells, path in parts)
        return
    try:
        whole = decode(KeyValues.concat([cells for cells, _ in parts]), schema, parts[0][1])
    except CorruptFileError:
        yield from (decode(cells, schema, path) for cells, path in parts)
        return
    start = 0
    for cells, _ in parts:
        yield whole.slice(start, len(cells))
        start += len(cells)


@contextlib.contextmanager
def _telling_what_is_gone() -> Iterator[None]:
    """A file that is gone inside the with block raises MetadataFileMissing, which says what it was of and what can be done."""
    try:
        yield
    except NotFound as error:
        raise MetadataFileMissing(shown(error.path), error.path.partition("/")[0]) from error


def shown(path: str) -> str:
    """A path as the user knows it, below the data table."""
    return join(METADATA_ROOT, path)


def check_name(reader: HFileReader, path: str) -> None:
    """Refuse a base file of ours that was written under another name: an older one, or one of another file group."""
    stated = reader.file_info.get(NAME_KEY)
    name = path.rpartition("/")[2]
    if stated is not None and stated != name.encode():
        raise CorruptFileError(path, 0, f"the file {name}", f"the content of {stated.decode(errors='replace')}")


def schema_of(reader: HFileReader, path: str) -> str:
    """The schema that a file embeds.

    Raises:
        CorruptFileError: It embeds none, so that its values cannot be read.
    """
    if reader.schema_text is None:
        raise CorruptFileError(path, 0, "an Avro schema in the file info", "none")
    return reader.schema_text
