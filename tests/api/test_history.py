"""`Table.history`: what happened to a table, told from its timeline and, when asked, from what was archived."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError
from hudimeta.storage.counting import RequestKind
from hudimeta.testing.builders import simple_rows
from tests.acceptance.counted import Counter
from tests.conftest import Unpack


def told(history: pa.Table, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in history.select(columns).to_pylist()]


def test_it_says_who_did_what_the_newest_first(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id")
    assert table.history().num_rows == 0
    table.insert(simple_rows([1, 2, 3], 1))
    table.upsert(simple_rows([3, 4], 2))
    table.delete(where="id = 'k0001'")
    history = table.history()
    assert told(history, "operation", "rows_inserted", "rows_updated", "rows_deleted", "written_by", "state") == [
        ("DELETE", 0, 0, 1, "hudimeta", "COMPLETED"),
        ("UPSERT", 1, 1, 0, "hudimeta", "COMPLETED"),
        ("INSERT", 3, 0, 0, "hudimeta", "COMPLETED"),
    ]
    assert history["instant"].to_pylist() == [i.time for i in reversed(table.timeline.completed)]
    assert history["completion"].to_pylist() == [i.completion for i in reversed(table.timeline.completed)]
    report = table.report()
    assert told(history, "files", "bytes")[0] == (report.files_written, report.bytes_written)
    assert table.history(limit=2).equals(history.slice(0, 2))
    with pytest.raises(ConfigError, match="0 or more"):
        table.history(limit=-1)
    with pytest.raises(ConfigError, match="a whole number"):
        table.history(limit="2")  # type: ignore[arg-type]


def test_rows_of_whole_file_groups_are_not_said_to_be_none(tmp_path: Path) -> None:
    rows = simple_rows([1, 2, 3], 1)
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", partition_by="part")
    table.insert(rows)
    assert "1 replaced, whose rows are not counted as deleted" in str(table.delete_partition(rows["part"][0].as_py()))
    table.cluster()
    assert "not counted" not in str(table.report())
    assert told(table.history(), "operation", "rows_deleted") == [("CLUSTER", 0), ("DELETE_PARTITION", None), ("INSERT", 0)]


def test_what_writes_no_rows_and_what_is_pending_has_no_figures(rich_table: Unpack) -> None:
    history = hudimeta.Table(rich_table("pending_compaction")).history()
    pending = [row for row in history.to_pylist() if row["state"] != "COMPLETED"]
    assert [(row["action"], row["completion"], row["operation"], row["files"]) for row in pending] == [
        ("compaction", None, None, None)
    ]
    assert set(history["written_by"].to_pylist()) == {None}, "Apache Hudi does not say that it was Apache Hudi"


def test_archived_instants_come_on_demand_and_only_those_that_are_asked_for(
    rich_table: Unpack, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Counter()
    monkeypatch.setattr("hudimeta.api.table.open_storage", counter.open)
    table = hudimeta.Table(rich_table("archived_lsm"))
    active = table.history()
    assert not any("history" in path for path in counter.log.paths(RequestKind.GET))
    everything = table.history(archived=True)
    assert everything.num_rows > active.num_rows
    times = everything["instant"].to_pylist()
    assert times == sorted(times, reverse=True)
    old = [row for row in everything.to_pylist() if row["instant"] not in set(active["instant"].to_pylist())]
    wrote = [row for row in old if row["action"] in ("commit", "deltacommit", "replacecommit")]
    assert wrote
    assert all(row["operation"] and row["files"] and row["bytes"] for row in wrote)
    assert table.history(active.num_rows + 2, archived=True).equals(everything.slice(0, active.num_rows + 2))
