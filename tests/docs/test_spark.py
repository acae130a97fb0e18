"""The examples of docs/spark.md and README.md run, in order, in a classic session; those of Spark Connect in one of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_hudimeta
import pytest

import hudimeta
from tests.elsewhere import REMOTE, only_when

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "spark.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```(python|sql)\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXAMPLES = FENCED.findall(PAGE)
ROWS = "id string, month string, fare double, ts bigint"
OVER_CONNECT = "builder.remote"


def trips(path: Path, **options: str) -> None:
    """Two commits of the table that the page is about."""
    schema = pa.schema([("id", pa.string()), ("month", pa.string()), ("fare", pa.float64()), ("ts", pa.int64())])
    table = hudimeta.Table.create(
        path, schema, key="id", partition_by="month", ordering="ts", type="MERGE_ON_READ", options=options
    )
    for ts in (1, 2):
        rows = [{"id": f"t{n}", "month": f"2026-0{n}", "fare": 40.0 * n, "ts": ts} for n in (1, 2)]
        table.upsert(pa.Table.from_pylist(rows, schema))


def statements(block: str) -> list[str]:
    """The statements of an example in SQL, without the remarks at the end of lines."""
    bare = re.sub(r"\s-- .*$", "", block, flags=re.MULTILINE)
    return [text for text in bare.split(";") if text.strip()]


@pytest.mark.rotation(2)
@only_when(not REMOTE, "classic sessions: the page's Connect example has its own test")
def test_the_examples(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = spark.createDataFrame([("t1", "2026-01", 61.0, 1), ("t2", "2026-02", 12.5, 1)], ROWS)
    made.createOrReplaceTempView("other")
    names: dict[str, Any] = {}
    try:
        for language, example in EXAMPLES:
            text = example.replace("/data/trips", str(tmp_path / "trips"))
            if OVER_CONNECT in text:
                continue
            if "cdc" in text and not (tmp_path / "cdc").exists():
                trips(tmp_path / "cdc", **{"hoodie.table.cdc.enabled": "true"})
            if "cdc" in text:
                text = text.replace(str(tmp_path / "trips"), str(tmp_path / "cdc"))
            if language == "python":
                exec(compile(text, "docs/spark.md", "exec"), names)
            else:
                for statement in statements(text):
                    spark.sql(statement).collect()
        rides = sorted(map(tuple, spark.sql("SELECT id, round(fare, 2), month FROM rides").collect()))
        assert rides == [("r1", 13.75, "2026-01"), ("r2", 75.0, "2026-02"), ("r3", 9.5, "2026-03")]
        names["test_fares_are_corrected"](spark, tmp_path / "own")
    finally:
        pyspark_hudimeta.attach(spark)
        spark.sql("DROP TABLE IF EXISTS rides")
        spark.sql("DROP TABLE IF EXISTS cheap")
        spark.sql("DROP TABLE IF EXISTS trips")
        pyspark_hudimeta.detach(spark)
        for view in ("other", "januaries"):
            spark.catalog.dropTempView(view)
    assert "FileScan parquet" in capfd.readouterr().out


@only_when(not REMOTE, "classic sessions, with which the page begins")
def test_the_examples_of_the_first_page(spark: SparkSession, tmp_path: Path) -> None:
    """As somebody types them who has nothing yet, in order."""
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    try:
        for language, example in FENCED.findall(page):
            text = example.replace("/data/", f"{tmp_path}/")
            if "import hudimeta\n" in text:
                break  # without Spark: test_indexes runs it
            if language == "python":
                exec(compile(text, "README.md", "exec"), names)
            else:
                for statement in statements(text):
                    spark.sql(statement).collect()
        assert [tuple(row) for row in names["scan"].to_df().collect()] == [("t1", 61.0)]
    finally:
        pyspark_hudimeta.attach(spark)
        spark.catalog.dropTempView("news")
        for table in ("live", "trips"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")
        pyspark_hudimeta.detach(spark)


@pytest.mark.oldest
def test_the_connect_example(spark: SparkSession, tmp_path: Path) -> None:
    """In a session of Connect where the run has one; its code is the same in a classic session, too."""
    trips(tmp_path / "trips")
    (example,) = (text for _, text in EXAMPLES if OVER_CONNECT in text)
    begun = re.sub(r"^spark = .*\n", "", example, flags=re.MULTILINE)
    assert begun != example
    exec(compile(begun.replace("/data/trips", str(tmp_path / "trips")), "docs/spark.md", "exec"), {"spark": spark})


def test_links_lead_somewhere() -> None:
    for name in re.findall(r"\]\(([a-z_/.]+)\)", PAGE):
        assert (DOCS / name).exists(), name
    headings = {
        re.sub(r"[^a-z -]", "", line.lower()).strip().replace(" ", "-") for line in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    }
    for anchor in re.findall(r"\]\(#([a-z-]+)\)", PAGE):
        assert anchor in headings, anchor
