"""Reports print as reports, also in lists, and notebooks show them."""

from __future__ import annotations

from pathlib import Path

from hudimeta import Table
from hudimeta.reports import Report
from hudimeta.testing.builders import simple_rows


def table(path: Path, **options: str) -> Table:
    return Table.create(path, simple_rows([], 0).schema, "id", "part", "ts", **options)


def test_every_report_prints_and_shows_itself(tmp_path: Path) -> None:
    t = table(tmp_path / "t", type="MERGE_ON_READ")
    inserted = t.insert(simple_rows(range(10), 1))
    t.upsert(simple_rows(range(5), 2))
    scan = t.scan(where="id < 'k0003'")
    compacted = t.compact()
    reports: list[Report] = [
        inserted,
        *compacted,
        scan.plan(),
        scan.report,
        t.metadata.validate(),
        t.clean(),
        t.archive(),
        t.metadata.create_index(type="bloom_filters"),
        t.metadata.rebuild(),
    ]
    for report in reports:
        assert repr(report) == str(report)
        assert "object at" not in str(report)
        shown = report._repr_html_()
        assert shown.startswith("<")
        assert "&lt;" in shown or "<" not in str(report), "what the report says is text"
    assert repr([inserted]) == f"[{inserted}]"
    assert str(compacted) == repr(compacted) == str(compacted[0])
    assert str(compacted[0]) in compacted._repr_html_().replace("&#x27;", "'")


def test_a_compaction_says_to_how_many_partitions_it_wrote(tmp_path: Path) -> None:
    t = table(tmp_path / "t", type="MERGE_ON_READ")
    t.insert(simple_rows(range(10), 1))
    t.upsert(simple_rows(range(10), 2))
    (report,) = t.compact()
    assert (report.files_written, report.partitions) == (2, 2)
    assert "2 written in 2 partitions" in str(report)
    assert str(t.compact()) == "nothing was to be done"


def test_rows_that_lose_by_their_ordering_value_are_counted(tmp_path: Path) -> None:
    t = table(tmp_path / "t")
    t.insert(simple_rows(range(10), 5))
    report = t.upsert(simple_rows(range(4), 3))
    assert (report.updated, report.outdated) == (0, 4)
    assert "outdated  4 rows lost" in str(report)
    assert Table(tmp_path / "t").report().outdated == 4, "whoever asks later learns it too"
    assert "outdated" not in str(t.upsert(simple_rows(range(4), 9)))
