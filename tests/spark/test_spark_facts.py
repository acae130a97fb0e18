"""What Spark does with Python data sources, and why ours is built as it is. None of these tests runs a line of hudimeta.

Each shows, with a source of a few lines, one behaviour that the plain door works around. A test that fails here says that Spark
has changed: look at what its docstring names, which may have become unnecessary or wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    GreaterThan,
    InputPartition,
    LessThan,
    WriterCommitMessage,
)
from pyspark.sql.types import LongType, StringType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotation(3)  # another Spark has other facts, another day has not
MARKER = "__CHAR_VARCHAR_TYPE_STRING"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def pruning_source() -> type[DataSource]:
    """Ids 0 to 9; the reader leaves out what pushed filters exclude, as a reader would that skips files by them."""

    class Reader(DataSourceReader):
        def __init__(self) -> None:
            self.above, self.below = -1, 10

        def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802 - Spark's name
            for pushed in filters:
                if isinstance(pushed, GreaterThan):
                    self.above = pushed.value
                elif isinstance(pushed, LessThan):
                    self.below = pushed.value
                yield pushed

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield from ((number,) for number in range(self.above + 1, self.below))

    class Pruning(DataSource):
        @classmethod
        def name(cls) -> str:
            return "fact_pruning"

        def schema(self) -> str:
            return "id bigint"

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader()

    return Pruning


def telling_source(log: Path) -> type[DataSource]:
    """Writes what Spark calls it with to a file, one JSON object a line, and carries metadata as hudimeta does.

    Options: `fail` names the step that raises; `types` is `exact` or `other`, for what its batches look like.
    """
    path = str(log)

    def tell(**fact: Any) -> None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(fact) + "\n")

    class Message(WriterCommitMessage):
        pass

    class Reader(DataSourceReader):
        def __init__(self, schema: StructType, nullable: bool, pinned: str | None) -> None:
            self.names, self.nullable, self.pinned = schema.names, nullable, pinned

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            import pyarrow

            kinds = {"id": pyarrow.int64(), "name": pyarrow.string()}
            schema = pyarrow.schema([pyarrow.field(n, kinds[n], nullable=self.nullable) for n in self.names])
            yield pyarrow.RecordBatch.from_pylist([{"id": 1, "name": self.pinned}], schema=schema)

    class Writer(DataSourceArrowWriter):
        def __init__(self, fail: str | None) -> None:
            self.fail = fail

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            from pyspark import TaskContext

            tell(call="write", types=[str(column.type) for batch in iterator for column in batch.schema])
            context = TaskContext.get()
            if self.fail == "write" and context is not None and context.partitionId() == 0:
                raise ValueError("FACT_TEXT: a task failed")
            return Message()

        def commit(self, messages: list[WriterCommitMessage | None]) -> None:
            tell(call="commit", messages=len(messages))
            if self.fail == "commit":
                raise ValueError("FACT_TEXT: the commit failed")

        def abort(self, messages: list[WriterCommitMessage | None]) -> None:
            tell(call="abort", messages=[message is not None for message in messages])

    class Telling(DataSource):
        def __init__(self, options: Any) -> None:
            super().__init__(options)
            self.pinned: str | None = None

        @classmethod
        def name(cls) -> str:
            return "fact_telling"

        def __getstate__(self) -> dict[str, Any]:
            tell(call="pickle", options=dict(self.options))
            return self.__dict__

        def schema(self) -> StructType:
            tell(call="schema", options=dict(self.options))
            self.pinned = "seen by schema()"
            carried = {}
            if "provider" in self.options:
                carried = {"carrier": self.options["path"], MARKER: f"varchar(20000000{len(self.options['path'])})"}
            return StructType([StructField("id", LongType()), StructField("name", StringType(), True, carried)])

        def reader(self, schema: StructType) -> DataSourceReader:
            tell(call="reader", options=dict(self.options), metadata=[column.metadata for column in schema])
            return Reader(schema, self.options.get("types") != "other", self.pinned)

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
            tell(call="writer", options=dict(self.options), metadata=[c.metadata for c in schema], overwrite=overwrite)
            return Writer(self.options.get("fail"))

    return Telling


class Told:
    """The facts written since the last look."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self, call: str = "") -> list[dict[str, Any]]:
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        self.log.unlink(missing_ok=True)
        facts = [json.loads(line) for line in text.splitlines()]
        return [fact for fact in facts if fact["call"] == call] if call else facts


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Told:
    log = tmp_path_factory.mktemp("facts") / "log.jsonl"
    spark.dataSource.register(telling_source(log))
    return Told(log)


@pytest.fixture(scope="module")
def catalog(spark: SparkSession, told: Told) -> Iterator[None]:
    """Tables fact_a at /a and fact_bb at /bb."""
    for name in ("a", "bb"):
        spark.sql(f"create table fact_{name} using fact_telling location '/{name}'")
    yield
    for name in ("a", "bb"):
        spark.sql(f"drop table fact_{name}")


@pytest.fixture
def fresh(told: Told) -> Told:
    told()
    return told


def save(spark: SparkSession, path: str | None = "/p", **options: str) -> None:
    """Write two rows in two tasks."""
    rows = spark.range(0, 2, 1, 2).selectExpr("id", "'n' name")
    rows.write.format("fact_telling").mode("append").options(**options).save(path)


# Filters


def test_pushed_filters_of_one_scan_prune_another(spark: SparkSession) -> None:
    """Why `pushFilters` is not implemented: Spark keeps one plan for all scans of a relation, so rows get lost."""
    spark.dataSource.register(pruning_source())
    spark.conf.set(PUSHDOWN, "true")
    try:
        frame = spark.read.format("fact_pruning").load()
        few = frame.where("id > 7")
        assert few.union(frame).count() == 4, "12 would be right"
        assert few.union(frame.where("id < 3")).count() == 3, "5 would be right"
    finally:
        spark.conf.unset(PUSHDOWN)


def test_a_reader_with_push_filters_needs_a_setting(spark: SparkSession) -> None:
    """The second reason: by default such a reader is refused, even for a query without a filter."""
    spark.dataSource.register(pruning_source())
    with pytest.raises(Exception, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        spark.read.format("fact_pruning").load().collect()


# What is frozen


def test_what_schema_stores_reaches_every_reader(spark: SparkSession, fresh: Told) -> None:
    """The instant is pinned in `schema()`, and the first plan of a DataFrame is kept."""
    frame = spark.read.format("fact_telling").load("/p")
    assert frame.first().name == "seen by schema()"
    assert frame.count() == frame.where("id = 1").count() == 1
    assert len(fresh("reader")) == 1


def test_with_a_users_schema_the_source_is_only_pickled(spark: SparkSession, fresh: Told) -> None:
    """So the instant is pinned in `__getstate__`, the last call before `reader()`."""
    assert spark.read.format("fact_telling").schema("id bigint").load("/p").count() == 1
    assert [fact["call"] for fact in fresh()][:2] == ["pickle", "reader"]


def test_batches_must_have_exactly_the_declared_schema(spark: SparkSession, fresh: Told) -> None:
    """Why every batch is cast to `arrow_schema`: even nullability counts. Spark 4.1 looks at names only, and takes nonsense."""
    reader = spark.read.format("fact_telling")
    assert reader.load("/p").count() == 1
    if spark.version.startswith("4.1."):
        return
    with pytest.raises(Exception, match="DATA_SOURCE_RETURN_SCHEMA_MISMATCH"):
        reader.option("types", "other").load("/p").collect()


# The catalog


@pytest.mark.usefixtures("catalog")
def test_a_table_of_the_catalog_hands_over_metadata_and_nothing_else(spark: SparkSession, fresh: Told) -> None:
    """Why the location travels in a field's metadata."""
    spark.table("fact_a").collect()
    (reader,) = fresh("reader")
    assert reader["options"] == {}
    assert reader["metadata"][1]["carrier"] == "file:/a"


@pytest.mark.usefixtures("catalog")
def test_an_insert_names_the_target_only_without_the_marker(spark: SparkSession, fresh: Told) -> None:
    """Why metadata beside the varchar key is never trusted by a writer: it is the source's."""

    def carried(statement: str) -> tuple[str, bool]:
        spark.sql(statement)
        (writer,) = fresh("writer")
        assert writer["options"] == {}
        return writer["metadata"][1]["carrier"], MARKER in writer["metadata"][1]

    assert carried("insert into fact_a values (1, 'x')") == ("file:/a", False)
    assert carried("insert into fact_a (id) values (1)") == ("file:/a", False)
    assert carried("insert into fact_bb select * from fact_a") == ("file:/bb", False)
    assert carried("insert into fact_a select * from fact_a") == ("file:/a", True)
    spark.table("fact_a").write.format("fact_telling").mode("append").save("/elsewhere")
    (writer,) = fresh("writer")
    assert (writer["metadata"][1]["carrier"], MARKER in writer["metadata"][1]) == ("file:/a", True)


def test_a_table_with_columns_tells_nothing_at_all(spark: SparkSession, fresh: Told) -> None:
    """Why such a table is refused with advice: there is no way to find it."""
    spark.sql("create table fact_columns (id bigint, name string) using fact_telling location '/c'")
    try:
        spark.sql("insert into fact_columns values (1, 'x')")
    finally:
        spark.sql("drop table fact_columns")
    facts = fresh()
    assert "schema" not in [fact["call"] for fact in facts]
    assert [(fact["options"], fact["metadata"]) for fact in facts if fact["call"] == "writer"] == [({}, [{}, {}])]


@pytest.mark.usefixtures("catalog")
def test_options_of_one_reference_leak_into_another(spark: SparkSession, fresh: Told) -> None:
    """Why time travel by `WITH (…)` is not advertised for tables: within a query the first reference's options win."""
    spark.sql("select * from fact_a with (k = '1') union all select * from fact_a with (k = '2')").collect()
    assert {fact["options"].get("k") for fact in fresh("reader")} == {"1"}


# Writing


def test_abort_follows_a_commit_that_raised(spark: SparkSession, fresh: Told) -> None:
    """Why `abort()` looks at the timeline first, and why `commit()` does not raise after publishing."""
    with pytest.raises(Exception, match="FACT_TEXT: the commit failed") as caught:
        save(spark, fail="commit")
    assert not isinstance(caught.value, ValueError), "only text reaches the user, so texts begin with a code"
    calls = fresh()
    assert [fact["call"] for fact in calls if fact["call"] in ("commit", "abort")] == ["commit", "abort"]
    assert calls[-1]["messages"] == [True, True]


def test_abort_gets_no_message_of_a_failed_task(spark: SparkSession, fresh: Told) -> None:
    """Why what failed tasks left is found by markers and not by messages."""
    with pytest.raises(Exception, match="FACT_TEXT: a task failed"):
        save(spark, fail="write")
    (abort,) = fresh("abort")
    assert abort["messages"][0] is False


def test_times_arrive_in_the_sessions_zone_and_strings_may_be_large(spark: SparkSession, fresh: Told) -> None:
    """Why the engine conforms batches before it uses them."""
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = spark.range(1).selectExpr("current_timestamp() at", "'x' text")
        rows.write.format("fact_telling").mode("append").save("/p")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert ["timestamp[us, tz=America/New_York]", "large_string"] in [fact["types"] for fact in fresh("write")]


def test_a_write_without_rows_still_has_a_task_and_a_commit(spark: SparkSession, fresh: Told) -> None:
    """Why tasks bear empty input and a commit may find nothing to do."""
    spark.range(0).selectExpr("id", "'n' name").write.format("fact_telling").mode("append").save("/p")
    facts = fresh()
    assert [fact["types"] for fact in facts if fact["call"] == "write"]
    assert [fact["call"] for fact in facts][-1] == "commit"


def test_other_save_modes_and_partition_by_never_arrive(spark: SparkSession, fresh: Told) -> None:
    """Why `mode("append")` must be written out, and partition fields are options."""
    writer = spark.range(1).write.format("fact_telling")
    for mode in ("error", "ignore"):
        with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            writer.mode(mode).save("/p")
    with pytest.raises(Exception, match=r"[Pp]artition"):
        writer.mode("append").partitionBy("id").save("/p")
    assert fresh() == []


def test_relative_paths_arrive_as_they_were_typed(spark: SparkSession, fresh: Told) -> None:
    """Why paths are resolved before tasks see them."""
    save(spark, path="rel/p")
    (writer,) = fresh("writer")
    assert writer["options"]["path"] == "rel/p"


def test_save_in_another_thread_does_not_find_the_source(spark: SparkSession, fresh: Told) -> None:
    """Why the guide says to set the active session in threads that write."""

    def write(active: bool) -> None:
        if active:
            spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
        else:
            spark._jvm.SparkSession.clearActiveSession()
        save(spark)

    with ThreadPoolExecutor(1) as pool, pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        pool.submit(write, False).result()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(write, True).result()
    assert fresh("commit")
