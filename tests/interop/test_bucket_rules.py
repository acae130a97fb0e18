"""Partitions with their own numbers of buckets: made, written and counted anew by either side (Apache Hudi since 1.1)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi, Installation

FOUND = Installation.find()
HAS_RULES = FOUND is not None and FOUND.release >= "1.1"
FOLDER = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.write.table.version": "8",
}
RULES = {"hoodie.bucket.index.partition.expressions": "p2,4;p[3-9],3"}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def rows(first: int, last: int, ts: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {
            "id": [f"k{n:03d}" for n in numbers],
            "part": [f"p{1 + n // 30}" for n in numbers],
            "ts": [ts] * len(numbers),
            "value": [n / 7 for n in numbers],
        }
    )


def buckets(path: Path) -> dict[str, int]:
    """How many buckets each partition has."""
    return dict(Counter(one["partition_path"] for one in hudimeta.Table(path).file_slices().to_pylist()))


def known(hudi: ApacheHudi, folder: Path, *rules: str) -> None:
    """Let Hudi meet rules in one task first: it keeps what it read of them in a map that is not safe for two at once."""
    for number, expressions in enumerate(rules if HAS_RULES else ()):
        alone = {**OPTIONS, "hoodie.bucket.index.partition.expressions": expressions}
        hudi.write(folder / f"alone{number}", rows(0, 1, 1), alone)


def check(path: Path, hudi: ApacheHudi, stamps: dict[int, int]) -> None:
    """Both sides see each key once, with its newest value, and the metadata table fits."""
    expected = sorted((f"k{n:03d}", ts) for n, ts in stamps.items())
    ours = hudimeta.Table(path).scan(columns=["id", "ts"]).to_table()
    for table in (ours, hudi.read(path).table):
        assert sorted(zip(table["id"].to_pylist(), table["ts"].to_pylist(), strict=True)) == expected
    assert hudimeta.Table(path).metadata.validate().holds


@pytest.mark.parametrize("type", TYPES)
def test_a_table_of_ours(tmp_path: Path, hudi: ApacheHudi, type: str) -> None:
    path, then = tmp_path / "t", "p1,5;p2,2;.*,4"
    known(hudi, tmp_path, *RULES.values(), then)
    options = {**OPTIONS, **RULES, "hoodie.datasource.write.table.type": type}
    table = hudimeta.Table.create(path, rows(0, 1, 1).schema, options=options)
    table.upsert(rows(0, 90, 1))
    assert buckets(path) == {"p1": 2, "p2": 4, "p3": 3}
    stamps = dict.fromkeys(range(90), 1)
    if HAS_RULES:  # older releases would go by options
        hudi.write(path, rows(10, 120, 2), {**OPTIONS, "hoodie.datasource.write.table.type": type})
        stamps |= dict.fromkeys(range(10, 120), 2)
        assert buckets(path) == {"p1": 2, "p2": 4, "p3": 3, "p4": 3}
    table = hudimeta.Table(path)
    if type == "MERGE_ON_READ":
        table.compact()
    table.rescale_buckets(then)
    table.upsert(rows(20, 100, 3))
    stamps |= dict.fromkeys(range(20, 100), 3)
    check(path, hudi, stamps)
    if HAS_RULES:
        hudi.write(path, rows(0, 125, 4), {**OPTIONS, "hoodie.datasource.write.table.type": type})
        stamps |= dict.fromkeys(range(125), 4)
        assert buckets(path) == {"p1": 5, "p2": 2, "p3": 4, "p4": 4, "p5": 4}
        check(path, hudi, stamps)


@pytest.mark.parametrize("type", TYPES)
def test_a_table_of_apache_hudi(tmp_path: Path, hudi: ApacheHudi, type: str) -> None:
    """Its Spark writers keep no rules until its own procedure brings some."""
    path, name = tmp_path / "t", f"ruled_{type[0].lower()}"
    by_them, by_us = "p1,5;p[2-9],3", "p1,2;.*,4"
    known(hudi, tmp_path, *RULES.values(), by_them, by_us)
    kind = "cow" if type == "COPY_ON_WRITE" else "mor"
    options = {**OPTIONS, **RULES} if HAS_RULES else OPTIONS
    told = ", ".join(f"'{key}' = '{value}'" for key, value in options.items() if "datasource" not in key)
    hudi.sql(
        f"CREATE TABLE {name} (id STRING, ts BIGINT, value DOUBLE, part STRING) USING hudi PARTITIONED BY (part) "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = '{kind}', {told}, "
        f"'hoodie.datasource.write.hive_style_partitioning' = 'false') LOCATION '{path}'"
    )
    hudi.sql(
        f"INSERT INTO {name} SELECT concat('k', lpad(id, 3, '0')), 1L, id / 7.0D, concat('p', 1 + int(id / 30)) FROM range(90)"
    )
    assert not (path / FOLDER).exists()
    stamps = dict.fromkeys(range(90), 1)
    given = {key: value for key, value in options.items() if "bucket" in key or "index.type" in key}
    hudimeta.Table(path, given).upsert(rows(10, 120, 2))
    stamps |= dict.fromkeys(range(10, 120), 2)
    check(path, hudi, stamps)
    if type == "MERGE_ON_READ":
        hudimeta.Table(path, given).compact()
    if HAS_RULES:
        more = f"overwrite => '{by_them}', bucket_number => 2, dry_run => false"
        hudi.sql(f"CALL partition_bucket_index_manager(table => '{name}', {more})")
        (config,) = (path / FOLDER).glob("*.hashing_config")
        assert json.loads(config.read_text())["defaultBucketNumber"] == 2
        given = {"hoodie.index.type": "BUCKET"}
        hudimeta.Table(path, given).upsert(rows(5, 125, 3))
        stamps |= dict.fromkeys(range(5, 125), 3)
        check(path, hudi, stamps)
    hudimeta.Table(path, given).rescale_buckets(by_us)
    if HAS_RULES:
        named = {"hoodie.table.name": name, "hoodie.datasource.write.table.type": type}
        hudi.write(path, rows(0, 90, 4), {**OPTIONS, **named})
        stamps |= dict.fromkeys(range(90), 4)
    assert buckets(path)["p2"] == 4
    check(path, hudi, stamps)
