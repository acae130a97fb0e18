"""Entries of the commit's metadata that go from commit to commit, until a write brings others."""

from __future__ import annotations

from pathlib import Path

from hudimeta import Table
from hudimeta.testing.builders import simple_rows

ROLLING = {"hoodie.write.rolling.metadata.keys": "_Offset,_partition"}


def entries(table: Table) -> dict[str, str]:
    """Of the newest commit."""
    found = table.timeline.metadata(table.timeline.by_completion[-1])["extraMetadata"]
    return {key: text for key, text in found.items() if key.startswith("_")}


def test_a_commit_without_entries_takes_those_of_the_newest_that_has_them(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", type="MERGE_ON_READ")
    Table(table.path, {**ROLLING, "_offset": "17", "_partition": "3", "_other": "x"}).upsert(simple_rows([1, 2], 1))
    assert entries(table) == {"_Offset": "17", "_partition": "3", "_other": "x"}
    rolling = Table(table.path, ROLLING)
    rolling.upsert(simple_rows([1], 2))
    assert entries(table) == {"_Offset": "17", "_partition": "3"}
    rolling.compact()
    Table(table.path, {**ROLLING, "_offset": "21", "_partition": ""}).upsert(simple_rows([2], 3))
    assert entries(table) == {"_Offset": "21", "_partition": "3"}
    table.upsert(simple_rows([1], 4))
    assert entries(table) == {}, "who does not ask carries nothing"
    near = Table(table.path, {**ROLLING, "hoodie.write.rolling.metadata.timeline.lookback.commits": "1"})
    report = near.upsert(simple_rows([1], 5))
    assert "no value of _Offset, _partition was given, and none of the newest 1 commits has one" in report.notes
    assert entries(table) == {}
    rolling.upsert(simple_rows([3], 6))
    assert entries(table) == {"_Offset": "21", "_partition": "3"}
