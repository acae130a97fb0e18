"""Cleans that one side plans and the other runs, by commits, hours and file versions: both choose the same files, and go on."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import hudimeta
from hudimeta.engine.machine import ThisMachine, running_on
from hudimeta.timeline.clean_record import decode_plan
from hudimeta.types import Action
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import TABLE_VERSION, Model, Ours, Theirs, plain_rows, row

POLICIES = {
    "KEEP_LATEST_COMMITS": {"hoodie.clean.commits.retained": "2"},
    "KEEP_LATEST_FILE_VERSIONS": {"hoodie.clean.fileversions.retained": "1"},
}
BY_HOURS = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "24"}


class HoursAgo(ThisMachine):
    """This machine, some hours ago."""

    threads = False  # others would be on this machine today

    def __init__(self, hours: float) -> None:
        self._since = round(hours * 3_600_000)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 - self._since


class Sides:
    """A table that both write to, with compactions in between.

    Args:
        path: Where to.
        hudi: The other side.
        kind: Of table.
        policy: Options of cleaning.
    """

    def __init__(self, path: Path, hudi: ApacheHudi, kind: str, policy: dict[str, str]) -> None:
        self.path, self.hudi, self.model, self.kind = path, hudi, Model(), kind
        self.given = {
            **policy,
            "hoodie.clean.automatic": "false",
            "hoodie.compact.inline.max.delta.commits": "1",
            "hoodie.write.table.version": TABLE_VERSION,
            "hoodie.write.auto.upgrade": "false",
        }
        self.ours = Ours(path, type=kind, options=self.given)
        self.theirs = Theirs(path, hudi, type=kind, options=self.given)

    def begin(self) -> None:
        """Five writes of ours, then one of theirs."""
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

    def mine(self) -> set[tuple[str, str]]:
        """The files that we would delete."""
        return {(partition, name) for partition, names in self.table.services.cleaning.plan().files.items() for name in names}

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
    sides = Sides(tmp_path / "table", hudi, kind, {"hoodie.clean.policy": policy, **POLICIES[policy]})
    sides.begin()
    mine = sides.mine()
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


@pytest.mark.timeout(600)
def test_hudi_runs_our_plan_when_the_partition_that_it_empties_was_filled_again(hudi: ApacheHudi, tmp_path: Path) -> None:
    policy = {"hoodie.clean.commits.retained": "1"}
    sides = Sides(tmp_path / "table", hudi, "COPY_ON_WRITE", policy)
    sides.write(sides.ours, 0, 12, 1)
    sides.table.delete_partition("2026-03")
    sides.model.remove([one for one in sides.model.sorted() if one["month"] == "2026-03"])
    for ts in (2, 3):
        rows = [row(n, ts) for n in range(12) if n % 3 < 2]
        sides.ours.write("upsert", rows)
        sides.model.put(rows)
    assert sides.table.services.cleaning.plan().emptied == ("2026-03",)
    planned = sides.table.services.cleaning.schedule()
    assert planned
    chosen = sides.planned(planned)
    sides.theirs.options["hoodie.clean.automatic"] = "true"
    sides.write(sides.theirs, 0, 12, 4)  # and right after that it runs what is planned
    assert chosen
    assert not sides.there(chosen)
    sides.agree()
    sides.write(sides.ours, 5, 20, 5)
    sides.agree()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_choose_the_same_by_hours(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    """Of the writes, three are older than the hours that stay readable; each side plans on a copy of its own."""
    sides = Sides(tmp_path / "table", hudi, kind, BY_HOURS)
    for ts, hours in ((1, 40), (2, 33), (3, 26), (4, 23), (5, 2)):
        with running_on(HoursAgo(hours)):
            sides.write(sides.ours, 0, 30 - ts, ts)
            if ts > 1:
                sides.compact()
    sides.write(sides.theirs, 5, 35, 6)
    shutil.copytree(sides.path, tmp_path / "copy")
    twin = Sides(tmp_path / "copy", hudi, kind, BY_HOURS)
    twin.model = sides.model

    mine = sides.mine()
    chosen = sides.planned(hudi.service(sides.path, "plan_clean", sides.given))
    assert mine
    assert mine == chosen
    report = sides.table.clean()
    assert (report.deleted, sides.there(chosen)) == (0, set()), "a plan that waits is run, and leaves nothing"
    assert twin.table.services.cleaning.schedule()
    hudi.service(twin.path, "clean", twin.given)
    assert not twin.there(chosen)
    for one in (sides, twin):
        one.agree()
