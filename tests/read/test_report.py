"""The report of a scan in every form."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.read.report import ScanReport, Skip

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
    plain = json.loads(json.dumps(REPORT.to_dict()))
    assert plain["requests"] == {"GET data": 9, "LIST timeline": 1}
    assert plain["skipped"][1] == {"by": "column_stats", "conjunct": "fare > 60", "partitions": 0, "slices": 33, "files": 41}
    table = REPORT.to_arrow()
    assert table.schema == pa.schema([("name", pa.string()), ("value", pa.string())])
    assert table.column("name").to_pylist() == list(plain)
    assert "&lt;trips&gt;" in REPORT._repr_html_()


def test_an_empty_table_reports_as_well(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", pa.schema([("id", pa.string())]), key="id")
    scan = table.scan()
    assert scan.to_table().num_rows == scan.count() == 0
    assert scan.report.instant is None
    assert "0 of 0 kept" in str(scan.report)
