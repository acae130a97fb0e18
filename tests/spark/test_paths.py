"""Several paths, folders of partitions and patterns in one `load`, in a plain session and in an attached one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tests.spark.attached import NATIVE_SCAN, files_read, plan
from tests.spark.tables import contents, create, ids, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_some_partitions_of_a_table_by_all_the_ways_to_name_them(session: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    reader, place = session.read.format("hudimeta"), str(tmp_path / "t")
    assert ids(reader.load(f"{place}/p1")) == [1, 6]
    assert ids(reader.load(f"{place}/p[12]")) == [1, 2, 6, 7]
    assert ids(reader.load(f"{place}/*/*.parquet")) == list(range(10))
    assert ids(reader.load([f"{place}/p0", f"{place}/p4"]).where("id > 0")) == [4, 5, 9]
    paths = "hoodie.datasource.read.paths"
    assert ids(session.read.format("hudimeta").option(paths, f"{place}/p0,{place}/p3").load()) == [0, 3, 5, 8]
    assert ids(session.read.format("hudimeta").option("hudimeta.partitions", "p2").load(place)) == [2, 7]
    assert ids(session.read.format("hudimeta").schema("id bigint").load(f"{place}/p{{1,2}}")) == [1, 2, 6, 7]


def test_partitions_that_are_not_there_are_named(session: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    says = refusal(lambda: session.read.format("hudimeta").load(f"{tmp_path}/t/q*").collect())
    assert "'q*', allowed is the path of a partition of" in says
    assert "'p0', 'p1'" in says


def test_an_attached_session_reads_only_the_files_of_the_partitions(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    frame = attached.read.format("hudimeta").load(f"{tmp_path}/t/p[01]")
    assert NATIVE_SCAN in plan(frame)
    assert files_read(frame) == 2
    assert ids(frame.where("id > 4")) == [5, 6]


def test_several_tables_are_united_by_column_names_in_an_attached_session(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t_a")
    more = rows([20, 21]).append_column("note", pa.array(["new", "new"]))
    create(tmp_path / "t_b", more)
    frame = attached.read.format("hudimeta").load([f"{tmp_path}/t_a/p0", f"{tmp_path}/t_b"])
    assert NATIVE_SCAN in plan(frame)
    shown = sorted(frame.select("id", "note").collect())
    assert [tuple(row) for row in shown] == [(0, None), (5, None), (20, "new"), (21, "new")]
    assert ids(attached.read.format("hudimeta").load(f"{tmp_path}/t_*")) == [*range(10), 20, 21]
    assert ids(attached.read.format("hudimeta").schema("id bigint").load(f"{tmp_path}/t_*/p0")) == [0, 5, 20]


def test_several_tables_are_refused_by_a_plain_session(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t_a")
    create(tmp_path / "t_b")
    assert "unionByName" in refusal(lambda: spark.read.format("hudimeta").load(f"{tmp_path}/t_*"))


def test_a_part_of_a_table_is_neither_registered_nor_written_to(session: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    says = refusal(lambda: session.sql(f"create table part_of_t using hudimeta location '{tmp_path}/t/p1'"))
    assert "it is in the folder of the table at" in says
    assert not session.catalog.tableExists("part_of_t")
    frame = session.read.format("hudimeta").load(f"{tmp_path}/t/p1")
    writer = frame.write.format("hudimeta").mode("append").option("hudimeta.partitions", "p1")
    assert "it is an option of reads" in refusal(lambda: writer.save(str(tmp_path / "t")))
    assert len(contents(tmp_path / "t")) == 10
