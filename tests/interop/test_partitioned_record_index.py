"""A record index that is kept by partition, as Apache Hudi has it from 1.1 on: a key in two partitions is two rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.elsewhere import only_when
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, OLD

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
PARTS = ("2026-01-02", "b_c")
"""In hive style, whose folders ids of file groups spell otherwise."""
INDEX = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.metadata.record.level.index.enable": "true",
    "hoodie.index.type": "RECORD_LEVEL_INDEX",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}


def of_a_table(kind: str) -> dict[str, str]:
    """Options of Apache Hudi's writes."""
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.write.table.version": "9",
        **INDEX,
    }


def rows(numbers: range, v: str, ts: int) -> pa.Table:
    """Each key in two partitions."""
    parts = [(n, part) for n in numbers for part in PARTS]
    return pa.Table.from_pylist([{"id": f"k{n}", "part": part, "v": v, "ts": ts} for n, part in parts], SCHEMA)


def without_keys_of_other_partitions(given: pa.Table, there: dict[tuple[str, str], str]) -> pa.Table:
    """The rows of which Apache Hudi loses none.

    Release 1.2.0 joins rows with what this index found by their keys alone, without partitions: a row whose key is in another
    partition and not in its own becomes one of that partition, also after its own deletes (`tagGlobalLocationBackToRecords`).
    """
    keys = {key for key, _ in there}
    return given.filter(pa.array([(row["id"], row["part"]) in there or row["id"] not in keys for row in given.to_pylist()]))


@only_when(FULL and not OLD, "make interop-full, by Apache Hudi 1.1 or later")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_goes_on_with_one_that_we_build_later(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    """Over its rows, with several file groups a partition: it finds each key in the one where its hash says."""
    path, expected = tmp_path / "t", dict[tuple[str, str], str]()
    options = of_a_table(kind)
    bare = {"hoodie.metadata.record.level.index.enable": "false", "hoodie.index.type": "SIMPLE"}
    for turn, (writes, numbers) in enumerate(
        [("them", range(20)), ("us", range(15, 30)), ("them", range(5, 35)), ("us", range(8))]
    ):
        given = rows(numbers, f"turn {turn}", turn)
        if writes == "us":
            hudimeta.Table(path, INDEX).upsert(given)
        else:
            given = without_keys_of_other_partitions(given, expected)
            more = bare if turn == 0 else {}
            hudi.write(path, given, {**options, **more}, operation="upsert", mode="append" if turn else "overwrite")
        if turn == 0:
            groups = {f"hoodie.metadata.record.level.index.{end}.filegroup.count": "3" for end in ("min", "max")}
            hudimeta.Table(path, {**INDEX, **groups}).metadata.create_index(type="record_index")
        expected.update({(row["id"], row["part"]): row["v"] for row in given.to_pylist()})
        for found in (hudimeta.Table(path).scan().to_table(), hudi.read(path).table):
            assert sorted(((r["id"], r["part"]), r["v"]) for r in found.to_pylist()) == sorted(expected.items()), turn
        metadata = hudimeta.Table(path).metadata
        assert len(metadata.file_groups("record_index")) == 6
        assert metadata.validate().holds


@only_when(FULL and not OLD, "make interop-full, by Apache Hudi 1.1 or later")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("we_begin", [True, False], ids=["ours", "theirs"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_tell_equal_keys_of_two_partitions_apart(hudi: ApacheHudi, tmp_path: Path, kind: str, we_begin: bool) -> None:
    path, expected = tmp_path / "t", dict[tuple[str, str], str]()
    options = {**of_a_table(kind), "hoodie.clean.automatic": "false"}
    if we_begin:
        hudimeta.Table.create(
            path, SCHEMA, "id", "part", ordering="ts", type=kind, options={**INDEX, "hoodie.write.table.version": "9"}
        )
    for turn, (operation, numbers) in enumerate(
        [
            ("insert", range(20)),
            ("upsert", range(10, 30)),
            ("upsert", range(5, 25)),
            ("delete", range(0, 30, 4)),
            ("upsert", range(12)),
        ]
    ):
        given = rows(numbers, f"turn {turn}", turn)
        if operation == "delete":
            given = given.filter(pc.equal(given["part"], PARTS[0]))
        if we_begin == (turn % 2 == 0):
            getattr(hudimeta.Table(path, INDEX), operation)(given)
        else:
            given = without_keys_of_other_partitions(given, expected)
            hudi.write(path, given, options, operation=operation, mode="append" if turn else "overwrite")
        for row in given.to_pylist():
            expected[row["id"], row["part"]] = row["v"]
            if operation == "delete":
                del expected[row["id"], row["part"]]
        for found in (hudimeta.Table(path).scan().to_table(), hudi.read(path).table):
            read = [((r["id"], r["part"]), r["v"]) for r in found.to_pylist()]
            assert sorted(read) == sorted(expected.items()), f"turn {turn}: {operation}"
        table = hudimeta.Table(path)
        assert table.metadata.index_definitions["record_index"].is_partitioned
        report = table.metadata.validate()
        assert report.holds, f"turn {turn}: {operation}: {report}"
        check_all(open_storage(str(path)))
