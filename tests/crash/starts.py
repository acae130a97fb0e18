"""Tables that scenes of crashes begin with, each made once, and how a scene is made of one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.engine.machine import ThisMachine, running_on
from hudimeta.services import clustering, savepoints
from hudimeta.services.indexing import create_index, resize
from hudimeta.services.partial_logs import compact_partial_logs
from hudimeta.storage import Storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation
from hudimeta.write.altering import alter, alteration
from tests.crash.killing import Scene, calls_of, killed_at

__all__ = ["FEW", "MERGED_SOON", "ROWS", "SHORT", "TYPES", "Make", "Starts", "on", "options_of", "session"]

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.index.secondary.column": "ts",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.expression.file.group.count": "1",
}
UPKEEP = {"hoodie.metadata.compact.max.delta.commits": "1"}
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    **UPKEEP,
}
MERGED_SOON = {"hoodie.log.compaction.blocks.threshold": "2"}
FEW, ROWS = simple_rows([1, 3, 60], 5), simple_rows(range(6, 18), 5)


_SORTED = "hoodie.clustering.plan.strategy.sort.columns"


class _DaysAgo(ThisMachine):
    """This machine three days ago."""

    threads = False  # others would be on this machine today

    def now_ms(self) -> int:
        return super().now_ms() - 3 * 86_400_000


class Starts:
    """Tables to begin with, each made once.

    Args:
        home: Where they are made.
        scenes: By name.
    """

    def __init__(self, home: Path, scenes: Mapping[str, Make]) -> None:
        self.home, self._scenes = home, scenes
        self.young, self.worn, self.aged = cache(self._young), cache(self._worn), cache(self._aged)
        self.dead, self.bare, self.captured = cache(self._dead), cache(self._bare), cache(self._captured)
        self.empty, self.calls, self.logged = cache(self._empty), cache(self._calls), cache(self._logged)
        self.old, self.nine, self.doubled = cache(self._old), cache(self._nine), cache(self._doubled)
        self.bucketed, self.spread = cache(self._bucketed), cache(self._spread)
        self.planned, self.pinned, self.windowed = cache(self._planned), cache(self._pinned), cache(self._windowed)

    def scene(self, name: str, type: str) -> Scene:
        """A scene by its name."""
        return self._scenes[name](self, type)

    def _calls(self, name: str, type: str) -> list[str]:
        return calls_of(self.scene(name, type), self.home / f"calls {name} {type}")

    def _new(self, name: str, given: Mapping[str, str]) -> ModelledTable:
        return ModelledTable(str(self.home / name), given)

    def _young(self, type: str) -> ModelledTable:
        """A table with two commits, on a merge-on-read table the second one in logs, and two expression indexes."""
        table = self._new(f"young {type}", options_of(type))
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        create_index(table.session(), kind="column_stats", name="up", columns=["id"], expression="upper")
        create_index(table.session(), kind="bloom_filters", name="low", columns=["part"], expression="lower")
        table.write(Operation.UPSERT, simple_rows(range(4, 10), 2))
        return table

    def _worn(self, type: str) -> ModelledTable:
        """The same after a few more commits: files to clean, instants to archive."""
        return self._later("worn", type, range(3, 8))

    def _logged(self, type: str) -> ModelledTable:
        """The young one after one more commit: two log blocks in each slice."""
        table = self._copied("logged", self.young(type), type)
        table.write(Operation.UPSERT, simple_rows(range(2, 6), 3))
        return table

    def _aged(self, type: str) -> ModelledTable:
        """The same after so many commits that the past of the metadata table can be cleaned and archived as well."""
        return self._later("aged", type, range(3, 25))

    def _later(self, name: str, type: str, stamps: Iterable[int]) -> ModelledTable:
        source = self.young(type)
        path = self.home / f"{name} {type}"
        shutil.copytree(source.path, path, symlinks=True)
        kept = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
        given = {**options_of(type), **kept, "hoodie.metadata.compact.max.delta.commits": "4"}
        table = ModelledTable(str(path), given, model=source.model.copy(), exists=True)
        for ts in stamps:
            table.write(Operation.UPSERT, simple_rows([ts % 6], ts))
        if type == "MERGE_ON_READ":
            Table(str(path), given).compact()
            table.write(Operation.UPSERT, simple_rows([0, 1], 30))
        return table

    def _dead(self, type: str) -> tuple[Path, ModelTable]:
        """A table with an upsert that died as late as possible, so that the metadata table has to be taken back as well."""
        scene = self.scene("upsert", type)
        done = (".commit", ".deltacommit")
        calls = self.calls("upsert", type)
        last = max(n for n, c in enumerate(calls) if c.startswith("put_if_absent .hoodie/timeline/") and c.endswith(done))
        copy = scene.fresh(self.home / f"dead {type}")
        assert killed_at(scene, last, copy)
        return copy, scene.before

    def _captured(self, type: str) -> ModelledTable:
        """A table that captures changes, altered once so that its commits carry a history."""
        table = self._new(f"captured {type}", {**options_of(type), "hoodie.table.cdc.enabled": "true"})
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        alter(table.session(), alteration({"y": pa.int64()}), compact_partial_logs)
        return table

    def _empty(self, type: str) -> ModelledTable:
        """A table without a commit."""
        return self._new(f"empty {type}", options_of(type))

    def _old(self, type: str) -> ModelledTable:
        """A table that was written three days ago."""
        with running_on(_DaysAgo()):
            table = self._new(f"old {type}", {**options_of(type), "hoodie.clean.automatic": "false"})
            table.write(Operation.INSERT, simple_rows(range(12), 1))
            table.write(Operation.UPSERT, simple_rows(range(4, 10), 2))
        return table

    def _nine(self, type: str) -> ModelledTable:
        """The young one of version 9."""
        table = self._new(f"nine {type}", {**options_of(type), "hoodie.write.table.version": "9"})
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        table.write(Operation.UPSERT, simple_rows(range(4, 10), 2))
        return table

    def _doubled(self, type: str) -> ModelledTable:
        """Some keys are there twice, as bulk inserts leave them."""
        given = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": type, "hoodie.parquet.small.file.limit": "0"}
        table = self._new(f"doubled {type}", given)
        table.write(Operation.BULK_INSERT, simple_rows(range(12), 1))
        table.write(Operation.BULK_INSERT, simple_rows(range(4, 10), 2))
        return table

    def _planned(self, type: str) -> ModelledTable:
        """The young one with a clustering that nobody runs."""
        table = self._copied("planned", self.young(type), type)
        clustering.schedule(table.session(options=table.options.having({_SORTED: "x"})))
        return table

    def _pinned(self, type: str) -> ModelledTable:
        """The young one with two savepoints."""
        table = self._copied("pinned", self.young(type), type)
        for write in Table(table.path).timeline.writes:
            savepoints.save(table.session(), write.time)
        return table

    def _windowed(self, type: str) -> ModelledTable:
        """A table with a record window, in which its partitions are, since they name no days; its runs are to be merged."""
        given = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": type, "hudimeta.record.window.days": "3"}
        table = self._new(f"windowed {type}", given)
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        for ts in range(2, 10):
            table.write(Operation.UPSERT, simple_rows(range(ts, ts + 3), ts))
        return table

    def _bucketed(self, type: str) -> ModelledTable:
        """A table in buckets, in the second partition more than in the first."""
        buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
        table = self._new(
            f"bucketed {type}", {**options_of(type), **buckets, "hoodie.bucket.index.partition.expressions": "p1,4"}
        )
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        table.write(Operation.UPSERT, simple_rows(range(4, 10), 2))
        return table

    def _spread(self, type: str) -> ModelledTable:
        """The young one with its record index in three file groups."""
        table = self._copied("spread", self.young(type), type)
        resize(table.session(), 3)
        return table

    def _copied(self, name: str, source: ModelledTable, type: str) -> ModelledTable:
        path = self.home / f"{name} {type}"
        shutil.copytree(source.path, path, symlinks=True)
        return ModelledTable(str(path), options_of(type), model=source.model.copy(), exists=True)

    def _bare(self, type: str) -> ModelledTable:
        """A table without a metadata table."""
        table = self._new(f"bare {type}", {**options_of(type), "hoodie.metadata.enable": "false"})
        table.write(Operation.INSERT, simple_rows(range(12), 1))
        return table


def options_of(type: str, *more: Mapping[str, str]) -> dict[str, str]:
    given = {**INDEXED, "hoodie.datasource.write.table.type": type}
    if type == "MERGE_ON_READ":
        given["hoodie.parquet.small.file.limit"] = "0"  # else inserts would rewrite base files, and nothing went to logs
    for options in more:
        given |= options
    return given


def session(storage: Storage, type: str, *more: Mapping[str, str]) -> WriteSession:
    return WriteSession(storage, OPTIONS.read(options_of(type, *more)), engine=LocalEngine(1))


Make = Callable[[Starts, str], Scene]


def _unchanged(model: ModelTable) -> None:
    """What reads the same before and after: a service, an index, a column without values."""


def on(
    start: Callable[[Starts, str], tuple[str | Path, ModelTable]],
    do: Callable[[WriteSession], object],
    expect: Callable[[ModelTable], None] = _unchanged,
    given: Mapping[str, str] | None = None,
    *,
    again: Callable[[WriteSession], object] | None = None,
    kept: int = 2,
    archives: bool = False,
) -> Make:
    """A scene.

    Args:
        start: The table before, and its model.
        do: The act.
        expect: What it makes of the model.
        given: Options of the act.
        again: What must succeed after the next write, and does what is left to do.
        kept: How many moments are read again.
        archives: It is an archival.
    """

    def make(starts: Starts, type: str) -> Scene:
        path, model = start(starts, type)
        more = given or {}
        before = model.copy()
        before.past = {time: before.past[time] for time in sorted(before.past)[-kept:]}
        after = before.copy()
        expect(after)

        def act(_: Path, storage: Storage) -> None:
            do(session(storage, type, more))

        def repeat(_: Path, storage: Storage) -> None:
            if again is not None:
                again(session(storage, type, more))

        return Scene(Path(path), act, before, after, again=repeat if again is not None else None, archives=archives)

    return make


def young(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.young(type)
    return table.path, table.model


def spread(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.spread(type)
    return table.path, table.model


def worn(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.worn(type)
    return table.path, table.model


def logged(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.logged(type)
    return table.path, table.model


def empty(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.empty(type)
    return table.path, table.model


def captured(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.captured(type)
    return table.path, table.model


def aged(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.aged(type)
    return table.path, table.model


def bare(starts: Starts, type: str) -> tuple[str, ModelTable]:
    table = starts.bare(type)
    return table.path, table.model


def dead(starts: Starts, type: str) -> tuple[Path, ModelTable]:
    return starts.dead(type)
