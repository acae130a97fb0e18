"""The report of a scan in every form."""

from __future__ import annotations

import dataclasses
import html
import json
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.indexes.scan_report import ScanReport, Skip, Unused

REPORT = ScanReport(
    table="/data/<trips>",
    instant="20260102030405000",
    as_of="20260103000000000",
    predicate="fare > 60",
    columns=("id", "fare"),
    partitions=12,
    partitions_kept=3,
    slices=40,
    slices_kept=7,
    files=50,
    files_kept=9,
    log_files_kept=2,
    bytes_kept=123_456,
    skipped=(Skip("partition", "month = '01'", partitions=9), Skip("column_stats", "fare > 60", slices=33, files=41)),
    unused=(Unused("record_index", "the predicate names no keys"),),
    notes=("column_stats: column tip is not indexed",),
    fallbacks=("the table has no metadata table",),
    corrupt=("p/.f_1.log.1_0-0-0 from byte 10, 20 bytes: no magic where a block should start",),
    rows=5,
    rows_read=100,
    log_blocks=4,
    blocks_ignored=1,
    requests={("GET", "data"): 9, ("LIST", "timeline"): 1},
    bytes_read=4096,
    seconds={"open": 0.01, "plan": 0.02, "read": 0.5},
)


def test_it_prints_every_fact_once() -> None:
    text = str(REPORT)
    for fact in (
        "/data/<trips> (snapshot, as of 20260103000000000, newest write 20260102030405000)",
        "3 of 12 looked up",
        "7 of 40 kept: 9 of 50 files, 2 of them log files, 123,456 bytes",
        "9 partitions by partition: month = '01'",
        "33 slices (41 files) by column_stats: fare > 60",
        "column_stats: column tip is not indexed",
        "the table has no metadata table",
        "from byte 10, 20 bytes",
        "5 returned of 100 read",
        "4 merged, 1 ignored",
        "9 GET data, 1 LIST timeline; 4,096 bytes",
        "open 0.010, plan 0.020, read 0.500",
    ):
        assert text.count(fact) == 1, fact


def test_it_is_a_value() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        REPORT.rows = 6  # type: ignore[misc]
    assert REPORT.requests_of("GET") == 9
    assert REPORT.requests_of("PUT") == 0


def test_it_leaves_as_json_arrow_and_html() -> None:
    plain = json.loads(REPORT.to_json())
    assert plain["requests"] == {"GET data": 9, "LIST timeline": 1}
    assert plain["skipped"][1] == {"by": "column_stats", "conjunct": "fare > 60", "partitions": 0, "slices": 33, "files": 41}
    assert plain["unused"] == [{"index": "record_index", "why": "the predicate names no keys"}]
    assert plain["decisions"] == []
    table = REPORT.to_arrow()
    assert table.column_names == ["partition_path", "file_name", "size", "kept", "decided_by", "conjunct"]
    told = json.loads(table.schema.metadata[b"hudimeta.report"])
    assert told == {name: value for name, value in plain.items() if name != "decisions"}
    assert "&lt;trips&gt;" in REPORT._repr_html_()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hudimeta.Table:
    """Three partitions, one file each; `note` has no statistics in the metadata table."""
    options = {"hoodie.metadata.index.column.stats.column.list": "n"}
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("n", pa.int64()), ("note", pa.string())])
    path = tmp_path_factory.mktemp("report") / "t"
    made = hudimeta.Table.create(path, schema, key="id", partition_by="p", options=options)
    rows = range(9)
    made.insert({"id": [f"k{n}" for n in rows], "p": [f"p{n // 3}" for n in rows], "n": rows, "note": [f"x{n}" for n in rows]})
    return made


def test_it_says_of_each_file_what_decided(table: hudimeta.Table) -> None:
    scan = table.scan(where="p <> 'p0' AND n < 6 AND note > 'x9'")
    scan.to_table()
    found = {row["partition_path"]: row for row in scan.report.to_arrow().to_pylist()}
    assert (found["p0"]["kept"], found["p0"]["decided_by"], found["p0"]["conjunct"]) == (False, "partition", "p <> 'p0'")
    assert (found["p2"]["kept"], found["p2"]["decided_by"], found["p2"]["conjunct"]) == (False, "column_stats", "n < 6")
    assert (found["p1"]["kept"], found["p1"]["decided_by"], found["p1"]["conjunct"]) == (True, "footers", "note > 'x9'")
    assert json.loads(scan.report.to_json())["decisions"] == scan.report.decisions().to_pylist()
    text = scan.report.to_text(files=True)
    assert "  p0/*: left out by partition: p <> 'p0'" in text
    assert f"  p1/{found['p1']['file_name']}: opened, no row read by footers: note > 'x9'" in text
    assert f"  p2/{found['p2']['file_name']}: left out by column_stats: n < 6" in text
    page = scan.report._repr_html_()
    assert "3 decisions" in page
    assert found["p2"]["file_name"] in page
    assert "column_stats: n &lt; 6" in page


def test_a_file_of_a_table_without_partitions_is_named_alone(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", pa.schema([("id", pa.string()), ("n", pa.int64())]), key="id")
    table.insert({"id": ["a", "b"], "n": [1, 2]})
    (file,) = (path.name for path in (tmp_path / "t").glob("*.parquet"))
    assert f"\n  {file}: left out by column_stats: n > 5" in table.scan(where="n > 5").report.to_text(files=True)


def test_it_says_of_each_index_why_it_was_not_used(table: hudimeta.Table) -> None:
    for options, expected in (
        ({}, {"partition_stats": "3 partitions are left, and what is known of their files decides better"}),
        (
            {"hudimeta.index.use": "none"},
            dict.fromkeys(("partition_stats", "column_stats", "footers"), "switched off by hudimeta.index.use"),
        ),
    ):
        report = hudimeta.Table(table.path, options).scan(where="n = 4").report
        assert {u.index: u.why for u in report.unused} == expected
        for unused in report.unused:
            assert str(unused) in str(report)
            assert html.escape(str(unused)) in report._repr_html_()


def test_an_empty_table_reports_as_well(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", pa.schema([("id", pa.string())]), key="id")
    scan = table.scan()
    assert scan.to_table().num_rows == scan.count() == 0
    assert scan.report.instant is None
    assert "0 of 0 kept" in str(scan.report)
