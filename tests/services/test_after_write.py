"""A write that is published stays a success, whatever becomes of the services that run after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.api import verbs
from hudimeta.config import HudiWarning
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

MOR = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


class _Undecodable(FaultPlan):
    """Calls whose path holds a text raise what PyArrow raises over damaged bytes."""

    def __init__(self, text: str) -> None:
        super().__init__(None, Fault.ERROR_BEFORE)
        self._text = text

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        if self._text in name:
            raise pa.ArrowInvalid("page is damaged")
        return super().around(name, act)


def test_an_error_of_another_library_in_a_service_is_a_warning(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), MOR)
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    rows = simple_rows(range(5), 2)
    storage = FaultyStorage(table.storage, _Undecodable(".compaction.requested"))
    with pytest.warns(HudiWarning, match="the write is published, but the services after it failed: ArrowInvalid"):
        report = verbs.write(storage, table.options, Operation.UPSERT, rows)
    assert (report.updated, report.completion is None) == (5, False)
    table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    check_all(table.storage)


def test_an_error_of_another_library_in_the_upkeep_of_the_metadata_table_is_a_note(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), MOR)
    plan = _Undecodable(".compaction.requested")
    for turn in range(4):
        report = table.write(Operation.UPSERT, simple_rows(range(5), turn), FaultyStorage(table.storage, plan))
    assert any("upkeep of the metadata table is left to a later write: ArrowInvalid" in note for note in report.notes)
    table.check()
    assert table.write(Operation.UPSERT, simple_rows(range(5), 9)).compacted_metadata
    table.check()
    check_all(table.storage)
