"""What the kernel counts of a process, or of one and all that descend from it: CPU seconds, and bytes of files.

Bytes read are those that calls for reading returned, whether from the disk or from the kernel's cache of it; between processes
they may also come through pipes. A file that is mapped into memory is read without any call. Bytes written are those of files
alone, in pages of the cache, so that a disk in memory shows none.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from unittest import mock

__all__ = ["Moved", "Taken", "own", "peak_rss", "tree", "without_mapping"]

Moved = tuple[int, int]
"""Bytes read and written."""
Taken = tuple[float, Moved]
"""CPU seconds and bytes since the start."""


def own() -> Taken:
    """Of this process and the children it waited for, in microseconds."""
    spent = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        spent += usage.ru_utime + usage.ru_stime
    return spent, _moved([os.getpid()])


def tree() -> Taken:
    """Of this process and all that descend from it, living or waited for (a JVM, its Python workers), in steps of 10 ms."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                parents[int(entry)] = int(fields[1])
                ticks[int(entry)] = sum(int(part) for part in fields[11:15])
    mine = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in mine} - mine
        grown = bool(more)
        mine |= more
    return sum(ticks.get(pid, 0) for pid in mine) / os.sysconf("SC_CLK_TCK"), _moved(mine)


def _moved(pids: Iterable[int]) -> Moved:
    read = written = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            counts = {name: int(count) for name, count in (line.split(": ") for line in lines)}
            read, written = read + counts["rchar"], written + counts["write_bytes"]
    return read, written


def peak_rss(pid: int) -> int:
    """Peak resident bytes of a process. (`getrusage` would start at the parent's peak.)"""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


@contextlib.contextmanager
def without_mapping() -> Iterator[None]:
    """Files of hudimeta's local storage are read by calls that the kernel counts, instead of mapped into memory."""
    import pyarrow as pa

    plain: Callable[[str], object] = pa.OSFile
    with mock.patch.object(pa, "memory_map", lambda path, mode="r": plain(path)):
        yield
