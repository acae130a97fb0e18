"""Tasks that read Parquet files themselves write the same table, and whatever they cannot surely read so stays with Spark."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark_hudimeta import HudiTable, attach, detach, last_commit
from pyspark_hudimeta.arrow_types import written_schema
from pyspark_hudimeta.routed import scanned_files

import hudimeta
from tests.spark.scanned import THROUGH_SPARK, loaded, some, way, written
from tests.spark.tables import KEYS, check, contents, create, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hudimeta.commit.report import CommitReport

pytestmark = pytest.mark.usefixtures("small_files_count")
KINDS = """
    id, cast(id % 2 = 0 as boolean) flag, cast(id as tinyint) tiny, cast(id as smallint) small, cast(id as int) whole,
    cast(id / 3 as float) single, id / 7 double, cast(id as decimal(7, 2)) price, cast(id * 1e9 as decimal(18, 3)) longer,
    cast(id as decimal(38, 10)) widest, if(id % 5 = 0, null, concat('é', id)) text, cast(concat('b', id) as binary) bytes,
    date_add(date'0900-01-01', cast(id * 1000 as int)) day, timestamp_micros(id * 1234567890123 - 54321000000000000) at,
    cast(timestamp_micros(id * 7777777) as timestamp_ntz) local,
    if(id % 3 = 0, null, array(id, null, id + 1)) list,
    if(id % 4 = 0, null, named_struct('a', id, 'b', array(concat('s', id)))) inner,
    map(concat('k', id), named_struct('x', cast(id as decimal(9, 4)), 'at', timestamp_micros(id))) mapped
"""


# Equal tables


def test_columns_of_all_kinds(spark: SparkSession, tmp_path: Path) -> None:
    source = written(spark.range(0, 50, 1, 2).selectExpr(*_split(KINDS)), tmp_path / "rows")
    assert loaded(spark, spark.read.parquet(source), tmp_path) == "rows read from 2 Parquet files by the tasks"
    check(tmp_path / "direct")


def _split(text: str) -> list[str]:
    """The expressions of a list, by the commas outside of parentheses."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def test_files_of_arrow_with_names_and_nullability_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    inner = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.list_(pa.field("thing", pa.string())))])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("inner", inner, nullable=False)])
    data = [{"id": n, "inner": {"a": n, "b": [str(n), None]}} for n in range(20)]
    pq.write_table(pa.Table.from_pylist(data, schema), tmp_path / "rows.parquet", row_group_size=6)
    assert "1 Parquet file by" in loaded(spark, spark.read.parquet(str(tmp_path / "rows.parquet")), tmp_path)
    bases = [pq.read_schema(next((tmp_path / name).glob("*.parquet"))) for name in ("direct", "through")]
    assert str(bases[0].field("inner").type) == str(bases[1].field("inner").type)


def test_files_of_arrow_with_types_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    texts = ["", "é", None, "a long word, longer than Arrow has room for in a view", *map(str, range(40))]
    inner = pa.struct([("text", pa.large_string()), ("list", pa.large_list(pa.large_binary()))])
    nested = [
        None if n == 5 else {"text": text, "list": None if n % 3 else [b"\0", text and text.encode()]}
        for n, text in enumerate(texts)
    ]
    columns = {
        "id": pa.array(range(len(texts)), pa.int64()),
        "text": pa.array(texts, pa.large_string()),
        "bytes": pa.array([text and text.encode() for text in texts], pa.large_binary()),
        "coded": pa.array(texts).dictionary_encode(),
        "large_coded": pa.array(texts, pa.large_string()).dictionary_encode(),
        "list": pa.array([text and [text, None] for text in texts], pa.large_list(pa.large_string())),
        "pair": pa.array([[n, n + 1] for n in range(len(texts))], pa.list_(pa.int32(), 2)),
        "inner": pa.array(nested, inner),
        "mapped": pa.array([[("k", text)] for text in texts], pa.map_(pa.large_string(), pa.large_string())),
        "at": pa.array(range(len(texts)), pa.timestamp("us", tz="Europe/Amsterdam")),
    }
    if pa.__version__ >= "21":
        columns["seen"] = pa.array(texts, pa.string_view())
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=17)
    assert "1 Parquet file by" in loaded(spark, spark.read.parquet(str(tmp_path / "rows.parquet")), tmp_path)
    check(tmp_path / "direct")


def test_selected_renamed_and_reordered_columns(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(written(some(spark, 0, 40, 2), tmp_path / "a b%20c=d"))
    chosen = frame.select(frame.x.alias("y"), "id", frame.ts).select("ts", "id", "y").withColumnRenamed("ts", "y2")
    assert "tasks" in loaded(spark, chosen.select("y", "id", "y2", chosen.y.alias("z")), tmp_path)


@pytest.mark.rotation(3)
@pytest.mark.parametrize("columns", [["*"], ["id", "d", "x"], ["n", "id"]], ids=str)
def test_partitioned_folders(spark: SparkSession, tmp_path: Path, columns: list[str]) -> None:
    frame = some(spark, 0, 30, 1).selectExpr("*", "if(id % 3 = 0, null, concat('a/b ', id % 3)) d", "cast(id % 2 as int) n")
    frame = frame.selectExpr("*", "date_add(date'1200-02-03', cast(id % 2 as int)) e")
    frame.write.partitionBy("d", "n", "e").parquet(str(tmp_path / "rows"))
    read = spark.read.parquet(str(tmp_path / "rows"))
    assert "tasks" in loaded(spark, read.select(*columns), tmp_path)


def test_registered_tables_and_views(spark: SparkSession, tmp_path: Path) -> None:
    written(some(spark, 0, 30, 1), tmp_path / "rows")
    spark.sql(f"CREATE TABLE plain_rows USING parquet LOCATION '{tmp_path / 'rows'}'")
    spark.sql("CREATE TEMPORARY VIEW seen_rows AS SELECT id, x FROM plain_rows")
    try:
        (tmp_path / "1").mkdir()
        assert "tasks" in loaded(spark, spark.table("plain_rows"), tmp_path)
        assert "tasks" in loaded(spark, spark.table("seen_rows"), tmp_path / "1")
    finally:
        spark.catalog.dropTempView("seen_rows")
        spark.sql("DROP TABLE plain_rows")


@pytest.mark.rotation(3)
@pytest.mark.parametrize("split", [300, 1_000, 7_777])
def test_splits_smaller_than_files_lose_and_double_no_row(
    spark: SparkSession, tmp_path: Path, conf: Callable[[str, str], None], split: int
) -> None:
    (tmp_path / "rows").mkdir()
    for number in range(3):
        part = rows(range(number * 1000, number * 1000 + 700))
        # The dictionary of a file's first column comes before its data, which the middle of a row group goes by.
        pq.write_table(part, tmp_path / "rows" / f"{number}.parquet", row_group_size=90, use_dictionary=number != 1)
    conf("spark.sql.files.maxPartitionBytes", str(split))
    conf("spark.sql.files.openCostInBytes", "0")
    frame = spark.read.parquet(str(tmp_path / "rows"))
    assert frame.rdd.getNumPartitions() > 3
    assert loaded(spark, frame, tmp_path) == "rows read from 3 Parquet files by the tasks"


def test_empty_files(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for number in range(3):
        pq.write_table(rows(range(number * number)), tmp_path / "rows" / f"{number}.parquet")
    assert "3 Parquet files" in loaded(spark, spark.read.parquet(str(tmp_path / "rows")), tmp_path)
    create(tmp_path / "t")
    pq.write_table(rows([]), tmp_path / "none.parquet")
    assert HudiTable(spark, tmp_path / "t").upsert(spark.read.parquet(str(tmp_path / "none.parquet"))).completion is None


VERBS: dict[str, Callable[[HudiTable, DataFrame], CommitReport]] = {
    "insert": lambda table, frame: table.insert(frame),
    "upsert": lambda table, frame: table.upsert(frame),
    "delete": lambda table, frame: table.delete(frame.select("part", "id")),
    "insert_overwrite": lambda table, frame: table.insert_overwrite(frame),
    "insert_overwrite_table": lambda table, frame: table.insert_overwrite_table(frame),
    "merge": lambda table, frame: (
        table.merge(frame, "id").when_matched_update({"x": "source.x"}).when_not_matched_insert().execute()
    ),
}


@pytest.mark.rotation(3)
@pytest.mark.parametrize("verb", VERBS)
def test_every_operation(spark: SparkSession, tmp_path: Path, verb: str) -> None:
    frame = spark.read.parquet(written(some(spark, 7, 20, 3), tmp_path / "rows"))
    for name, options in (("direct", {}), ("through", THROUGH_SPARK)):
        create(tmp_path / name, indexes=["record_index"])
        report = VERBS[verb](HudiTable(spark, tmp_path / name, options), frame)
        assert ("read from 3 Parquet files" in way(report)) is (not options)
    assert contents(tmp_path / "direct") == contents(tmp_path / "through")
    check(tmp_path / "direct")


def test_an_attached_session(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame = spark.read.parquet(written(some(spark, 0, 10, 1), tmp_path / "rows"))
    attach(spark)
    try:
        frame.write.format("hudimeta").mode("append").options(**KEYS).option("hoodie.table.name", "t").save(path)
        assert "tasks" in way(last_commit(path))
        spark.sql(f"CREATE TABLE direct_rows USING hudimeta LOCATION '{path}'")
        frame.createOrReplaceTempView("more_rows")
        spark.sql("INSERT INTO direct_rows SELECT id, ts + 1, x, part FROM more_rows")
        assert "a step" in way(last_commit(path)) or "computes" in way(last_commit(path))
        spark.sql("INSERT INTO direct_rows SELECT id, ts, x, part FROM more_rows")
        assert "tasks" in way(last_commit(path))
    finally:
        spark.sql("DROP TABLE IF EXISTS direct_rows")
        spark.catalog.dropTempView("more_rows")
        detach(spark)
    assert contents(tmp_path / "t") == [(i, 2, float(i)) for i in range(10)]


# What stays with Spark


def _file(path: Path, table: pa.Table, **options: Any) -> str:
    path.mkdir()
    pq.write_table(table, path / "0.parquet", **options)
    return str(path)


def _ids(**columns: pa.Array) -> pa.Table:
    return pa.table({"id": pa.array([1, 2, 3], pa.int64()), **columns})


MICROS = pa.timestamp("us", tz="UTC")
Make = Callable[["SparkSession", Path], "DataFrame"]


def _of(table: pa.Table, **options: Any) -> Make:
    return lambda spark, path: spark.read.parquet(_file(path / "rows", table, **options))


def _plain(change: Callable[[DataFrame], DataFrame]) -> Make:
    return lambda spark, path: change(spark.read.parquet(written(some(spark, 0, 20, 1, 1), path / "rows")))


def _cached(frame: DataFrame) -> DataFrame:
    return frame.cache()


def _folder_of(*tables: pa.Table, **options: str) -> Make:
    def make(spark: SparkSession, path: Path) -> DataFrame:
        (path / "rows").mkdir()
        for number, table in enumerate(tables):
            pq.write_table(table, path / "rows" / f"{number}.parquet")
        return spark.read.options(**options).parquet(str(path / "rows"))

    return make


def _legacy(spark: SparkSession, path: Path) -> DataFrame:
    frame = spark.range(3).selectExpr("id", "date_add(date'1400-01-01', cast(id as int)) day")
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
    try:
        frame.write.parquet(str(path / "rows"))
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
    return spark.read.parquet(str(path / "rows"))


def _case(spark: SparkSession, path: Path) -> DataFrame:
    source = _file(path / "rows", _ids(Total=pa.array([1, 2, 3])))
    return spark.read.schema("id bigint, total bigint").parquet(source)


LEFT: dict[str, tuple[str, Make]] = {
    "filter": ("step Filter", _plain(lambda frame: frame.where("id > 3"))),
    "limit": ("step GlobalLimit", _plain(lambda frame: frame.orderBy("id").limit(4))),
    "union": ("step Union", _plain(lambda frame: frame.union(frame.selectExpr("id + 100 id", "part", "ts", "x")))),
    "expression": ("computes columns", _plain(lambda frame: frame.selectExpr("id", "x + 1 y"))),
    "metadata of files": ("metadata", _plain(lambda frame: frame.select("id", frame["_metadata.file_size"]))),
    "cached": ("step InMemoryTableScan", _plain(_cached)),
    "repartition": ("step Repartition", _plain(lambda frame: frame.repartition(2))),
    "legacy calendar": ("calendar", _legacy),
    "calendar not told": (
        "does not say of which calendar",
        lambda spark, path: spark.read.option("datetimeRebaseMode", "EXCEPTION").parquet(
            _file(path / "rows", _ids(at=pa.array([1, 2, 3], MICROS)))
        ),
    ),
    "case": ("not exactly one column total", _case),
    "missing column": ("not exactly one column y", _folder_of(_ids(y=pa.array([1, 2, 3])), _ids(), mergeSchema="true")),
    "unsigned": ("uint32, which is no int64", _of(_ids(n=pa.array([1, 2, 3], pa.uint32())))),
    "milliseconds": ("timestamp[ms, tz=UTC]", _of(_ids(at=pa.array([1, 2, 3], pa.timestamp("ms", tz="UTC"))))),
    "times without zone as times": (
        "which is no timestamp[us, tz=UTC]",
        lambda spark, path: spark.read.schema("id bigint, at timestamp").parquet(
            _file(path / "rows", _ids(at=pa.array([1, 2, 3], pa.timestamp("us"))))
        ),
    ),
    "wider decimal": (
        "decimal128(9, 2), which is no decimal128(12, 2)",
        lambda spark, path: spark.read.schema("id bigint, price decimal(12, 2)").parquet(
            _file(path / "rows", _ids(price=pa.array([decimal.Decimal("1.25")] * 3, pa.decimal128(9, 2))))
        ),
    ),
    "codec": ("compressed with", _of(_ids(), compression="lz4")),
    "lenient": (
        "ignoreCorruptFiles",
        lambda spark, path: spark.read.option("ignoreCorruptFiles", "true").parquet(_file(path / "rows", _ids())),
    ),
    "dot": ("name of two meanings", _of(_ids(**{"a.b": pa.array([1, 2, 3])}))),
}


@pytest.mark.rotation(3)
@pytest.mark.parametrize("case", LEFT)
def test_what_spark_must_read_says_why(spark: SparkSession, tmp_path: Path, case: str) -> None:
    reason, make = LEFT[case]
    frame = make(spark, tmp_path)
    try:
        if case == "dot":
            frame = frame.withColumnRenamed("a.b", "c")
        if case == "metadata of files":
            frame = frame.withColumnRenamed("file_size", "size")
        told = loaded(spark, frame, tmp_path)
        assert told.startswith("rows of Parquet files came through Spark: ")
        assert reason in told
    finally:
        frame.unpersist()


def test_other_rows_and_small_files_say_nothing(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not loaded(spark, some(spark, 0, 5, 1), tmp_path)
    monkeypatch.setattr(scanned_files, "WORTH_BYTES", 1 << 20)
    (tmp_path / "1").mkdir()
    assert not loaded(spark, spark.read.parquet(written(some(spark, 0, 5, 1), tmp_path / "rows")), tmp_path / "1")


# Files that change


def test_rows_of_the_table_that_they_overwrite(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    own = spark.read.option("basePath", str(tmp_path / "t")).parquet(*map(str, (tmp_path / "t").glob("*/*.parquet")))
    report = HudiTable(spark, tmp_path / "t").insert_overwrite_table(own)
    assert "read from 5 Parquet files" in way(report)
    assert contents(tmp_path / "t") == [(n, 1, float(n)) for n in range(10)]
    check(tmp_path / "t")


@pytest.mark.rotation(2)
@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_file_that_changes_before_it_is_read_stops_the_write(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    create(tmp_path / "t")
    file = tmp_path / "rows.parquet"
    pq.write_table(rows(range(20, 30)), file)
    look = scanned_files.scanned_files

    def then_change(*arguments: Any) -> Any:
        found = look(*arguments)
        assert isinstance(found, scanned_files.ScannedFiles)
        file.unlink()
        if what == "replaced":
            pq.write_table(rows(range(20, 31)), file)
        return found

    monkeypatch.setattr("pyspark_hudimeta.routed.executors.scanned_files", then_change)
    with pytest.raises(hudimeta.errors.CommitError, match=f"rows.parquet was {what} since"):
        HudiTable(spark, tmp_path / "t").upsert(spark.read.parquet(str(file)))
    assert contents(tmp_path / "t") == [(n, 1, float(n)) for n in range(10)]
    check(tmp_path / "t")


def test_a_file_replaced_since_it_was_listed_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    pq.write_table(rows(range(20, 30)), file)
    frame = spark.read.parquet(str(file))
    listed = written_schema(frame.schema)
    pq.write_table(rows(range(20, 29)), file, compression="none")
    assert "was replaced since it was listed" in scanned_files.scanned_files(spark, frame, listed, {})
