"""The completed file of a write is gone, and a later write says that it builds on its files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import CorruptFileError

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
LISTED = pytest.mark.parametrize("metadata", ["true", "false"])


def rows(ids: str, ts: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "part": "p" if i < "c" else "q", "ts": ts} for i in ids], SCHEMA)


def made(path: Path, metadata: str) -> Table:
    options = {"hoodie.metadata.enable": metadata}
    table = Table.create(path, SCHEMA, key="id", partition_by="part", ordering="ts", options=options)
    table.insert(rows("abcd", 1))
    return table


def lose_completion(path: Path, instant: str) -> None:
    (file,) = (path / ".hoodie" / "timeline").glob(f"{instant}_*")
    file.unlink()


@LISTED
def test_older_rows_do_not_pass_for_the_newest(metadata: str, tmp_path: Path) -> None:
    table = made(tmp_path, metadata)
    lost = table.upsert(rows("abcd", 2)).instant
    table.upsert(rows("c", 3))
    lose_completion(tmp_path, lost)
    with pytest.raises(CorruptFileError, match=rf"{lost}\.inflight .* found none, though commit .* builds on its files"):
        Table(tmp_path, {"hoodie.metadata.enable": metadata}).scan().to_table()
    for file in (tmp_path / ".hoodie" / "timeline").glob(f"{lost}.*"):  # as the error says of rows without a copy
        file.unlink()
    assert Table(tmp_path, {"hoodie.metadata.enable": "false"}).scan("id = 'a'").to_table()["ts"].to_pylist() == [1]


@LISTED
def test_rows_of_a_clustering_do_not_come_twice(metadata: str, tmp_path: Path) -> None:
    table = made(tmp_path, metadata)
    (clustered,) = table.cluster(columns="id")
    table.upsert(rows("c", 2))
    lose_completion(tmp_path, clustered.instant)
    with pytest.raises(CorruptFileError, match=f"{clustered.instant}.*builds on its files"):
        Table(tmp_path, {"hoodie.metadata.enable": metadata}).scan().count()


def test_the_moments_before_it_are_read(tmp_path: Path) -> None:
    table = made(tmp_path, "true")
    first = table.timeline.writes[-1].time
    lost = table.upsert(rows("abcd", 2)).instant
    table.upsert(rows("c", 3))
    lose_completion(tmp_path, lost)
    assert set(Table(tmp_path).scan(as_of=first).to_table()["ts"].to_pylist()) == {1}
