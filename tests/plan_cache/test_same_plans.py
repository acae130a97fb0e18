"""A plan through kept plans is the plan without them: after every step of random histories, and for whoever looks late."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.config import OPTIONS
from hudimeta.errors import HudiError
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import QueryType

STEPS = 10
WRITES = {
    "hoodie.parquet.small.file.limit": "2000",
    "hoodie.metadata.compact.max.delta.commits": "6",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.metadata.index.column.stats.enable": "true",
}


def keeping(folder: Path, **more: str) -> dict[str, str]:
    """Options of a reader that keeps plans of the smallest tables."""
    return {
        "hudimeta.plan.cache": "local",
        "hudimeta.plan.cache.dir": str(folder),
        "hudimeta.plan.cache.min.files": "0",
        **more,
    }


def snapshot_of(path: str, options: dict[str, str]) -> Snapshot:
    return Snapshot.open(CountingStorage(open_storage(path)), OPTIONS.read(options))


def rows_of(slices: pa.Table) -> list[str]:
    assert slices.schema.names == [
        "partition_path",
        "file_id",
        "base_instant",
        "base_file",
        "base_size",
        "log_files",
        "log_sizes",
    ]
    return sorted(map(repr, slices.to_pylist()))


def seen(snapshot: Snapshot) -> list[Any]:
    """All that a plan consists of; an error is an answer too."""
    try:
        paths = snapshot.partitions().to_pylist()
        found: list[Any] = [paths, rows_of(snapshot.slices())]
        found += [rows_of(snapshot.slices([*paths[:count], paths[0], "none"])) for count in range(1, len(paths))]
        return [*found, rows_of(snapshot.slices(None, QueryType.READ_OPTIMIZED))]
    except HudiError as error:
        return [type(error)]


def planned(table: Table, where: str) -> list[Any]:
    plan = table.scan(where=where).plan()
    return [rows_of(plan.slices), plan.report.partitions, plan.report.partitions_kept, plan.report.skipped]


class History:
    """A table to which anything happens, one step after the other."""

    def __init__(self, path: Path, type: str, seed: int) -> None:
        self.random, self.ts = random.Random(seed), 0
        self.table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **WRITES, "hoodie.datasource.write.table.type": type})
        self.face = Table(self.table.path, self.table.options.given)
        self.point: str | None = None

    def rows(self) -> pa.Table:
        self.ts += 1
        first = self.random.randrange(30)
        return simple_rows(
            range(first, first + self.random.randrange(1, 20)), self.ts, partitions=self.random.choice((2, 3, 5))
        )

    def step(self) -> str:
        steps: list[Callable[[], Any]] = [
            *[lambda: self.face.upsert(self.rows())] * 4,
            *[lambda: self.face.insert(self.rows())] * 2,
            lambda: self.face.bulk_insert(self.rows()),
            lambda: self.face.delete(self.rows().select(["id", "part"])),
            lambda: self.face.insert_overwrite(self.rows()),
            lambda: self.face.delete_partition(f"p{self.random.randrange(3)}"),
            *[self.face.clean] * 2,
            self.face.archive,
            self.face.compact,
            self.face.schedule_compaction,
            self.face.cluster,
            self.save,
            self.restore,
            self.take_back,
            self.face.indexes.rebuild,
            lambda: self.face.indexes.create("by_key", "record_index"),
            lambda: self.face.indexes.drop("column_stats"),
            self.face.metadata.delete,
            self.face.metadata.create,
        ]
        act = self.random.choice(steps)
        try:
            act()
        except HudiError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            self.face = Table(self.table.path, self.table.options.given)
        return "done"

    def take_back(self) -> None:
        if self.face.timeline.writes:
            self.face.rollback(self.face.timeline.writes[-1].time)

    def save(self) -> None:
        self.point = self.face.savepoint().instant

    def restore(self) -> None:
        if self.point is not None:
            self.face.restore(self.point)
            self.point = None


@pytest.mark.filterwarnings("ignore::hudimeta.config.HudiWarning")
@pytest.mark.rotation(9)
@pytest.mark.parametrize("seed", range(18))
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_any_history(tmp_path: Path, type: str, seed: int) -> None:
    history = History(tmp_path / "t", type, seed)
    path = history.table.path
    options = keeping(tmp_path / "plans") if seed % 3 else keeping(tmp_path / "plans", **{"hudimeta.plan.cache": "table"})
    lasting, plain, late = Table(path, options), Table(path), list[tuple[Snapshot, Snapshot]]()
    _ = lasting.snapshot(), plain.snapshot()
    for _ in range(STEPS):
        history.step()
        expected = seen(snapshot_of(path, {}))
        assert seen(snapshot_of(path, options)) == expected
        assert seen(snapshot_of(path, options)) == expected, "once more, from what was kept just now"
        assert seen(lasting.snapshot()) == seen(plain.snapshot())
        where = history.random.choice(["x > 3", "part = 'p1' and ts >= 2", "id = 'k0007'"])
        assert planned(lasting, where) == planned(plain, where)
        if late and history.random.random() < 0.5:
            earlier, uncached = late.pop(history.random.randrange(len(late)))
            assert seen(earlier) == seen(uncached), "of a moment that has passed"
        late.append((snapshot_of(path, options), snapshot_of(path, {})))
