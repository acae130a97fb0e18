"""The log files of a slice: read whole while they fit, else outlined and then read again block by block."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from hudimeta.engine.machine import pool
from hudimeta.errors import CorruptFileError
from hudimeta.formats.log import LogBlock, LogScan, outline, outline_blocks, read_block
from hudimeta.slices.log_damage import LogFileRules, read_log_file
from hudimeta.slices.log_records import SliceLog
from hudimeta.storage.at_once import is_nearby
from hudimeta.table.file_names import parse_log_file

if TYPE_CHECKING:
    from hudimeta.snapshot.file_slice import FileSlice

__all__ = ["LogFiles"]

_PARALLEL = 8
_PARALLEL_FAR = 16
"""Of a far-away store, while all files fit: there are seldom more between two compactions, so that they wait once."""
_WALKED = 1 << 20
"""Files of more bytes are walked by ranges once it is known that a slice does not fit; smaller ones are read whole."""


class LogFiles:
    """Reads log files of one table. Not for several threads at once.

    Args:
        rules: Of the table.
        limit: Bytes of a slice's log files that are held.
    """

    def __init__(self, rules: LogFileRules, limit: int) -> None:
        self._rules, self._storage, self._limit = rules, rules.storage, limit

    def of(self, file_slice: FileSlice) -> list[SliceLog]:
        """The slice's log files in the order of their names in the slice.

        Raises:
            CorruptFileError: Damage, or a file that is not named as a log file.
            NotFound: A file is gone.
        """
        names = []
        for name, path in zip(file_slice.log_files, file_slice.log_paths, strict=True):
            parsed = parse_log_file(name)
            if parsed is None:
                raise CorruptFileError(path, 0, "the name of a log file", name)
            names.append(parsed)
        files = list(zip(file_slice.log_paths, file_slice.log_sizes, strict=True))
        scans = [self._whole(*files[0])] if len(files) == 1 and files[0][1] <= self._limit else self._scans(files)
        return [SliceLog(name, scan) for name, scan in zip(names, scans, strict=True)]

    def _scans(self, files: Sequence[tuple[str, int]]) -> list[LogScan]:
        """Files in batches, so that never more contents wait than a batch has; sizes that are not known are 0."""
        scans: list[LogScan] = []
        fits, held = sum(size for _, size in files) <= self._limit, 0
        together = _PARALLEL_FAR if fits and not is_nearby(self._storage) else _PARALLEL
        with pool(min(together, len(files)), "logs") as threads:
            for at in range(0, len(files), together):
                batch = files[at : at + together]
                read = self._whole if fits else self._walked
                found = list(threads.map(read, *zip(*batch, strict=True)))
                held += sum(len(block.content) for scan in found for block in scan.blocks)
                scans += found
                fits = fits and held <= self._limit
                if not fits:
                    scans = [outline(scan) for scan in scans]
        return scans

    def _whole(self, path: str, size: int) -> LogScan:
        return read_log_file(self._rules, path, size)

    def _walked(self, path: str, size: int) -> LogScan:
        found = None
        if size > _WALKED:
            with contextlib.suppress(CorruptFileError):  # read whole, it may prove to be nobody's
                found = outline_blocks(lambda offset, length: self._storage.read_range(path, offset, length), size, path)
        if found is None:
            return outline(read_log_file(self._rules, path, size))
        whole = found
        return self._rules.checked(path, size, lambda: whole)

    def with_contents(self, blocks: Sequence[LogBlock]) -> Iterator[LogBlock]:
        """The blocks, in their order, with the contents of those that are outlined, by whomever; a few are read ahead."""
        if not any(block.outlined for block in blocks):
            yield from blocks
            return
        waiting: deque[tuple[int, Future[LogBlock]]] = deque()
        ahead = 0
        with pool(_PARALLEL, "blocks") as threads:
            for block in blocks:
                while waiting and (ahead + block.size > self._limit // 4 or len(waiting) > _PARALLEL):
                    size, oldest = waiting.popleft()
                    ahead -= size
                    yield oldest.result()
                waiting.append((block.size, threads.submit(self._again, block)))
                ahead += block.size
            while waiting:
                yield waiting.popleft()[1].result()

    def _again(self, block: LogBlock) -> LogBlock:
        if not block.outlined:
            return block
        return read_block(self._storage.read_range(block.path, block.offset, block.size), block)
