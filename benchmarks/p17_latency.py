"""P17: planning a read of 1,000 partitions, and reading seventy files, where every request takes 50 ms, as from far away.

The metadata table answers with the same few requests however many partitions there are; a listing asks once for each. It is
measured as programs do it, one folder after the other, and as hudimeta lists tables without a metadata table, eight at a time.

Files are opened ahead of their turn; the other side opens one after the other, as those of a disk. Opening one is one request
here: what is read of it is mapped from the disk.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import lineitem, ours, p21_binary_copy, synthetic, written
from benchmarks.case import OURS, Case, Settings, Side, times_faster
from benchmarks.job import Job

LATENCY_S = 0.05
LISTING, PARALLEL, IN_TURN = "listing", "8 listings", "one by one"


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


def _pieces(settings: Settings) -> Path:
    return written.in_pieces(settings, p21_binary_copy.PIECES)


def _scan(*, narrow: bool, ahead: bool) -> Side:
    def run(job: Job) -> None:
        path, found = _pieces(job.settings), 0
        where = lineitem.narrow(job.settings) if narrow else None
        nearby = mock.patch("hudimeta.storage.at_once.is_nearby", return_value=not ahead)
        with ours.storage_wrapped(_far), nearby:
            for _ in range(job.rounds):
                with job.timed():
                    found = ours.scan(path, where)
        job.fact("rows", found)

    return run


def _scan_case(name: str, title: str, *, narrow: bool) -> Case:
    sides = {OURS: _scan(narrow=narrow, ahead=True), IN_TURN: _scan(narrow=narrow, ahead=False)}
    return Case(f"P17-{name}", f"{title} of seventy files, 50 ms a request", sides, (), rounds=3, prepare=_pieces)


CASES = [
    Case(
        "P17",
        "plan of 1,000 partitions, 50 ms a request",
        {OURS: _run(planned), LISTING: _run(listed), PARALLEL: _run(listed_at_once)},
        (times_faster(LISTING, 100, "warm.wall", only_at_full_scale=True),),
        rounds=2,
        prepare=table,
    ),
    _scan_case("scan", "a scan", narrow=False),
    _scan_case("narrow", "1 % of the rows", narrow=True),
]
