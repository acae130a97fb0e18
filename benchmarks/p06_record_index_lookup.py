"""P6: where do some record keys live? Random keys of a record index of random UUIDs; the table is opened for each question."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.parquet as pq

from benchmarks import ours, rivals, synthetic, synthetic_keys
from benchmarks.case import OURS, Case, Goal, Settings, at_most, faster_than_apache, versions_of_apache
from benchmarks.job import Job

Shaped = Callable[[Settings], synthetic.Shape]


def _hudimeta(shaped: Shaped, asked: int) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        import pyarrow as pa

        shape = shaped(job.settings)
        path, count = synthetic.make(job.settings, shape), 0
        keys = synthetic_keys.sample(shape, asked)
        for _ in range(job.rounds):
            with job.timed():
                count = ours.locate(ours.open_table(path), keys)
        job.fact("found", count)
        job.note("found of strangers", ours.locate(ours.open_table(path), pa.array(["no such key"])))
        job.note("index MB", synthetic_keys.index_bytes(path) / 1e6)

    return run


def _apache(shaped: Shaped, asked: int) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        import pyarrow as pa

        shape = shaped(job.settings)
        path = synthetic.make(job.settings, shape)
        with rivals.apache_hudi(job) as process, job.folder() as folder:
            pq.write_table(pa.table({"key": synthetic_keys.sample(shape, asked)}), folder / "keys.parquet")
            request = {"path": str(path), "keys": str(folder / "keys.parquet"), "repeat": job.rounds}
            answer = process.call("locate", timeout=1200, **request)
        job.add(answer["timings"])
        job.fact("found", answer["count"])

    return run


def _case(name: str, title: str, shaped: Shaped, asked: int, limit: float, more: tuple[Goal, ...] = ()) -> Case:
    return Case(
        name,
        title,
        {OURS: _hudimeta(shaped, asked), **versions_of_apache(_apache(shaped, asked))},
        (at_most("warm.wall", limit, f"<= {limit:g} s"), *more),
        prepare=lambda settings: synthetic.make(settings, shaped(settings)),
    )


CASES = [
    _case("P6-1", "record index, 1 key of 1M", synthetic_keys.million, 1, 0.030, faster_than_apache(1)),
    _case("P6-1000", "record index, 1,000 keys of 1M", synthetic_keys.million, 1_000, 0.3, faster_than_apache(1)),
    _case("P6-100000", "record index, 100,000 keys of 1M", synthetic_keys.million, 100_000, 0.6, faster_than_apache(1)),
    _case("P6-10m", "record index, 100,000 keys of 10M", synthetic_keys.ten_million, 100_000, 4),
]
