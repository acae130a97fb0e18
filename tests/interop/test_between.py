"""What one side does between writes of the other, each once, on tables with statistics, bloom filters and a record index."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.services.validation.result import Outcome
from tests.elsewhere import only_when
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, SCHEMA, TABLE_VERSION, Model, Ours, Row, Theirs, plain_rows, row

pytestmark = [
    pytest.mark.timeout(600),
    only_when(FULL, "make interop-full"),
]
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "1"}
ARCHIVE = {**CLEAN, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
ONCE = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.clustering.async.max.commits": "1"}


class Sides:
    """A table of ours with rows in three partitions, its two writers, and what both must read."""

    def __init__(self, path: Path, hudi: ApacheHudi, kind: str, more: dict[str, str] | None = None) -> None:
        self.path, self.hudi, self.model = path, hudi, Model()
        self.options = {**INDEXES, **(more or {})}
        self.ours = Ours(path, type=kind, options=self.options)
        self.theirs = Theirs(path, hudi, type=kind, options={**self.options, "hoodie.archive.automatic": "false"})
        self.write(self.ours, "insert", rows(0, 30, 1))

    def write(self, side: Ours | Theirs, operation: str, new: list[Row]) -> None:
        side.write(operation, new)
        self.model.put(new)

    def serve(self, name: str, more: dict[str, str], instant: str | None = None) -> str | None:
        version = {"hoodie.write.table.version": TABLE_VERSION, "hoodie.write.auto.upgrade": "false"}
        return self.hudi.service(self.path, name, {**version, **self.options, **more}, instant)

    def widen(self) -> None:
        """One column more from now on, null in all rows."""
        for side in (self.ours, self.theirs):
            side.schema = SCHEMA.append(pa.field("tip", pa.int64()))
        for known in self.model.rows.values():
            known["tip"] = None

    def agree(self, after: str) -> None:
        """Both read the model, whole and by predicates that statistics and keys answer; no metadata contradicts the rows."""
        every = self.model.sorted()
        key, newest = every[-1]["id"], max(r["ts"] for r in every)
        asked: dict[str | None, list[Row]] = {
            None: every,
            f"id = '{key}'": every[-1:],
            f"ts >= {newest}": [r for r in every if r["ts"] >= newest],
        }
        if "tip" in every[0]:
            asked["tip >= 0"] = [r for r in every if r["tip"] is not None]
            asked["tip IS NULL"] = [r for r in every if r["tip"] is None]
        for where, expected in asked.items():
            assert plain_rows(hudimeta.Table(self.path).scan(where).to_table()) == expected, f"hudimeta, {where}, {after}"
            assert plain_rows(self.hudi.read(self.path, where=where).table) == expected, f"Apache Hudi, {where}, {after}"
        report = hudimeta.Table(self.path).metadata.validate()
        assert report.outcome is not Outcome.DIFFERS, f"{after}: {report}"


def rows(first: int, last: int, ts: int) -> list[Row]:
    return [row(n, ts) for n in range(first, last)]


@KINDS
def test_a_partition_that_hudi_deleted_is_filled_by_us(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    sides = Sides(tmp_path / "table", hudi, kind)
    some = [r for r in sides.model.sorted() if r["month"] == "2026-02"]
    theirs = Theirs(sides.path, hudi, type=kind, options=sides.options)
    theirs.options = {**sides.options, "hoodie.datasource.write.partitions.to.delete": "2026-02"}
    theirs.write("delete_partition", some[:1])
    sides.model.remove(some)
    sides.agree("Hudi's delete_partition")
    sides.write(sides.ours, "insert", [row(n, 5) for n in (31, 34, 37)])
    sides.agree("our insert into the partition")
    sides.write(sides.theirs, "upsert", rows(28, 40, 6))
    sides.agree("Hudi's upsert")


@KINDS
def test_columns_that_one_side_adds_are_written_by_the_other(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    sides = Sides(tmp_path / "table", hudi, kind)
    sides.widen()
    sides.write(sides.ours, "upsert", [{**row(3, 2), "tip": 7}])
    sides.agree("our column")
    sides.write(sides.theirs, "upsert", [{**row(n, 3), "tip": n if n % 2 else None} for n in (1, 2, 4, 40)])
    sides.agree("Hudi's upsert")
    sides.write(sides.ours, "upsert", [{**row(n, 4), "tip": n} for n in (5, 6, 41)])
    sides.agree("our upsert")


@KINDS
def test_hudi_adds_a_column_that_we_write(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    """Hudi gives it statistics in the partitions that it writes to; the others have no record until someone writes there."""
    sides = Sides(tmp_path / "table", hudi, kind)
    sides.widen()
    sides.write(sides.theirs, "upsert", [{**row(3, 2), "tip": 7}])
    sides.agree("Hudi's column")
    sides.write(sides.ours, "upsert", [{**row(n, 3), "tip": n} for n in (4, 40)])
    sides.agree("our upsert")
    sides.write(sides.theirs, "upsert", [{**row(n, 4), "tip": n} for n in (5, 41)])
    sides.agree("Hudi's upsert")


@KINDS
def test_writes_while_hudi_has_a_clean_planned_and_after_its_services(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    sides = Sides(tmp_path / "table", hudi, kind)
    for ts in (2, 3):
        sides.write(sides.ours, "upsert", rows(0, 10, ts))
    if kind == "MERGE_ON_READ":
        assert sides.serve("compact", ONCE)
        sides.agree("Hudi's compaction")
        sides.write(sides.ours, "upsert", rows(0, 10, 4))
    assert sides.serve("cluster", ONCE)
    sides.agree("Hudi's clustering")
    sides.write(sides.ours, "upsert", rows(5, 35, 5))
    planned = sides.serve("plan_clean", CLEAN)
    assert planned
    sides.write(sides.ours, "upsert", rows(10, 40, 6))
    sides.agree("our upsert beside a planned clean")
    sides.serve("clean", CLEAN)
    assert not [i for i in hudimeta.Table(sides.path).timeline.pending if i.time == planned]
    sides.write(sides.ours, "upsert", rows(0, 5, 7))
    sides.agree("Hudi's clean")
    sides.serve("archive", ARCHIVE)
    assert hudimeta.Table(sides.path).timeline.history.times().num_rows
    sides.write(sides.ours, "upsert", rows(0, 45, 8))
    sides.agree("Hudi's archival")


@KINDS
def test_our_services_between_writes_of_hudi(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    sides = Sides(tmp_path / "table", hudi, kind)
    for ts in (2, 3, 4):
        sides.write(sides.theirs, "upsert", rows(0, 10 * ts, ts))
    if kind == "MERGE_ON_READ":
        assert hudimeta.Table(sides.path, sides.options).compact()
        sides.write(sides.theirs, "upsert", rows(20, 50, 5))
        sides.agree("our compaction and Hudi's upsert")
    assert hudimeta.Table(sides.path, {**sides.options, "hoodie.clean.commits.retained": "1"}).clean()
    sides.write(sides.theirs, "upsert", rows(0, 30, 6))
    sides.agree("our clean and Hudi's upsert")
    hudimeta.Table(sides.path, {**sides.options, **ARCHIVE}).archive()
    assert hudimeta.Table(sides.path).timeline.history.times().num_rows
    sides.write(sides.theirs, "upsert", rows(10, 60, 7))
    sides.agree("our archival and Hudi's upsert")


@KINDS
def test_rows_stay_in_their_partition(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    """What a reader shows of the column is the partition that a row is in, whatever was written."""
    sides = Sides(tmp_path / "table", hudi, kind, {"hoodie.record.index.update.partition.path": "false"})
    moved = [{**row(n, 2), "month": "2026-09"} for n in (3, 4)]
    sides.ours.options = {**sides.options, "hoodie.index.type": "RECORD_INDEX"}
    sides.ours.write("upsert", moved)
    sides.model.put(rows(3, 5, 2))
    sides.agree("an update that changes the partition column")
    for month in ("2026-01", "2026-02", "2026-09"):
        where, expected = f"month = '{month}'", [r for r in sides.model.sorted() if r["month"] == month]
        assert plain_rows(hudimeta.Table(sides.path).scan(where).to_table()) == expected
        assert plain_rows(hudi.read(sides.path, where=where).table) == expected
    sides.theirs.options = {**sides.options, "hoodie.index.type": "RECORD_INDEX"}
    sides.write(sides.theirs, "upsert", rows(2, 40, 3))
    sides.agree("Hudi's upsert")
