"""Every kind of query through every door: counts, chosen columns and collected rows are those that the engine reads alone.

Through Spark Connect a DataFrame is resolved anew for each action, in another process; `make connect` runs this there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyspark_hudimeta
import pytest

import hudimeta
from tests.spark.tables import create, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPE = "hoodie.datasource.query.type"
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
CDC = {TYPE: "incremental", "hoodie.datasource.query.incremental.format": "cdc"}


@dataclass(frozen=True)
class Kind:
    """One kind of query.

    Attributes:
        scan: As arguments of `scan`.
        options: As options of Spark's reader.
        sql: As what a query reads FROM.
        column, condition: One that is chosen alone, and one that rows must meet.
        count: Of all rows.
    """

    count: int
    scan: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    sql: str = "{view}"
    column: str = "x"
    condition: str = "id > 3 AND part <> 'p2'"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudimeta.Table:
    """Ten rows, of which 3 and 4 were updated and 5 was deleted, and two more, in base files and logs, with their changes."""
    path = tmp_path_factory.mktemp("kinds") / "t"
    table = create(path, type="MERGE_ON_READ", options={"hoodie.table.cdc.enabled": "true"})
    table.upsert(rows([3, 4, 10], 2, x=0.5))
    table.delete("id = 5")
    table.upsert(rows([4, 11], 3, x=1.5))
    return table


def kinds(table: hudimeta.Table) -> dict[str, Kind]:
    first, second, third, _ = table.timeline.by_completion
    begin, end = str(first.completed_at), str(third.completed_at)
    between = {"begin": begin, "end": end}
    ranged = {BEGIN: begin, END: end}
    past = f"hudimeta.`{table.path}` TIMESTAMP AS OF '{second.time}'"
    changes = "hudi_table_changes('{path}', '{kind}', '{begin}', '{end}')"
    incremental = changes.format(path=table.path, kind="latest_state", begin=begin, end=end)
    captured = changes.format(path=table.path, kind="cdc", begin=begin, end=end)
    return {
        "snapshot": Kind(11, sql=f"hudimeta.`{table.path}`"),
        "as of": Kind(11, {"as_of": second.time}, {"as.of.instant": second.time}, past),
        "read optimized": Kind(12, {"query_type": "read_optimized"}, {TYPE: "read_optimized"}),
        "incremental": Kind(3, {"query_type": "incremental", **between}, {TYPE: "incremental", **ranged}, incremental),
        "cdc": Kind(4, {"query_type": "cdc", **between}, {**CDC, **ranged}, captured, "op", "op <> 'u'"),
    }


def of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows, as many as are counted."""
    found = sorted(map(tuple, frame.collect()), key=repr)
    assert frame.count() == len(found)
    return found


def engine(table: hudimeta.Table, kind: Kind, **more: Any) -> list[tuple[Any, ...]]:
    found = table.scan(**kind.scan, **more).to_table()
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


@pytest.fixture
def views(spark: SparkSession) -> Iterator[list[str]]:
    made: list[str] = []
    yield made
    for name in made:
        spark.catalog.dropTempView(name)


@pytest.mark.rotation(8)
@pytest.mark.parametrize("name", ["snapshot", "as of", "read optimized", "incremental", "cdc"])
def test_count_select_and_collect_agree(spark: SparkSession, table: hudimeta.Table, views: list[str], name: str) -> None:
    kind = kinds(table)[name]
    everything, one = engine(table, kind), engine(table, kind, columns=[kind.column])
    few = engine(table, kind, where=kind.condition)
    assert (len(everything), 0 < len(few) < len(everything)) == (kind.count, True)

    def load(**more: str) -> DataFrame:
        return spark.read.format("hudimeta").options(**kind.options, **more).load(table.path)

    def scan(**more: Any) -> DataFrame:
        return pyspark_hudimeta.HudiTable(spark, table.path).scan(**kind.scan, **more).to_df()

    def ask(columns: str, rest: str = "") -> DataFrame:
        return pyspark_hudimeta.sql(spark, f"select {columns} from {place} {rest}")

    if kind.sql == "{view}":
        views.append("kinds_view")
        stated = ", ".join(f"'{key}' '{value}'" for key, value in {**kind.options, "path": table.path}.items())
        pyspark_hudimeta.sql(spark, f"create or replace temporary view kinds_view using hudimeta options ({stated})")
    place, loaded, scanned = kind.sql.format(view="kinds_view"), load(), scan()
    assert of(loaded) == of(scanned) == of(ask(", ".join(loaded.columns))) == everything
    assert of(loaded.select(kind.column)) == of(scan(columns=[kind.column])) == of(ask(kind.column)) == one
    assert of(load(**{"hudimeta.columns": kind.column})) == of(scanned.select(kind.column)) == one
    assert of(loaded.where(kind.condition)) == of(load(**{"hudimeta.filter": kind.condition})) == few
    assert of(scanned.where(kind.condition)) == of(scan(where=kind.condition)) == few
    assert of(ask("count(*)", f"where {kind.condition}")) == [(len(few),)]
