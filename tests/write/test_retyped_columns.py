"""Columns that get a type which need not hold all their values: texts become dates and decimals, numbers become decimals."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError, UnsupportedEvolution
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
TWO = pa.decimal128(14, 2)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("day", pa.string()),
        ("text", pa.string()),
        ("pair", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)
NEW = {"n": TWO, "x": pa.decimal128(14, 1), "day": pa.date32(), "text": TWO, "pair.a": TWO}


def row(number: int) -> dict[str, Any]:
    pair = {"a": number, "b": "b"}
    odd = {"n": number, "x": number / 4, "day": f"2026-01-{number:02}", "text": f"{number}.005", "pair": pair}
    return {"id": number, "part": f"p{number % 2}", **(odd if number else dict.fromkeys(odd))}


def shown(number: int) -> dict[str, Any]:
    rounded = Decimal(number / 4).quantize(Decimal("0.1"), "ROUND_HALF_UP")
    new = {"n": Decimal(number), "x": rounded, "day": date(2026, 1, max(number, 1)), "text": Decimal(number) + Decimal("0.01")}
    new |= {"pair": {"a": Decimal(number), "b": "b"}}
    return {"id": number, "part": f"p{number % 2}", **(new if number else dict.fromkeys(new))}


def table_of(path: Path, kind: str, **more: Any) -> Table:
    table = Table.create(path, SCHEMA, key="id", partition_by="part", type=kind, **more)
    table.insert(pa.Table.from_pylist([row(number) for number in range(8)], SCHEMA))
    table.upsert(pa.Table.from_pylist([row(number) for number in (3, 8)], SCHEMA))
    return table


def rows(table: Table, where: str | None = None) -> list[dict[str, Any]]:
    found = table.scan(where=where, columns=SCHEMA.names).to_table().to_pylist()
    return sorted(found, key=lambda one: int(one["id"]))


@KINDS
@pytest.mark.parametrize("indexes", [[], ["column_stats", "partition_stats", "record_index"]], ids=["plain", "indexed"])
def test_rows_are_shown_and_found_by_the_new_types(tmp_path: Path, kind: str, indexes: list[str]) -> None:
    table = table_of(tmp_path / "t", kind, indexes=indexes)
    for column, type in NEW.items():
        table.alter(retype={column: type})
    expected = [shown(number) for number in range(9)]
    assert rows(table) == expected
    table.upsert(table.scan(where="id >= 5").to_table().select(SCHEMA.names))
    for again in (False, True):
        assert rows(table) == expected
        for where, low in (
            ("day > DATE '2026-01-05'", 6),
            ("n >= 6", 6),
            ("text > 3.01", 4),
            ("x > 1.5", 7),
            ("pair.a > 4", 5),
        ):
            assert rows(table, where) == expected[low:], where
        check_all(open_storage(str(tmp_path / "t")))
        if not again and kind == "MERGE_ON_READ":
            table.compact()


@KINDS
def test_a_value_that_the_new_type_does_not_hold_is_named_and_nothing_changes(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    table.upsert(pa.Table.from_pylist([{**row(2), "day": "2026-02-30", "text": "two", "n": 123456, "x": float("nan")}], SCHEMA))
    writes = len(table.timeline.writes)
    narrow = pa.decimal128(4, 0)
    for column, type, value in (
        ("day", pa.date32(), "2026-02-30"),
        ("text", TWO, "two"),
        ("n", narrow, 123456),
        ("x", TWO, "nan"),
    ):
        with pytest.raises(UnsupportedEvolution, match=rf"which does not hold '?{value}'?"):
            table.alter(retype={column: type})
    with pytest.raises(UnsupportedEvolution):
        table.alter(retype={"day": pa.int32()})
    assert len(table.timeline.writes) == writes
    assert rows(table)[2] == {
        **row(2),
        "day": "2026-02-30",
        "text": "two",
        "n": 123456,
        "x": pytest.approx(float("nan"), nan_ok=True),
    }


def test_a_decimal_that_statistics_do_not_hold_is_refused(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE", indexes=["column_stats"])
    with pytest.raises(ConfigError, match="drop the indexes partition_stats and column_stats"):
        table.alter(retype={"n": pa.decimal128(38, 2)})


@KINDS
def test_a_value_that_was_replaced_may_be_anything(tmp_path: Path, kind: str) -> None:
    """The file that holds it may still be the newest one, below a log file."""
    table = table_of(tmp_path / "t", kind, indexes=["column_stats", "partition_stats"])
    table.upsert(pa.Table.from_pylist([{**row(2), "day": "soon"}], SCHEMA))
    if kind == "MERGE_ON_READ":
        table.compact()
    table.update({"day": "'2026-01-02'"}, where="id = 2")
    table.alter(retype={"day": pa.date32()})
    assert [one["day"] for one in rows(table, "day <= DATE '2026-01-02'")] == [date(2026, 1, 1), date(2026, 1, 2)]
    check_all(open_storage(str(tmp_path / "t")))


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1e-300, 0.5, None], pa.decimal128(38, 0), ["0", "1", None]),
        (["0." + "4" * 50, "9" * 38], pa.decimal128(38, 0), ["0", "9" * 38]),
        ([1.2345678901234567e-30], pa.decimal128(38, 38), ["1.23456789E-30"]),
        (["-" + "9" * 36 + ".994"], pa.decimal128(38, 2), ["-" + "9" * 36 + ".99"]),
    ],
)
def test_decimals_take_all_that_they_hold(tmp_path: Path, values: list[Any], kind: pa.DataType, expected: list[Any]) -> None:
    given = pa.table({"id": range(len(values)), "v": values})
    options = {"hoodie.metadata.index.column.stats.enable": "false", "hoodie.metadata.index.partition.stats.enable": "false"}
    table = Table.create(tmp_path / "t", given.schema, key="id", options=options)
    table.insert(given)
    table.alter(retype={"v": kind})
    found = Table(tmp_path / "t").scan(columns=["id", "v"]).to_table().sort_by("id")["v"].to_pylist()
    assert found == [None if text is None else Decimal(text) for text in expected]
