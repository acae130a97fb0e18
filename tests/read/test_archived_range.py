"""Ranges that reach before the active timeline of a table whose history is gone: refused, since they would be short."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import TableError
from hudimeta.read.stream_positions import BEFORE_ALL, StreamSettings, next_batch
from hudimeta.types import QueryType

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
OPTIONS = {
    "hoodie.table.cdc.enabled": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


def made(path: Path, kind: str, parts: str) -> Table:
    """A table whose writes go to one partition each, and whose older ones are archived."""
    table = Table.create(path, SCHEMA, key="id", partition_by="part", ordering="ts", type=kind, options=OPTIONS)
    for number, part in enumerate(parts):
        table.upsert([{"id": f"k{number}", "part": part, "ts": number}])
    assert table.archive().archived
    return table


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("parts", ["aaaaaa", "abcdef"], ids=["rewritten since", "left alone since"])
def test_ranges_before_the_active_timeline_are_refused_without_a_history(tmp_path: Path, kind: str, parts: str) -> None:
    table = made(tmp_path / "t", kind, parts)
    assert table.scan(query_type="incremental", begin="earliest").count() == len(parts)
    history = tmp_path / "t/.hoodie/timeline/history"
    shutil.move(history, tmp_path / "kept")
    told = f"archived timeline is gone: .hoodie/timeline/history is empty.*begin at {table.timeline.writes[0].completed_at}"
    for query in (QueryType.INCREMENTAL, QueryType.CDC):
        with pytest.raises(TableError, match=told):
            Table(table.path).scan(query_type=query, begin="earliest").to_table()
    for settings in (StreamSettings(), StreamSettings(changes=True), StreamSettings(fails=False)):
        with pytest.raises(TableError, match=told):
            next_batch(Table(table.path).snapshot(), BEFORE_ALL, settings)
    since = table.timeline.writes[0].completed_at
    assert Table(table.path).scan(query_type="incremental", begin=since).count() == len(table.timeline.writes) - 1
    assert Table(table.path).scan().count() == len(parts)
    shutil.move(tmp_path / "kept", history)
    assert Table(table.path).scan(query_type="incremental", begin="earliest").count() == len(parts)


def test_a_table_that_archived_nothing_needs_no_history(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", SCHEMA, key="id", partition_by="part", ordering="ts", options=OPTIONS)
    table.upsert([{"id": "k", "part": "a", "ts": 1}])
    table.savepoint()
    table.upsert([{"id": "k", "part": "a", "ts": 2}])
    shutil.rmtree(tmp_path / "t/.hoodie/timeline/history", ignore_errors=True)
    assert Table(table.path).scan(query_type="incremental", begin="earliest").count() == 1
