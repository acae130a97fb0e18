"""Every shape of query, through every door, on every kind of table, one after the other and eight at once: the right rows.

What is right says a Parquet table of Spark's own with the rows that a model kept while the table was written. The shapes are
those in which one scan disturbs another where a source prunes by pushed filters (`test_spark_facts.py`), and a few more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_hudimeta
import pytest

from tests.spark.tables import create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Rows = list[tuple[Any, ...]]

SQL = {
    "all rows": "select id, part, x, ts, note from {t}",
    "filter": "select id from {t} where x > 7 and part <> 'p3'",
    "exists": "select id from {t} where exists (select 1 from {t} where id > 17)",
    "left join with a filtered side": "select a.id, b.x from {t} a left join (select * from {t} where id > 15) b using (id)",
    "cross join with a filtered side": "select a.id, b.id from {t} a cross join (select id from {t} where id > 17) b",
    "inferred join filter": "select a.id, b.note from {t} a join {t} b on a.id = b.id where a.id > 15",
    "self-join": "select a.id, b.id from {t} a join {t} b on a.ts = b.ts and a.part = b.part where a.id < b.id",
    "in": "select id from {t} where id in (select id from {t} where x > 12)",
    "not in": "select id from {t} where id not in (select id from {t} where part = 'p1')",
    "scalar sub-query": "select id from {t} where x = (select max(x) from {t} where part = 'p2')",
    "common table expression": "with few as (select id from {t} where id > 15) select * from few union all select id from {t}",
    "union of filters": "select id from {t} where id > 15 union all select id from {t} where id < 3",
    "except": "select id from {t} except select id from {t} where x > 5",
    "aggregate": "select part, count(*), sum(x), max(note), min(ts) from {t} group by part having count(*) > 1",
    "count": "select count(*) from {t}",
    "count of some": "select count(note), count(distinct part) from {t} where ts >= 1",
    "top rows": "select id, x from {t} where part = 'p1' order by x desc, id limit 2",
    "window": "select id, row_number() over (partition by part order by x, id) n from {t} where id > 4",
    "null and or": "select id from {t} where note is null or note > 'note 2' or x * 2 < 3",
    "disjunction over two columns": "select id from {t} where part = 'p2' or id = 0",
    "functions": "select id from {t} where length(note) = 6 and upper(part) in ('P0', 'P1') and id % 2 = 0",
}

FRAMES: dict[str, Callable[[DataFrame], Rows]] = {
    "filter, then all": lambda f: rows_of(f.where("id > 15").select("id")) + rows_of(f.select("id")),
    "union with itself filtered": lambda f: rows_of(f.where("id > 15").union(f).select("id")),
    "one of two columns, then the other": lambda f: rows_of(f.select("x")) + rows_of(f.select("part").where("id < 4")),
    "cached": lambda f: _cached(f),
    "limit": lambda f: [(len(f.limit(3).collect()), len(f.where("part = 'p0'").limit(100).collect()))],
    "sample of columns by name": lambda f: rows_of(f.where("`note` like 'note%'").selectExpr("id + 1", "x / 2 as h")),
}


def rows_of(frame: DataFrame) -> Rows:
    """The rows of a frame in an order of their own."""
    return sorted(map(tuple, frame.collect()), key=repr)


def _cached(frame: DataFrame) -> Rows:
    kept = frame.where("id > 15").select("id").cache()
    try:
        return rows_of(kept.union(frame.select("id"))) + rows_of(kept)
    finally:
        kept.unpersist()


# Tables, each with the rows that it must show


def data(ids: range | list[int], ts: int, x: float = 0.0) -> pa.Table:
    """Rows whose values follow from the id."""
    numbers = list(ids)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "part": [f"p{n % 4}" for n in numbers],
            "x": pa.array([n + x for n in numbers], pa.float64()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "note": pa.array([f"note {n % 7}" if n % 3 else None for n in numbers], pa.string()),
        }
    )


def copy_on_write(path: Path) -> pa.Table:
    """A partitioned table with updates."""
    table = create(path, data(range(20), 1))
    table.upsert(data([3, 17], 2, x=0.5))
    return pa.concat_tables([data([n for n in range(20) if n not in (3, 17)], 1), data([3, 17], 2, x=0.5)])


def merge_on_read(path: Path) -> pa.Table:
    """Base files, updates and deletes in logs, a late row that loses, and a partition without logs."""
    table = create(path, data(range(20), 5), type="MERGE_ON_READ")
    table.upsert(data([1, 2, 16, 20], 7, x=0.5))
    table.delete(data([0, 18], 9))
    table.upsert(data([5], 3, x=100.0))
    kept = [n for n in range(20) if n not in (0, 1, 2, 16, 18)]
    return pa.concat_tables([data(kept, 5), data([1, 2, 16, 20], 7, x=0.5)])


def evolved(path: Path) -> pa.Table:
    """A table whose column `note` came later, `x` was a float and `ts` an int."""
    old = data(range(20), 1).drop_columns(["note"])
    narrow = {"x": pa.float32(), "ts": pa.int32()}
    old = old.cast(pa.schema([f.with_type(narrow.get(f.name, f.type)) for f in old.schema]))
    table = create(path, old)
    table.upsert(data([3, 16, 17], 2, x=0.5))
    rest = data([n for n in range(20) if n not in (3, 16, 17)], 1)
    rest = rest.set_column(4, "note", pa.nulls(len(rest), pa.string()))
    return pa.concat_tables([rest, data([3, 16, 17], 2, x=0.5)])


TABLES: dict[str, Callable[[Path], pa.Table]] = {
    "copy on write": copy_on_write,
    "merge on read": merge_on_read,
    "evolved": evolved,
}

# Doors: each makes a view of a table, and says how to load it anew


def by_path(spark: SparkSession, path: Path) -> DataFrame:
    """The reader."""
    return spark.read.format("hudimeta").load(str(path))


def by_view(spark: SparkSession, path: Path) -> DataFrame:
    """A temporary view that Spark opens by itself."""
    spark.sql(f"create or replace temporary view shapes_v using hudimeta options (path '{path}')")
    return spark.table("shapes_v")


def by_catalog(spark: SparkSession, path: Path) -> DataFrame:
    """A table of the catalog."""
    spark.sql("drop table if exists shapes_c")
    spark.sql(f"create table shapes_c using hudimeta location '{path}'")
    return spark.table("shapes_c")


def by_object(spark: SparkSession, path: Path) -> DataFrame:
    """`HudiTable`."""
    return pyspark_hudimeta.HudiTable(spark, path).scan().to_df()


PLAIN = {"path": by_path, "temporary view": by_view, "catalog": by_catalog, "HudiTable": by_object}
ATTACHED = {f"attached {name}": door for name, door in PLAIN.items()}
# An attached session is a classic one.
DOORS = {**PLAIN, **(ATTACHED if "HUDIMETA_TEST_REMOTE" not in os.environ and hasattr(pyspark_hudimeta, "attach") else {})}
NAMED = {"temporary view": "shapes_v", "catalog": "shapes_c"}
"""Doors whose table SQL may name as often as it likes, each time a relation of its own."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, pa.Table]]:
    """`tables(kind)` is a table's folder and the rows that it must show."""
    made: dict[str, tuple[Path, pa.Table]] = {}

    def table(kind: str) -> tuple[Path, pa.Table]:
        if kind not in made:
            path = tmp_path_factory.mktemp("shapes") / "t"
            made[kind] = (path, TABLES[kind](path))
        return made[kind]

    return table


@pytest.fixture
def opened(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Callable[[str, Path], tuple[DataFrame, str]]]:
    """`opened(door, path)` is the table through a door: a DataFrame, and the name by which SQL reads it."""
    attached = False

    def open_by(door: str, path: Path) -> tuple[DataFrame, str]:
        nonlocal attached
        if door in ATTACHED and not attached:
            pyspark_hudimeta.attach(spark)
            attached = True
        frame = DOORS[door](spark, path)
        name = NAMED.get(door.removeprefix("attached "))
        if name is None:
            frame.createOrReplaceTempView("shapes")
        return frame, name or "shapes"

    yield open_by
    spark.sql("drop table if exists shapes_c")
    for view in ("shapes", "shapes_v", "shapes_model"):
        spark.catalog.dropTempView(view)
    if attached:
        pyspark_hudimeta.detach(spark)


def questions(spark: SparkSession, frame: DataFrame, name: str) -> dict[str, Callable[[], Rows]]:
    """Every shape of query as something to call."""
    asked: dict[str, Callable[[], Rows]] = {
        shape: (lambda text=text: rows_of(spark.sql(text.format(t=name)))) for shape, text in SQL.items()
    }
    return asked | {shape: (lambda query=query: query(frame)) for shape, query in FRAMES.items()}


def model_of(spark: SparkSession, rows: pa.Table, folder: Path) -> dict[str, Rows]:
    """What every shape gives over a plain Parquet table with the rows."""
    import pyarrow.parquet as pq

    folder.mkdir()
    pq.write_table(rows, folder / "rows.parquet")
    frame = spark.read.parquet(str(folder))
    frame.createOrReplaceTempView("shapes_model")
    return {shape: ask() for shape, ask in questions(spark, frame, "shapes_model").items()}


@pytest.fixture(scope="module")
def expected(
    spark: SparkSession, tables: Callable[[str], tuple[Path, pa.Table]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Rows]]:
    """`expected(kind)` is what every shape must give on a table."""
    known: dict[str, dict[str, Rows]] = {}

    def answers(kind: str) -> dict[str, Rows]:
        if kind not in known:
            known[kind] = model_of(spark, tables(kind)[1], tmp_path_factory.mktemp("model") / "m")
        return known[kind]

    return answers


EVERY = "HUDIMETA_SHAPES_FULL" in os.environ
"""All doors on all tables, one query after the other as well: some five minutes, see `make shapes-full`."""

CASES = [
    pytest.param(door, kind, marks=pytest.mark.oldest if kind == "evolved" and door in ("path", "HudiTable") else ())
    for kind in TABLES
    for door in DOORS
    if EVERY or (kind == "evolved" and door in ("path", "HudiTable", "attached path"))
]


@pytest.mark.rotation(3)
@pytest.mark.parametrize(("door", "kind"), CASES)
def test_every_shape_gives_the_right_rows(
    spark: SparkSession, tables: Any, opened: Any, expected: Callable[[str], dict[str, Rows]], door: str, kind: str
) -> None:
    right = expected(kind)
    frame, name = opened(door, tables(kind)[0])
    found = {shape: ask() for shape, ask in questions(spark, frame, name).items()}
    assert [shape for shape in right if found[shape] != right[shape]] == []


@pytest.mark.rotation(8)
@pytest.mark.parametrize("door", DOORS)
def test_every_shape_from_eight_threads_at_once(
    spark: SparkSession, tables: Any, opened: Any, expected: Callable[[str], dict[str, Rows]], door: str
) -> None:
    right = expected("merge on read")
    frame, name = opened(door, tables("merge on read")[0])
    asked = questions(spark, frame, name)
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(asked, pool.map(lambda ask: ask(), asked.values()), strict=True))
    assert [shape for shape in right if found[shape] != right[shape]] == []
