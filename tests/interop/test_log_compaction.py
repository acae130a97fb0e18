"""Log compaction on both sides: each runs the other's plans, merges the other's merged blocks, and goes on after them."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.metadata import compaction
from hudimeta.table.compaction_plan import encode_compaction_plan
from hudimeta.types import Action
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import TABLE_VERSION, Model, Ours, Theirs, plain_rows, row

MERGE = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
INDEXED = {"hoodie.parquet.small.file.limit": "0", "hoodie.metadata.record.index.enable": "true"}


class Sides:
    """A merge-on-read table of ours with two log files in each of three partitions, its writers, and what both must read."""

    def __init__(self, path: Path, hudi: ApacheHudi) -> None:
        self.path, self.hudi, self.model = path, hudi, Model()
        self.ours = Ours(path, type="MERGE_ON_READ", options=INDEXED)
        self.theirs = Theirs(path, hudi, type="MERGE_ON_READ")
        self.options = {
            "hoodie.write.table.version": TABLE_VERSION,
            "hoodie.write.auto.upgrade": "false",
            "hoodie.compact.inline.max.delta.commits": "1",
            **MERGE,
        }
        self.write(self.ours, 0, 30, 1, "insert")
        self.write(self.ours, 5, 20, 2)
        self.write(self.ours, 10, 25, 3)
        self.delete(self.ours, 5, 8)

    def write(self, side: Ours | Theirs, first: int, last: int, ts: int, operation: str = "upsert") -> None:
        rows = [row(n, ts) for n in range(first, last)]
        side.write(operation, rows)
        self.model.put(rows)

    def delete(self, side: Ours | Theirs, first: int, last: int) -> None:
        """Of keys that nobody writes again: Hudi 1.0.2 takes those out of its record index when it merges their logs."""
        rows = [row(n, 90) for n in range(first, last)]
        side.write("delete", rows)
        self.model.remove(rows)

    def service(self, name: str, instant: str | None = None) -> str:
        made = self.hudi.service(self.path, name, self.options, instant)
        assert made
        return made

    def merge_logs(self) -> None:
        """By Apache Hudi."""
        self.service("run_log_compaction", self.service("plan_log_compaction"))
        self.is_merged()

    def is_merged(self) -> None:
        done = hudimeta.Table(self.path).timeline.by_completion[-1]
        assert (done.action, done.pending_action) == (Action.DELTA_COMMIT, Action.LOG_COMPACTION)

    def agree(self) -> None:
        table = hudimeta.Table(self.path)
        assert plain_rows(table.scan().to_table()) == self.model.sorted()
        assert plain_rows(self.hudi.read(self.path).table) == self.model.sorted()
        wanted = [one for one in self.model.sorted() if one["id"] == "k00011"]
        assert plain_rows(table.scan("id = 'k00011'").to_table()) == wanted
        report = table.metadata.validate()
        assert report.holds, str(report)

    def go_on(self, ts: int) -> None:
        """Both write on, over keys in the merged block."""
        self.write(self.theirs, 8, 12, ts)
        self.write(self.ours, 10, 18, ts + 1)
        self.agree()


@pytest.mark.timeout(400)
def test_hudi_goes_on_after_our_log_compaction(hudi: ApacheHudi, tmp_path: Path) -> None:
    sides = Sides(tmp_path / "table", hudi)
    (report,) = hudimeta.Table(sides.path, MERGE).log_compact()
    assert report.files_written == 3
    sides.is_merged()
    sides.agree()
    sides.go_on(4)
    sides.merge_logs()
    sides.agree()
    sides.go_on(6)
    sides.service("compact")
    sides.agree()


@pytest.mark.timeout(400)
def test_hudi_runs_our_plan(hudi: ApacheHudi, tmp_path: Path) -> None:
    sides = Sides(tmp_path / "table", hudi)
    planned = hudimeta.Table(sides.path, MERGE).services.log_compaction.schedule()
    assert planned is not None
    sides.write(sides.ours, 18, 34, 4)
    sides.agree()
    sides.service("run_log_compaction", planned)
    sides.is_merged()
    sides.agree()
    sides.go_on(5)


@pytest.mark.timeout(400)
def test_we_run_a_plan_of_hudi_and_merge_what_it_has_merged(hudi: ApacheHudi, tmp_path: Path) -> None:
    sides = Sides(tmp_path / "table", hudi)
    planned = sides.service("plan_log_compaction")
    sides.write(sides.ours, 8, 14, 4)
    hudimeta.Table(sides.path).services.log_compaction.execute(planned)
    sides.is_merged()
    sides.agree()
    sides.go_on(5)
    sides.merge_logs()
    sides.go_on(7)
    hudimeta.Table(sides.path, MERGE).log_compact()
    sides.is_merged()
    sides.agree()
    sides.ours.write("compact", [])
    sides.agree()


@pytest.mark.timeout(400)
def test_hudi_writes_on_after_its_log_compaction_of_the_metadata_table_died(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Our compaction merges what that was to merge; still on the timeline, it would make every write of Apache Hudi fail."""
    sides = Sides(tmp_path / "table", hudi)
    metadata = hudimeta.Table(sides.path).snapshot().metadata
    assert metadata is not None
    died = max(metadata.timeline.last_time, metadata.data_timeline.last_time)[:-4] + "9999"
    folder = sides.path / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    planned = encode_compaction_plan(compaction.plan(metadata).slices(), of_logs=True)
    (folder / f"{died}.logcompaction.requested").write_bytes(planned)
    (folder / f"{died}.logcompaction.inflight").touch()
    sides.agree()
    sides.ours.options = {**INDEXED, "hoodie.metadata.compact.max.delta.commits": "1"}
    sides.write(sides.ours, 15, 35, 4)
    assert any(folder.glob("*.commit"))
    sides.agree()
    sides.go_on(5)
