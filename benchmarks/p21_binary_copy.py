"""P21: clustering 1.5 million rows of ten commits without decoding them, beside decoding, and beside a copy of the files."""

from __future__ import annotations

import shutil

from benchmarks import ours, written
from benchmarks.case import OURS, Case, Settings, times_faster
from benchmarks.job import Job

PIECES = 10
DECODED, COPIED = "decoded", "cp"
COPIES = {"hoodie.clustering.execution.strategy.class": "SparkBinaryCopyClusteringExecutionStrategy"}


def prepare(settings: Settings) -> None:
    """Make the table."""
    written.in_pieces(settings, PIECES)


def _cluster(job: Job, options: dict[str, str]) -> None:
    source = written.in_pieces(job.settings, PIECES)
    for _ in range(job.rounds):
        with job.folder() as folder:
            table = ours.open_table(written.copied(source, folder), options)
            with job.timed():
                (report,) = table.cluster()
            job.note("files", report.files_after)
            job.note("bytes", report.bytes_after)
            job.fact("groups copied" if options else "groups", report.groups_copied)


def hudimeta(job: Job) -> None:
    """`Table.cluster` with binary copies."""
    _cluster(job, COPIES)


def decoded(job: Job) -> None:
    """`Table.cluster` as it is without."""
    _cluster(job, {})


def copied(job: Job) -> None:
    """The base files, copied by the operating system."""
    source = written.in_pieces(job.settings, PIECES)
    for _ in range(job.rounds):
        with job.folder() as folder, job.timed():
            for number, path in enumerate(sorted(source.rglob("*.parquet"))):
                if ".hoodie" not in path.parts:
                    shutil.copyfile(path, folder / str(number))


CASES = [
    Case(
        "P21",
        "clustering without decoding",
        {OURS: hudimeta, DECODED: decoded, COPIED: copied},
        (times_faster(DECODED, 8, only_at_full_scale=True), times_faster(COPIED, 0.6, "warm.wall", only_at_full_scale=True)),
        rounds=3,
        prepare=prepare,
    )
]
