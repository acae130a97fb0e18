"""What is refused at the doors of Spark: options that are not done, statements of the catalog alone, an old Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark_hudimeta.spark_version import check_spark

import hudimeta
from hudimeta.config import HudiWarning
from hudimeta.errors import UnsupportedFeature
from tests.spark.tables import KEYS, check, contents, create, ids, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBER = count()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A registered table of ten rows at `tmp_path / "t"`."""
    create(tmp_path / "t")
    name = f"refused_{next(NUMBER)}"
    spark.sql(f"create table {name} using hudimeta location '{tmp_path / 't'}'")
    yield name
    spark.sql(f"drop table if exists {name}")


REFUSED = [
    ({"hoodie.layout.optimize.enable": "true"}, "HUDIMETA_UNSUPPORTED: option hoodie.layout.optimize.enable=true"),
    ({"hoodie.datasource.hive_sync.enable": "true"}, "Register the table"),
    ({"timestampAsOf": "2026-01-02"}, "Did you mean as.of.instant?"),
    ({"filter": "id > 1"}, "Did you mean hudimeta.filter?"),
    ({"primaryKey": "id"}, "Did you mean hoodie.datasource.write.recordkey.field?"),
]


@pytest.mark.rotation(3)
@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_options_are_refused_by_reads_and_writes(
    session: SparkSession, tmp_path: Path, options: dict[str, str], says: str
) -> None:
    create(tmp_path / "t")
    frame = session.createDataFrame(rows([20]).to_pandas())
    place = str(tmp_path / "t")
    assert says in refusal(lambda: session.read.format("hudimeta").options(**options).load(place))
    assert says in refusal(lambda: frame.write.format("hudimeta").mode("append").options(**options).save(place))
    new = str(tmp_path / "new")
    more = {**KEYS, "hoodie.table.name": "new", **options}
    assert says in refusal(lambda: frame.write.format("hudimeta").mode("append").options(**more).save(new))
    assert not (tmp_path / "new").exists()
    assert len(contents(tmp_path / "t")) == 10


BEGIN, FORMAT = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.query.incremental.format"
INCREMENTAL = {"hoodie.datasource.query.type": "incremental", BEGIN: "000"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({BEGIN: "000"}, "nothing in a query of type snapshot"),
        ({FORMAT: "cdc"}, "nothing in a query of type snapshot"),
        ({BEGIN: "000", "hoodie.datasource.query.type": "read_optimized"}, "nothing in a query of type read_optimized"),
        ({**INCREMENTAL, "as.of.instant": "2026-01-02"}, "nothing in a query of type incremental"),
    ],
)
def test_options_of_other_queries_are_refused_at_each_door(
    session: SparkSession, tmp_path: Path, options: dict[str, str], says: str
) -> None:
    """Ignored, a range would be answered with the whole table, a moment with what came later."""
    create(tmp_path / "t")
    assert says in refusal(lambda: session.read.format("hudimeta").options(**options).load(str(tmp_path / "t")).collect())


@pytest.mark.parametrize(
    "option", ["as.of.instant", "hudimeta.filter", "hoodie.datasource.read.begin.instanttime", "hudimeta.columns"]
)
def test_options_of_reads_are_refused_by_writes(session: SparkSession, tmp_path: Path, option: str) -> None:
    create(tmp_path / "t")
    write = session.createDataFrame(rows([20]).to_pandas()).write.format("hudimeta").mode("append").option(option, "2026")
    assert "it is an option of reads" in refusal(lambda: write.save(str(tmp_path / "t")))
    assert len(contents(tmp_path / "t")) == 10


def test_options_of_reads_are_said_to_writes_by_name(attached: SparkSession, table: str, tmp_path: Path) -> None:
    frame = attached.createDataFrame(rows([20]).to_pandas())
    stream = attached.readStream.format("rate").load().selectExpr("value as id", "1L as ts", "0D as x", "'p0' as part")
    sink = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    for write in (
        lambda: frame.writeTo(table).option("hudimeta.columns", "id").append(),
        lambda: frame.write.option("hudimeta.columns", "id").insertInto(table),
        lambda: sink.option("hudimeta.columns", "id").toTable(table),
    ):
        assert "it is an option of reads" in refusal(write)
    with pytest.warns(HudiWarning, match="hudimeta.read.corrupt=skip is about reads"):
        frame.writeTo(table).option("hudimeta.read.corrupt", "skip").append()
    assert len(contents(tmp_path / "t")) == 11


def test_rows_do_not_go_into_a_view_of_the_past(session: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    then = table.timeline.writes[-1].time
    session.sql(
        f"create or replace temp view past using hudimeta options (path '{tmp_path / 't'}', 'as.of.instant' '{then}', "
        "'hudimeta.columns' 'id,part,ts,x')"
    )
    try:
        assert "it is an option of reads" in refusal(lambda: session.sql("insert into past values (30, 'p0', 1, 1.0)"))
    finally:
        session.catalog.dropTempView("past")
    assert len(contents(tmp_path / "t")) == 10


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ("primarykeys = 'id'", "Did you mean hoodie.datasource.write.recordkey.field?"),
        ("primary_key = 'id'", "Did you mean hoodie.datasource.write.recordkey.field?"),
        ("type = 'mor'", "'MERGE_ON_READ', allowed is COPY_ON_WRITE"),
        ("primaryKey = 'x'", "allowed is id"),
        ("'hoodie.table.base.file.format' = 'ORC'", "hoodie.table.base.file.format=ORC"),
    ],
)
def test_properties_of_create_table_are_judged(session: SparkSession, tmp_path: Path, properties: str, says: str) -> None:
    create(tmp_path / "t")
    there = f"create table wrong using hudimeta tblproperties ({properties}) location '{tmp_path / 't'}'"
    assert says in refusal(lambda: session.sql(there))
    assert not session.catalog.tableExists("wrong")


def test_two_values_of_a_property_are_refused(attached: SparkSession, tmp_path: Path) -> None:
    for clauses in (
        "options (type 'mor') tblproperties (type = 'cow')",
        "tblproperties (primaryKey = 'id', 'hoodie.table.recordkey.fields' = 'x')",
        "tblproperties (primaryKey = 'id', 'hoodie.datasource.write.recordkey.field' = 'x')",
    ):
        statement = f"create table wrong (id int, x int) using hudimeta {clauses} location '{tmp_path / 't'}'"
        refusal(lambda statement=statement: attached.sql(statement))  # type: ignore[misc]
        assert not (tmp_path / "t").exists()


CATALOG_ALONE = {
    "alter table {t} replace columns (id bigint, z int)": "ADD COLUMNS, RENAME COLUMN",
    "alter table {t} set location '/elsewhere'": "CREATE TABLE … LOCATION",
    "alter table {t} set tblproperties ('hoodie.table.type' = 'MERGE_ON_READ')": "as the table at",
    "alter table {t} set tblproperties (primaryKey = 'x', harmless = 1)": "as the table at",
    "alter table {t} set tblproperties ('hoodie.table.name' = 'other')": "RENAME TO",
    "alter table {t} unset tblproperties (PrimaryKey)": "What a table was created with stays",
    "alter table {t} set tblproperties ('hoodie.keep.max.comits' = 5)": "hoodie.keep.max.commits",
    "alter table {t} alter column x set not null": "only CREATE TABLE declares NOT NULL",
    "alter table {t} cluster by (id)": "sort.columns",
    "alter table {t} add partition (part = 'p1')": "Say IF NOT EXISTS",
    "alter table {t} add partition (id = 1)": "partition columns: part",
    "alter table {t} drop partition (part = 'z')": "SHOW PARTITIONS lists them",
    "alter table {t} drop partition (part = 'p1'), partition (part = 'z')": "SHOW PARTITIONS lists them",
    "truncate table {t} partition (nope = 'p1')": "columns of the table",
    "restore table {t} to timestamp as of '2001-01-01'": "DESCRIBE HISTORY",
    "restore table {t} to version as of 20010101000000000": "DESCRIBE HISTORY",
    "optimize {t} zorder by (nope)": "columns of the table",
}


def test_statements_of_the_catalog_alone_are_refused(attached: SparkSession, table: str, tmp_path: Path) -> None:
    described = attached.sql(f"describe extended {table}").collect()
    for statement, says in CATALOG_ALONE.items():
        assert says in refusal(partial(attached.sql, statement.format(t=table))), statement
    assert attached.sql(f"describe extended {table}").collect() == described
    assert ids(attached.table(table)) == list(range(10))
    check(tmp_path / "t")


def test_what_is_only_of_the_catalog_goes_to_it(attached: SparkSession, table: str) -> None:
    attached.sql(f"alter table {table} set tblproperties (team = 'taxis')")
    attached.sql(f"comment on table {table} is 'trips'")
    attached.sql(f"alter table {table} alter column x comment 'fare'")
    catalog = attached._jsparkSession.sessionState().catalog().externalCatalog()  # type: ignore[attr-defined]
    assert catalog.getTable("default", table).properties().get("team").get() == "taxis"
    assert {row.col_name: row.comment for row in attached.sql(f"describe {table}").collect()}["x"] == "fare"
    assert ids(attached.table(table)) == list(range(10))


def test_types_names_and_rows_change_in_the_table_and_in_the_catalog(
    attached: SparkSession, table: str, tmp_path: Path
) -> None:
    attached.sql(f"alter table {table} add columns (n int)")
    attached.sql(f"alter table {table} alter column n type bigint")
    assert str(hudimeta.Table(tmp_path / "t").schema.field("n").type) == "int64"
    assert dict(attached.table(table).dtypes)["n"] == "bigint"
    new = f"{table}_new"
    attached.sql(f"alter table {table} rename to {new}")
    try:
        assert hudimeta.Table(tmp_path / "t").properties.name == new
        attached.sql(f"insert into {new} (id, part, ts, x, n) values (50, 'p0', 1, 1.0, 5000000000)")
        assert len(ids(attached.table(new))) == 11
        attached.sql(f"truncate table {new}")
        assert ids(attached.table(new)) == []
    finally:
        attached.sql(f"drop table {new}")
    check(tmp_path / "t")


def test_set_judges_what_writes_will_read(attached: SparkSession) -> None:
    for statement, says in (
        ("set hoodie.allow.operation.metadata.field = true", "hoodie.allow.operation.metadata.field=true is not supported"),
        ("set hoodie.datasource.write.operation = upserts", "insert, upsert"),
        ("set hoodie.datasource.query.type = incremental", "an option of writes"),
        ("set hudimeta.filtre = a", "Did you mean hudimeta.filter?"),
    ):
        assert says in refusal(partial(attached.sql, statement))
        assert attached.conf.get(statement.split()[1], None) is None
    attached.sql("set hoodie.datasource.query.type = snapshot")
    attached.conf.unset("hoodie.datasource.query.type")


def test_save_modes_that_cannot_work_say_which_do(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(rows([1]).to_pandas())
    for mode in (None, "error", "errorifexists", "ignore"):
        writer = frame.write.format("hudimeta").options(**KEYS, **{"hoodie.table.name": "t"})
        with pytest.raises(Exception, match='"Append" or "Overwrite"'):
            (writer if mode is None else writer.mode(mode)).save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_an_older_spark_is_told_so_in_one_sentence(tmp_path: Path) -> None:
    check_spark("4.1.0")
    check_spark("5.0.0.dev1")
    for old in ("4.0.1", "3.5.6"):
        with pytest.raises(UnsupportedFeature, match=f"PySpark {old} is not supported. Use Spark 4.1 or later"):
            check_spark(old)
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("__version__ = '3.5.6'\n")
    python_path = os.pathsep.join([str(tmp_path), *sys.path])
    asked = "import pyspark_hudimeta"
    run = subprocess.run(
        [sys.executable, "-c", asked],
        env={**os.environ, "PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "HUDIMETA_UNSUPPORTED: PySpark 3.5.6 is not supported" in run.stderr.splitlines()[-1]
    assert run.stderr.count("Traceback") == 1
