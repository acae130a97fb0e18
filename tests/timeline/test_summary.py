"""A timeline as a table: every instant, and what the commits say they wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hudimeta
from hudimeta.timeline.summary import SCHEMA, summarise
from tests.spark.tables import create, rows


def test_every_instant_has_a_row_and_writes_tell_what_they_wrote(tmp_path: Path) -> None:
    table = create(tmp_path / "t", rows(range(10)))
    table.upsert(rows([1, 2, 11], ts=2))
    found = summarise(table.timeline)
    assert found.schema == SCHEMA
    first, second = found.to_pylist()
    assert (first["action"], first["state"]) == ("commit", "COMPLETED")
    assert (first["total_partitions_written"], first["total_records_written"], first["total_files_updated"]) == (5, 10, 0)
    assert (second["total_files_updated"], second["total_updated_records_written"]) == (2, 2)
    assert second["total_bytes_written"] > 0
    assert second["timestamp"] == table.timeline.writes[-1].time
    assert second["completion_time"] == table.timeline.writes[-1].completion
    assert (tmp_path / "t/.hoodie/timeline" / second["file_name"]).is_file()


def test_instants_that_are_not_completed_have_no_totals(rich_table: Callable[[str], Path]) -> None:
    found = summarise(hudimeta.Table(rich_table("pending_compaction")).timeline).to_pylist()
    (pending,) = [row for row in found if row["action"] == "compaction"]
    assert (pending["state"], pending["completion_time"], pending["total_records_written"]) == ("REQUESTED", None, None)


@pytest.mark.parametrize("name", ["archived_lsm", "archived_kept"])
def test_archived_instants_stand_in_front_with_their_totals(rich_table: Callable[[str], Path], name: str) -> None:
    timeline = hudimeta.Table(rich_table(name)).timeline
    active, everything = summarise(timeline), summarise(timeline, archived=True)
    older = everything.slice(0, everything.num_rows - active.num_rows).to_pylist()
    assert everything.slice(len(older)) == active
    assert [row["timestamp"] for row in older] == sorted(row["timestamp"] for row in older)
    assert {row["timestamp"] for row in older} == {i.time for i in timeline.history.instants()} - {i.time for i in timeline}
    assert all(row["total_records_written"] > 0 for row in older if row["action"] in ("commit", "deltacommit"))
    assert all(row["file_name"] is None for row in older)


def test_a_new_table_has_no_instants(tmp_path: Path) -> None:
    assert summarise(create(tmp_path / "t", rows([])).timeline, archived=True).num_rows == 0
