"""The decimal context of the process is the caller's: it rounds nothing here."""

import decimal

import pyarrow as pa
import pytest

import hudimeta

RIDES = pa.table(
    {
        "id": ["a", "b"],
        "fare": [123456.789, -98765.4321],
        "paid": pa.array([decimal.Decimal("12345678901234567890123456.67"), None], pa.decimal128(38, 2)),
        "note": ["123456.789", "1e3"],
    }
)
FILTERS = {
    "CAST(fare AS STRING) = '123456.789'": ["a"],
    "CAST(fare AS DECIMAL(12, 4)) = -98765.4321": ["b"],
    "round(fare, 2) = 123456.79": ["a"],
    "paid + paid > 1 AND abs(paid) > 1 AND round(paid, 1) > 5 AND -paid < 0": ["a"],
    "CAST(note AS DECIMAL(20, 3)) = 123456.789": ["a"],
}


@pytest.mark.parametrize(
    "context",
    [
        decimal.Context(prec=3),
        decimal.Context(prec=5, Emax=9, Emin=-9),
        decimal.Context(prec=28, traps=[decimal.Inexact, decimal.Rounded, decimal.FloatOperation]),
        decimal.Context(prec=60, rounding=decimal.ROUND_UP),
    ],
    ids=["few digits", "few powers", "strict", "upwards"],
)
def test_it_changes_no_answer(context, tmp_path):
    with decimal.localcontext(context):
        table = hudimeta.Table.create(tmp_path / "t", RIDES.schema, key="id", indexes=["column_stats"])
        table.upsert(RIDES)
        assert {where: table.scan(where=where).to_table()["id"].to_pylist() for where in FILTERS} == FILTERS
        table.update({"note": "CAST(fare AS STRING)"})
        assert table.scan().to_table().sort_by("id")["note"].to_pylist() == ["123456.789", "-98765.4321"]
        table.alter(retype={"note": pa.decimal128(12, 4)})
        assert table.scan().to_table().sort_by("id")["note"].to_pylist() == list(
            map(decimal.Decimal, ("123456.7890", "-98765.4321"))
        )
