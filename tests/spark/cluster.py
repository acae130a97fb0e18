"""A standalone cluster of Spark on this machine: a master and workers, each a process that can be killed."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyspark

PATIENCE = 120
"""Seconds within which a process of the cluster starts, or joins."""
CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_the_parent() -> None:
    """Nothing of a cluster outlives the program that began it, whatever becomes of that."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """One of Spark's daemons, whose words are kept.

    Args:
        home: Its folder.
        command: Its class, and what that is told.
    """

    def __init__(self, home: Path, *command: str) -> None:
        home.mkdir(parents=True)
        python = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment = {**os.environ, **python, "SPARK_WORKER_DIR": str(home)}
        self._process = subprocess.Popen(
            [str(CLASS), *command],
            cwd=home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_die_with_the_parent,
        )
        self._lines: list[str] = []
        self._news = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._lines.append(line)
                self._news.notify_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    def says(self, pattern: str) -> re.Match[str]:
        """Wait for words of it."""

        def found() -> re.Match[str] | None:
            return next(filter(None, (re.search(pattern, line) for line in self._lines)), None)

        with self._news:
            match = self._news.wait_for(found, PATIENCE)
        assert match is not None, f"no {pattern!r} in {''.join(self._lines[-40:])}"
        return match

    def family(self) -> dict[int, str]:
        """It and all processes that descend from it, parents first: their commands."""
        parents, commands = {}, {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
        found = {self.pid: commands.get(self.pid, "")}
        grown = True
        while grown:
            more = {pid: commands[pid] for pid, parent in parents.items() if parent in found and pid not in found}
            found |= more
            grown = bool(more)
        return found

    def kill(self) -> None:
        """As if its machine lost power: executors and Python workers die with it."""
        for pid in self.family():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()


class Cluster:
    """A master and two workers of one core each.

    Args:
        home: For their files.
    """

    def __init__(self, home: Path) -> None:
        self._home, self._started = home, 0
        loopback = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self._master = Process(home / "master", MASTER, *loopback)
        port = self._master.says(r"'sparkMaster' on port (\d+)")[1]
        self.url = f"spark://127.0.0.1:{port}"
        self._loopback = loopback
        self.workers: list[Process] = []
        self.complete()

    def complete(self) -> None:
        """Start workers until there are two."""
        starting = []
        while len(self.workers) < 2:
            self._started += 1
            size = ("--cores", "1", "--memory", "2g")
            worker = Process(self._home / f"worker{self._started}", WORKER, *self._loopback, *size, self.url)
            starting.append(worker)
            self.workers.append(worker)
        for worker in starting:
            worker.says("Successfully registered with master")

    def kill(self, worker: Process) -> None:
        self.workers.remove(worker)
        worker.kill()

    def end(self) -> None:
        """All of it."""
        for process in (*self.workers, self._master):
            process.kill()
