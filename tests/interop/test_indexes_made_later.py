"""Indexes that we build over a table are used and kept by Apache Hudi, and what it writes to them is right by our validator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.testing.invariants import check_all
from hudimeta.testing.model import ModelTable
from hudimeta.types import Operation
from tests.elsewhere import only_when
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL

DAY = 86_400
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.parquet.small.file.limit": "0",
}
INDEXES: tuple[dict[str, Any], ...] = (
    {"type": "bloom_filters"},
    {"name": "up", "type": "column_stats", "columns": "note", "expression": "upper"},
    {
        "name": "day",
        "type": "column_stats",
        "columns": "seconds",
        "expression": "from_unixtime",
        "options": {"format": "yyyy-MM-dd"},
    },
    {"name": "low", "type": "bloom_filters", "columns": "tag", "expression": "lower"},
)
"""One a column: release 1.0.2 takes an expression index for every function over its column. It fails where an expression over a
date has another type, such as `year`."""
WHERE = {
    "upper(note) = 'NOTE 3'": 1,
    "from_unixtime(seconds, 'yyyy-MM-dd') = '1970-01-03'": 1,
    "lower(tag) = 'tag 1'": 1,
}
"""Predicate to how many of the five files can hold a match."""


def rows(group: int, ids: range, ts: int) -> pa.Table:
    """Rows of one partition in which every expression has one value a group."""
    n = len(ids)
    return pa.table(
        {
            "id": pa.array([f"k{i:04d}" for i in ids], pa.string()),
            "part": pa.array(["p0"] * n, pa.string()),
            "ts": pa.array([ts] * n, pa.int64()),
            "note": pa.array([f"Note {group}"] * n, pa.string()),
            "tag": pa.array([f"Tag {group}"] * n, pa.string()),
            "seconds": pa.array([group * DAY + 7] * n, pa.int64()),
            "born": pa.array([f"{2000 + group}-05-06"] * n, pa.string()).cast(pa.date32()),
        }
    )


@only_when(FULL, "make interop-full")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_uses_and_keeps_our_indexes(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    path, model = tmp_path / "t", ModelTable(lambda row: (row["part"], row["id"]), "ts")
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    java = {**options, "hoodie.embed.timeline.server": "true"}  # without it, release 1.2.0 cannot write: see docs/indexes.md
    given = {key: value for key, value in options.items() if "table.name" not in key}
    table = hudimeta.Table.create(path, rows(0, range(0), 0).schema, key="id", name="t", options=given)
    for group in range(5):
        piece = rows(group, range(group * 10, group * 10 + 10), 1)
        table.bulk_insert(piece)
        model.write(Operation.BULK_INSERT, piece)
    predicates = dict(WHERE)
    for index in INDEXES:
        if kind == "MERGE_ON_READ" and "expression" in index and index["type"] == "bloom_filters":
            # Release 1.0.2 then fails each of its updates: it wants to make a bloom filter for the log file that it wrote.
            del predicates["lower(tag) = 'tag 1'"]
            continue
        table.metadata.create_index(**index)
    for where, files in predicates.items():
        found = hudi.read(path, where=where)
        assert (found.table.num_rows, found.files_read) == (10, files), where
    piece = rows(3, range(5, 45, 10), 2)
    hudi.write(path, piece, java)
    model.write(Operation.UPSERT, piece)
    _agree(hudi, path, model)
    piece = rows(1, range(0, 60, 7), 3)
    hudimeta.Table(path, options).upsert(piece)
    model.write(Operation.UPSERT, piece)
    _agree(hudi, path, model)
    if kind == "MERGE_ON_READ":
        hudimeta.Table(path, options).compact()
    gone = rows(0, range(2, 50, 9), 4)
    hudi.write(path, gone, java, operation="delete")
    model.write(Operation.DELETE, gone)
    _agree(hudi, path, model)
    hudimeta.Table(path, options).metadata.drop_index("day")
    piece = rows(4, range(48, 55), 5)
    hudi.write(path, piece, java)
    model.write(Operation.UPSERT, piece)
    _agree(hudi, path, model)
    assert "expr_index_day" not in hudimeta.Table(path).metadata.ready


def _agree(hudi: ApacheHudi, path: Path, model: ModelTable) -> None:
    table = hudimeta.Table(path)
    model.check(table.scan().to_table())
    model.check(hudi.read(path).table)
    for where in WHERE:
        assert hudi.read(path, where=where).table.num_rows == table.scan(where=where).to_table().num_rows, where
    copied = table.properties["hoodie.table.type"] == "COPY_ON_WRITE"
    assert set(table.metadata.ready) >= {"bloom_filters", "expr_index_up", *(["expr_index_low"] if copied else [])}
    report = table.metadata.validate()
    assert report.holds, report
    check_all(hudimeta.storage.open_storage(path))
    hudi.validate(path)


def test_an_index_of_apache_hudi_takes_nothing_away_from_ours(hudi: ApacheHudi, tmp_path: Path) -> None:
    """It lays its own out at the instant of the newest action, which is the building of ours."""
    path, piece = tmp_path / "t", rows(0, range(20), 1)
    given = {key: value for key, value in OPTIONS.items() if "table.name" not in key}
    indexes = ["column_stats", "partition_stats", "record_index"]
    table = hudimeta.Table.create(path, piece.schema, key="id", name="t", indexes=indexes, options=given)
    table.insert(piece)
    table.metadata.create_index("by_tag", "secondary_index", "tag")
    hudi.sql(f"CREATE TABLE laid_out USING hudi LOCATION '{path}'")
    lock = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
    hudi.sql("CREATE INDEX up ON laid_out USING column_stats(note) OPTIONS(expr='upper')", lock)
    hudi.sql("DROP TABLE laid_out")
    table = hudimeta.Table(path)
    assert {"secondary_index_by_tag", "expr_index_up"} <= set(table.metadata.ready)
    assert table.metadata.records("secondary_index_by_tag").num_rows == 20
    report = table.metadata.validate()
    assert report.holds, report
    assert hudi.read(path, where="tag = 'Tag 0'").table.num_rows == 20


@only_when(FULL, "make interop-full")
@pytest.mark.parametrize("last", ["drop", "create", "rebuild"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_apache_hudi_makes_several_indexes_after_an_indexing_of_ours(
    hudi: ApacheHudi, tmp_path: Path, kind: str, last: str
) -> None:
    """It began all at the instant of that, and lost the first: statistics of partitions then knew of new files alone."""
    path, stats = tmp_path / "t", ("partition_stats", "column_stats")
    switches = {f"hoodie.metadata.index.{name.replace('_', '.')}.enable": "true" for name in stats}
    java = {**OPTIONS, **switches, "hoodie.datasource.write.table.type": kind, "hoodie.write.auto.upgrade": "false"}
    begins = switches if last == "drop" else dict.fromkeys(switches, "false")
    given = {key: value for key, value in {**OPTIONS, **begins}.items() if "table.name" not in key}
    given |= {"hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": "8"}
    table = hudimeta.Table.create(path, rows(0, range(0), 0).schema, key="id", name="t", options=given)
    table.insert(rows(0, range(10), 1))
    if last == "drop":
        for name in stats:
            hudimeta.Table(path).metadata.drop_index(name)
    else:
        hudimeta.Table(path).metadata.create_index(type="record_index")
        java["hoodie.metadata.record.index.enable"] = "true"
    if last == "rebuild":
        hudimeta.Table(path).metadata.rebuild()
    hudi.write(path, rows(1, range(5, 15), 2), {**java, "hoodie.write.table.version": "8"}, operation="upsert")
    table = hudimeta.Table(path)
    assert set(stats) <= set(table.metadata.ready)
    table.metadata.validate().raise_if_differs()
    assert table.scan(where="note = 'Note 0'").count() == 5
    assert hudi.read(path, where="note = 'Note 0'").table.num_rows == 5


def test_apache_hudi_finds_rows_by_our_index_in_the_zone_of_its_session(hudi: ApacheHudi, tmp_path: Path) -> None:
    path, zone = tmp_path / "t", "America/New_York"
    given = {key: value for key, value in OPTIONS.items() if "table.name" not in key}
    table = hudimeta.Table.create(path, rows(0, range(0), 0).schema, key="id", name="t", options=given)
    for group in range(4):
        table.bulk_insert(rows(group, range(group * 10, group * 10 + 10), 1))
    hudimeta.Table(path, {"hudimeta.session.timezone": zone}).metadata.create_index(**INDEXES[2])
    hudimeta.Table(path).bulk_insert(rows(2, range(60, 65), 1))
    hudi.sql(f"CREATE TABLE in_a_zone USING hudi LOCATION '{path}'")
    query = "SELECT id FROM in_a_zone WHERE from_unixtime(seconds, 'yyyy-MM-dd') = '1970-01-02'"
    skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    found = hudi.sql(query, {"spark.sql.session.timeZone": zone, **skipping})
    hudi.sql("DROP TABLE in_a_zone")
    assert sorted(found["id"].to_pylist()) == [f"k{i:04d}" for i in (*range(20, 30), *range(60, 65))]
