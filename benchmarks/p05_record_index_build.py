"""P5, P7: building a record index over a table that has rows, and how many bytes a key takes in it.

One million random UUIDs, and 1.5 million keys of one form that rise through the table: the two extremes of how well keys pack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import ours, rivals, synthetic_keys
from benchmarks.case import APACHE, OURS, Case, Goal, Measured, Settings, Side, rate_at_least, times_faster, versions_of_apache
from benchmarks.job import Job

PARTITIONS = 7


@dataclass(frozen=True)
class Keys:
    """Which keys: a name, how many, and who makes them."""

    name: str
    count: int
    make: Callable[[int], pa.Array]

    def rows_file(self, settings: Settings) -> Path:
        """Rows `id, part, value` as a Parquet file, which is kept."""
        count = settings.scaled(self.count, least=1000)
        path = settings.data / f"keys-{self.name}-{count}.parquet"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            number = np.arange(count)
            parts = pa.array([f"p{n}" for n in range(PARTITIONS)]).take(pa.array(number * PARTITIONS // count))
            table = pa.table({"id": self.make(count), "part": parts, "value": pa.array(number * 0.5)})
            pq.write_table(table, path.with_suffix(".unfinished"))
            path.with_suffix(".unfinished").rename(path)
        return path


def uuids(count: int) -> pa.Array:
    """Random UUIDs."""
    return synthetic_keys.keys(0, count)


def rising(count: int) -> pa.Array:
    """Numbers, padded with zeros."""
    return pa.array([f"{n:012d}" for n in range(count)])


def _index_bytes(path: Path) -> int:
    folder = path / ".hoodie" / "metadata" / "record_index"
    return sum(f.stat().st_size for f in folder.iterdir() if not f.name.endswith(".crc") and "metadata" not in f.name)


def _note(job: Job, path: Path, count: int) -> None:
    job.note("bytes a key", _index_bytes(path) / count)
    job.note("keys per cpu s", count / job.measured.warm.cpu)


def _hudimeta(keys: Keys) -> Side:
    def run(job: Job) -> None:
        rows = pq.read_table(keys.rows_file(job.settings))
        for _ in range(job.rounds):
            with job.folder() as folder:
                path = folder / "t"
                ours.create(path, rows.schema, "id", "part", "value", "COPY_ON_WRITE").bulk_insert(rows)
                with job.timed():
                    ours.open_table(path).metadata.create_index(type="record_index")
                _note(job, path, rows.num_rows)

    return run


def _apache(keys: Keys) -> Side:
    def run(job: Job) -> None:
        rows = keys.rows_file(job.settings)
        options = {
            "hoodie.table.name": "keys",
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "value",
        }
        with rivals.apache_hudi(job) as process:
            lock = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
            process.call("sql", statement=f"SET hoodie.write.lock.provider={lock}")
            for number in range(job.rounds):
                with job.folder() as folder:
                    path, name = folder / "t", f"keys_{number}"
                    process.call("write", timeout=1200, path=str(path), rows=str(rows), options=options)
                    process.call("sql", statement=f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
                    done = process.call("sql", timeout=1200, statement=f"CREATE INDEX record_index ON {name} (id)")
                    job.add(done["timings"])
                    _note(job, path, pq.read_metadata(rows).num_rows)

    return run


def _no_larger(version: str) -> Goal:
    def met(sides: Mapping[str, Measured]) -> bool | None:
        mine, other = sides[OURS], sides.get(version)
        if other is None or mine.error or other.error:
            return None
        return float(mine.notes["bytes a key"]) <= float(other.notes["bytes a key"])

    return Goal(f"no more bytes a key than {version}", met)


def _at_most(limit: float) -> Goal:
    def met(sides: Mapping[str, Measured]) -> bool | None:
        return None if sides[OURS].error else float(sides[OURS].notes["bytes a key"]) <= limit

    return Goal(f"<= {limit:g} bytes a key", met, only_at_full_scale=True)


def _case(keys: Keys, title: str, limit: float) -> Case:
    goals = (
        _at_most(limit),
        *(_no_larger(version) for version in APACHE),
        *(times_faster(version, 5) for version in APACHE),
        rate_at_least("keys per cpu s", 1e5, ">= 100k keys a cpu second"),
    )
    sides = {OURS: _hudimeta(keys), **versions_of_apache(_apache(keys))}
    return Case(f"P5-{keys.name}", title, sides, goals, rounds=2, prepare=keys.rows_file)


CASES = [
    _case(Keys("uuid", 1_000_000, uuids), "record index built over 1M random UUIDs", 30),
    _case(Keys("rising", 1_500_000, rising), "record index built over 1.5M rising keys", 5),
]
