"""The statements of docs/sql.md: each works, or is refused with its reason and changes nothing on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark_hudimeta
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.spark.sql_list import SECTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def database(spark: SparkSession) -> Iterator[SparkSession]:
    """An attached session in a database of its own."""
    pyspark_hudimeta.attach(spark)
    spark.sql("create database listed")
    spark.sql("use listed")
    yield spark
    spark.sql("use default")
    spark.sql("drop database listed cascade")
    pyspark_hudimeta.detach(spark)


@pytest.mark.filterwarnings("ignore:a Hudi table has strings of any length")
@pytest.mark.rotation(len(SECTIONS))
@pytest.mark.parametrize("section", SECTIONS)
def test_every_statement_of_the_page_has_the_outcome_that_it_says(database: SparkSession, section: str) -> None:
    folder: Path | None = None
    for one in SECTIONS[section]:
        at = min((i.time for i in hudimeta.Table(folder).timeline.writes), default="") if folder is not None else ""
        statement = one.text.format(format="hudimeta", at=at)
        if not one.refused:
            database.sql(statement).collect()
        else:
            before = sorted(str(path) for path in folder.rglob("*")) if folder is not None else []
            with pytest.raises(Exception, match=r".+") as caught:
                database.sql(statement).collect()
            assert one.refused in str(caught.value), statement
            assert folder is None or sorted(str(path) for path in folder.rglob("*")) == before, statement
        if folder is None:
            (detail,) = database.sql("describe detail trips").collect()
            folder = Path(detail.location)
    assert folder is not None
    check_all(open_storage(folder))
