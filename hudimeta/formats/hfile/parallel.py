"""Runs packing and unpacking of blocks on several cores: zlib lets other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["most_threads", "run_blocks"]

_ENOUGH_BYTES = 1 << 20
_MOST_THREADS = 8
_SHARES = 4

_In = TypeVar("_In")
_Out = TypeVar("_Out")


def most_threads(wanted: int | None) -> int:
    """How many threads work at most; `wanted` None for one per core."""
    return wanted or min(os.cpu_count() or 1, _MOST_THREADS)


def run_blocks(work: Callable[[_In], _Out], items: Sequence[_In], total_bytes: int, threads: int | None) -> list[_Out]:
    """`work` over `items`, in order.

    Args:
        work: Called once for each item; its first exception is raised.
        items: What to work on.
        total_bytes: Roughly the bytes at stake; little is done in the calling thread.
        threads: At most so many; None for one per core, 1 for the calling thread.
    """
    most = min(most_threads(threads), len(items))
    if most <= 1 or total_bytes < _ENOUGH_BYTES:
        return [work(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    # A block takes about as long as handing it to a thread, so each thread is handed many at a time.
    share = max(-(-len(items) // (most * _SHARES)), 1)
    shares = [items[start : start + share] for start in range(0, len(items), share)]
    with ThreadPoolExecutor(most, thread_name_prefix="hfile") as pool:
        return [done for part in pool.map(lambda group: [work(item) for item in group], shares) for done in part]
