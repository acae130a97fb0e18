"""Reads several stretches of one file in few requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hudimeta.errors import CorruptFileError
from hudimeta.formats.hfile.range_reader import RangeReader

__all__ = ["SpanReader"]

_SMALL_FILE = 1 << 20
_TAIL_MIN = 64 << 10
_TAIL_MAX = 8 << 20
_TAIL_SHARE = 256
"""The tail read is this fraction of the file: an index entry takes about 40 packed bytes of a block of about 20 KB."""
_MAX_GAP = 32 << 10
_MAX_REQUEST = 64 << 20


class SpanReader:
    """Serves stretches of a file from a tail that the first read brings, and from merged requests.

    A file of at most 1 MiB is read whole at once. Of a larger one the tail is read first. Stretches at most 32 KiB apart are
    fetched by one request: the bytes between cost less than another round trip.

    Args:
        source: The file.
        path: For errors.

    Attributes:
        size: Bytes of the file.
    """

    def __init__(self, source: RangeReader, path: str) -> None:
        self.size = source.size
        self._source = source
        self._path = path
        self._held_from = self.size
        self._held = memoryview(b"")

    def read_many(self, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        """The bytes of each (offset, length), in the order asked; ascending offsets merge best.

        Raises:
            CorruptFileError: The file ends before a stretch does.
        """
        if not spans:
            return []
        for offset, length in spans:
            if offset < 0 or length < 0 or offset + length > self.size:
                raise CorruptFileError(self._path, offset, f"{length} bytes", f"{max(self.size - offset, 0)} to the end")
        if self._held_from == self.size:
            self._read_tail()
        result: list[memoryview] = [memoryview(b"")] * len(spans)
        groups = self._merged(spans)
        stretches = [(spans[group[0]][0], max(sum(spans[i]) for i in group)) for group in groups]
        for group, (begin, _), data in zip(groups, stretches, self._stretches(stretches), strict=True):
            for i in group:
                offset, length = spans[i]
                result[i] = data[offset - begin : offset - begin + length]
        return result

    def _merged(self, spans: Sequence[tuple[int, int]]) -> list[list[int]]:
        groups: list[list[int]] = []
        begin = end = -1
        for i in sorted(range(len(spans)), key=lambda i: spans[i]):
            offset, length = spans[i]
            near = groups and offset <= end + _MAX_GAP and offset + length - begin <= _MAX_REQUEST
            # What the tail holds needs no request, so it must not be fetched along with what it does not hold.
            if near and (begin >= self._held_from) == (offset >= self._held_from):
                groups[-1].append(i)
                end = max(end, offset + length)
            else:
                groups.append([i])
                begin, end = offset, offset + length
        return groups

    def _stretches(self, wanted: Sequence[tuple[int, int]]) -> Iterator[memoryview]:
        """The bytes between each (begin, end), from the tail where it has them."""
        held_from = self._held_from
        missing = iter(self._requests([(begin, min(end, held_from)) for begin, end in wanted if begin < held_from]))
        for begin, end in wanted:
            if begin >= held_from:
                yield self._held[begin - held_from : end - held_from]
            elif end <= held_from:
                yield next(missing)
            else:
                yield memoryview(b"".join((next(missing), self._held[: end - held_from])))

    def _read_tail(self) -> None:
        tail = self.size
        if self.size > _SMALL_FILE:
            tail = min(max(self.size // _TAIL_SHARE, _TAIL_MIN), _TAIL_MAX)
        (self._held,) = self._requests([(self.size - tail, self.size)])
        self._held_from = self.size - tail

    def _requests(self, wanted: Sequence[tuple[int, int]]) -> list[memoryview]:
        found = [memoryview(data) for data in self._source.read_all([(begin, end - begin) for begin, end in wanted])]
        for (begin, end), data in zip(wanted, found, strict=True):
            if len(data) != end - begin:
                raise CorruptFileError(self._path, begin + len(data), f"{end - begin} bytes from byte {begin}", f"{len(data)}")
        return found
