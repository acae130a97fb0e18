"""P17: planning a read of 1,000 partitions where every request takes 50 ms, as from a far-away store.

The metadata table answers with the same few requests however many partitions there are; a listing asks once for each. It is
measured as programs do it, one folder after the other, and as hudimeta lists tables without a metadata table, eight at a time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import ours, synthetic
from benchmarks.case import OURS, Case, Settings, times_faster
from benchmarks.job import Job

LATENCY_S = 0.05
LISTING, PARALLEL = "listing", "8 listings"


def shape(settings: Settings) -> synthetic.Shape:
    """1,000 partitions of 10 files."""
    return synthetic.Shape(f"far-{settings.scaled(1000)}x10", settings.scaled(1000), 10)


def table(settings: Settings) -> Path:
    """The table, with empty data files, so that there is something to list."""
    wanted = shape(settings)
    path, unfinished = settings.data / f"{wanted.name}-files", settings.data / f"{wanted.name}.copying"
    if not path.is_dir():
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(synthetic.make(settings, wanted), unfinished)
        _touch(unfinished)
        unfinished.rename(path)
    return path


def _touch(path: Path) -> None:
    files = ours.open_table(path).metadata.files()
    for partition in files.column("partition_path").unique().to_pylist():
        (path / partition).mkdir()
        (path / partition / ".hoodie_partition_metadata").touch()
    for partition, name in zip(files.column("partition_path").to_pylist(), files.column("name").to_pylist(), strict=True):
        (path / partition / name).touch()


def _far(storage: Any) -> Any:
    from hudimeta.storage.faults import SlowStorage

    return SlowStorage(storage, lambda: time.sleep(LATENCY_S))


def _run(count: Callable[[Path], int]) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        path, found = table(job.settings), 0
        with ours.storage_wrapped(_far):
            for _ in range(job.rounds):
                with job.timed():
                    found = count(path)
        job.fact("files", found)

    return run


def planned(path: Path) -> int:
    """A plan through the metadata table."""
    return ours.count_planned(ours.open_table(path), None)


def listed(path: Path) -> int:
    """Base files, found by listing the table's folder and every partition, one after the other."""
    from hudimeta.storage import open_storage

    storage = _far(open_storage(str(path)))
    folders = [entry.path for entry in storage.list("") if entry.is_folder and entry.name != ".hoodie"]
    return sum(entry.name.endswith(".parquet") for folder in folders for entry in storage.list(folder))


def listed_at_once(path: Path) -> int:
    """A plan of ours without the metadata table."""
    import hudimeta

    plain = hudimeta.Table(str(path), {"hoodie.metadata.enable": "false"})
    return int(plain.scan().plan().slices.num_rows)


CASES = [
    Case(
        "P17",
        "plan of 1,000 partitions, 50 ms a request",
        {OURS: _run(planned), LISTING: _run(listed), PARALLEL: _run(listed_at_once)},
        (times_faster(LISTING, 100, "warm.wall", only_at_full_scale=True),),
        rounds=2,
        prepare=table,
    )
]
