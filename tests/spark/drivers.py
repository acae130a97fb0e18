"""Drivers of Spark to be killed: two processes and their workers, told what to do through a pipe."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.spark.killed_driver import MARK, Order
from tests.spark.routed_faults import workers

PATIENCE = 300
"""Seconds within which a small session starts, writes a few rows, or ends after it lost a part of itself."""


class Driver:
    """A Spark driver of its own, with all that descends from it.

    Args:
        home: For its own files; nothing of a table.
    """

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self._token = f"HUDIMETA_KILLED_DRIVER={home}".encode()
        environment = {**os.environ, "HUDIMETA_KILLED_DRIVER": str(home)}
        program = [sys.executable, str(Path(__file__).with_name("killed_driver.py")), str(home)]
        self._log = (home / "log").open("wb")
        pipe = subprocess.PIPE
        self._python = subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=self._log, cwd=home, env=environment)
        self._heard = b""

    def answer(self, seconds: float) -> str | None:
        """What it says next; None if that takes longer, "" when it has ended."""
        assert self._python.stdout is not None
        end = time.monotonic() + seconds
        while True:
            while b"\n" in self._heard:
                line, _, self._heard = self._heard.partition(b"\n")
                if line.startswith(MARK.encode()):
                    return line.decode().removeprefix(MARK)
            if not select.select([self._python.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            heard = os.read(self._python.stdout.fileno(), 1 << 16)
            if not heard:
                return ""
            self._heard += heard

    def begin(self, order: Order) -> None:
        """Tell it to do something, once it is ready; returns when it has begun."""
        assert self._python.stdin is not None
        self._python.stdin.write(order.to_json().encode() + b"\n")
        self._python.stdin.flush()
        while (heard := self.answer(PATIENCE)) == "ready":
            continue
        assert heard == "began", f"the driver said {heard!r}"

    def do(self, order: Order) -> None:
        """Tell it to do something, and see it done."""
        self.begin(order)
        heard = self.answer(PATIENCE)
        assert heard == "done", f"{order.act} by the next driver: {heard!r}"

    def alive(self) -> dict[int, bytes]:
        """Its processes: Python, the JVM, Python workers; their commands by number."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if self._token in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                continue
        return {pid: command for pid, command in found.items() if command}

    def kill(self, whom: str, chance: random.Random) -> bool:
        """Kill a part of it; False if there is none.

        Args:
            whom: One of `VICTIMS`.
            chance: Chooses a worker.
        """
        if whom == "worker":
            found = workers(self._python.pid)
            victims = [chance.choice(found)] if found else []
        else:
            jvm = [pid for pid, command in self.alive().items() if b"java" in command.partition(b"\0")[0]]
            victims = {"python": [self._python.pid], "jvm": jvm, "both": [*jvm, self._python.pid]}[whom]
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return False
        return bool(victims)

    def wait(self) -> None:
        """Until all of it has ended by itself, now that its Python or its JVM is dead."""
        end = time.monotonic() + PATIENCE
        while (left := self.alive()) or self._python.poll() is None:
            for pid in {*left, self._python.pid}:
                assert ended(pid, end - time.monotonic()), f"still alive: {self.alive()}"

    def end(self) -> None:
        """Whatever it is doing."""
        self._python.kill()
        for pid in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._python.wait()
        for pipe in (self._python.stdin, self._python.stdout, self._log):
            if pipe is not None:
                pipe.close()


def ended(pid: int, seconds: float) -> bool:
    """Wait for the end of a process, whoever began it; False if that takes longer."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], max(0.0, seconds))[0])
    finally:
        os.close(process)


VICTIMS = ("worker", "python", "worker", "jvm", "worker", "both")
"""By turns; a driver costs seconds, and writes faster when it has written before."""


class Drivers:
    """One driver after another, each when it is needed.

    Args:
        home: For their files.
    """

    def __init__(self, home: Path) -> None:
        self._home, self._started = home, 0
        self._now: Driver | None = None

    @property
    def now(self) -> Driver:
        """The one at work."""
        if self._now is None:
            self._started += 1
            self._now = Driver(self._home / f"driver{self._started}")
        return self._now

    def end(self) -> None:
        """The one at work, if there is one."""
        if self._now is not None:
            self._now.end()
        self._now = None
