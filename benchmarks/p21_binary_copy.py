"""P21: clustering 1.5 million rows of ten commits without decoding them, beside decoding, and beside a copy of the files.

Files of that table have 0.7 MB: what is done once a file, a column chunk and a commit takes most of the time, and so do the
filters over record keys, for which all keys are hashed, since filters of fewer than 100,000 keys have different sizes. The
second case has files of 7 MB.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks import ours, written
from benchmarks.case import OURS, Case, Settings, Side, times_faster
from benchmarks.job import Job

PIECES = 10
DECODED, COPIED = "decoded", "cp"
SYNCED = "cp, synced"
"""The same until the disk has it, as a commit must: no clustering can be faster, whatever it copies."""
COPIES = {"hoodie.clustering.execution.strategy.class": "SparkBinaryCopyClusteringExecutionStrategy"}


Source = Callable[[Settings], Path]


def _small(settings: Settings) -> Path:
    """1.5 million rows, in seventy files."""
    return written.in_pieces(settings, PIECES)


def _large(settings: Settings) -> Path:
    """10.5 million rows, in forty-nine files."""
    return written.large(settings, written.COW, record_index=False)


def _clustering(source: Source, options: dict[str, str]) -> Side:
    """`Table.cluster`."""

    def run(job: Job) -> None:
        path = source(job.settings)
        for _ in range(job.rounds):
            with job.folder() as folder:
                table = ours.open_table(written.copied(path, folder), options)
                with job.timed():
                    (report,) = table.cluster()
                job.note("files", report.files_after)
                job.note("bytes", report.bytes_after)
                job.fact("groups copied" if options else "groups", report.groups_copied)

    return run


def _copying(source: Source, *, synced: bool) -> Side:
    """The base files, copied by the operating system; those of a partition one after the other into one file where synced."""

    def run(job: Job) -> None:
        path = source(job.settings)
        files = [file for file in sorted(path.rglob("*.parquet")) if ".hoodie" not in file.parts]
        for _ in range(job.rounds):
            with job.folder() as folder, job.timed():
                if synced:
                    _copy_synced(files, folder)
                else:
                    for number, file in enumerate(files):
                        shutil.copyfile(file, folder / str(number))

    return run


def _copy_synced(files: list[Path], folder: Path) -> None:
    for partition, some in itertools.groupby(files, lambda file: file.parent.name):
        with (folder / partition).open("wb") as target:
            for file in some:
                with file.open("rb") as content:
                    shutil.copyfileobj(content, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())


def _case(name: str, title: str, source: Source) -> Case:
    return Case(
        name,
        title,
        {
            OURS: _clustering(source, COPIES),
            DECODED: _clustering(source, {}),
            COPIED: _copying(source, synced=False),
            SYNCED: _copying(source, synced=True),
        },
        (
            times_faster(DECODED, 8, only_at_full_scale=True),
            times_faster(COPIED, 0.6, "warm.wall", only_at_full_scale=True),
        ),
        rounds=3,
        prepare=source,
    )


CASES = [
    _case("P21", "clustering without decoding", _small),
    _case("P21-10m", "the same of ten million rows", _large),
]
