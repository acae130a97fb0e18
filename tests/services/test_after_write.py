"""A write that is published stays a success, whatever becomes of the services that run after it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.api import verbs
from hudimeta.config import HudiWarning
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation

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


@pytest.mark.parametrize(
    ("mode", "what"), [("inline", "the services after it failed"), ("async", "^services in the writer's thread failed")]
)
def test_a_service_that_fails_keeps_no_other_from_its_work(tmp_path: Path, mode: str, what: str) -> None:
    """Clustering is refused for a table in a fixed number of buckets: it is cleaned and archived all the same."""
    wanted = {"hoodie.clustering.async.enabled": "true", "hoodie.clean.async.enabled": "true", "hoodie.archive.async": "true"}
    options = {
        **SIMPLE_OPTIONS,
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
        **(wanted if mode == "async" else {"hoodie.clustering.inline": "true"}),
        "hoodie.clustering.inline.max.commits": "1",
        "hoodie.clustering.async.max.commits": "1",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, options=options)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", HudiWarning)
        for turn in range(7):
            table.upsert(simple_rows(range(3), turn))
            table.services.wait()
    assert any(re.search(f"{what}.*laid out in buckets", str(one.message)) for one in told)
    actions = {i.action for i in table.timeline}
    assert Action.CLEAN in actions
    assert len(table.timeline.writes) < 7


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


def test_a_compaction_of_a_table_without_logs_is_said_to_have_no_effect(tmp_path: Path) -> None:
    rows = simple_rows([1], 1)
    options = {"hoodie.compact.inline": "true", "hoodie.log.compaction.inline": "false"}
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", options=options)
    said = [note for note in table.upsert(rows).notes if "no effect" in note]
    assert said == ["hoodie.compact.inline has no effect: the table is copy on write, and has no logs"]
    assert not any("no effect" in note for note in hudimeta.Table(table.path).upsert(rows).notes)
