"""Fixtures of several of Spark's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.elsewhere import REMOTE
from tests.spark.sql_tables import NUMBER, Name, drop_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def small_files_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks read also files that are hardly worth it."""
    from pyspark_hudimeta.routed import scanned_files

    monkeypatch.setattr(scanned_files, "WORTH_BYTES", 0)


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Sets something in the session until the test is over."""
    changed: list[str] = []

    def change(key: str, value: str) -> None:
        changed.append(key)
        spark.conf.set(key, value)

    yield change
    for key in changed:
        spark.conf.unset(key)


class SaysStatements:
    """A session that is not attached, Connect's for one, for tests that know of statements only that `sql` takes them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def sql(self, text: str, args: Any = None, **frames: Any) -> DataFrame:
        """As that of an attached session."""
        import pyspark_hudimeta

        return pyspark_hudimeta.sql(self._spark, text, args, **frames)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the attached door; through Spark Connect one whose statements go to `pyspark_hudimeta.sql`."""
    import pyspark_hudimeta

    if REMOTE:
        yield cast("SparkSession", SaysStatements(spark))
    else:
        pyspark_hudimeta.attach(spark)
        yield spark
        pyspark_hudimeta.detach(spark)
    drop_views(spark)


@pytest.fixture(params=["by function"] if REMOTE else ["attached", "by function"])
def door(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """Both sessions that take our statements: the attached one, then a plain one with `pyspark_hudimeta.sql`."""
    if request.param == "attached":
        yield cast("SparkSession", request.getfixturevalue("attached"))
    else:
        yield cast("SparkSession", SaysStatements(spark))
        drop_views(spark)


@pytest.fixture(params=["plain", "attached"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    """A plain session, then an attached one."""
    if request.param == "attached":
        request.getfixturevalue("attached")
    return spark


@pytest.fixture
def name(spark: SparkSession) -> Iterator[Name]:
    """`name()` is the name of a table that is dropped after the test, with its files."""
    import pyspark_hudimeta

    names = []

    def new() -> str:
        names.append(f"sql_{next(NUMBER)}")
        return names[-1]

    yield new
    for made in names:
        pyspark_hudimeta.sql(spark, f"drop table if exists {made} purge")
