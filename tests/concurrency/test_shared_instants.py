"""A write that died while it had the instant of another action: taking it back leaves the other one's files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import TimelineWriter
from hudimeta.types import Action, Operation


@pytest.mark.parametrize("begun", [False, True], ids=["requested", "inflight"])
def test_recovery_keeps_what_a_clean_of_the_same_instant_told(tmp_path: Path, begun: bool) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.clean.automatic": "false"})
    for ts in range(4):
        table.write(Operation.UPSERT, simple_rows(range(3), ts))
    cleaned = Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    assert cleaned.deleted
    writer = TimelineWriter(table.storage)
    writer.create_requested(cleaned.instant, Action.COMMIT)
    if begun:
        writer.create_inflight(cleaned.instant, Action.COMMIT)
    assert Table(table.path).recover() == (cleaned.instant,)
    check_all(table.storage)
    table.model.check(table.read())
    table.write(Operation.UPSERT, simple_rows(range(3), 9))
    check_all(table.storage)
