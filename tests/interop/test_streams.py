"""Both writers say in the same words which batch of a stream a commit holds, and neither repeats a batch of the other's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.commit.stream_batches import CHECKPOINT_KEY
from hudimeta.storage import open_storage
from hudimeta.testing.inspection import Inspection
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import TABLE_VERSION

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.write.table.version": TABLE_VERSION,
    "hoodie.write.auto.upgrade": "false",
}
BATCH = "hudimeta.streaming.batch.id"


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.string()), "ts": pa.array([1] * len(ids), pa.int64())})


def checkpoints(path: Path) -> list[str | None]:
    """Of all writes, the oldest first."""
    look = Inspection(open_storage(path))
    writes = sorted(look.timeline.writes, key=lambda i: i.time)
    return [(look.timeline.metadata(write).get("extraMetadata") or {}).get(CHECKPOINT_KEY) for write in writes]


def ids(table: pa.Table) -> list[str]:
    return sorted(table["id"].to_pylist())


@pytest.mark.timeout(300)
def test_batches_are_written_once_by_whoever(hudi: ApacheHudi, tmp_path: Path) -> None:
    path, folder = tmp_path / "t", tmp_path / "rows"
    folder.mkdir()
    given = {"path": str(path), "folder": str(folder), "progress": str(tmp_path / "progress"), "options": OPTIONS}
    for number, batch in enumerate((rows("a", "b"), rows("c"))):
        pq.write_table(batch, folder / f"{number}.parquet")
        hudi.call("stream", **given)
    said = ['{"default_single_writer":"0"}', '{"default_single_writer":"1"}']
    assert checkpoints(path) == said

    repeated = hudimeta.Table(path, {BATCH: "1"}).insert(rows("never"))
    assert "batch 1 of the stream 'default_single_writer' is in the table" in repeated.notes[0]
    hudimeta.Table(path, {BATCH: "2"}).insert(rows("d"))
    assert checkpoints(path) == [*said, '{"default_single_writer":"2"}']

    pq.write_table(rows("never"), folder / "2.parquet")
    hudi.call("stream", **given)  # its own batch 2, which is in the table
    pq.write_table(rows("e"), folder / "3.parquet")
    hudi.call("stream", **given)
    assert ids(hudimeta.Table(path).scan().to_table()) == ids(hudi.read(path).table) == ["a", "b", "c", "d", "e"]
    assert checkpoints(path)[-1] == '{"default_single_writer":"3"}'
