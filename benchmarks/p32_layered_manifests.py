"""P32: approach 1 of RFC-15's first draft, layered manifests, which no system has, beside the metadata table.

Manifests: a file a partition with name, size and the bounds of each hot column, and a master manifest that names the newest
file of each partition. A commit writes those of the partitions that it touches anew, and the master. The metadata table's side
is a real commit of hudimeta's into a table of the same size. Every figure is a count or bytes; calls time one whole plan.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import ours, synthetic
from benchmarks.case import OURS, Case, Settings
from benchmarks.job import Job

LAYERED = "layered manifests"
TOUCHED = (1, 100)
"""Partitions that a commit touches, a new file in each."""


class LayeredManifests:
    """The manifests of one table in a folder.

    Args:
        folder: Empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._newest, self._number = folder, dict[str, str](), 0

    def write(self, parts: Iterable[tuple[str, pa.Table]]) -> tuple[int, int]:
        """Write the manifests of some partitions, then the master; how many files, and how many bytes."""
        self._number += 1
        written = []
        for partition, rows in parts:
            name = f"{partition}.{self._number}.arrow"
            written.append(_put(self._folder / name, rows))
            self._newest[partition] = name
        master = pa.table({"partition": list(self._newest), "manifest": list(self._newest.values())})
        written.append(_put(self._folder / f"master.{self._number}.arrow", master))
        return len(written), sum(written)

    def read(self, partition: str) -> pa.Table:
        """The newest manifest of a partition."""
        with pa.ipc.open_file(pa.memory_map(str(self._folder / self._newest[partition]))) as file:
            return file.read_all()

    def plan(self) -> pa.Table:
        """All files: every manifest is opened."""
        return pa.concat_tables([self.read(partition) for partition in self._newest])

    @property
    def stored(self) -> int:
        """Bytes of all manifests, superseded ones included."""
        return sum(path.stat().st_size for path in self._folder.iterdir())

    def commit(self, partitions: list[str]) -> tuple[int, int]:
        """One new file in each of some partitions: the last row once more stands for it."""
        before = {name: self.read(name) for name in partitions}
        return self.write((name, pa.concat_tables([rows, rows.slice(len(rows) - 1)])) for name, rows in before.items())

    def with_column(self, column: str, bounds: pa.Array) -> tuple[int, int]:
        """Bounds of one more column: every manifest is written anew."""
        return self.write((name, _with(self.read(name), column, bounds)) for name in list(self._newest))

    def without_column(self, column: str) -> tuple[int, int]:
        """Without them again: every manifest, too."""
        columns = [f"{column}.min", f"{column}.max"]
        return self.write((name, self.read(name).drop_columns(columns)) for name in list(self._newest))


def _put(path: Path, table: pa.Table) -> int:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return path.stat().st_size


def _with(rows: pa.Table, column: str, bounds: pa.Array) -> pa.Table:
    own = bounds.slice(0, len(rows))
    return rows.append_column(f"{column}.min", own).append_column(f"{column}.max", own)


def layered(job: Job) -> None:
    """Approach 1, with the bounds of one column."""
    shape = synthetic.middle(job.settings)
    names = pa.array([f"{one.decode()}_0-1-1_20261125000000000.parquet" for one in synthetic.file_ids(shape)])
    low = synthetic.bounds(shape)
    whole = pa.table({"name": names, "size": pa.array(np.full(shape.total, 1_200_000))})
    whole = _with(whole, "c0", pa.array(low["c0"]))
    days = synthetic.partition_names(shape)
    with job.folder() as folder:
        manifests = LayeredManifests(folder)
        manifests.write((day, whole.slice(at * shape.files, shape.files)) for at, day in enumerate(days))
        job.note("bytes at first", manifests.stored)
        for _ in range(job.rounds):
            with job.timed():
                count = manifests.plan().num_rows
        job.note("files that a plan opens", len(days) + 1)
        for touched in TOUCHED:
            _note_written(job, f"a commit to {touched} partitions", *manifests.commit(days[:touched]))
        _note_written(job, "one more column", *manifests.with_column("c1", pa.array(low["c1"])))
        _note_written(job, "one column less", *manifests.without_column("c1"))
    job.fact("files", count)


def _note_written(job: Job, what: str, files: int, size: int) -> None:
    job.note(f"{what}: files written", files)
    job.note(f"{what}: bytes written", size)


def metadata_table(job: Job) -> None:
    """The metadata table of a real table, and what real commits write into it."""
    shape = synthetic.middle(job.settings)
    source, count = synthetic.make(job.settings, shape), 0
    days = synthetic.partition_names(shape)
    with job.folder() as folder:
        path = folder / "t"
        shutil.copytree(source, path)
        before = _metadata_files(path)
        job.note("bytes at first", sum(before.values()))
        for _ in range(job.rounds):
            with job.timed():
                count = ours.count_slices(ours.open_table(path))
        job.fact("files", count)
        for touched in TOUCHED:
            before = _metadata_files(path)
            ours.open_table(path, {"hoodie.table.services.enabled": "false"}).bulk_insert(_rows(days[:touched]))
            new = {name: size for name, size in _metadata_files(path).items() if name not in before}
            _note_written(job, f"a commit to {touched} partitions", len(new), sum(new.values()))


def _metadata_files(path: Path) -> dict[str, int]:
    root = path / ".hoodie" / "metadata"
    return {str(file): file.stat().st_size for file in root.rglob("*") if file.is_file()}


def _rows(days: list[str]) -> pa.Table:
    longs = {name: pa.array(range(len(days)), pa.int64()) for name in synthetic.COLUMNS}
    return pa.table({"id": [f"new {day}" for day in days], "day": days, **longs})


def _prepare(settings: Settings) -> object:
    return synthetic.make(settings, synthetic.middle(settings))


SIDES = {OURS: metadata_table, LAYERED: layered}
CASES = [Case("P32", "the draft's approach 1, 285,743 files in 3,617 partitions", SIDES, rounds=3, prepare=_prepare)]
