"""P34: the eight calls that the first draft of RFC-15 times, on tables of the size of its three data sets (C, M and E).

Two are about partitions and their files, six about base files, file groups and file slices of one partition. The table is
opened for each call. A note a call has the milliseconds of the quickest round; what each finds is counted, and all sides have
to find the same. Titles hold the draft's own figures, of its prototype on HDFS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import ours, rivals, synthetic
from benchmarks.case import KEPT, OURS, Case, Settings, versions_of_apache
from benchmarks.job import Job

Shaped = Callable[[Settings], synthetic.Shape]
Call = Callable[[Any, str], Any]

PARTITIONS, FILES = "getAllPartitions", "getAllFilesInPartition"
BASE_FILES, NEWEST, UNCOMPACTED = "getLatestBaseFiles", "getLatestFileSlices", "getLatestUnCompactedFileSlices"
CALLS = (PARTITIONS, FILES, "getAllBaseFiles", "getAllFileGroups", "getAllFileSlices", BASE_FILES, NEWEST, UNCOMPACTED)
OF_APACHE = {PARTITIONS: "partitions", FILES: "files"}
"""What `rivals.planning_calls` calls the two; views go by their names."""

DRAFT = {
    "C": (0.2, 0.1, 1, 1, 39, 3, 2, 2),
    "M": (11.3, 0.5, 193, 140, 82, 187, 106, 109),
    "E": (2.9, 267.6, 1394, 2021, 626, 2519, 3701, 3214),
}
"""Milliseconds with its consolidated metadata, in the order of `CALLS`."""


def _calls() -> dict[str, Call]:
    from hudimeta.services.metadata_table.listing_cost import LOOKUPS, VIEWS

    return {**LOOKUPS, **VIEWS}


def _calls_of_kept_plans() -> dict[str, Call]:
    """Kept plans hold partitions and newest slices; what asks for files of older slices reads the metadata table."""
    from hudimeta.services.metadata_table.listing_cost import uncompacted

    def newest(snapshot: Any, partition: str) -> Any:
        return snapshot.slices([partition])

    def base_files(snapshot: Any, partition: str) -> Any:
        slices = newest(snapshot, partition)
        return slices.filter(slices["base_file"].is_valid())

    own: dict[str, Call] = {
        PARTITIONS: lambda snapshot, _: snapshot.partitions(),
        BASE_FILES: base_files,
        NEWEST: newest,
        UNCOMPACTED: lambda snapshot, partition: uncompacted(newest(snapshot, partition), snapshot),
    }
    return {**_calls(), **own}


def _middle(shape: synthetic.Shape) -> str:
    return synthetic.partition_names(shape)[shape.partitions // 2]


def _ask(job: Job, path: Path, partition: str, calls: Mapping[str, Call], options: Mapping[str, str]) -> None:
    for name in CALLS:
        taken, count = [], 0
        for _ in range(job.rounds):
            begin = time.perf_counter()
            with job.timed():
                count = len(calls[name](ours.open_table(path, options).snapshot(), partition))
            taken.append(time.perf_counter() - begin)
        _told(job, name, count, taken)


def _told(job: Job, name: str, count: int, seconds: list[float]) -> None:
    job.fact(name, count)
    job.note(f"{name} (ms)", round(min(seconds) * 1000, 2))


def _hudimeta(shaped: Shaped) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        shape = shaped(job.settings)
        _ask(job, synthetic.make(job.settings, shape), _middle(shape), _calls(), {})

    return run


def _kept(shaped: Shaped) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        shape = shaped(job.settings)
        path = synthetic.make(job.settings, shape)
        with job.folder() as folder:
            options = ours.keeping_plans(folder / "plans")
            ours.count_slices(ours.open_table(path, options))
            _ask(job, path, _middle(shape), _calls_of_kept_plans(), options)

    return run


def _apache(shaped: Shaped) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        shape = shaped(job.settings)
        asked = {name: OF_APACHE.get(name, name) for name in CALLS}
        path = synthetic.make(job.settings, shape)
        for name, (count, seconds) in rivals.planning_calls(job, path, asked, _middle(shape)).items():
            _told(job, name, count, seconds)

    return run


def _case(name: str, title: str, shaped: Shaped) -> Case:
    sides = {OURS: _hudimeta(shaped), KEPT: _kept(shaped), **versions_of_apache(_apache(shaped))}
    draft = ", ".join(f"{call} {took:,}" for call, took in zip(CALLS, DRAFT[name[-1]], strict=True))

    def prepare(settings: Settings) -> None:
        synthetic.make(settings, shaped(settings))

    return Case(name, f"{title}; the draft (ms): {draft}", sides, (), 5, prepare)


CASES = [
    _case("P34-C", "eight calls, 1,438 files in 719 partitions", synthetic.tiny),
    _case("P34-M", "eight calls, 285,743 files in 3,617 partitions", synthetic.middle),
    _case("P34-E", "eight calls, 2,275,266 files in 497 partitions", synthetic.large),
]
