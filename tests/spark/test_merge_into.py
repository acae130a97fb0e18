"""`DataFrame.mergeInto` of tables of ours: the same as MERGE, by columns of DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest
from pyspark.sql.functions import array, col, concat, expr, lit

from tests.spark.tables import check, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBER = count()
CREATE = (
    "create table {name} (id int, name string, fare double, ts bigint, city string) using hudimeta partitioned by (city) "
    "location '{path}' tblproperties (primaryKey = 'id', orderingFields = 'ts', type = '{kind}')"
)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A table of the catalog with ids 1 to 4 in two partitions."""
    name = f"into_{next(NUMBER)}"
    kind = getattr(request, "param", "cow")
    pyspark_hudimeta.sql(spark, CREATE.format(name=name, path=tmp_path / name, kind=kind))
    values = ", ".join(f"({n}, 'n{n}', {n}.5, 1, 'c{n % 2}')" for n in range(1, 5))
    pyspark_hudimeta.sql(spark, f"insert into {name} values {values}")
    yield name
    check(tmp_path / name)
    spark.sql(f"drop table {name}")


def source(spark: SparkSession) -> DataFrame:
    """Ids 3 to 6, one column in capitals, and one that the table has not."""
    return spark.range(3, 7).selectExpr(
        "cast(id as int) as ID",
        "concat('s', id) as name",
        "10D * id as fare",
        "2L as ts",
        "concat('c', id % 2) as city",
        "id % 3 as k",
    )


def shown(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, pyspark_hudimeta.sql(spark, f"select id, name, fare, city from {table}").collect()))


@pytest.mark.rotation(2)
@pytest.mark.parametrize("table", ["cow", "mor"], indirect=True)
def test_each_row_goes_to_the_first_clause_that_it_fits(spark: SparkSession, table: str) -> None:
    rows = source(spark)
    merging = pyspark_hudimeta.merge_into(rows, table, (col(f"{table}.id") == rows.ID) & (rows.city == col(f"{table}.city")))
    done: Any = (
        merging.whenMatched(rows.k == 0)
        .delete()
        .whenMatched(col(f"{table}.fare") > 1)
        .update({"name": concat(rows["name"], lit("+"), col(f"{table}.name")), f"{table}.ts": rows.ts})
        .whenNotMatched(col("fare") > 55)
        .insert({"id": rows.ID, "`city`": col("city"), "ts": col("ts")})
        .whenNotMatched()
        .insertAll()
        .whenNotMatchedBySource(col("fare") > 2)
        .update({"fare": col("fare") * 2, "ts": lit(9)})
        .merge()
    )
    assert done is None
    assert shown(spark, table) == [
        (1, "n1", 1.5, "c1"),
        (2, "n2", 5.0, "c0"),
        (4, "s4+n4", 4.5, "c0"),
        (5, "s5", 50.0, "c1"),
        (6, None, None, "c0"),
    ]


@pytest.mark.rotation(2)
def test_all_columns_and_new_ones(spark: SparkSession, table: str) -> None:
    rows = source(spark).alias("s")
    merging = pyspark_hudimeta.merge_into(rows, table, expr(f"s.id = {table}.id"))
    merging.withSchemaEvolution().whenMatched().updateAll().whenNotMatched().insertAll().merge()
    found = pyspark_hudimeta.sql(spark, f"select id, fare, k from {table} order by id").collect()
    assert [tuple(row) for row in found] == [(1, 1.5, None), (2, 2.5, None), *[(n, n * 10.0, n % 3) for n in range(3, 7)]]


WRONG: dict[str, tuple[Callable[[Any, DataFrame], Any], str]] = {
    "no clause": (lambda m, s: m, "whenMatched, whenNotMatched"),
    "a column that is not there": (lambda m, s: m.whenMatched().update({"nope": lit(1)}), "columns of the table"),
    "a column of neither side": (lambda m, s: m.whenMatched(col("nope") > 1).delete(), "UNRESOLVED_COLUMN"),
    "one column twice": (lambda m, s: m.whenMatched().update({"fare": s.fare, "FARE": s.fare}), "every column once"),
    "a part of a column": (lambda m, s: m.whenMatched().update({"fare.x.y": lit(1)}), "columns, and fields of structs"),
    "no name": (lambda m, s: m.whenMatched().update({"fare + 1": lit(1)}), "columns of the table"),
    "the key": (lambda m, s: m.whenMatched().update({"id": s.ID + 1}), "would change column id"),
    "a wrong type": (
        lambda m, s: m.whenMatched().update({"fare": array(lit(1))}),
        "INCOMPATIBLE_DATA|INVALID_COLUMN_OR_FIELD_DATA_TYPE",
    ),
    "no number": (lambda m, s: m.whenMatched().update({"fare": lit("much")}), "CAST_INVALID_INPUT"),
    "insert of rows that match": (lambda m, s: m.whenMatched().insertAll(), "insertAll of rows that are matched"),
    "updateAll without a source": (lambda m, s: m.whenNotMatchedBySource().updateAll(), "not matched by source"),
    "the target where there is none": (lambda m, s: m.whenNotMatched().insert({"id": col("t.id")}), "UNRESOLVED_COLUMN"),
}


@pytest.mark.rotation(2)
def test_what_does_not_fit_is_said_and_changes_nothing(spark: SparkSession, table: str) -> None:
    before, rows = shown(spark, table), source(spark)
    for name, (what, says) in WRONG.items():
        merging = pyspark_hudimeta.merge_into(rows, table, col(f"{table}.id") == rows.ID)
        with pytest.raises(Exception, match=says):
            what(merging, rows).merge()
        assert shown(spark, table) == before, name
    assert "SHOW TABLES" in refusal(lambda: pyspark_hudimeta.merge_into(rows, "into_nothing", rows.ID == 1))
