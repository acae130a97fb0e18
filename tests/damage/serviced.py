"""Tables of ours that services have been at: clustered, restored, described, resized, with savepoints and plans that wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from hudimeta.api.bootstrapping import bootstrap
from hudimeta.api.table import Table
from tests.damage.building import INDEXED, QUIET, Building, Step, begun, lay_out, rows, taken, usual
from tests.damage.histories import WRITTEN

__all__ = ["BINARY", "MERGED_SOON", "SERVICED"]

MERGED_SOON = {"hoodie.log.compaction.blocks.threshold": "2"}
"""A log compaction takes whatever has two blocks."""
BINARY = {"hoodie.clustering.execution.strategy.class": "SparkBinaryCopyClusteringExecutionStrategy"}
"""A clustering puts files together without decoding them."""
APART = {"hoodie.parquet.small.file.limit": "0"}
"""Every insert begins new file groups, which a clustering then has to put together."""


@cache
def _written(name: str) -> Building:
    with TemporaryDirectory(prefix="hudimeta-damage-") as home:
        return WRITTEN[name](Path(home) / "t")


def _after(name: str, path: Path) -> Building:
    """A table that writes have made, to go on with."""
    source = _written(name)
    lay_out(source.now, path)
    return Building(path, source.options, {place: list(every) for place, every in source.past.items()}, dict(source.now))


def _with(made: Building, options: Mapping[str, str], step: Step) -> Step:
    """A step over the table with further options."""
    return lambda t: step(Table(t.path, {**made.options, **options}))


def _clustered(path: Path, type: str) -> Building:
    """Put together by copying and by sorting, the first of it pinned; of merge-on-read a plan waits, which many writes meet."""
    made = begun(path, {**INDEXED, **APART}, type=type)
    steps: list[Step] = [
        lambda t: t.insert(rows(range(6), 1)),
        lambda t: t.insert(rows(range(6, 12), 1)),
        lambda t: t.savepoint(comment="before the clustering"),
        _with(made, BINARY, lambda t: t.cluster()),
        *usual()[1:],
        lambda t: t.cluster("n"),
        lambda t: t.insert(rows(range(20, 24), 5)),
        lambda t: t.upsert(rows(range(4, 8), 6)),
    ]
    waits: list[Step] = [lambda t: t.services.clustering.schedule()] if type == "MERGE_ON_READ" else []
    return taken(made, [*steps, *waits])


def _mor_logs_merged(path: Path) -> Building:
    """A log compaction is done, one is planned, and more was written in between; rows came to logs."""
    made = _after("mor_indexed", path)
    steps: list[Step] = [
        lambda t: t.upsert(rows(range(2, 8), 5)),
        _with(made, MERGED_SOON, lambda t: t.log_compact()),
        lambda t: t.upsert(rows(range(4, 8), 6)),
        lambda t: t.delete(rows(range(6, 7), 7)),
        _with(made, MERGED_SOON, lambda t: t.services.log_compaction.schedule()),
        lambda t: t.upsert(rows(range(20, 24), 8)),
    ]
    return taken(made, steps)


def _mor_logs_alone(path: Path) -> Building:
    """New rows lie in logs, without base files; a compaction is planned."""
    made = begun(path, {**INDEXED, "hudimeta.log.inserts": "true"}, type="MERGE_ON_READ")
    return taken(made, [*usual(), lambda t: t.schedule_compaction(), lambda t: t.upsert(rows(range(9, 16), 5))])


def _restored(path: Path, type: str) -> Building:
    """Pinned, written to, taken back to the savepoint, written to, and the newest write of all taken back."""
    made = _after("cow_indexed" if type == "COPY_ON_WRITE" else "mor_indexed", path)
    steps: list[Step] = [
        lambda t: t.savepoint(),
        lambda t: t.upsert(rows(range(2, 8), 5)),
        lambda t: t.insert(rows(range(30, 34), 5)),
        lambda t: t.restore(t.savepoints()[0].instant),
        lambda t: t.upsert(rows(range(4, 7), 6)),
        lambda t: t.upsert(rows(range(8, 9), 7)),
        lambda t: t.rollback(t.timeline.writes[-1].time),
    ]
    return taken(made, steps)


def _described(path: Path, type: str) -> Building:
    """Made of files that stay where they are; some of its rows were written since."""
    source = path.parent / f"source of {path.parent.name}"
    for part in range(2):
        for file in range(2):
            some = rows(range(part + 2 * file, 12, 4), 1)
            folder = source / f"p{part}"
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(some.drop_columns(["part"]), folder / f"f{file}.parquet")
    record_index = "hoodie.metadata.record.index.enable"
    options = {**QUIET, record_index: INDEXED[record_index]}
    bootstrap(source, path, "id", "part", "ts", type, options=options, mode="METADATA_ONLY")
    made = Building(path, options)
    made.keep()
    return taken(made, [lambda t: t.upsert(rows(range(3, 5), 2)), lambda t: t.insert(rows(range(20, 24), 3))])


def _resized(path: Path) -> Building:
    """A record index in three file groups, which had one and then five; an index that is planned."""
    made = _after("mor_indexed", path)
    steps: list[Step] = [
        lambda t: t.metadata.resize_index(5),
        lambda t: t.metadata.resize_index(3),
        lambda t: t.upsert(rows(range(2, 16), 5)),
        lambda t: t.services.indexing.schedule("secondary_index", "beside", "note"),
    ]
    return taken(made, steps)


def _changed(path: Path) -> Building:
    """Of version 9, whose type and name were changed on the way, with partitions that were dropped and doubles that went."""
    made = _after("cow_worn", path)
    steps: list[Step] = [
        lambda t: t.upgrade(9),
        lambda t: t.change_type("MERGE_ON_READ"),
        lambda t: t.upsert(rows(range(3, 9), 20)),
        lambda t: t.delete_partition("p1"),
        lambda t: t.upsert(rows(range(4, 8), 21)),
    ]
    return taken(made, steps)


SERVICED: Mapping[str, Callable[[Path], Building]] = {
    "cow_clustered": lambda path: _clustered(path, "COPY_ON_WRITE"),
    "mor_clustered": lambda path: _clustered(path, "MERGE_ON_READ"),
    "mor_logs_merged": _mor_logs_merged,
    "mor_logs_alone": _mor_logs_alone,
    "cow_restored": lambda path: _restored(path, "COPY_ON_WRITE"),
    "mor_restored": lambda path: _restored(path, "MERGE_ON_READ"),
    "cow_described": lambda path: _described(path, "COPY_ON_WRITE"),
    "mor_described": lambda path: _described(path, "MERGE_ON_READ"),
    "mor_resized": _resized,
    "mor_changed": _changed,
}
"""Tables that further services have been at, by name."""
