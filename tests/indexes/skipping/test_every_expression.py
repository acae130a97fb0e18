"""Each function that an expression index may be about: the index serves the predicate that says the same, and loses no row."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta

UTC = datetime.timezone.utc
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("s", pa.string()),
        ("n", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("text", pa.string()),
    ]
)
WORDS = ("alpha", "mmmmmmmm", "Zulu-Zulu-Zulu")
FUNCTIONS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "identity": ("n", {}, "n", "2000000100"),
    "lower": ("s", {}, "lower(s)", "'alpha'"),
    "upper": ("s", {}, "upper(s)", "'MMMMMMMM'"),
    "trim": ("s", {}, "trim(s)", "'alpha'"),
    "ltrim": ("s", {}, "ltrim(s)", "'alpha'"),
    "rtrim": ("s", {}, "rtrim(s)", "'alpha'"),
    "length": ("s", {}, "length(s)", "8"),
    "substring": ("s", {"pos": "2", "len": "3"}, "substring(s, 2, 3)", "'mmm'"),
    "regexp_extract": ("s", {"pattern": "^(.)", "idx": "1"}, "regexp_extract(s, '^(.)', 1)", "'m'"),
    "regexp_replace": ("s", {"pattern": "m+", "replacement": "q"}, "regexp_replace(s, 'm+', 'q')", "'q'"),
    "year": ("day", {}, "year(day)", "2025"),
    "month": ("day", {}, "month(day)", "6"),
    "day": ("day", {}, "day(day)", "20"),
    "hour": ("at", {}, "hour(at)", "9"),
    "date_add": ("day", {"days": "3"}, "date_add(day, 3)", "DATE'2025-06-14'"),
    "date_sub": ("day", {"days": "3"}, "date_sub(day, 3)", "DATE'2025-06-08'"),
    "date_format": ("at", {"format": "yyyy-MM-dd"}, "date_format(at, 'yyyy-MM-dd')", "'2025-06-11'"),
    "from_unixtime": ("n", {"format": "yyyy-MM-dd"}, "from_unixtime(n, 'yyyy-MM-dd')", "'2033-05-18'"),
    "unix_timestamp": ("text", {"format": "yyyy-MM-dd HH:mm:ss"}, "unix_timestamp(text, 'yyyy-MM-dd HH:mm:ss')", "1749632400"),
    "to_timestamp": (
        "text",
        {"format": "yyyy-MM-dd HH:mm:ss"},
        "to_timestamp(text, 'yyyy-MM-dd HH:mm:ss')",
        "TIMESTAMP'2025-06-11 09:00:00Z'",
    ),
    "to_date": ("text", {"format": "yyyy-MM-dd HH:mm:ss"}, "to_date(text, 'yyyy-MM-dd HH:mm:ss')", "DATE'2025-06-11'"),
}
"""Column, options of the index, the expression as a predicate has it, and a value that rows of one file have."""
LEFT = {"unix_timestamp", "to_timestamp", "hour"}
"""Bounds of these depend on the zone of whoever built the index: used when `hudimeta.index.trust` says that it was ours."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files: words, numbers, days and moments of a year each."""
    folder = tmp_path_factory.mktemp("expressions") / "t"
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.metadata.index.column.stats.column.list": "id"}
    table = hudimeta.Table.create(folder, SCHEMA, key="id", options=options)
    for number, word in enumerate(WORDS):
        moment = datetime.datetime(2024 + number, 1 + 5 * number, 1 + 10 * number, 5 + 4 * number, tzinfo=UTC)
        rows = [
            {
                "id": f"{number}{n}",
                "s": word if n else None,
                "n": 1_000_000_000 * (1 + number) + 100 * n,
                "day": (moment + datetime.timedelta(days=n % 2 * 9)).date(),
                "at": moment,
                "text": moment.strftime("%Y-%m-%d %H:%M:%S"),
            }
            for n in range(4)
        ]
        table.bulk_insert(pa.Table.from_pylist(rows, SCHEMA))
    return folder


@pytest.mark.rotation(4)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_index_of_it_leaves_files_out_and_no_row(path: Path, function: str) -> None:
    column, options, spelled, value = FUNCTIONS[function]
    table = hudimeta.Table(path)
    table.metadata.create_index(f"e_{function}", "column_stats", column, expression=function, options=options)
    for where in (f"{spelled} = {value}", f"{spelled} > {value}", f"{spelled} IN ({value})", f"NOT ({spelled} = {value})"):
        expected = hudimeta.Table(path, {"hudimeta.index.use": "none"}).scan(where=where, columns=["id"]).to_table()
        for trust in ("true", "false"):
            scan = hudimeta.Table(path, {"hudimeta.index.trust": trust}).scan(where=where, columns=["id"])
            assert sorted(scan.to_table()["id"].to_pylist()) == sorted(expected["id"].to_pylist()), where
            if where.endswith(f"= {value}") and (trust == "true" or function not in LEFT):
                assert scan.report.files_kept < 3, scan.report
                assert {skip.by for skip in scan.report.skipped} == {f"expr_index_e_{function}"}
        assert expected.num_rows or "=" not in where
    table.metadata.drop_index(f"e_{function}")
