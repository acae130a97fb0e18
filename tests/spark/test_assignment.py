"""Rows of statements as the server of Connect brings them to a table's columns, which `DataFrame.to` does in any session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType
from pyspark_hudimeta.routed.assignment import assigned

from hudimeta.errors import ConfigError
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.sql_tables import Name, is_said, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "n int, d decimal(4,1), s struct<a: int, b: string>, l array<struct<c: int>>, m map<int,int>"
FITS = "2147483647L n, 999.94 d, struct(1L, 'x') s, array(struct(2L), null) l, map(3L, 4L) m"
TOO_LARGE = {
    "n": "2147483648L",
    "d": "1000",
    "s": "struct(-2147483649L, 'x')",
    "l": "array(struct(1L), struct(3000000000L))",
    "m": "map(1L, 1e10D)",
}


@pytest.fixture(autouse=True, params=["true", "false"], ids=["ansi", "not ansi"])
def mode(request: pytest.FixtureRequest, conf: Callable[[str, str], None]) -> None:
    conf("spark.sql.ansi.enabled", request.param)


def test_numbers_that_fit_are_stored(spark: SparkSession) -> None:
    columns = StructType.fromDDL(COLUMNS)
    found = assigned(None, "t", columns, spark.sql(f"select {FITS} union all select null, null, null, null, null"))
    assert found.schema.simpleString() == columns.simpleString()
    assert str(found.collect()) == (
        "[Row(n=2147483647, d=Decimal('999.9'), s=Row(a=1, b='x'), l=[Row(c=2), None], m={3: 4}), "
        "Row(n=None, d=None, s=None, l=None, m=None)]"
    )


@pytest.mark.parametrize("column", TOO_LARGE)
def test_numbers_that_do_not_fit_are_refused(spark: SparkSession, column: str) -> None:
    columns = StructType.fromDDL(COLUMNS)
    given = spark.sql(f"select {FITS}").withColumn(column, expr(TOO_LARGE[column]))
    says = rf"HUDIMETA_SCHEMA_MISMATCH: column '{column}' has a value that is no|OVERFLOW|OUT_OF_RANGE"
    with pytest.raises(Exception, match=says):
        assigned(None, "t", columns, given).collect()


@pytest.mark.parametrize("given", ["1 a", "1 a, 2 b, 3 c"])
def test_too_few_columns_and_too_many_are_told_how_to_say_which(spark: SparkSession, given: str) -> None:
    with pytest.raises(ConfigError, match=r"the columns of the table: a, b\. .*INSERT INTO t \(a, b\)"):
        assigned(None, "t", StructType.fromDDL("a int, b int"), spark.sql(f"select {given}"))


@SAYS_STATEMENTS
def test_statements_store_no_other_number_than_the_one_given(door: SparkSession, name: Name) -> None:
    t = name()
    door.sql(f"create table {t} (id int, n int) using hudimeta tblproperties (primaryKey = 'id')")
    door.sql(f"insert into {t} values (1, 1)")
    for statement in (
        f"insert into {t} values (2, 3000000000L)",
        f"update {t} set n = 3000000000L",
        f"merge into {t} t using (select 1 id, 3000000000L n) s on t.id = s.id when matched then update set n = s.n",
    ):
        with pytest.raises(Exception, match=r".+") as caught:
            door.sql(statement)
        assert is_said("OVERFLOW|HUDIMETA_SCHEMA_MISMATCH", caught.value)
    assert rows(door, t) == [(1, 1)]
