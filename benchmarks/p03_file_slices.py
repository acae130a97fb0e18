"""P3: the file slices of a whole table, from the metadata table; the table is opened for each question."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import ours, rivals, synthetic
from benchmarks.case import OURS, RUST, Case, Settings, at_most, faster_than_apache, times_faster, versions_of_apache
from benchmarks.job import Job

Shaped = Callable[[Settings], synthetic.Shape]


def _prepare(shape: Shaped) -> Callable[[Settings], object]:
    return lambda settings: synthetic.make(settings, shape(settings))


def _hudimeta(shape: Shaped) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        path, count = synthetic.make(job.settings, shape(job.settings)), 0
        for _ in range(job.rounds):
            with job.timed():
                count = ours.count_slices(ours.open_table(path))
        job.fact("slices", count)

    return run


def hudi_rs(job: Job) -> None:
    """`get_file_slices`; its own Python objects are made inside, so the call is timed whole."""
    path, count = synthetic.make(job.settings, synthetic.middle(job.settings)), 0
    for _ in range(job.rounds):
        with job.timed():
            count = len(rivals.hudi_rs(path).get_file_slices())
    job.fact("slices", count)


def apache_hudi(job: Job) -> None:
    """A file system view over the metadata table, all partitions loaded."""
    path = synthetic.make(job.settings, synthetic.middle(job.settings))
    job.fact("slices", rivals.planning(job, path, "slices"))


CASES = [
    Case(
        "P3-286k",
        "file slices, 285,743 files in 3,617 partitions",
        {OURS: _hudimeta(synthetic.middle), RUST: hudi_rs, **versions_of_apache(apache_hudi)},
        (times_faster(RUST, 2), *faster_than_apache(5), at_most("rss", 300e6, "<= 300 MB")),
        rounds=4,
        prepare=_prepare(synthetic.middle),
    ),
    Case(  # no rival: hudi-rs needs 10 KB a slice, 23 GB; Apache Hudi was stopped after 90 s
        "P3-2m",
        "file slices, 2,275,266 files in 497 partitions",
        {OURS: _hudimeta(synthetic.large)},
        (at_most("warm.wall", 6, "<= 6 s"), at_most("rss", 1.5e9, "<= 1.5 GB")),
        rounds=3,
        prepare=_prepare(synthetic.large),
    ),
]
