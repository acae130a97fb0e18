"""Tables written by both sides in turn with each index: neither doubles a key nor begins a second file group for a bucket."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL

SCHEMA = pa.schema([("id", pa.string()), ("sub", pa.int64()), ("part", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
CONSISTENT = {
    **BUCKETS,
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.max.num.buckets": "6",
}


@dataclass(frozen=True)
class Case:
    """One kind of table."""

    name: str
    kind: str
    options: dict[str, str]
    key: str = "id"
    quick: bool = False

    @property
    def is_global(self) -> bool:
        return self.options["hoodie.index.type"].startswith("GLOBAL")


CASES = [
    Case("buckets, copy on write", "COPY_ON_WRITE", BUCKETS, "id,sub"),
    Case("buckets, merge on read", "MERGE_ON_READ", BUCKETS, quick=True),
    Case("buckets by one of two fields", "MERGE_ON_READ", {**BUCKETS, "hoodie.bucket.index.hash.field": "sub"}, "id,sub"),
    Case("consistent hashing", "MERGE_ON_READ", CONSISTENT, "id,sub", quick=True),
    Case("global simple, copy on write", "COPY_ON_WRITE", {"hoodie.index.type": "GLOBAL_SIMPLE"}, quick=True),
    Case("global simple, merge on read", "MERGE_ON_READ", {"hoodie.index.type": "GLOBAL_SIMPLE"}),
    Case("global bloom", "COPY_ON_WRITE", {"hoodie.index.type": "GLOBAL_BLOOM"}),
]
NAMES = ["a", "b c", "k:v", "ä", "x,y", "p:q,r:s"]


def rows(numbers: range, value: str, ts: int, shift: int = 0) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": f"{NAMES[n % 6]}{n}", "sub": n * 7, "part": f"p{(n + shift) % 3}", "v": value, "ts": ts} for n in numbers],
        SCHEMA,
    )


def java_options(case: Case) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": case.kind,
        "hoodie.datasource.write.recordkey.field": case.key,
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.clustering.inline": "false",
        **case.options,
    }


def named(table: pa.Table) -> dict[str, tuple[str, str]]:
    columns = (table[name].to_pylist() for name in ("id", "part", "v"))
    found = [(name, (part, v)) for name, part, v in zip(*columns, strict=True)]
    assert len({name for name, _ in found}) == len(found), "a key came twice"
    return dict(found)


def groups(path: Path) -> set[tuple[str, str]]:
    slices = hudimeta.Table(path).file_slices()
    return set(zip(slices["partition_path"].to_pylist(), slices["file_id"].to_pylist(), strict=True))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", [c for c in CASES if FULL or c.quick], ids=lambda c: c.name)
@pytest.mark.parametrize("we_begin", [True, False], ids=["ours", "theirs"])
def test_both_sides_find_each_others_keys(hudi: ApacheHudi, tmp_path: Path, case: Case, we_begin: bool) -> None:
    path = tmp_path / "t"
    model: dict[str, tuple[str, str]] = {}

    def by_us(given: pa.Table, verb: str = "upsert") -> None:
        getattr(hudimeta.Table(path, options=case.options), verb)(given)

    def by_them(given: pa.Table, operation: str = "upsert", mode: str = "append") -> None:
        hudi.write(path, given, java_options(case), operation=operation, mode=mode)

    def compare() -> None:
        assert named(hudimeta.Table(path).scan().to_table()) == model
        assert named(hudi.read(path).table) == model

    first = rows(range(30), "first", 1)
    if we_begin:
        hudimeta.Table.create(
            path, SCHEMA, key=case.key, partition_by="part", ordering="ts", type=case.kind, options=case.options, name="t"
        )
        by_us(first)
    else:
        by_them(first, mode="overwrite")
    model |= named(first)
    begun = groups(path)
    second = rows(range(10, 40), "second", 2)
    (by_them if we_begin else by_us)(second)
    model |= named(second)
    compare()
    third = rows(range(20, 45), "third", 3, shift=1 if case.is_global else 0)
    (by_us if we_begin else by_them)(third)
    model |= named(third)
    compare()
    gone = rows(range(0, 45, 5), "", 4)
    by_us(gone, "delete")
    for name in gone["id"].to_pylist():
        model.pop(name)
    compare()
    fourth = rows(range(20), "fourth", 5)
    (by_them if we_begin else by_us)(fourth)
    model |= named(fourth)
    compare()
    if not case.is_global:
        assert begun <= groups(path)
        # A bucket has one file group for ever; three of a partition are known by their number or by their stretch of the ring.
        assert len(groups(path)) == len({(partition, file_id[:8]) for partition, file_id in groups(path)}) <= 9
    assert all(hudi.validate(path).values())
