"""Dry runs tell what a service would do, and change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.errors import UnsupportedFeature
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation

KEPT = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
ALONE = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def written(path: Path, kind: str, commits: int = 16) -> ModelledTable:
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind, **ALONE})
    for ts in range(1, commits + 1):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
    return table


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_dry_runs_say_what_would_be_done(tmp_path: Path, kind: str) -> None:
    table = written(tmp_path / "t", kind)
    before = {str(file): file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}
    services = Table(table.path, KEPT).services
    told = [services.archive(dry_run=True), services.clean(dry_run=True), services.maintain(dry_run=True)]
    told += [services.compact(dry_run=True)] if kind == "MERGE_ON_READ" else []
    assert all(str(plan) for plan in told)
    assert {str(file): file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()} == before
    if kind == "MERGE_ON_READ":
        assert sorted(one.partition_path for one in services.compact(dry_run=True).slices) == ["p0", "p1"]
        services.compact()
        assert services.compact(dry_run=True).slices == ()
        for ts in range(20, 23):
            table.write(Operation.UPSERT, simple_rows(range(8), ts))
    planned = services.clean(dry_run=True)
    assert services.clean().deleted == sum(map(len, planned.files.values())) > 0
    asked = services.archive(dry_run=True)
    assert services.archive().archived == len(asked.instants) > 0


def test_a_dry_run_of_what_cannot_be_is_refused_as_well(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeature, match="compacting a copy-on-write table"):
        Table(written(tmp_path / "t", "COPY_ON_WRITE", commits=1).path).compact(dry_run=True)
