"""Tables that Apache Hudi wrote must be read as Apache Hudi reads them: rows, time travel, filters, file slices, schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from tests.conformance import reader
from tests.conformance.judging import Tally, schema_difference, wrong_answers
from tests.recorded_tables import CONFORMANCE

TABLES = CONFORMANCE.names() or [pytest.param("none", marks=pytest.mark.shared)]
ENGINE_KINDS = ("snapshot", "read_optimized", "as_of", "filter", "file_slices", "incremental", "cdc")
SPARK_KINDS = ("snapshot", "read_optimized", "as_of", "filter")


@pytest.mark.parametrize("name", TABLES)
def test_engine_answers_every_query(conformance_table: Callable[[str], Path], tally: Tally, name: str) -> None:
    def note(kind: str, is_right: bool) -> None:
        tally.add("engine", kind, is_right)

    wrong = wrong_answers(CONFORMANCE, name, conformance_table(name), reader.read, ENGINE_KINDS, note)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", TABLES)
def test_engine_knows_the_schema(conformance_table: Callable[[str], Path], tally: Tally, name: str) -> None:
    table = hudimeta.Table(str(conformance_table(name)))
    difference = schema_difference(CONFORMANCE.answer(name), table.schema)
    tally.add("engine", "schema", not difference)
    assert not difference
    assert table.scan().to_table().schema.equals(table.schema), "rows come with the schema that the table declares"


@pytest.fixture
def attached(spark: Any) -> Iterator[Any]:
    import pyspark_hudimeta

    pyspark_hudimeta.attach(spark)
    yield spark
    pyspark_hudimeta.detach(spark)


@pytest.mark.rotation(9)
@pytest.mark.parametrize("name", TABLES)
def test_attached_spark_answers_every_query(
    attached: Any, conformance_table: Callable[[str], Path], tally: Tally, name: str
) -> None:
    from tests.conformance import attached_reader

    def note(kind: str, is_right: bool) -> None:
        tally.add("attached", kind, is_right)

    path = conformance_table(name)
    wrong = wrong_answers(CONFORMANCE, name, path, attached_reader.read, SPARK_KINDS, note)
    schema = attached.read.format("hudimeta").load(str(path)).limit(0).toArrow().schema
    difference = schema_difference(CONFORMANCE.answer(name), schema)
    tally.add("attached", "schema", not difference)
    assert not [*wrong, *([difference] if difference else [])], "\n".join(wrong)


@pytest.mark.rotation(9)
@pytest.mark.parametrize("name", TABLES)
def test_spark_answers_every_query(spark: Any, conformance_table: Callable[[str], Path], tally: Tally, name: str) -> None:
    from tests.conformance import spark_reader

    def note(kind: str, is_right: bool) -> None:
        tally.add("spark", kind, is_right)

    path = conformance_table(name)
    wrong = wrong_answers(CONFORMANCE, name, path, spark_reader.read, SPARK_KINDS, note)
    schema = spark.read.format("hudimeta").load(str(path)).limit(0).toArrow().schema
    difference = schema_difference(CONFORMANCE.answer(name), schema)
    tally.add("spark", "schema", not difference)
    assert not [*wrong, *([difference] if difference else [])], "\n".join(wrong)
