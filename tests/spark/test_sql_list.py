"""The statements of docs/sql.md: each works, or is refused with its reason and changes nothing on disk.

In a classic session they are those of an attached one; `make connect` runs them through Connect.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark_hudimeta
import pytest
from pyspark_hudimeta.spark_version import is_connect

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.spark.sql_list import SECTIONS
from tests.spark.sql_tables import drop_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def database(spark: SparkSession) -> Iterator[SparkSession]:
    """A session, attached where it is a classic one, in a database of its own."""
    if not is_connect(spark):
        pyspark_hudimeta.attach(spark)
    spark.sql("create database listed")
    spark.sql("use listed")
    yield spark
    spark.sql("use default")
    spark.sql("drop database listed cascade")
    drop_views(spark)
    if not is_connect(spark):
        pyspark_hudimeta.detach(spark)


SAID_BY_CONNECT = {"CANNOT_SAFELY_CAST": "INVALID_COLUMN_OR_FIELD_DATA_TYPE"}
"""Spark's word for values that do not fit, where INSERT's own rules cannot be asked: `DataFrame.to` has the same ones."""


@pytest.mark.filterwarnings("ignore:a Hudi table has strings of any length")
@pytest.mark.filterwarnings("ignore:new_col may be null")
@pytest.mark.rotation(len(SECTIONS))
@pytest.mark.parametrize("section", SECTIONS)
def test_every_statement_of_the_page_has_the_outcome_that_it_says(database: SparkSession, section: str) -> None:
    folder: Path | None = None
    for one in SECTIONS[section]:
        writes = hudimeta.Table(folder).timeline.writes if folder is not None else ()
        at, done = min(((i.time, i.completion or "") for i in writes), default=("", ""))
        statement = one.text.format(format="hudimeta", at=at, done=done)
        if not one.refused:
            pyspark_hudimeta.sql(database, statement).collect()
        else:
            before = sorted(str(path) for path in folder.rglob("*")) if folder is not None else []
            with pytest.raises(Exception, match=r".+") as caught:
                pyspark_hudimeta.sql(database, statement).collect()
            reason = SAID_BY_CONNECT.get(one.refused, one.refused) if is_connect(database) else one.refused
            assert reason in str(caught.value), statement
            assert folder is None or sorted(str(path) for path in folder.rglob("*")) == before, statement
        if folder is None:
            (detail,) = pyspark_hudimeta.sql(database, "describe detail trips").collect()
            folder = Path(detail.location)
    assert folder is not None
    check_all(open_storage(folder))
