"""Apache Hudi reads what only some of our writers make: altered columns, partial updates, payload classes, marked deletes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.types import META_COLUMNS
from tests.elsewhere import only_when
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL

pytestmark = only_when(FULL, "make interop-full")

SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float32()), ("note", pa.string()), ("many", pa.int32())]
)
ON_READ = {"hoodie.schema.on.read.enable": "true"}
ALTERS = {
    "hoodie.avro.schema.validate": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}
"""Apache Hudi renames no column without them."""

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def made(path: Path, kind: str, **options: Any) -> hudimeta.Table:
    table = hudimeta.Table.create(path, SCHEMA, key="id", ordering="ts", type=kind, options=options)
    table.insert(rows_of(range(6), 1))
    return table


def rows_of(numbers: range, ts: int) -> pa.Table:
    rows = [{"id": f"k{n}", "ts": ts, "fare": n + 0.5, "note": f"n{n}", "many": n} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def plain(rows: pa.Table) -> list[dict[str, Any]]:
    data = rows.drop_columns([name for name in META_COLUMNS if name in rows.column_names])
    return sorted(data.to_pylist(), key=lambda row: str(row["id"]))


def agree(hudi: ApacheHudi, table: hudimeta.Table, **options: str) -> list[dict[str, Any]]:
    ours = plain(table.scan().to_table())
    assert plain(hudi.read(table.path, options=options).table) == ours
    return ours


@KINDS
def test_altered_columns(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", kind)
    table.upsert(rows_of(range(2), 2))
    table.alter(rename={"note": "remark"}, drop="many", retype={"fare": pa.float64()}, add={"tip": pa.int64()})
    assert len(agree(hudi, table, **ON_READ)) == 6
    new = pa.schema([f for f in table.schema if f.name not in META_COLUMNS])
    table.upsert(pa.Table.from_pylist([{"id": "k1", "ts": 3, "fare": 0.1, "remark": "r", "tip": 4}], schema=new))
    found = agree(hudi, table, **ON_READ)
    assert found[1] == {"id": "k1", "ts": 3, "fare": 0.1, "remark": "r", "tip": 4}
    keys = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }
    more = pa.Table.from_pylist([{"id": "k7", "ts": 9, "fare": 7.0, "remark": "theirs", "tip": 1}], schema=new)
    hudi.write(table.path, more, {**keys, **ON_READ})
    assert len(agree(hudi, table, **ON_READ)) == 7
    table.update({"tip": "ts"}, where="id >= 'k5'")
    assert [row["tip"] for row in agree(hudi, table, **ON_READ)][5:] == [1, 9]


@KINDS
def test_partitions_with_a_renamed_column(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    """Data skipping goes by the new name, and older files have none of it: no partition may be said to hold nothing."""
    schema, indexes = SCHEMA.append(pa.field("region", pa.string())), ["column_stats", "partition_stats"]
    table = hudimeta.Table.create(tmp_path / "t", schema, "id", "region", "ts", kind, indexes)
    regions = pa.array(["eu", "us"] * 3)
    table.insert(rows_of(range(6), 1).append_column("region", regions))
    table.alter(rename={"note": "remark"})
    skipping = {**ON_READ, "hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}
    for n in range(2):
        found = hudi.read(table.path, where=f"remark = 'n{n}'", options=skipping).table
        assert found["id"].to_pylist() == [f"k{n}"]
        table.update({"ts": 2}, where="id = 'k0'")


def test_partitions_of_a_column_that_hudi_renamed(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Its ALTER says nothing of them, and once one partition has bounds of the column its reader passes over the others."""
    schema, indexes = SCHEMA.append(pa.field("region", pa.string())), ["column_stats", "partition_stats"]
    table = hudimeta.Table.create(tmp_path / "t", schema, "id", "region", "ts", indexes=indexes)
    table.insert(rows_of(range(6), 1).append_column("region", pa.array(["eu", "us"] * 3)))
    hudi.sql(f"create table renamed_by_hudi using hudi location '{table.path}'")
    # 1.2.0 takes the rename for a drop, which it has to be allowed.
    hudi.sql("alter table renamed_by_hudi rename column note to remark", settings=ON_READ | ALTERS)
    table = hudimeta.Table(table.path)
    fresh = pa.Table.from_pylist([{"id": "k9", "ts": 2, "remark": "n9", "region": "asia"}])
    for write in (partial(table.upsert, fresh), partial(table.update, {"ts": 2}, where="id = 'k0'")):
        write()
        for n in range(2):
            found = hudi.read(table.path, where=f"remark = 'n{n}'", options=ON_READ).table
            assert found["id"].to_pylist() == [f"k{n}"]


def test_partitions_that_hudi_bounded_by_new_files_alone(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Its write bounds partitions by the files that know the name, and its reader passes over the others until we write."""
    schema, indexes = SCHEMA.append(pa.field("region", pa.string())), ["column_stats", "partition_stats"]
    table = hudimeta.Table.create(tmp_path / "t", schema, "id", "region", "ts", indexes=indexes, name="t")
    table.insert(rows_of(range(6), 1).append_column("region", pa.array(["eu", "us"] * 3)))
    table.alter(rename={"note": "remark"})
    new = pa.schema([f for f in table.schema if f.name not in META_COLUMNS])
    options = {
        **ON_READ,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.table.version": "8",
    }
    more = [{"id": f"k{n}", "ts": 2, "remark": "z", "region": "eu" if n % 2 else "us"} for n in (7, 8)]
    hudi.write(table.path, pa.Table.from_pylist(more, schema=new), options)
    hudimeta.Table(table.path).upsert(pa.Table.from_pylist([{**more[0], "ts": 3}], schema=new))
    for n in range(2):
        found = hudi.read(table.path, where=f"remark = 'n{n}'", options=ON_READ).table
        assert found["id"].to_pylist() == [f"k{n}"]


@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_partial_updates(hudi: ApacheHudi, tmp_path: Path, mode: str) -> None:
    """Release 1.0.2 reads no table of commit time after a `MERGE INTO` of its own that sets one column."""
    options = {"hoodie.spark.sql.merge.into.partial.updates": "true", "hoodie.record.merge.mode": mode}
    table = made(tmp_path / "t", "MERGE_ON_READ", **options)
    table.update({"fare": "fare + 1"}, where="many < 3")
    agree(hudi, table)
    table.update({"note": "'again'"}, where="many < 2")
    table.upsert(rows_of(range(4, 8), 5))
    assert [row["note"] for row in agree(hudi, table)][:3] == ["again", "again", "n2"]


@pytest.mark.parametrize("change", [{"add": {"more": pa.int64()}}, {"rename": {"note": "remark"}}], ids=["add", "rename"])
def test_partial_updates_before_an_alter(hudi: ApacheHudi, tmp_path: Path, change: dict[str, Any]) -> None:
    """Hudi leaves out rows of partial updates that were logged before columns had a history; so they are compacted."""
    table = made(tmp_path / "t", "MERGE_ON_READ", **{"hoodie.spark.sql.merge.into.partial.updates": "true"})
    table.update({"fare": "fare + 1"}, where="many < 3")
    table.alter(**change)
    assert [row["fare"] for row in agree(hudi, table, **ON_READ)][:4] == [1.5, 2.5, 3.5, 3.5]


@KINDS
@pytest.mark.parametrize("by_hudi", [False, True], ids=["ours", "hudi"])
def test_partition_columns_that_no_file_holds(hudi: ApacheHudi, tmp_path: Path, kind: str, by_hudi: bool) -> None:
    """The history of an altered table has them: Hudi's readers by history look for them there."""
    options = {"hoodie.datasource.write.drop.partition.columns": "true", "hoodie.write.table.version": "8"}
    table = hudimeta.Table.create(
        tmp_path / "t", SCHEMA, key="id", ordering="ts", partition_by="many", type=kind, options=options
    )
    table.insert(rows_of(range(3), 1))
    if by_hudi:
        name = f"without_partitions_{kind.lower()}"
        hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{table.path}'")
        hudi.sql(f"ALTER TABLE {name} RENAME COLUMN note TO remark", settings=ON_READ | ALTERS)
    else:
        table.alter(rename={"note": "remark"})
    agree(hudi, table, **ON_READ)
    table = hudimeta.Table(table.path)
    table.upsert(pa.Table.from_pylist([{"id": "k0", "ts": 2, "fare": 9.5, "remark": "new", "many": 0}]))
    assert [row["remark"] for row in agree(hudi, table, **ON_READ)] == ["new", "n1", "n2"]


def test_rolled_avro_logs(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Blocks of HFiles are not held against Apache Hudi: its reader for Spark fails on those of its own tables too."""
    small = {"hoodie.logfile.max.size": "2000", "hoodie.logfile.data.block.max.size": "200"}
    table = made(tmp_path / "t", "MERGE_ON_READ", **{"hoodie.logfile.data.block.format": "avro", **small})
    table.upsert(rows_of(range(6), 2))
    table.delete("many = 3")
    assert len(agree(hudi, table)) == 5


@KINDS
def test_payload_classes(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    table = made(tmp_path / "t", kind, **{"hoodie.datasource.write.payload.class": payload})
    nulls = rows_of(range(3), 2).set_column(3, "note", pa.nulls(3, pa.string()))
    table.upsert(nulls)
    assert [row["note"] for row in agree(hudi, table)] == [f"n{n}" for n in range(6)]


@KINDS
def test_dropped_partitions(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    table = hudimeta.Table.create(tmp_path / "t", SCHEMA, key="id", partition_by="note", ordering="ts", type=kind)
    table.insert(rows_of(range(4), 1))
    table.delete_partition(["n1", "n2"])
    assert len(agree(hudi, table)) == 2
    table.upsert(rows_of(range(2), 2))
    assert len(agree(hudi, table)) == 3
