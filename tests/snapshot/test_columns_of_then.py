"""As of an earlier moment a table has the columns of that time: their names, types and places, as in Apache Hudi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.types import META_COLUMNS

DEEP = pa.struct([("a", pa.int32())])
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.int32()), ("note", pa.string()), ("deep", DEEP)])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def row(n: int, ts: int) -> dict[str, Any]:
    """As texts the fares have another order."""
    return {"id": f"k{n}", "ts": ts, "fare": 8 + n, "note": f"n{n}", "deep": {"a": n}}


def made(path: Path, kind: str, **more: str) -> tuple[Table, str]:
    """A table with two file groups, the second of them updated, and its newest instant."""
    indexes = ["column_stats"]
    options = {"hoodie.parquet.small.file.limit": "0", **more}
    table = Table.create(path, SCHEMA, key="id", ordering="ts", type=kind, indexes=indexes, options=options)
    for numbers in (range(3), range(3, 6)):
        table.insert(pa.Table.from_pylist([row(n, 1) for n in numbers], SCHEMA))
    table.upsert(pa.Table.from_pylist([row(4, 2)], SCHEMA))
    return table, table.timeline.writes[-1].time


def then() -> list[dict[str, Any]]:
    return [row(n, 2 if n == 4 else 1) for n in range(6)]


def shown(rows: pa.Table) -> list[dict[str, Any]]:
    data = rows.drop_columns([name for name in META_COLUMNS if name in rows.column_names])
    return sorted(data.to_pylist(), key=lambda one: str(one["id"]))


def types(rows: pa.Table) -> list[tuple[str, pa.DataType]]:
    return [(column.name, column.type) for column in rows.schema if column.name not in META_COLUMNS]


ALTERS: list[dict[str, Any]] = [
    {"rename": {"note": "remark", "deep.a": "b"}},
    {"drop": "note"},
    {"drop": ["fare", "deep"], "add": {"tip": pa.int64()}},
    {"retype": {"fare": pa.string()}},
    {"retype": {"fare": pa.int64(), "deep.a": pa.float64()}},
    {"move": {"note": None, "fare": "id"}},
    {"rename": {"fare": "price"}, "retype": {"price": pa.float64()}, "add": {"deep.z": pa.string()}},
]


@KINDS
@pytest.mark.parametrize("change", ALTERS, ids=str)
def test_an_alter_changes_no_earlier_moment(tmp_path: Path, kind: str, change: dict[str, Any]) -> None:
    table, before = made(tmp_path / "t", kind)
    table.alter(**change)
    table.delete("id = 'k5'")
    found = table.scan(as_of=before).to_table()
    assert shown(found) == then()
    assert types(found) == [(column.name, column.type) for column in SCHEMA]
    assert [one["id"] for one in shown(table.scan().to_table())] == [f"k{n}" for n in range(5)]


@KINDS
@pytest.mark.parametrize("change", ALTERS, ids=str)
def test_statistics_that_are_younger_than_the_moment_hide_no_row(tmp_path: Path, kind: str, change: dict[str, Any]) -> None:
    """The index is made anew after the change: what it holds of older files goes by the names and types of today."""
    table, before = made(tmp_path / "t", kind)
    table.metadata.drop_index("column_stats")
    table.alter(**change)
    Table(table.path).metadata.create_index(type="column_stats")
    for where, number in (("fare = 12", 4), ("fare = 9", 1), ("note = 'n1'", 1), ("deep.a >= 5", 5), ("fare < 9", 0)):
        found = shown(Table(table.path).scan(where, as_of=before).to_table())
        assert found == [one for one in then() if one["id"] == f"k{number}"], where


def test_statistics_of_that_time_still_leave_files_out(tmp_path: Path) -> None:
    table, before = made(tmp_path / "t", "COPY_ON_WRITE")
    table.alter(rename={"note": "remark"}, move={"fare": None})
    scan = table.scan("fare = 12", as_of=before)
    assert scan.count() == 1
    assert scan.report.files_kept == 1


@KINDS
def test_a_column_that_a_write_widened_has_its_former_type_before(tmp_path: Path, kind: str) -> None:
    table, before = made(tmp_path / "t", kind)
    wider = SCHEMA.set(2, pa.field("fare", pa.int64()))
    table.upsert(pa.Table.from_pylist([{**row(1, 3), "fare": 2**40}], wider))
    assert dict(types(table.scan().to_table()))["fare"] == pa.int64()
    found = table.scan("fare >= 12", as_of=before).to_table()
    assert dict(types(found))["fare"] == pa.int32()
    assert [one["id"] for one in shown(found)] == ["k4", "k5"]


@KINDS
@pytest.mark.parametrize("altered", [True, False])
def test_a_range_that_ends_early_shows_the_columns_of_today(tmp_path: Path, kind: str, altered: bool) -> None:
    table, _ = made(tmp_path / "t", kind)
    end = table.timeline.writes[-1].completion
    if altered:
        table.alter(rename={"note": "remark"}, add={"tip": pa.int64()})
    name = "remark" if altered else "note"
    new = {**row(9, 9), "tip": 1}
    new[name] = new.pop("note")
    columns = [column.with_name(name if column.name == "note" else column.name) for column in SCHEMA]
    table.upsert(pa.Table.from_pylist([new], pa.schema([*columns, ("tip", pa.int64())])))
    found = shown(table.scan(query_type="incremental", begin="earliest", end=end).to_table())
    assert [(one["id"], one[name], one["tip"]) for one in found] == [(f"k{n}", f"n{n}", None) for n in range(6)]


@KINDS
def test_a_name_that_is_gone_since_still_leads_to_its_column_as_of_then(tmp_path: Path, kind: str) -> None:
    """Renamed, then dropped: the names of today lead to all columns, those of the moment in between do not."""
    table, _ = made(tmp_path / "t", kind)
    table.alter(rename={"note": "remark"})
    between = table.timeline.writes[-1].time
    table.alter(drop="remark")
    renamed = [{("remark" if name == "note" else name): value for name, value in one.items()} for one in then()]
    assert shown(table.scan(as_of=between).to_table()) == renamed
    assert shown(table.scan("remark = 'n4'", as_of=between).to_table()) == [renamed[4]]


@pytest.mark.parametrize("change", [{"add": {"tip": pa.int64()}}, {"rename": {"note": "remark"}}, None], ids=str)
def test_a_moment_before_the_active_timeline_has_its_columns_too(tmp_path: Path, change: dict[str, Any] | None) -> None:
    table, before = made(tmp_path / "t", "COPY_ON_WRITE", **{"hoodie.metadata.compact.max.delta.commits": "2"})
    if change is None:
        table.upsert(pa.Table.from_pylist([{**row(4, 2), "tip": 1}], SCHEMA.append(pa.field("tip", pa.int64()))))
    else:
        table.alter(**change)
    for n in range(3):
        table.delete(f"id = 'k{n}'")
    kept = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    by_hand = Table(table.path, kept)
    assert by_hand.archive().archived
    assert by_hand.timeline.first_active_write > before
    found = by_hand.scan(as_of=before).to_table()
    assert types(found) == [(column.name, column.type) for column in SCHEMA]
    assert shown(found) == then()
