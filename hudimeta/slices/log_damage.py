"""Telling damage of a log file from what a writer that died has left in it.

From table version 8 on, a write makes log files of its own, which nobody touches any more once it is completed: their size is
stated, each of their blocks bears the instant of the file's name, and bytes that are no block are damage. In version 6 the
writes on a slice append to one another's files, and a dead one leaves a torn block between whole ones; so it is with files that
an upgraded table keeps from then. Which bytes completed writes stand for is known from their commits, which are read only when
there are bytes that nobody can read. They also tell of a file that no commit names: what an attempt at a task has left that
was begun again, where storage is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from hudimeta.errors import CorruptFileError
from hudimeta.formats.log import CorruptSpan, LogScan, read_blocks
from hudimeta.storage import Storage
from hudimeta.table.file_names import LogFileName, parse_log_file

__all__ = ["LogFileRules", "read_log_file"]

_LAST_APPENDING_VERSION = 6


@dataclass(frozen=True)
class LogFileRules:
    """What the log files of one table have to be like.

    Attributes:
        storage: Rooted at the table.
        appended: Writes append to one another's files, which therefore may be larger than known.
    """

    storage: Storage
    appended: bool = False

    @staticmethod
    def of(storage: Storage, properties: Mapping[str, str]) -> LogFileRules:
        """Of a table with these properties."""
        version = properties.get("hoodie.table.version", "")
        return LogFileRules(storage, version.isdigit() and int(version) <= _LAST_APPENDING_VERSION)

    def checked(self, path: str, size: int, read: Callable[[], LogScan]) -> LogScan:
        """What is in a log file; nothing but a span of damage where it is damaged, and its instant's commit does not name it.

        Args:
            path: Of the file.
            size: In bytes.
            read: Finds its blocks.

        Raises:
            CorruptFileError: Damage, or blocks of another file.
        """
        try:
            scan = read()
            self.check(path, scan)
        except CorruptFileError:
            if not self._is_left_over(path):
                raise
            return LogScan([], [CorruptSpan(path, 0, size, "damaged, but named by no commit")])
        return scan

    def _is_left_over(self, path: str) -> bool:
        name = parse_log_file(path.rpartition("/")[2])
        return not self.appended and name is not None and _is_named_by_none(self.storage, name)

    def check(self, path: str, scan: LogScan) -> None:
        """Refuse a log file that is not what completed writes wrote.

        Args:
            path: Of the file.
            scan: What is in it.

        Raises:
            CorruptFileError: Damage, or blocks of another file.
        """
        name = parse_log_file(path.rpartition("/")[2])
        if name is None:
            raise CorruptFileError(path, 0, "the name of a log file", path.rpartition("/")[2])
        shared = self.appended or self._has_several_writers(name, scan)
        lost = [span for span in scan.corrupt if not span.is_past_end]
        if not scan.blocks and not lost and not self.appended:
            raise CorruptFileError(path, 0, "log blocks", "an empty file")
        if not lost:
            return
        written = list(_written_ranges(self.storage, name))
        for span in lost:
            # Of an archived write nothing is known any more; where there was no other writer it must have been whole.
            known = written or ([] if shared else [(0, span.offset + 1)])
            if any(start < span.offset + span.size and span.offset < end for start, end in known):
                raise CorruptFileError(path, span.offset, "a block of a completed write", span.reason)

    def _has_several_writers(self, name: LogFileName, scan: LogScan) -> bool:
        """Whether blocks of later writes stand in the file; none can be of an earlier one."""
        for block in scan.blocks:
            if block.instant < name.instant:
                raise block.damaged(f"a block of a write since {name.instant}", f"one of {block.instant}")
        return any(block.instant > name.instant for block in scan.blocks)


def read_log_file(rules: LogFileRules, path: str, size: int) -> LogScan:
    """Read a log file of completed writes and cut it into blocks.

    Args:
        rules: Of the table.
        path: Of the file.
        size: Bytes that it has as the listing says; 0 when unknown.

    Returns:
        Its blocks. Spans that are no blocks are what a dead writer left.

    Raises:
        CorruptFileError: Damage.
        NotFound: It is gone.
        UnsupportedFeature: A block that cannot be read.
    """
    data = rules.storage.read(path)
    if len(data) < size:
        raise CorruptFileError(path, len(data), f"the {size} bytes that the table states", f"the file's end after {len(data)}")
    return rules.checked(path, len(data), lambda: read_blocks(data, path, None if rules.appended else size))


def _is_named_by_none(storage: Storage, name: LogFileName) -> bool:
    """Whether no write of the active timeline, that of a log file's instant among them, says that it wrote the file."""
    from hudimeta.table import properties as table_properties

    timeline = table_properties.load(storage).load_timeline(storage)
    timeline.prefetch(timeline.writes)
    said = {i.time: timeline.metadata(i).get("partitionToWriteStats") or {} for i in timeline.writes}
    paths = {time: [stat.get("path") for of in stats.values() for stat in of] for time, stats in said.items()}
    own = paths.get(name.instant, [])
    # A commit that does not say where its files are knows nothing of this one.
    named = {(path or "").rpartition("/")[2] for some in paths.values() for path in some}
    return bool(own) and None not in own and str(name) not in named


def _written_ranges(storage: Storage, name: LogFileName) -> Iterator[tuple[int, int]]:
    """First byte, and the one after the last, of what each completed write of the active timeline put into a log file."""
    from hudimeta.table import properties as table_properties

    timeline = table_properties.load(storage).load_timeline(storage)
    timeline.prefetch(timeline.writes)
    for instant in timeline.writes:
        for stats in (timeline.metadata(instant).get("partitionToWriteStats") or {}).values():
            for stat in stats:
                if (stat.get("path") or "").rpartition("/")[2] == str(name):
                    size, start = stat.get("fileSizeInBytes") or 0, stat.get("logOffset")
                    if start is None:
                        start = max(size - (stat.get("totalWriteBytes") or size), 0)
                    yield start, size if size > start else start + size
