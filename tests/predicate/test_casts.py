"""Casts are Spark's to the last bit, for every pair of types."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from hudimeta.predicate import bind, bind_value, evaluate, parse
from tests.predicate.all_types import DECIMALS, decimals, plain, rows
from tests.predicate.spark_answers import RAISED, SparkRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

D = decimal.Decimal
TARGETS = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP"]
TARGETS += ["TIMESTAMP_NTZ", *(f"DECIMAL({precision},{scale})" for precision, scale in DECIMALS.values())]
NESTED = ("st", "ai", "ad", "at", "ms", "mi")


def value(text: str, table: pa.Table, zone: str = "UTC") -> list[Any]:
    return plain(evaluate(bind_value(parse(text), table.schema, timezone=zone), table))


@pytest.mark.rotation(2)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_every_type_to_every_other(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    table = rows(random.Random(14), 300)
    texts = [f"CAST({name} AS {t})" for name in table.column_names if name not in NESTED for t in TARGETS]
    wrong = []
    for text, theirs in zip(texts, SparkRows(spark, table, tmp_path / "rows.parquet").answers(texts, zone), strict=True):
        if isinstance(theirs, str):  # Spark knows no such cast
            with pytest.raises(Exception, match="HUDIMETA_CONFIG"):
                value(text, table, zone)
            continue
        source = table[text[5:].split()[0]].to_pylist()
        for given, ours, answer in zip(source, value(text, table, zone), theirs, strict=True):
            if ours != (None if answer is RAISED else answer):
                wrong.append(f"{text} of {given!r}: {answer!r} in Spark, {ours!r} here")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("precision", "scale"), [(9, 3), (15, 15), (16, 2), (18, 0), (38, 18), (38, 38)])
def test_a_decimal_becomes_the_nearest_float(precision: int, scale: int) -> None:
    random_ = random.Random(precision * 100 + scale)
    numbers = [decimals(random_, precision, scale) for _ in range(2000)] + [None]
    table = pa.table({"e": pa.array(numbers, pa.decimal128(precision, scale))}).slice(3)  # at an offset as well
    assert value("CAST(e AS DOUBLE)", table) == [None if number is None else repr(float(number)) for number in numbers[3:]]
    singles = evaluate(bind_value(parse("CAST(e AS FLOAT)"), table.schema), table).to_pylist()
    for number, single in zip(numbers[3:-1], singles, strict=False):
        near = (
            np.float32(single),
            np.nextafter(np.float32(single), np.float32(9)),
            np.nextafter(np.float32(single), np.float32(-9)),
        )
        assert min(near, key=lambda each: abs(D(float(each)) - number)) == near[0] or not number


@pytest.mark.parametrize("where", ["e = 6.8202D", [("e", "=", 6.8202)], "e = '6.8202'", "e IN (6.8202D, 1D)", "e <= 6.8202D"])
def test_a_decimal_equals_the_double_of_the_same_digits(where: Any) -> None:
    table = pa.table({"e": pa.array([D("6.8202"), D("6.8203"), None], pa.decimal128(10, 4))})
    assert evaluate(bind(parse(where), table.schema), table).to_pylist() == [True, False, None]


def test_clocks_change_after_2037_too() -> None:
    """Arrow's own zone rules end there."""
    summer = dt.datetime(2050, 7, 1, 12, tzinfo=dt.timezone.utc)
    table = pa.table({"ts": pa.array([summer, summer.replace(year=9999), None], pa.timestamp("us", "UTC"))})
    found = evaluate(bind(parse("hour(ts) = 14 AND ts > '2050-07-01 13:59:59'"), table.schema, timezone="Europe/Berlin"), table)
    assert found.to_pylist() == [True, True, None]
