"""P2: which files does one partition of 4,578 have? The table is opened for each question."""

from __future__ import annotations

from benchmarks import ours, rivals, synthetic
from benchmarks.case import OURS, RUST, Case, Settings, at_most, versions_of_apache
from benchmarks.job import Job


def prepare(settings: Settings) -> None:
    """Make the table."""
    synthetic.make(settings, synthetic.large(settings))


def partition(settings: Settings) -> str:
    """A partition in the middle."""
    names = synthetic.partition_names(synthetic.large(settings))
    return names[len(names) // 2]


def hudimeta(job: Job) -> None:
    """Open, ask."""
    path, name, count = synthetic.make(job.settings, synthetic.large(job.settings)), partition(job.settings), 0
    for _ in range(job.rounds):
        with job.timed():
            count = ours.count_files(ours.open_table(path), name)
    job.fact("files", count)


def hudi_rs(job: Job) -> None:
    """File slices of the partition, which is how it lists files."""
    from hudi import HudiReadOptions

    path, name, count = synthetic.make(job.settings, synthetic.large(job.settings)), partition(job.settings), 0
    for _ in range(job.rounds):
        with job.timed():
            count = len(rivals.hudi_rs(path).get_file_slices(HudiReadOptions(filters=[("day", "=", name)])))
    job.fact("files", count)


def apache_hudi(job: Job) -> None:
    """`getAllFilesInPartition`, table and reader opened for each question."""
    path = synthetic.make(job.settings, synthetic.large(job.settings))
    job.fact("files", rivals.planning(job, path, "files", partition(job.settings)))


CASES = [
    Case(
        "P2",
        "files of one partition of 4,578, new table object",
        {OURS: hudimeta, RUST: hudi_rs, **versions_of_apache(apache_hudi)},
        (at_most("warm.wall", 0.010, "<= 10 ms"),),
        rounds=10,
        prepare=prepare,
    )
]
