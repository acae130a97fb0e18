"""An index that rests, because rows are only updated, makes neither reads nor the timeline of the metadata table longer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hudimeta
from hudimeta.metadata import answers
from tests.metadata.opened import open_metadata

UPDATES, COMPACT_AFTER, LEAST, MOST = 60, 6, 22, 24
OPTIONS = {
    "hoodie.metadata.compact.max.delta.commits": str(COMPACT_AFTER),
    "hoodie.clean.commits.retained": "10",
    "hoodie.keep.min.commits": str(LEAST),
    "hoodie.keep.max.commits": str(MOST),
}
MOST_REQUESTS = 28


def _rows(version: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in range(20)], "ts": [version] * 20})


def test_updates_alone_keep_look_ups_and_the_timeline_short(tmp_path: Path) -> None:
    path = tmp_path / "t"
    indexes = ["column_stats", "record_index"]
    table = hudimeta.Table.create(str(path), _rows(0).schema, key="id", ordering=["ts"], indexes=indexes, options=OPTIONS)
    longest, requests = 0, []
    for version in range(UPDATES):
        hudimeta.Table(str(path), OPTIONS).upsert(_rows(version))
        shown = [name.name for name in (path / ".hoodie/metadata/.hoodie/timeline").iterdir()]
        longest = max(longest, sum(name.endswith((".deltacommit", ".commit")) for name in shown))
        if version % 4 == 0:
            metadata, storage = open_metadata(path)
            before = len(storage.log)
            assert answers.record_locations(metadata, ["k3"]).num_rows == 1
            requests.append(len(storage.log) - before)
    assert max(requests) <= MOST_REQUESTS, requests
    # What the table's own timeline shows stays, cleans included, and what comes until the next compaction, which archives.
    assert longest <= 2 * MOST + COMPACT_AFTER + 1, longest
    table = hudimeta.Table(str(path))
    assert table.scan(f"ts = {UPDATES - 1}").count() == 20
    assert table.metadata.validate().holds
