"""Both writers say in the same words which batch of a stream a commit holds, neither repeats a batch of the other's, and each
streams what the other one wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark_hudimeta.plain.source import DefaultSource

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


def streamed(path: Path, start: dict[str, str] | None = None) -> tuple[list[str], dict[str, str]]:
    """Ids of what `readStream` brings in batches of single commits, and where it ends."""
    source = DefaultSource({"path": str(path), "maxfilespertrigger": "1"})
    reader, found = source.streamReader(source.schema()), []
    position = reader.initialOffset() if start is None else start
    while (end := reader.latestOffset(position, reader.getDefaultReadLimit())) != position:
        for share in reader.partitions(position, end):
            found += [row for batch in reader.read(share) for row in batch.column("id").to_pylist()]
        position = end
    return found, position


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


@pytest.mark.timeout(300)
def test_each_streams_what_the_other_wrote(hudi: ApacheHudi, tmp_path: Path) -> None:
    path, folder, seen = tmp_path / "t", tmp_path / "rows", tmp_path / "seen"
    folder.mkdir()
    pq.write_table(rows("a", "b"), folder / "0.parquet")
    hudi.call("stream", path=str(path), folder=str(folder), progress=str(tmp_path / "written"), options=OPTIONS)
    hudimeta.Table(path, {BATCH: "1"}).insert(rows("c"))
    theirs = {"path": str(path), "progress": str(tmp_path / "read"), "to": str(seen)}
    hudi.call("read_stream", **theirs)
    assert ids(pq.read_table(seen)) == ["a", "b", "c"]
    found, end = streamed(path)
    assert found == ["a", "b", "c"]

    hudimeta.Table(path, {BATCH: "2"}).upsert(rows("c", "d"))
    hudi.call("read_stream", **theirs)
    assert ids(pq.read_table(seen)) == ["a", "b", "c", "c", "d"]
    assert sorted(streamed(path, end)[0]) == ["c", "d"]
    first = (tmp_path / "read" / "offsets" / "0").read_text().splitlines()[-1]
    assert json.loads(first)["offsetCommitTime"] == end["offsetCommitTime"]
    assert sorted(streamed(path, json.loads(first))[0]) == ["c", "d"], "goes on from the position of Hudi's own stream"
