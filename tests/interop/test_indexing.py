"""Indexes built by plans on the timeline: each side runs the other's, beside writers, and both keep what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.services.indexing import beside_writers
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import TABLE_VERSION, Model, Ours, Theirs, plain_rows, row

LOCAL = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
ASYNC = {
    "hoodie.metadata.index.async": "true",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": LOCAL,
    "hoodie.clean.failed.writes.policy": "LAZY",
}
KINDS = {
    "record_index": ("RECORD_INDEX", {"hoodie.metadata.record.index.enable": "true"}),
    "bloom_filters": ("BLOOM_FILTERS", {"hoodie.metadata.index.bloom.filter.enable": "true"}),
}


class Sides:
    """A table of ours with rows in three partitions, its writers, and what both must read."""

    def __init__(self, path: Path, hudi: ApacheHudi, kind: str) -> None:
        self.path, self.hudi, self.model = path, hudi, Model()
        self.ours, self.theirs = Ours(path), Theirs(path, hudi)
        given = {"hoodie.write.table.version": TABLE_VERSION, "hoodie.write.auto.upgrade": "false", **ASYNC}
        self.type, more = KINDS[kind]
        self.options = {**given, **more}
        self.write(self.ours, 0, 30, 1, "insert")
        self.write(self.ours, 5, 20, 2)

    def write(self, side: Ours | Theirs, first: int, last: int, ts: int, operation: str = "upsert") -> None:
        rows = [row(n, ts) for n in range(first, last)]
        side.write(operation, rows)
        self.model.put(rows)

    def service(self, name: str, instant: str) -> str:
        made = self.hudi.service(self.path, name, self.options, instant)
        assert made
        return made

    def agree(self, kind: str) -> None:
        table = hudimeta.Table(self.path)
        assert kind in table.metadata.ready
        assert plain_rows(table.scan().to_table()) == self.model.sorted()
        assert plain_rows(self.hudi.read(self.path).table) == self.model.sorted()
        report = table.metadata.validate()
        assert report.holds, str(report)

    def go_on(self, kind: str) -> None:
        self.write(self.theirs, 10, 34, 7)
        self.write(self.ours, 25, 40, 8)
        self.agree(kind)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_we_run_a_plan_of_hudi(hudi: ApacheHudi, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is committed after the index was made lies in log files of the same delta commit as its base files."""
    sides, make = Sides(tmp_path / "table", hudi, kind), beside_writers._make_ahead
    planned = sides.service("plan_index", sides.type)
    sides.write(sides.ours, 18, 34, 4)

    def made(*asked: Any) -> object:
        ahead = make(*asked)
        sides.write(sides.ours, 30, 37, 5)
        return ahead

    monkeypatch.setattr(beside_writers, "_make_ahead", made)
    report = hudimeta.Table(sides.path).services.indexing.execute(planned)
    assert report.partition == kind
    sides.agree(kind)
    sides.go_on(kind)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_hudi_runs_our_plan(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    sides = Sides(tmp_path / "table", hudi, kind)
    planned = hudimeta.Table(sides.path).services.indexing.schedule(kind)
    if kind == "record_index":  # Hudi 1.0.2 leaves the files of commits between plan and run out of the others
        sides.write(sides.ours, 18, 34, 4)
    sides.service("run_index", planned)
    sides.agree(kind)
    sides.go_on(kind)
