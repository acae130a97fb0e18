"""A process that is forked while other threads are at work, as by `multiprocessing`, does not wait for them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.forking import FreeWhenForked
from hudimeta.observability import Registry
from hudimeta.observability.exporters import JsonLines
from hudimeta.services.in_thread import run_beside, wait

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def ends(act: Callable[[], object]) -> bool:
    """Whether a forked process comes to the end of something."""
    child = os.fork()
    if not child:
        try:
            signal.alarm(10)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def test_a_lock_is_free_there_whoever_held_it() -> None:
    lock, held, go_on = FreeWhenForked(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            go_on.wait(60)

    def take() -> None:
        with lock:
            held.clear()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    try:
        assert ends(take)
        assert held.is_set(), "here it is held still"
    finally:
        go_on.set()
        holder.join()
    take()


def again_and_again(act: Callable[[], object], over: threading.Event) -> None:
    while not over.is_set():
        act()


def test_metrics_and_services_go_on_there(tmp_path: Path) -> None:
    registry, lines, over = Registry(), JsonLines(str(tmp_path / "metrics.jsonl")), threading.Event()
    for number in range(300):
        registry.set("trips", f"figure.{number}", number)

    def told() -> None:
        lines.show(registry, "trips")

    def served() -> None:
        run_beside(str(tmp_path), int)
        wait(str(tmp_path))

    busy = [threading.Thread(target=again_and_again, args=(act, over)) for act in (told, served, told, served)]
    for thread in busy:
        thread.start()
    try:
        assert all(ends(act) for _ in range(20) for act in (told, served))
    finally:
        over.set()
        for thread in busy:
            thread.join()
