"""Services of tables that lie far away: what they delete or look at goes at the same time, not one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from tests.read.far_away import FarAway

ROWS = pa.table({"id": [f"k{n}" for n in range(6)], "day": [str(n) for n in range(6)], "n": range(6)})
UNTOUCHED = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
ARCHIVED = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def written(path: Path, times: int, **how: str) -> hudimeta.Table:
    """A table of six partitions, into which the rows were written so often."""
    table = hudimeta.Table.create(path, ROWS.schema, key="id", partition_by="day", options=UNTOUCHED, **how)
    for _ in range(times):
        table.upsert(ROWS)
    return table


@pytest.mark.parametrize(
    ("undo", "among"),
    [
        (lambda table: table.rollback(table.timeline.writes[-1].time), r"^\d/[^/]+\.parquet$"),
        (lambda table: table.restore(table.timeline.writes[0].time), r"^\d/[^/]+\.parquet$"),
        (lambda table: table.restore(table.timeline.writes[0].time), r"timeline/\d+(\.commit)?\.inflight$"),
    ],
    ids=["rollback", "restore", "instants of a restore"],
)
def test_files_of_what_is_undone_are_deleted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undo: Callable[[hudimeta.Table], object], among: str
) -> None:
    table = written(tmp_path / "t", 5)
    first = table.timeline.writes[0].time
    far = FarAway(meeting=4, among=among)
    far.begin(monkeypatch)
    undo(table)
    assert far.most >= 4
    monkeypatch.undo()
    assert hudimeta.Table(tmp_path / "t").scan().to_table().select(ROWS.column_names).sort_by("id").equals(ROWS)
    assert first in {write.time for write in hudimeta.Table(tmp_path / "t").timeline.writes}


def test_an_archival_deletes_completed_instants_one_by_one_and_the_rest_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = hudimeta.Table.create(tmp_path / "t", ROWS.schema, key="id", options=UNTOUCHED)
    for _ in range(8):
        table.upsert(ROWS)
    written = [write.file_name for write in table.timeline.writes]
    far = FarAway(meeting=6, among=r"timeline/\d+\.(commit\.requested|inflight)$")
    far.begin(monkeypatch)
    hudimeta.Table(tmp_path / "t", {**UNTOUCHED, **ARCHIVED}).archive()
    assert far.most >= 6
    gone = [name for name in far.deleted if name in written]
    assert gone == written[:6], (
        "oldest first: what is missing after the first instant was never written, for who lists meanwhile"
    )
    assert far.deleted[-6:] == gone
    assert hudimeta.Table(tmp_path / "t").scan().count() == ROWS.num_rows


@pytest.mark.parametrize(
    ("service", "among"),
    [
        (lambda table: table.compact(), r"^\d/[^/]+\.parquet$"),
        (lambda table: table.cluster(["n"]), r"^\d/[^/]+\.parquet$"),
        (lambda table: table.indexes.create("by_key", "record_index"), r"/?record_index/[^/]+\.hfile$"),
    ],
    ids=["compaction", "clustering", "record index"],
)
def test_small_files_are_worked_on_at_once_whatever_the_number_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Callable[[hudimeta.Table], object], among: str
) -> None:
    table = written(tmp_path / "t", 2, type="MERGE_ON_READ")
    far = FarAway(meeting=6, among=among)
    far.begin(monkeypatch)
    service(table)
    assert far.most >= 6
    monkeypatch.undo()
    assert hudimeta.Table(tmp_path / "t").scan().to_table().select(ROWS.column_names).sort_by("id").equals(ROWS)
    hudimeta.Table(tmp_path / "t").metadata.validate().raise_if_differs()
