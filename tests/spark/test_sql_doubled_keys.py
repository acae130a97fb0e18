"""SQL in an attached session: changes of tables that hold a key more than once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.sql_tables import Name, rows
from tests.spark.tables import refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = SAYS_STATEMENTS


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_of_two_rows_with_one_key_the_one_that_is_meant_is_changed(attached: SparkSession, name: Name, kind: str) -> None:
    apart, together = name(), name()
    for t in (apart, together):
        columns = "(id int, n int, v string) using hudimeta"
        attached.sql(f"create table {t} {columns} tblproperties (primaryKey = 'id', type = '{kind}')")
    attached.sql("set hoodie.spark.sql.insert.into.operation = bulk_insert")
    try:
        for one in ("(1, 1, 'a'), (2, 5, 'c')", "(1, 2, 'b')"):
            attached.sql(f"insert into {apart} select /*+ coalesce(1) */ * from values {one}")
        attached.sql(f"insert into {together} select /*+ coalesce(1) */ * from values (1, 1, 'a'), (1, 2, 'b'), (2, 5, 'c')")
    finally:
        attached.sql("reset hoodie.spark.sql.insert.into.operation")
    assert attached.sql(f"update {apart} set v = 'new' where v = 'b'").collect() == [(1,)]
    source = "(select 1 as id, 7 as n)"
    attached.sql(f"merge into {apart} t using {source} s on t.id = s.id and t.v = 'a' when matched then update set n = s.n")
    assert rows(attached, apart) == [(1, 2, "new"), (1, 7, "a"), (2, 5, "c")]
    attached.sql(f"delete from {apart} where n = 2")
    assert rows(attached, apart) == [(1, 7, "a"), (2, 5, "c")]
    for statement in ("update {} set v = 'new' where v = 'b'", "delete from {} where v = 'a'"):
        assert "holds several rows of key '1'" in refusal(partial(attached.sql, statement.format(together)))
    assert rows(attached, together) == [(1, 1, "a"), (1, 2, "b"), (2, 5, "c")]
    assert attached.sql(f"update {together} set n = n * 10").collect() == [(3,)]
    assert rows(attached, together) == [(1, 10, "a"), (1, 20, "b"), (2, 50, "c")]
    attached.sql(f"delete from {together} where id = 1")
    assert rows(attached, together) == [(2, 50, "c")]
