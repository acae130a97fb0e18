"""Slices of a far-away store are read ahead: each takes some requests, one after the other, that mostly wait.

What comes out is in the order of the slices, whoever is ready first. Memory stays bounded twice: slices are begun only as long
as their files are small together, and whoever is ahead pauses while what it has read waits to be taken.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from hudimeta.slices.reader import ReadCounts
from hudimeta.storage.at_once import PARALLEL_FILES

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.snapshot.file_slice import FileSlice

    Read: TypeAlias = Callable[[FileSlice, ReadCounts], Iterator[pa.Table]]

__all__ = ["AHEAD_BYTES", "WAITING_BYTES", "read_ahead"]

AHEAD_BYTES: Final = 64 << 20
"""Of files as they are stored that are begun at a time; a larger one is begun alone."""
WAITING_BYTES: Final = 64 << 20
"""Of rows in memory that wait to be taken."""


def read_ahead(read: Read, slices: Sequence[FileSlice], weights: Sequence[int], counts: ReadCounts) -> Iterator[pa.Table]:
    """What is read of some slices, in their order.

    Args:
        read: Reads one slice, independently of the others, and counts what it did.
        slices: What to read.
        weights: For each slice bytes of its files that it counts for.
        counts: To add to.

    Yields:
        The tables of the first slice, then of the next.
    """
    turns, begun, held = _Turns(read), 0, 0
    try:
        for number in range(len(slices)):
            while begun < len(slices) and begun - number < PARALLEL_FILES:
                if begun > number and held + weights[begun] > AHEAD_BYTES:
                    break
                turns.begin(begun, slices[begun])
                held += weights[begun]
                begun += 1
            yield from turns.take(number)
            counts.add(turns.counts.pop(number))
            held -= weights[number]
    finally:
        turns.stop()


class _Turns:
    """What several threads have read ahead of the one that takes it.

    Attributes:
        counts: What reading did, by number of the slice; complete once all of it was taken.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._changed = threading.Condition()
        self._ready: dict[int, deque[pa.Table]] = {}
        self._ended: dict[int, BaseException | None] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._waiting, self._turn, self._stopped = 0, 0, False
        self.counts: dict[int, ReadCounts] = {}

    def begin(self, number: int, one: FileSlice) -> None:
        """Begin to read a slice, on a thread that a process does not wait for which ends before all rows were taken."""
        thread = threading.Thread(target=self._read_one, args=(number, one), name=f"hudimeta-ahead-{number}", daemon=True)
        self._threads[number] = thread
        thread.start()

    def _read_one(self, number: int, one: FileSlice) -> None:
        """Read a slice. Whatever goes wrong is raised by `take`, where the rows would have come."""
        counts, error = ReadCounts(), None
        try:
            for table in self._read(one, counts):
                if not self._put(number, table):
                    return
        except BaseException as raised:
            error = raised
        with self._changed:
            self.counts[number], self._ended[number] = counts, error
            self._changed.notify_all()

    def _put(self, number: int, table: pa.Table) -> bool:
        """Lay rows down, and wait while there are enough; False when nobody takes them any more."""
        with self._changed:
            ready = self._ready.setdefault(number, deque())
            ready.append(table)
            self._waiting += table.nbytes
            self._changed.notify_all()
            # Whoever is taken from goes on as soon as it has nothing left, however much the others hold.
            self._changed.wait_for(
                lambda: self._stopped or self._waiting <= WAITING_BYTES or (number == self._turn and not ready)
            )
            return not self._stopped

    def take(self, number: int) -> Iterator[pa.Table]:
        """The rows of a slice, as they come."""
        with self._changed:
            self._turn = number
            ready = self._ready.setdefault(number, deque())
            self._changed.notify_all()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: ready or number in self._ended)
                if not ready:
                    break
                table = ready.popleft()
                self._waiting -= table.nbytes
                self._changed.notify_all()
            yield table
        del self._ready[number], self._threads[number]
        error = self._ended.pop(number)
        if error is not None:
            raise error

    def stop(self) -> None:
        """Nobody takes rows any more: wait until nobody reads them."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads.values():
            thread.join()
