"""The look-up of one write: how keys of files are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.storage.at_once import PARALLEL_FILES
from tests.read.far_away import FarAway


def test_keys_of_files_far_away_are_read_by_more_threads_than_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"id": [str(n) for n in range(12)], "part": [f"p{n:02}" for n in range(12)], "ts": [1] * 12})
    options = {"hoodie.index.type": "SIMPLE"}
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", partition_by="part", ordering="ts", options=options)
    table.insert(rows)
    far = FarAway(meeting=PARALLEL_FILES)
    far.begin(monkeypatch)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert hudimeta.Table(tmp_path / "t").upsert(rows).updated == 12
    assert far.most == PARALLEL_FILES


@pytest.mark.parametrize(("most_bytes", "threads"), [(None, PARALLEL_FILES), (1, 2)])
def test_small_files_far_away_are_rewritten_by_more_threads_than_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int | None, threads: int
) -> None:
    rows = pa.table({"id": [str(n) for n in range(12)], "part": [f"p{n:02}" for n in range(12)], "ts": [1] * 12})
    how = {"key": "id", "partition_by": "part", "ordering": "ts", "indexes": ["record_index"]}
    hudimeta.Table.create(tmp_path / "t", rows.schema, **how).insert(rows)
    far = FarAway(meeting=threads, among=r"\.parquet$")
    far.begin(monkeypatch)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    if most_bytes is not None:
        monkeypatch.setattr("hudimeta.storage.at_once._AT_ONCE_BYTES", most_bytes)
    assert hudimeta.Table(tmp_path / "t").upsert(rows).updated == 12
    assert far.most == threads
