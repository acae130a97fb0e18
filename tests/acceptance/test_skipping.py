"""A filter reads the files that can match and no others, whatever the column's type; what is unknown is read, and reported."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from tests.acceptance.builders import INDEXED, ClusteredTable, create_clustered, small_files, value_of
from tests.acceptance.counted import Counter
from tests.conftest import Unpack

Rows = list[dict[str, Any]]
MANY = 400
"""Files."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ClusteredTable:
    """So many files in one partition that statistics of files decide."""
    return create_clustered(tmp_path_factory.mktemp("many") / "t", MANY)


@pytest.fixture(scope="module")
def hundred_v9(tmp_path_factory: pytest.TempPathFactory) -> ClusteredTable:
    """A hundred files of a table of version 9, whose statistics have another form."""
    return create_clustered(tmp_path_factory.mktemp("hundred") / "t", 100, {"hoodie.write.table.version": "9"})


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 partitions of two files, clustered by `n`, which is no partition column: statistics of partitions decide."""
    path = tmp_path_factory.mktemp("partitioned") / "t"
    ids = list(range(1200))
    rows = pa.table({"id": ids, "part": [f"p{i // 8:03d}" for i in ids], "n": ids, "x": [float(i) for i in ids]})
    hudimeta.Table.create(path, rows.schema, key="id", partition_by="part", options=small_files(4)).bulk_insert(rows)
    return path


def order(value: Any) -> Any:
    """A key by which values sort as in Spark: NaN above every number."""
    return (math.isnan(value), 0 if math.isnan(value) else value) if isinstance(value, float) else value


def may_hold(column: str, low: Any = None, high: Any = None) -> Callable[[Rows], bool]:
    """Whether the values of a file overlap a range; None is no limit."""

    def check(rows: Rows) -> bool:
        values = [order(v) for r in rows if (v := value_of(r, column)) is not None]
        above = low is None or (values and max(values) >= order(low))
        return bool(values) and bool(above) and (high is None or min(values) <= order(high))

    return check


def sql(value: Any) -> str:
    """A constant in Spark's dialect."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, dt.datetime):
        kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
        return f"{kind} '{value.replace(tzinfo=None).isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    return str(value)


def check_scan(table: hudimeta.Table, counter: Counter, where: str, expected: Iterable[str], ids: Iterable[str]) -> Any:
    """Scan, and compare the files opened, planned and reported with those expected, and the rows' ids."""
    mark = len(counter.log)
    scan = table.scan(where=where, columns=["id"])
    found = sorted(scan.to_table().column("id").to_pylist())
    wanted = set(expected)
    opened = counter.data_files(mark)
    assert found == sorted(ids), where
    assert opened == wanted, where
    assert set(scan.plan().files) == wanted
    report = scan.report
    assert report.files_kept == report.slices_kept == len(wanted)
    reads = sum(n for (kind, purpose), n in report.requests.items() if (kind, purpose) == ("GET", "data"))
    assert reads == len([p for p in counter.gets(mark) if p in wanted])
    assert sum(s.files for s in report.skipped if s.by == "column_stats") == report.files - len(wanted)
    assert set(counter.lists(mark)) <= {".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline"}
    return report


def ranges_of(values: list[Any]) -> list[tuple[str, Any, Any]]:
    """Predicates over a column (`{c}`) with the closed range of values that they ask for, None being no limit."""
    known = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    third, after = known[len(known) // 3], known[len(known) // 3 + 3]
    first, last = known[3], known[-4]
    a, b, low, high = sql(third), sql(after), sql(first), sql(last)
    return [
        (f"{{c}} = {a}", third, third),
        (f"{{c}} <=> {a}", third, third),
        (f"{{c}} BETWEEN {a} AND {b}", third, after),
        (f"{a} <= {{c}} AND NOT ({{c}} > {b})", third, after),
        (f"{{c}} <= {low}", None, first),
        (f"{{c}} >= {high}", last, None),
        (f"NOT ({{c}} < {high})", last, None),
        (f"{{c}} IN ({a}, {a}, NULL)", third, third),
    ]


RANGED = [c for c in INDEXED if c != "flag"]


def check_ranges(clustered: ClusteredTable, column: str, counter: Counter, most: int) -> None:
    table = hudimeta.Table(clustered.path)
    for where, low, high in ranges_of(clustered.values(column)):
        possible = may_hold(column, low, high)
        files = [path for path, rows in clustered.files.items() if possible(rows)]
        assert 0 < len(files) <= most, f"{where} shows nothing"
        ids = [row["id"] for row in clustered.rows if possible([row])]
        check_scan(table, counter, where.format(c=column), files, ids)


@pytest.mark.rotation(3)
@pytest.mark.parametrize("column", RANGED)
def test_only_files_that_can_match_are_opened(column: str, many: ClusteredTable, counter: Counter) -> None:
    # 256 values of an 8-bit integer over 400 files; NaN, greater than every number, is in 4 of them.
    check_ranges(many, column, counter, {"tiny": 10, "real": 8, "double": 8}.get(column, 4))


@pytest.mark.rotation(3)
@pytest.mark.parametrize("column", RANGED)
def test_only_files_that_can_match_are_opened_in_version_9(column: str, hundred_v9: ClusteredTable, counter: Counter) -> None:
    check_ranges(hundred_v9, column, counter, 6)


def test_booleans_nulls_and_nan_choose_files(many: ClusteredTable, counter: Counter) -> None:
    table = hudimeta.Table(many.path)
    checks: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
        ("flag", lambda r: r["flag"]),
        ("NOT flag", lambda r: not r["flag"]),
        ("flag = TRUE", lambda r: r["flag"]),
        ("flag <> TRUE", lambda r: not r["flag"]),
        ("gap IS NULL", lambda r: r["gap"] is None),
        ("gap IS NOT NULL", lambda r: r["gap"] is not None),
        ("gap IS NOT NULL AND gap < 10", lambda r: r["gap"] is not None and r["gap"] < 10),
        ("flag IS NULL", lambda r: False),
        ("place.city IS NULL", lambda r: False),
        ("isnan(double)", lambda r: math.isnan(r["double"])),
        ("real = CAST('NaN' AS FLOAT)", lambda r: math.isnan(r["real"])),
        ("text LIKE '00012%'", lambda r: r["text"].startswith("00012")),
        ("long_text LIKE '%beginning 00012_'", lambda r: r["long_text"][-6:].startswith("00012")),
        ("place.city LIKE 'c00012%' AND flag", lambda r: False),
    ]
    for where, matches in checks:
        ids = [r["id"] for r in many.rows if matches(r)]
        plan = table.scan(where=where).plan()
        files = [path for path, rows in many.files.items() if any(matches(r) for r in rows)]
        if where.startswith("long_text LIKE"):
            assert plan.report.files_kept == MANY, "no bound says what stands in the middle of a text"
            files = list(many.files)
        elif "city LIKE" in where:
            assert plan.report.files_kept == 0, "every file is excluded by one of the two"
        check_scan(table, counter, where, files, ids)


def test_conjuncts_over_several_columns_exclude_together(many: ClusteredTable, counter: Counter) -> None:
    table = hudimeta.Table(many.path)
    row = many.rows[700]
    where = f"text >= '{row['text']}' AND (plain < {row['plain']} OR day = DATE '{row['day']}') AND unlisted >= 0"
    report = check_scan(table, counter, where, [p for p, rows in many.files.items() if row in rows], [row["id"]])
    assert {s.conjunct for s in report.skipped} >= {f"text >= '{row['text']}'"}


@pytest.mark.parametrize(
    ("column", "why"), [("unlisted", "column unlisted is not indexed"), ("huge", "column huge is not indexed")]
)
def test_a_column_without_statistics_keeps_every_file_and_the_report_says_so(
    column: str, why: str, many: ClusteredTable, counter: Counter
) -> None:
    table = hudimeta.Table(many.path)
    report = check_scan(table, counter, f"{column} = 17", many.files, [many.rows[17]["id"]])
    assert (report.slices_kept, report.skipped) == (MANY, ())
    assert why in str(report)


def test_switched_off_statistics_keep_every_file_and_the_report_says_so(many: ClusteredTable, counter: Counter) -> None:
    table = hudimeta.Table(many.path, {"hoodie.enable.data.skipping": "false"})
    report = check_scan(table, counter, "text = '000017'", many.files, [many.rows[17]["id"]])
    assert "column_stats not used: switched off by hoodie.enable.data.skipping=false" in str(report)
    listed = hudimeta.Table(many.path, {"hoodie.metadata.enable": "false"}).scan(where="text = '000017'")
    assert listed.to_table().num_rows == 1
    assert "the metadata table is switched off by hoodie.metadata.enable=false" in str(listed.report)
    assert listed.report.files_kept == MANY


# Partitions


def test_statistics_of_partitions_exclude_whole_partitions(partitioned: Path, counter: Counter) -> None:
    table = hudimeta.Table(partitioned)
    scan = table.scan(where="n BETWEEN 100 AND 110 AND x < 108", columns=["id"])
    assert sorted(scan.to_table().column("id").to_pylist()) == list(range(100, 108))
    report = scan.report
    assert (report.partitions, report.partitions_kept, report.files_kept) == (150, 2, 2)
    assert counter.data_files() == set(scan.plan().files)
    assert all(path.startswith(("p012/", "p013/")) for path in scan.plan().files)
    by = {skip.by for skip in report.skipped}
    assert by == {"partition_stats", "column_stats"}
    assert "partition_stats" in str(report)


def test_partition_paths_exclude_partitions_and_statistics_the_rest(partitioned: Path, counter: Counter) -> None:
    scan = hudimeta.Table(partitioned).scan(where="part IN ('p007', 'p140') AND n > 1123")
    assert scan.to_table().column("id").to_pylist() == [1124, 1125, 1126, 1127]
    assert len(counter.data_files()) == scan.report.files_kept == 1
    assert {skip.by for skip in scan.report.skipped} >= {"partition"}


def test_statistics_of_partitions_are_not_used_for_the_past(partitioned: Path, tmp_path: Path) -> None:
    """They are widened by every write and kept for the newest moment only."""
    table = hudimeta.Table(partitioned)
    first = table.timeline.writes[-1].time
    where = "n BETWEEN 100 AND 110"
    assert table.scan(where=where, as_of=first).to_table().num_rows == 11


# What the statistics do not know


def test_a_column_that_came_later_is_unknown_in_older_files(tmp_path: Path, counter: Counter) -> None:
    path = tmp_path / "t"
    first = pa.table({"id": list(range(12)), "n": list(range(12))})
    options = small_files(4) | {"hoodie.parquet.small.file.limit": "0"}
    hudimeta.Table.create(path, first.schema, key="id", options=options).bulk_insert(first)
    later = pa.table({"id": list(range(100, 108)), "n": list(range(100, 108)), "added": list(range(8))})
    hudimeta.Table(path, options).insert(later)
    table = hudimeta.Table(path)
    for where, ids in (
        ("added = 5", [105]),
        ("added IS NULL", list(range(12))),
        ("added IS NOT NULL", list(range(100, 108))),
        ("added < 2 OR n < 1", [0, 100, 101]),
    ):
        scan = table.scan(where=where, columns=["id"])
        assert sorted(scan.to_table().column("id").to_pylist()) == ids, where
        text = str(scan.report)
        assert "added is not indexed" in text or "no statistics of added for" in text, text
    assert table.scan(where="n >= 104").report.files_kept == 1


@pytest.mark.parametrize(
    ("indexes", "options", "why"),
    [
        (["files"], {}, "column_stats not used: the table has no such index"),
        (None, {"hoodie.metadata.enable": "false"}, "the table has no metadata table"),
    ],
)
def test_a_table_without_statistics_keeps_every_file(
    indexes: list[str] | None, options: dict[str, str], why: str, tmp_path: Path
) -> None:
    rows = pa.table({"id": list(range(12)), "n": list(range(12))})
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", indexes=indexes, options=small_files(4) | options)
    table.bulk_insert(rows)
    scan = hudimeta.Table(tmp_path / "t").scan(where="n = 7")
    assert scan.to_table().column("id").to_pylist() == [7]
    assert (scan.report.files_kept, scan.report.skipped) == (3, ())
    assert why in str(scan.report)


def test_statistics_that_java_left_at_zero_are_not_believed(rich_table: Unpack) -> None:
    """Apache Hudi writes 0 for both bounds of a floating column that holds NaN."""
    path = rich_table("all_types_cow8")
    table = hudimeta.Table(path)
    everything = hudimeta.Table(path, {"hoodie.enable.data.skipping": "false"}).scan().to_table()
    floating = [f.name for f in everything.schema if pa.types.is_floating(f.type)]
    found_nan = False
    for name in floating:
        values = everything.column(name).to_pylist()
        found_nan |= any(v is not None and math.isnan(v) for v in values)
        for constant in {0.0, 1e30, math.nan} | set(values[:3]) - {None}:
            for op, test in OPERATORS.items():
                where = f"{name} {op} {sql(constant)}"
                expected = sum(v is not None and test(order(v), order(constant)) for v in values)
                assert table.scan(where=where).count() == expected, where
    assert found_nan


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
