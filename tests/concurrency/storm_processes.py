"""What the processes of a storm do: writers, services, a reader, and the journals that outlive them."""

from __future__ import annotations

import contextlib
import json
import random
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudimeta
from hudimeta.commit.locks.fence import FencedLock
from hudimeta.errors import CommitConflict, CommitError, FileRemoved, LockError

PARTITIONS, PARTITION, KEYS = "disjoint partitions", "same partitions", "same keys"
SPREADS = (PARTITIONS, PARTITION, KEYS)
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("tag", pa.string())])
OWN_ROWS, SHARED_KEYS, SHARED_ROWS = 3, 12, 3
COUNTER, SHARED = "counter", "shared"
BUILT = "bloom_filters"
"""The index that a service makes and drops."""
WRITES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.write.lock.wait_time_ms": "300000"}
CONFLICT_RETRIES = {"hoodie.write.num.retries.on.conflict.failures": "50"}
BETWEEN_SERVICES_S = 1.0
IN_THE_WAY = (CommitError, LockError)
"""What a service may meet where others write, or run the same."""


@dataclass(frozen=True)
class Weather:
    """What a storm is made of.

    Attributes:
        writers: How many processes write.
        spread: One of `SPREADS`.
        kind: Type of the table.
        record_index: Whether keys are looked up in a record index.
        commits: Writes of all writers together.
        kill_each_s: Seconds between two kills; 0 for none.
        services: Whether services and a reader run beside the writers.
    """

    writers: int
    spread: str
    kind: str = "COPY_ON_WRITE"
    record_index: bool = False
    commits: int = 50
    kill_each_s: float = 2.0
    services: bool = True

    def __str__(self) -> str:
        index = "record index" if self.record_index else "no index"
        return f"{self.writers:2d} x {self.spread:19} {'cow' if self.kind == 'COPY_ON_WRITE' else 'mor'} {index:12}"


# What the processes do


class Journal:
    """Lines of JSON that outlive the process that writes them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def say(self, **what: Any) -> None:
        """Append a line, with the time of a clock that all processes of the machine share."""
        with self._path.open("a") as file:
            file.write(json.dumps({"at": time.monotonic(), **what}) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """All whole lines."""
        text = self._path.read_text() if self._path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def rows_of(writer: int, number: int, spread: str) -> pa.Table:
    """The rows of one write."""
    tag, home = f"{writer}.{number}", f"w{writer}" if spread == PARTITIONS else "p"
    rows = [(f"{tag}.{row}", home) for row in range(OWN_ROWS)] + [(f"{COUNTER}.{writer}", home)]
    if spread == KEYS:
        rows += [(f"{SHARED}.{key}", "p") for key in random.Random(tag).sample(range(SHARED_KEYS), SHARED_ROWS)]
    return pa.Table.from_pylist([{"id": key, "part": part, "ts": 1, "tag": tag} for key, part in rows], SCHEMA)


def write(path: str, weather: Weather, writer: int, journal: Journal) -> None:
    """One writer, which goes on behind the last write that its journal tells of."""
    share = weather.commits // weather.writers
    done = max((line["number"] for line in journal.lines() if "number" in line), default=-1) + 1
    held: list[float] = []
    _time_locks(held)
    for number in range(done, share):
        journal.say(number=number)
        try:
            hudimeta.Table(path, WRITES | CONFLICT_RETRIES).upsert(rows_of(writer, number, weather.spread))
        except CommitConflict as error:
            journal.say(refused=number, why=str(error))
        except Exception:
            journal.say(refused=number, wrong=traceback.format_exc())
        else:
            journal.say(acknowledged=number, held=held[:])
        held.clear()
    journal.say(finished=True)


def _index(table: hudimeta.Table) -> None:
    """Build an index beside the writers, or drop the one that is there."""
    if BUILT in table.metadata.ready:
        table.metadata.drop_index(BUILT)
    else:
        table.metadata.create_index(type=BUILT, mode="async")


SERVICES: dict[str, Callable[[hudimeta.Table], object]] = {
    "clean": lambda table: table.clean(),
    "archive": lambda table: table.archive(),
    "index": _index,
    "compact": lambda table: table.compact(),
    "log_compact": lambda table: table.log_compact(),
}


def serve(path: str, verb: str, journal: Journal) -> None:
    """A service that runs again and again. Others may be in its way; any other error is one that nobody may see."""
    while True:
        time.sleep(BETWEEN_SERVICES_S)
        try:
            SERVICES[verb](hudimeta.Table(path, {**WRITES, "hoodie.log.compaction.blocks.threshold": "3"}))
        except IN_THE_WAY as error:
            journal.say(typed=type(error).__name__, why=str(error))
        except Exception:
            journal.say(wrong=traceback.format_exc())


def read(path: str, journal: Journal) -> None:
    """A reader, which sees whole writes only, and no writer count backwards."""
    counted: dict[str, int] = {}
    while True:
        time.sleep(BETWEEN_SERVICES_S / 4)
        try:
            found = hudimeta.Table(path, {"hudimeta.read.retry.on.clean": "true"}).scan(columns=["id", "tag"]).to_table()
            _see(found, counted, journal)
        except FileRemoved as error:
            journal.say(typed=type(error).__name__, why=str(error))
        except Exception:
            journal.say(wrong=traceback.format_exc())


def _see(found: pa.Table, counted: dict[str, int], journal: Journal) -> None:
    state = State.of(found)
    for tag, count in state.own.items():
        if count != OWN_ROWS:
            journal.say(wrong=f"a reader saw {count} of the {OWN_ROWS} rows of {tag}")
    for writer, tag in state.counters.items():
        number = int(tag.partition(".")[2])
        if number < counted.get(writer, -1):
            journal.say(wrong=f"a reader saw {writer} count from {counted[writer]} back to {number}")
        counted[writer] = number


def _time_locks(held: list[float]) -> None:
    """Note for how long this process holds locks."""
    plain = FencedLock.held

    @contextlib.contextmanager
    def timed(lock: FencedLock) -> Iterator[None]:
        with plain(lock):
            began = time.perf_counter()
            try:
                yield
            finally:
                held.append(time.perf_counter() - began)

    FencedLock.held = timed  # type: ignore[method-assign]


@dataclass(frozen=True)
class State:
    """What a table holds: of each write how many own rows, the counters by writer, and who wrote each shared key."""

    own: dict[str, int]
    counters: dict[str, str]
    shared: dict[str, str]

    @classmethod
    def of(cls, rows: pa.Table) -> State:
        own: dict[str, int] = {}
        named: dict[str, dict[str, str]] = {COUNTER: {}, SHARED: {}}
        for key, tag in zip(rows["id"].to_pylist(), rows["tag"].to_pylist(), strict=True):
            kind, _, name = key.partition(".")
            if kind not in named:
                own[tag] = own.get(tag, 0) + 1
            elif name in named[kind]:
                raise AssertionError(f"{key} is there twice")
            else:
                named[kind][name] = tag
        return cls(own, named[COUNTER], named[SHARED])
