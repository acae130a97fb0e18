"""SQL in an attached session: MERGE that gives rows another partition, in tables whose keys a global index finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest
from pyspark.sql.functions import col, lit

from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.sql_tables import Name
from tests.spark.tables import refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = SAYS_STATEMENTS

Conf = Callable[[str, str], None]
SOURCE = (
    "select 1 as id, 6 as v, 'new' as n, 'q' as part union all select 2, 4, 'late', 'q' union all select 3, 6, 'del', 'q' "
    "union all select 4, 6, 'none', 'q' union all select 9, 1, 'ins', 'r'"
)
MERGE = (
    "merge into {} t using ({}) s on t.id = s.id when matched and s.n = 'del' then delete "
    "when matched and s.n <> 'none' then update set * when not matched then insert *"
)


def places(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    """(id, v, n, part, partition path), sorted."""
    found = spark.sql(f"select id, v, n, part, _hoodie_partition_path from {table}").collect()
    return sorted((*row[:4], row[4].removeprefix("part=")) for row in found)


@pytest.fixture
def table(attached: SparkSession, name: Name) -> Callable[[str, str], str]:
    """`table(type, properties)` makes one with ids 1 to 6 in partition p."""

    def made(kind: str, properties: str) -> str:
        t = name()
        keyed = f"primaryKey = 'id', orderingFields = 'v', type = '{kind}', 'hudimeta.meta.columns' = 'true'"
        columns = "(id int, v int, n string, part string) using hudimeta partitioned by (part)"
        attached.sql(f"create table {t} {columns} tblproperties ({keyed}, {properties})")
        attached.sql(f"insert into {t} select cast(id as int), 5, 'old', 'p' from range(1, 7)")
        return t

    return made


@pytest.mark.rotation(2)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
def test_a_row_moves_to_the_partition_that_it_is_given(
    attached: SparkSession, table: Callable[[str, str], str], kind: str, index: str
) -> None:
    moves = "'hoodie.record.index.update.partition.path' = 'true', 'hoodie.metadata.record.index.enable' = 'true'"
    t = table(kind, f"'hoodie.index.type' = '{index}', {moves}")
    attached.sql(MERGE.format(t, SOURCE))
    left = [(i, 5, "old", "p", "p") for i in (2, 4, 5, 6)]
    assert places(attached, t) == sorted([(1, 6, "new", "q", "q"), *left, (9, 1, "ins", "r", "r")])
    some = "when matched then update set v = s.v, t.part = concat(t.part, s.part), n = concat(t.n, '+')"
    attached.sql(f"merge into {t} t using (select 5 as id, 7 as v, 'x' as part) s on t.id = s.id {some}")
    assert places(attached, t)[3] == (5, 7, "old+", "px", "px")
    target = pyspark_hudimeta.merge_into(attached.range(6, 7).select((col("id") * 1).alias("k")), t, col("k") == col(f"{t}.id"))
    target.whenMatched().update({"part": lit("z"), "v": lit(8)}).merge()
    assert places(attached, t)[4] == (6, 8, "old", "z", "z")


def test_a_row_stays_in_its_partition_where_moves_are_off(
    attached: SparkSession, table: Callable[[str, str], str], conf: Conf
) -> None:
    t = table("cow", "'hoodie.index.type' = 'GLOBAL_SIMPLE'")
    conf("hoodie.simple.index.update.partition.path", "false")
    attached.sql(MERGE.format(t, SOURCE))
    left = [(i, 5, "old", "p", "p") for i in (2, 4, 5, 6)]
    assert places(attached, t) == sorted([(1, 6, "new", "p", "p"), *left, (9, 1, "ins", "r", "r")])


def test_of_one_key_the_newest_row_of_the_source_counts(attached: SparkSession, table: Callable[[str, str], str]) -> None:
    t = table("cow", "'hoodie.index.type' = 'GLOBAL_SIMPLE'")
    source = "select 1 as id, 6 as v, 'a' as n, 'p' as part union all select 1, 7, 'none', 'q'"
    attached.sql(MERGE.format(t, source))
    assert places(attached, t)[0] == (1, 5, "old", "p", "p")


def test_keys_of_one_partition_do_not_leave_it(attached: SparkSession, table: Callable[[str, str], str]) -> None:
    t = table("cow", "'hoodie.index.type' = 'SIMPLE'")
    assert "would change column part of a row of partition" in refusal(partial(attached.sql, MERGE.format(t, SOURCE)))
    assert len(places(attached, t)) == 6
