"""The instants at which indexes are built in the metadata table: none that Apache Hudi would take for an attempt of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.metadata.buildings import building_instant, buildings_of
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import TimelineWriter, one_earlier
from hudimeta.types import Action, Operation, State


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_apache_hudi_may_lay_its_next_index_out_at_the_instant_of_the_action(tmp_path: Path, mode: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    opened = Table(table.path)
    opened.metadata.create_index(type="record_index", mode=mode)
    opened.metadata.create_index("by_ts", "secondary_index", "ts", mode=mode)
    actions = [i.time for i in opened.timeline.completed if i.action is Action.INDEXING]
    inner = opened.metadata.timeline
    assert [inner.get(action) for action in actions] == [None, None]
    assert [inner.is_committed(one_earlier(action) or "") for action in actions] == [True, True]
    scan = opened.scan("ts = 1 AND id = 'k0003'")
    assert scan.to_table().num_rows == 1
    assert not any("not used: the metadata table holds" in note for note in scan.report.notes)
    table.write(Operation.UPSERT, simple_rows([1, 9], 2))
    check_all(table.storage)
    Table(table.path).metadata.validate().raise_if_differs()


def test_an_instant_that_is_taken_is_left_to_who_has_it(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    timeline, inner = Table(table.path).timeline, Table(table.path).metadata.timeline
    action = "20991231000000000"
    before = one_earlier(action) or ""
    assert building_instant(action, timeline, inner) == before
    assert buildings_of(action, timeline) == (action, before)
    writer = TimelineWriter(table.storage, timeline.folder)
    writer.create_requested(before, Action.COMMIT)
    taken = Table(table.path).timeline
    assert taken.get(before) is not None
    assert building_instant(action, taken, inner) == action
    assert buildings_of(action, taken) == (action,)
    writer.delete_pending(before, Action.COMMIT, State.REQUESTED)
