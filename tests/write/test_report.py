"""The report of a commit: to whoever ran the write, and to whoever finds it on the timeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.report import CommitReport
from hudimeta.errors import TableError
from hudimeta.testing.builders import simple_rows

LATER = ("seconds", "requests", "notes", "compacted_metadata", "attempts")
"""What is not settled at the moment of publication."""


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_report_says_what_was_done_and_at_what_cost(tmp_path: Path, kind: str) -> None:
    rows = simple_rows(range(20), 1)
    options = {"hoodie.table.cdc.enabled": True}
    table = Table.create(tmp_path / "t", rows.schema, key="id", partition_by="part", ordering="ts", type=kind, options=options)
    table.insert(rows)
    report = table.upsert(simple_rows(range(10, 15), 2))
    assert (report.inserted, report.updated, report.deleted) == (0, 5, 0)
    assert (report.files_written, report.partitions, report.file_groups_added) == (2, 2, 0)
    merges = kind == "MERGE_ON_READ"
    assert (report.log_files_written, report.change_files_written) == ((2, 0) if merges else (0, 2))
    assert (report.looked_up, report.found) == (5, 5)
    assert report.bytes_written > 0
    assert set(report.seconds) >= {"check", "look-up", "write", "publish"}
    assert report.requests["PUT", "data"] >= 2
    text = str(report)
    for part in ("5 updated", "2 written in 2 partitions", "log files" if merges else "2 change files", "simple index", "data"):
        assert part in text
    again = Table(tmp_path / "t").report()
    mine, kept = vars(report), vars(again)
    assert {k: v for k, v in kept.items() if k not in LATER} == {k: v for k, v in mine.items() if k not in LATER}
    assert again.seconds["look-up"] == pytest.approx(report.seconds["look-up"], abs=0.001)
    assert again.requests["PUT", "data"] == report.requests["PUT", "data"]
    assert str(again).splitlines()[:4] == text.splitlines()[:4]


def test_an_older_commit_and_none(tmp_path: Path) -> None:
    rows = simple_rows(range(3), 1)
    table = Table.create(tmp_path / "t", rows.schema, key="id")
    with pytest.raises(TableError, match="no completed write"):
        table.report()
    first = table.insert(rows)
    table.delete("id = 'k0001'")
    assert table.report(first.instant).inserted == 3
    assert table.report().operation == "DELETE"
    with pytest.raises(TableError, match="20990101"):
        table.report("20990101")


def test_commits_of_apache_hudi_report_what_their_metadata_says(rich_table: Callable[[str], Path]) -> None:
    table = Table(rich_table("deletes_cow"))
    reports = [table.report(instant.time) for instant in table.timeline.writes]
    assert sum(report.deleted for report in reports) > 0
    assert all(isinstance(report, CommitReport) and not report.index for report in reports)
    assert all(str(report).startswith(report.operation) for report in reports)
