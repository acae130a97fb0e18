"""Counting rows: as many as reading returns, from as few requests as the knowledge allows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.read.scan import Scan
from tests.conftest import Unpack
from tests.recorded_tables import CONFORMANCE, RICH

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("qty", pa.int64())])


def orders(path: Path, **options: str) -> hudimeta.Table:
    """Six partitions of 100 rows, one file each."""
    table = hudimeta.Table.create(path / "orders", SCHEMA, key="id", partition_by="part", options=options)
    numbers = range(600)
    table.insert(pa.table([numbers, [f"p{n % 6}" for n in numbers], [n % 50 for n in numbers]], schema=SCHEMA))
    return hudimeta.Table(table.path, options)


def requests_for_data(scan: Scan) -> int:
    return sum(n for (_, purpose), n in scan.report.requests.items() if purpose == "data")


def test_statistics_count_without_opening_a_file(tmp_path: Path) -> None:
    scan = orders(tmp_path).scan()
    assert scan.count() == 600
    assert requests_for_data(scan) == 0


def test_commits_count_what_they_wrote_anew_as_well(tmp_path: Path) -> None:
    table = orders(tmp_path, **{"hoodie.metadata.index.column.stats.enable": "false"})
    some = pa.table([[0, 1, 2], ["p0", "p1", "p2"], [9, 9, 9]], schema=SCHEMA)
    for change in (lambda: table.upsert(some), lambda: table.delete("id < 90 AND part <> 'p4'"), lambda: table.cluster("id")):
        change()
        scan = table.scan()
        rows = table.scan(columns=["id"]).to_table().num_rows
        assert scan.count() == rows
        assert requests_for_data(scan) < 6


def test_partition_paths_decide_a_filter_without_opening_a_file(tmp_path: Path) -> None:
    scan = orders(tmp_path).scan(where="part <> 'p3' AND part < 'p5'")
    assert scan.count() == 400
    assert requests_for_data(scan) == 0


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("TRY_CAST(part AS BIGINT) >= 1", 0),
        ("NOT (TRY_CAST(substring(part, 2, 1) AS INT) + 1 > 3)", 300),
        ("NOT (TRY_CAST(part AS BIGINT) > 5 AND part = 'p1')", 500),
        ("NOT (part = 'p1' OR NULL)", 0),
        ("part = 'p1' AND NOT NULL", 0),
        ("part = 'p1' OR TRY_CAST(part AS INT) IS NULL", 600),
    ],
)
def test_null_is_not_true_of_a_partition_either(tmp_path: Path, where: str, count: int) -> None:
    """Planning keeps partitions of which a predicate is null where other modes of SQL would compute something."""
    scan = orders(tmp_path).scan(where=where)
    assert (scan.count(), requests_for_data(scan)) == (count, 0)
    assert scan.to_table().num_rows == count


def test_a_path_that_states_no_values_leaves_counting_to_the_files(tmp_path: Path) -> None:
    """A slash in a value makes a folder more than there are columns, so that no partition is left out by its path."""
    schema = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.string())])
    options = {"hudimeta.index.use": "none"}
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", partition_by=["a", "b"], options=options)
    table.insert(pa.table({"id": [1, 2, 3], "a": ["q", "x/y", "q"], "b": ["m", "n", "o"]}, schema))
    for where, count in (("a = 'q'", 2), ("b = 'n'", 1), ("a = 'x/y'", 1), ("a IS NULL", 0)):
        scan = table.scan(where=where)
        assert (scan.count(), scan.to_table().num_rows) == (count, count), where


def test_footers_count_where_there_are_no_statistics(tmp_path: Path) -> None:
    scan = orders(tmp_path, **{"hudimeta.index.use": "none"}).scan()
    assert scan.count() == 600
    assert requests_for_data(scan) >= 6


def test_another_filter_is_evaluated_over_its_own_columns(tmp_path: Path) -> None:
    table = orders(tmp_path)
    for where in ("qty < 10", "qty < 10 AND part = 'p1'", "qty < 10 OR part = 'p1'", "part = 'p1' AND part = 'p2'"):
        assert table.scan(where=where).count() == table.scan(where=where).to_table().num_rows, where


def tables() -> list[object]:
    return [*CONFORMANCE.names(), *RICH.names()] or [pytest.param("none", marks=pytest.mark.shared)]


@pytest.mark.rotation(5)
@pytest.mark.parametrize("name", tables())
def test_recorded_tables_have_as_many_rows_as_are_read(name: str, recorded_table: Unpack) -> None:
    table = hudimeta.Table(recorded_table(name))
    assert table.scan().count() == table.scan(columns=[table.schema.names[0]]).to_table().num_rows


# Ways out


def test_duckdb_queries_a_scan(tmp_path: Path) -> None:
    import duckdb

    orders_below_10 = orders(tmp_path).scan(where="qty < 10", columns=["part", "qty"])
    query = "SELECT part, count(*), sum(qty) FROM orders_below_10 GROUP BY part ORDER BY part"
    rows = duckdb.sql(query).fetchall()
    assert [part for part, _, _ in rows] == [f"p{n}" for n in range(6)]
    assert (sum(count for _, count, _ in rows), sum(total for *_, total in rows)) == (120, 12 * 45)
    assert orders_below_10.report.rows == 120, "it is read once"


def test_polars_takes_a_scan(tmp_path: Path) -> None:
    import polars

    scan = orders(tmp_path).scan(where="qty < 10", columns=["part", "qty"])
    frame = polars.DataFrame(scan)
    assert frame.columns == ["part", "qty"]
    assert (frame.height, frame["qty"].sum()) == (120, 12 * 45)
    assert scan.report.rows == 120


def test_pandas_takes_a_scan(tmp_path: Path) -> None:
    frame = orders(tmp_path).scan(where="qty < 10", columns=["part", "qty"]).to_pandas()
    assert (list(frame.columns), len(frame), frame["qty"].sum()) == (["part", "qty"], 120, 12 * 45)
