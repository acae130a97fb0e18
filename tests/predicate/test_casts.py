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
from hudimeta.predicate.casts import cast_is_total
from hudimeta.predicate.number_text import digits_of_java
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


@pytest.mark.parametrize(
    ("written", "expected", "type"),
    [
        ("a / b", D("0.3333333333333"), pa.decimal128(19, 13)),
        ("b % a", D("0.000"), pa.decimal128(6, 3)),
        ("a + b", D("4.000"), pa.decimal128(11, 3)),
        ("a * b", D("3.00000"), pa.decimal128(16, 5)),
    ],
)
def test_decimals_are_computed_in_the_types_of_spark(written: str, expected: D, type: pa.DataType) -> None:
    schema = pa.schema([("a", pa.decimal128(5, 2)), ("b", pa.decimal128(10, 3))])
    table = pa.table([[D("1.00")], [D("3.000")]], schema)
    found = evaluate(bind_value(parse(written), schema), table)
    assert (found.type, found.to_pylist()) == (type, [expected])


def test_a_large_whole_double_has_the_digits_of_java() -> None:
    """Which leaves out those that cannot matter, and rounds the last one that it shows."""
    assert digits_of_java(2.0**60, single=False) == D("1.15292150460684698E+18")
    assert digits_of_java(2.0**57, single=False) == D(2**57)


@pytest.mark.parametrize(
    ("source", "target", "total"),
    [
        (pa.int32(), pa.decimal128(12, 2), True),
        (pa.int32(), pa.decimal128(11, 2), False),
        (pa.decimal128(5, 2), pa.decimal128(5, 1), True),
        (pa.decimal128(5, 2), pa.decimal128(4, 1), False),
        (pa.decimal128(4, 1), pa.decimal128(5, 2), True),
    ],
    ids=str,
)
def test_which_decimals_hold_every_value(source: pa.DataType, target: pa.DataType, total: bool) -> None:
    """999.95 rounds to a digit more than it had."""
    assert cast_is_total(source, target) is total
