"""What the first query or write of a process imports, which takes most of its time."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.types import Operation

PLANS = """
table = hudimeta.Table(sys.argv[1])
assert (table.scan().plan().slices.num_rows, table.snapshot().slices().num_rows) == (2, 2)
"""
NO_LOGS = """
from hudimeta.formats.plain_arrays import single_array
assert len(single_array(pyarrow.chunked_array([], pyarrow.string()))) == 0
"""
FILTERS = """
table = hudimeta.Table(sys.argv[1])
for where, rows in eval(sys.argv[2]).items():
    scan = table.scan(where, ["id"])
    assert (scan.to_table().num_rows, scan.count()) == (rows, rows), (where, scan.count())
    assert str(scan.report)
    assert 'pandas' not in sys.modules, where
assert table.scan().to_table().num_rows == 100
"""
OTHER_READS = """
table = hudimeta.Table(sys.argv[1])
last, *_, first = table.history()["completion"].to_pylist()
for where, rows, newer in ((None, 100, 20), ("n > 40", 58, 0)):
    assert table.scan(where, query_type="incremental", begin="earliest").count() == rows
    assert table.scan(where, query_type="incremental", begin=first, end=last).to_table().num_rows == newer
    assert table.scan(where, query_type="read_optimized").to_table().num_rows == rows
    assert table.scan(where, as_of=first).to_table().num_rows == rows
    assert table.scan(where, limit=3).to_table().num_rows == 3
"""
# each verb writes rows of a file, as a program would that is started for it; the last number is how many there are then
WRITES = {
    "upsert": ("table.upsert(rows)", 110),
    "insert": ("table.insert(rows.slice(10))", 110),
    "bulk_insert": ("table.bulk_insert(rows.slice(10))", 110),
    "delete": ("table.delete(rows.select(['id', 'part']))", 90),
    "delete where": ("table.delete(where='n >= 90 or name is null')", 89),
    "update": ("table.update({'fare': 'fare + 1'}, where='n < 5')", 100),
}
WRITE = """
import pyarrow.parquet
with pyarrow.parquet.ParquetFile(sys.argv[2]) as file:
    rows = file.read()
table = hudimeta.Table(sys.argv[1])
assert str({verb})
assert table.scan().count() == {count}
"""
CREATES = """
import pyarrow.parquet
with pyarrow.parquet.ParquetFile(sys.argv[2]) as file:
    rows = file.read()
for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
    table = hudimeta.Table.create(
        sys.argv[1] + kind, rows.schema, key="id", partition_by="part", ordering="ts", type=kind,
        indexes=["column_stats", "record_index", "bloom_filters"],
    )
    table.upsert(rows)
    table.upsert(rows.slice(0, 5))
    assert table.scan("fare >= 5").count() == 10
"""
# filters of each kind over columns of each type, and the rows that they find
WHERE = {
    "n > 40": 58,
    "n in (3, 4, 400)": 2,
    "n between 10 and 19": 10,
    "n * 2 + 1 > 180 or n % 50 = 3": 12,
    "n / 4 < 1": 4,
    "fare < 2.5": 5,
    "fare >= 2.5 and fare <= 3": 2,
    "price = 5": 1,
    "price in (1.25, 7.5)": 2,
    "price < 2.75": 11,
    "day = date'2024-01-05'": 1,
    "day between '2024-01-02' and '2024-01-04'": 3,
    "year(day) = 2024": 99,
    "at < timestamp'2024-01-01 05:00:00'": 5,
    "from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-01'": 100,
    "name = 'n7'": 1,
    "name <= 'n2'": 13,
    "name in ('n5', 'n6', 'x')": 2,
    "name like 'n1%'": 11,
    "name like '%7'": 10,
    "upper(name) = 'N8'": 1,
    "lower(name) in ('n8', 'n9')": 2,
    "name is null": 1,
    "n is not null": 99,
    "even": 49,
    "not even": 50,
    "id = '7'": 1,
    "id in ('7', '8', 'x')": 2,
    "part = 'a' and n < 10": 5,
    "part in ('b', 'c') or id = '4'": 51,
    "place.x = 4": 1,
    "coalesce(n, -1) = -1": 1,
    "cast(n as string) = '12'": 1,
    "not (fare > 3.5 or name is null)": 8,
}


def rows_of_all_types(numbers: range, ts: int) -> pa.Table:
    """One row a number; the one of number 50 holds nulls only, but for what the table needs."""
    known = [None if i == 50 else i for i in numbers]

    begin = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    return pa.table(
        {
            "id": [str(i) for i in numbers],
            "part": ["ab"[i % 2] for i in numbers],
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "n": pa.array(known, pa.int32()),
            "fare": [None if i is None else i / 2 for i in known],
            "price": pa.array([None if i is None else Decimal(i) / 4 for i in known], pa.decimal128(9, 2)),
            "day": [None if i is None else begin.date() + dt.timedelta(i) for i in known],
            "at": pa.array([None if i is None else begin + dt.timedelta(hours=i) for i in known], pa.timestamp("us", "UTC")),
            "name": [None if i is None else f"n{i}" for i in known],
            "even": [None if i is None else i % 2 == 0 for i in known],
            "place": [None if i is None else {"x": i, "y": str(i)} for i in known],
        }
    )


def table_of_all_types(path: Path, kind: str, *, indexed: bool) -> str:
    """A table of two partitions; on merge on read, a second commit in log files."""
    first = rows_of_all_types(range(100), 1)
    indexes = ["column_stats", "record_index", "bloom_filters"] if indexed else None
    table = hudimeta.Table.create(
        str(path), first.schema, key="id", partition_by="part", ordering="ts", type=kind, indexes=indexes
    )
    table.bulk_insert(first)
    if indexed:
        table.indexes.create("by_name", "secondary_index", "name")
        table.indexes.create("day_of", "column_stats", "ts", expression="from_unixtime", options={"format": "yyyy-MM-dd"})
        table.indexes.create("low", "bloom_filters", "name", expression="lower")
    table.upsert(rows_of_all_types(range(20), 2))
    return str(path)


def written(path: Path, rows: pa.Table) -> str:
    """Rows in a file of Parquet."""
    pq.write_table(rows, str(path))
    return str(path)


def without_pandas(program: str, *arguments: str) -> None:
    """Run a program in a process of its own."""
    code = f"import sys, pyarrow, hudimeta{program}print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "False\n"


@pytest.mark.parametrize("what", [PLANS, NO_LOGS], ids=["a plan", "the keys of no logs"])
def test_it_imports_no_pandas(tmp_path: Path, what: str) -> None:
    """Arrow would, to make an array of a list of Python's: 360 modules, 40 MB, and a third of a second."""
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    table.write(Operation.UPSERT, simple_rows(range(4), 2))
    without_pandas(what, table.path)


@pytest.mark.parametrize("indexed", [True, False], ids=["all indexes", "no index"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_reads_import_no_pandas(tmp_path: Path, kind: str, indexed: bool) -> None:
    path = table_of_all_types(tmp_path / "t", kind, indexed=indexed)
    without_pandas(FILTERS, path, repr(WHERE))
    without_pandas(OTHER_READS, path)


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("indexed", [True, False], ids=["all indexes", "no index"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.rotation(3)
def test_writes_import_no_pandas(tmp_path: Path, kind: str, indexed: bool, verb: str) -> None:
    path = table_of_all_types(tmp_path / "t", kind, indexed=indexed)
    rows = written(tmp_path / "rows.parquet", rows_of_all_types(range(90, 110), 3))
    call, count = WRITES[verb]
    without_pandas(WRITE.format(verb=call, count=count), path, rows)


def test_a_new_table_imports_no_pandas(tmp_path: Path) -> None:
    without_pandas(CREATES, str(tmp_path / "t"), written(tmp_path / "rows.parquet", rows_of_all_types(range(20), 1)))
