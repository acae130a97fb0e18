"""Tables that Apache Hudi restored to a savepoint: it drops some indexes, builds them anew later, and others are left wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.metadata.completeness import proven_indexes
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import Model, Ours, Theirs, plain_rows, row

OPTIONS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "50",
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_writes_go_on_after_a_restore(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    path, model = tmp_path / "table", Model()
    ours, theirs = Ours(path, type=kind, options=OPTIONS), Theirs(path, hudi, type=kind, options=OPTIONS)

    def write(side: Ours | Theirs, operation: str, first: int, last: int, ts: int) -> None:
        rows = [row(n, ts) for n in range(first, last)]
        side.write(operation, rows)
        model.put(rows)

    def agree() -> None:
        assert plain_rows(hudimeta.Table(path).scan().to_table()) == model.sorted()
        assert plain_rows(hudimeta.Table(path).scan("ts >= 3").to_table()) == [r for r in model.sorted() if r["ts"] >= 3]
        assert plain_rows(hudi.read(path, where="ts >= 3").table) == [r for r in model.sorted() if r["ts"] >= 3]

    write(ours, "upsert", 0, 20, 1)
    write(theirs, "upsert", 10, 30, 2)
    hudimeta.Table(path).metadata.validate(prove=True)
    assert proven_indexes(hudimeta.Table(path).snapshot().metadata)
    kept = dict(model.rows)
    point = hudimeta.Table(path).timeline.writes[-1].time
    hudi.service(path, "savepoint", theirs.options, point)
    write(theirs, "upsert", 20, 40, 3)
    write(ours, "upsert", 0, 5, 4)
    hudi.service(path, "restore", theirs.options, point)
    model.rows = kept
    assert not proven_indexes(hudimeta.Table(path).snapshot().metadata)
    agree()
    write(theirs, "upsert", 5, 8, 5)
    assert {"partition_stats", "bloom_filters"} <= set(hudimeta.Table(path).properties.metadata_partitions)
    agree()
    write(ours, "upsert", 6, 12, 6)
    agree()
    write(theirs, "upsert", 3, 9, 7)
    write(ours, "upsert", 30, 45, 8)
    agree()
    report = hudimeta.Table(path).metadata.validate(["files", "column_stats", "partition_stats", "bloom_filters"])
    assert report.holds, str(report)
