"""Ranges and moments beside a write that is still going on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import TableError


def test_whoever_goes_on_from_the_newest_commit_misses_no_write_that_ends_later(rich_table: Callable[..., Path]) -> None:
    """Ranges are of requested times there: Apache Hudi refuses such a range ("Found hollow commit") or lets it end early."""
    path = rich_table("v6_mor_written_by_12", fresh=True)
    writes = hudimeta.Table(path).timeline.writes
    slow = writes[3]
    completed = path / ".hoodie" / slow.file_name
    content = completed.read_bytes()

    def told(begin: str, end: str | None = None, kind: str = "incremental", **options: str) -> dict[str, str]:
        columns = ["_hoodie_record_key", "_hoodie_commit_time"]
        rows = hudimeta.Table(path, options).scan(query_type=kind, begin=begin, end=end, columns=columns).to_table().to_pylist()
        return {row["_hoodie_record_key"]: row["_hoodie_commit_time"] for row in rows}

    everything = told("earliest")
    assert slow.time in everything.values()
    completed.unlink()
    with pytest.raises(TableError, match=f"the write {slow.time} is not completed") as refused:
        told("earliest")
    assert "holes.resolution.policy=BLOCK" in refused.value.hint
    before = told("earliest", end=writes[2].time)
    assert max(before.values()) <= writes[2].time
    blocked = told("earliest", **{"hoodie.read.timeline.holes.resolution.policy": "BLOCK"})
    assert blocked == before
    assert told(slow.time), "a range that begins behind it has no hole"
    completed.write_bytes(content)
    assert {**blocked, **told(max(blocked.values()))} == everything


def test_a_moment_after_a_write_that_goes_on_names_it(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", options={"hoodie.parquet.small.file.limit": "0"})
    for number in range(3):
        table.insert({"id": [str(number)], "n": [number]})
    first, slow, last = table.timeline.writes
    completed = tmp_path / "t" / table.timeline.path_of(slow)
    content = completed.read_bytes()
    completed.unlink()

    def read(moment: str) -> tuple[list[int], list[str]]:
        scan = hudimeta.Table(tmp_path / "t").scan(as_of=moment)
        return sorted(scan.to_table()["n"].to_pylist()), [note for note in scan.report.notes if "not completed" in note]

    later = [f"as of {last.time}: the write {slow.time} is not completed; once it is, this moment has its rows too"]
    assert read(first.time) == ([0], [])
    assert read(last.time) == ([0, 2], later)
    completed.write_bytes(content)
    assert read(last.time) == ([0, 1, 2], [])
