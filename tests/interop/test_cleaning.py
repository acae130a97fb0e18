"""Cleans that one side plans and the other runs, by commits and by file versions: both choose the same files, and go on."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.timeline.clean_record import decode_plan
from hudimeta.types import Action
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import TABLE_VERSION, Model, Ours, Theirs, plain_rows, row

POLICIES = {
    "KEEP_LATEST_COMMITS": {"hoodie.clean.commits.retained": "2"},
    "KEEP_LATEST_FILE_VERSIONS": {"hoodie.clean.fileversions.retained": "1"},
}


class Sides:
    """A table that both have written to, with compactions in between."""

    def __init__(self, path: Path, hudi: ApacheHudi, kind: str, policy: str) -> None:
        self.path, self.hudi, self.model, self.kind = path, hudi, Model(), kind
        self.given = {
            "hoodie.clean.policy": policy,
            **POLICIES[policy],
            "hoodie.clean.automatic": "false",
            "hoodie.compact.inline.max.delta.commits": "1",
            "hoodie.write.table.version": TABLE_VERSION,
            "hoodie.write.auto.upgrade": "false",
        }
        self.ours = Ours(path, type=kind, options=self.given)
        self.theirs = Theirs(path, hudi, type=kind, options=self.given)
        for ts in (1, 2, 3):
            self.write(self.ours, 0, 30, ts)
        self.compact()
        for ts in (4, 5):  # of rows that are there: a new row would go into a new base file
            self.write(self.ours, 0, 25, ts)
        self.compact()
        self.write(self.theirs, 5, 35, 6)

    def write(self, side: Ours | Theirs, first: int, last: int, ts: int) -> None:
        rows = [row(n, ts) for n in range(first, last)]
        side.write("upsert", rows)
        self.model.put(rows)

    def compact(self) -> None:
        if self.kind == "MERGE_ON_READ":
            assert self.table.compact()

    @property
    def table(self) -> hudimeta.Table:
        return hudimeta.Table(self.path, self.given)

    def planned(self, instant: str) -> set[tuple[str, str]]:
        """The files that a plan on the timeline names."""
        timeline = self.table.timeline
        found = next(i for i in timeline.pending if i.time == instant)
        assert found.action is Action.CLEAN
        return {(partition, name) for partition, names in decode_plan(timeline.plan(found)).files.items() for name in names}

    def agree(self) -> None:
        assert plain_rows(self.table.scan().to_table()) == self.model.sorted()
        assert plain_rows(self.hudi.read(self.path).table) == self.model.sorted()
        report = self.table.metadata.validate()
        assert report.holds, str(report)
        self.hudi.validate(self.path)

    def there(self, files: set[tuple[str, str]]) -> set[str]:
        return {name for partition, name in files if (self.path / partition / name).exists()}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_runs_what_the_other_planned(hudi: ApacheHudi, tmp_path: Path, kind: str, policy: str) -> None:
    sides = Sides(tmp_path / "table", hudi, kind, policy)
    mine = {(partition, name) for partition, names in sides.table.services.cleaning.plan().files.items() for name in names}
    theirs = hudi.service(sides.path, "plan_clean", sides.given)
    assert mine
    assert theirs
    chosen = sides.planned(theirs)
    assert mine == chosen
    report = sides.table.services.cleaning.execute(theirs)
    assert (report.deleted, sides.there(chosen)) == (len(chosen), set())
    sides.agree()
    for ts in (7, 8):
        sides.write(sides.theirs, 0, 30, ts)
        sides.compact()
        sides.write(sides.ours, 3, 28, ts)
    instant = sides.table.services.cleaning.schedule()
    assert instant
    chosen = sides.planned(instant)
    hudi.service(sides.path, "clean", sides.given)
    assert chosen
    assert not sides.there(chosen)
    assert not [i for i in sides.table.timeline.pending if i.action is Action.CLEAN]
    sides.agree()
    sides.write(sides.ours, 10, 45, 9)
    sides.write(sides.theirs, 20, 50, 10)
    sides.agree()
