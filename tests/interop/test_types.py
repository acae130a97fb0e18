"""Values of every type survive both writers, each rewriting what the other wrote."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, Model, Ours, Row, Theirs, assert_everybody_reads

UTC = datetime.timezone.utc
POINT = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.string())), ("in", pa.struct([("day", pa.date32())]))])
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("month", pa.string()),
        ("flag", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("small", pa.decimal128(5, 2)),
        ("middle", pa.decimal128(18, 6)),
        ("big", pa.decimal128(38, 18)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("words", pa.list_(pa.string())),
        ("numbers", pa.list_(pa.list_(pa.int64()))),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("point", POINT),
        ("points", pa.list_(POINT)),
        ("by_name", pa.map_(pa.string(), POINT)),
        ("times", pa.struct([("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("raw", pa.binary())])),
        ("ts", pa.int64()),
    ]
)
LOWEST = {
    "i": -(2**31),
    "l": -(2**63),
    "f": -3.4028234663852886e38,
    "d": -1.7976931348623157e308,
    "small": Decimal("-999.99"),
    "middle": Decimal("-999999999999.999999"),
    "big": Decimal("-99999999999999999999.999999999999999999"),
    "day": datetime.date(1582, 10, 15),
    "at": datetime.datetime(1900, 1, 1, 4, 5, 6, 789, tzinfo=UTC),
    "text": "",
    "raw": b"",
    "words": [],
    "numbers": [[]],
    "counts": [],
}
HIGHEST = {
    "i": 2**31 - 1,
    "l": 2**63 - 1,
    "f": float("inf"),
    "d": float("-inf"),
    "small": Decimal("999.99"),
    "middle": Decimal("999999999999.999999"),
    "big": Decimal("99999999999999999999.999999999999999999"),
    "day": datetime.date(9999, 12, 30),
    "at": datetime.datetime(9999, 12, 30, 23, 59, 59, 999_999, tzinfo=UTC),
    "text": "\U0001f600 é \u0000 \n end",
    "raw": bytes(range(256)),
    "words": ["", "ü", "\U0001f600"],
    "numbers": [[1, 2], [], [2**62]],
    "counts": [("", 0), ("é", -1)],
}


def _row(n: int, ts: int) -> Row:
    """Every eighth row is null in all but its key, others hold the limits of their types."""
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names)
    base |= {"id": f"k{n:03d}", "month": f"2026-{n % 2 + 1:02d}", "ts": ts}
    if n % 8 == 0:
        return base
    point = {"x": n / 8, "tags": ["a", str(n)], "in": {"day": datetime.date(2026, 1, n % 28 + 1)}}
    hollow = {"x": None, "tags": None, "in": None}
    at = datetime.datetime(2026, 1, 1, 0, 0, 0, n, tzinfo=UTC)
    base |= {
        "flag": n % 2 == 0,
        "i": n,
        "l": n << 33,
        "f": n / 4,
        "d": n / 3,
        "small": Decimal(n) / 100,
        "middle": Decimal(n * 1_000_003) / 1_000_000,
        "big": Decimal(n) * Decimal("12345678901.000000000000000001"),
        "day": datetime.date(2026, 2, 1) + datetime.timedelta(days=n),
        "at": at,
        "text": f"text {n} é",
        "raw": bytes([n, 255 - n]),
        "words": ["w", str(ts)],
        "numbers": [[n], [], [1, 2, 3]],
        "counts": [("a", n), ("b", ts)],
        "point": point,
        "points": [point, hollow],
        "by_name": [("p", point), ("q", hollow)],
        "times": {"at": at, "day": datetime.date(1999, 12, 31), "raw": b"\x00\x01"},
    }
    if n % 8 == 1:
        base |= LOWEST | {"point": hollow, "points": [], "by_name": []}
    if n % 8 == 2:
        base |= HIGHEST
    return base


def _normal(rows: list[Row]) -> list[Row]:
    """The same rows after a trip through Arrow: decimals with their scale, maps as lists of pairs."""
    return pa.Table.from_pylist(rows, SCHEMA).to_pylist()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("we_begin", [True, False] if FULL else [True])
def test_values_stay_as_they_are(hudi: ApacheHudi, tmp_path: Path, we_begin: bool) -> None:
    path, model = tmp_path / "table", Model()
    ours, theirs = Ours(path, schema=SCHEMA), Theirs(path, hudi, schema=SCHEMA)
    sides = (ours, theirs) if we_begin else (theirs, ours)
    for turn in range(4):
        side = sides[turn % 2]
        rows = _normal([_row(n, turn + 1) for n in range(32) if turn == 0 or n % 4 == turn])
        side.write("upsert", rows)
        model.put(rows)
        assert_everybody_reads(path, hudi, model.sorted(), f"turn {turn} by {type(side).__name__}")
        assert all(hudi.validate(path).values())
    assert hudimeta.Table(path).schema.names[5:] == SCHEMA.names


def test_hudi_reads_what_it_could_not_rewrite(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Ancient dates, without being told which calendar our files use, and lists of decimals beside lists of structs.

    Files of its own with such dates it can write and not read, and with such lists it cannot update.
    """
    lists = [("prices", pa.list_(pa.decimal128(12, 3))), ("points", pa.list_(POINT))]
    schema = pa.schema([("id", pa.string()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), *lists])
    none: dict[str, Any] = {"prices": None, "points": None}
    some = {"prices": [Decimal("1.125"), None], "points": [{"x": 1.0, "tags": ["a", None], "in": None}, None]}
    rows = [
        {"id": "a", "day": datetime.date(1, 1, 1), "at": datetime.datetime(1, 1, 1, tzinfo=UTC), **none},
        {
            "id": "b",
            "day": datetime.date(1582, 10, 4),
            "at": datetime.datetime(1899, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
            **some,
        },
        {"id": "c", "day": datetime.date(9999, 12, 31), "at": datetime.datetime(9999, 12, 31, tzinfo=UTC), **none},
    ]
    path = tmp_path / "table"
    hudimeta.Table.create(path, schema, key="id", name="ancient").insert(pa.Table.from_pylist(rows, schema))
    assert_everybody_reads(path, hudi, rows, "the insert")
