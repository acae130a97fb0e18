"""Planning: what is skipped and by which knowledge, what is not looked up, and that skipping never changes an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.indexes.pruning import FileBounds, FilesOfSlices, by_statistics
from hudimeta.indexes.scan_report import Skip
from hudimeta.predicate import bind, parse
from hudimeta.table.slices import slices_schema
from tests.conftest import Unpack
from tests.recorded_tables import CONFORMANCE, RICH, TableSet

COLUMNS = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("x", pa.float64())])


def rows_of(part: str, low: int, count: int = 10) -> pa.Table:
    numbers = np.arange(low, low + count)
    texts = [f"{part}-{n}" for n in numbers]
    return pa.table({"id": texts, "part": [part] * count, "n": numbers, "x": numbers / 2}, schema=COLUMNS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three partitions of two files each: n is 0-9 and 1000-1009 in `a`, 100.. and 1100.. in `b`, 200.. and 1200.. in `c`."""
    path = tmp_path_factory.mktemp("planner") / "table"
    options = {"hoodie.parquet.small.file.limit": 0}
    table = hudimeta.Table.create(path, COLUMNS, key="id", partition_by="part", options=options)
    for base in (0, 1000):
        table.insert(pa.concat_tables([rows_of(part, base + 100 * i) for i, part in enumerate("abc")]))
    return path


def plan_report(path: Path, where: Any, options: dict[str, Any] | None = None) -> hudimeta.ScanReport:
    return hudimeta.Table(path, options).scan(where=where).plan().report


def test_partitions_that_cannot_match_are_not_looked_up(path: Path) -> None:
    report = plan_report(path, "part = 'b' AND n < 150")
    assert (report.partitions, report.partitions_kept) == (3, 1)
    assert Skip("partition", "part = 'b'", partitions=2) in report.skipped
    assert (report.slices, report.slices_kept) == (2, 1), "only the slices of the partition that is left are known"
    assert Skip("column_stats", "n < 150", slices=1, files=1) in report.skipped


def test_an_index_that_another_process_dropped_is_not_missed(tmp_path: Path) -> None:
    """No instant tells of it, so that whoever has the table open goes on believing in it."""
    table = hudimeta.Table.create(tmp_path / "t", COLUMNS, key="id", partition_by="part", indexes=["record_index"])
    table.insert(rows_of("a", 0))
    other = hudimeta.Table(tmp_path / "t")
    assert other.scan().count() == 10
    table.metadata.drop_index("record_index")
    scan = other.scan(where="id = 'a-7'")
    assert scan.to_table()["n"].to_pylist() == [7]
    assert "record_index" not in str(scan.report)


def test_partition_statistics_skip_before_any_file_is_looked_up(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", COLUMNS, key="id", partition_by="part")
    table.insert(pa.concat_tables([rows_of(f"p{number:02}", 100 * number) for number in range(70)]))
    report = table.scan(where="n BETWEEN 1200 AND 1301").plan().report
    assert (report.partitions, report.partitions_kept) == (70, 2)
    assert {skip.by for skip in report.skipped} == {"partition_stats"}
    assert sum(skip.partitions for skip in report.skipped) == 68
    assert report.slices == report.slices_kept == 2


def test_where_the_record_index_names_the_files_nothing_else_is_asked(tmp_path: Path) -> None:
    """Statistics of files cost more with every file, and can say no more of a key."""
    kinds = ["record_index", "column_stats", "partition_stats", "bloom_filters"]
    table = hudimeta.Table.create(tmp_path / "t", COLUMNS, key="id", partition_by="part", indexes=kinds)
    for base in (0, 1000):
        table.bulk_insert(pa.concat_tables([rows_of(f"p{number:02}", base + 100 * number) for number in range(70)]))
    table.metadata.validate(prove=True)

    scan = hudimeta.Table(tmp_path / "t").scan(where="id = 'p07-1703'")
    assert scan.to_table()["n"].to_pylist() == [1703]
    read = scan.report
    assert (read.files_kept, {skip.by for skip in read.skipped}) == (1, {"record_index"})
    unused = {one.index: one.why for one in read.unused}
    told = "the record index tells where the keys are"
    assert unused == {"column_stats": told, "partition_stats": told, "bloom_filters": told}

    more = hudimeta.Table(tmp_path / "t").scan(where="id = 'p07-1703' AND n > 5000")
    assert more.to_table().num_rows == 0
    assert (more.report.files_kept, {skip.by for skip in more.report.skipped}) == (0, {"partition_stats"})


def test_few_partitions_are_left_to_the_statistics_of_files(path: Path) -> None:
    report = plan_report(path, "n BETWEEN 1200 AND 1300")
    assert report.slices_kept == 1
    assert {skip.by for skip in report.skipped} == {"column_stats"}


def test_column_statistics_name_the_part_of_the_predicate_that_decided(path: Path) -> None:
    report = plan_report(path, "x >= 0 AND n = 1005")
    assert report.slices_kept == 1
    assert {skip.conjunct for skip in report.skipped} == {"n = 1005"}


def test_switched_off_skipping_says_so(path: Path) -> None:
    report = plan_report(path, "n = 1005", {"hoodie.enable.data.skipping": "false"})
    assert report.slices_kept == report.slices == 6
    assert any("hoodie.enable.data.skipping=false" in note for note in report.notes)


def test_without_a_metadata_table_storage_is_listed_and_the_report_says_why(path: Path) -> None:
    report = plan_report(path, "part = 'b' AND n = 100", {"hoodie.metadata.enable": "false"})
    assert report.fallbacks == ("the metadata table is switched off by hoodie.metadata.enable=false",)
    assert report.requests[("LIST", "data")] == 4
    assert report.partitions_kept == 1


def test_a_column_that_is_not_indexed_is_named(tmp_path: Path) -> None:
    options = {"hoodie.metadata.index.column.stats.column.list": "n"}
    table = hudimeta.Table.create(tmp_path / "t", COLUMNS, key="id", partition_by="part", options=options)
    table.insert(rows_of("a", 0))
    report = plan_report(tmp_path / "t", "x > 100 AND n >= 0")
    assert "column_stats: column x is not indexed" in report.notes
    assert report.slices_kept == 1


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("coalesce(n + 1, 7) < -2147483647", 1),  # without ANSI mode the largest number wraps around
        ("n + 1 IS NOT NULL AND n > 7", 1),
        ("- n < 0", 2),  # and the smallest is its own negative
        ("abs(n) < 0", 1),
        ("CAST(part AS INT) IS NOT NULL", 2),  # '1.5' is 1 there, 'b' is nothing; null says the same of both
        ("coalesce(CAST(part AS INT), -1) = 1", 2),
        ("unix_timestamp(part, 'yyyy') > 0", 2),  # older parsers take more
        ("length(part) > 9", 0),
        ("n < 0 AND part = '1.5'", 0),
    ],
)
def test_partitions_stay_for_which_a_part_has_no_value_in_ansi_mode(tmp_path: Path, where: str, kept: int) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int32()), ("part", pa.string())])
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", partition_by=["n", "part"])
    table.insert(pa.table({"id": ["x", "y"], "n": [2**31 - 1, -(2**31)], "part": ["1.5", "b"]}, schema=schema))
    assert table.scan(where=where).plan().report.partitions_kept == kept


def test_the_path_of_a_partition_is_a_column_too(path: Path) -> None:
    report = plan_report(path, "_hoodie_partition_path IN ('a', 'c')")
    assert report.partitions_kept == 2


def test_an_older_moment_is_not_judged_by_the_statistics_of_today(path: Path, tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", COLUMNS, key="id", partition_by="part")
    table.insert(pa.concat_tables([rows_of("a", 0), rows_of("b", 100)]))
    first = table.timeline.completed[-1].time
    table.insert_overwrite_table(pa.concat_tables([rows_of("a", 5000), rows_of("b", 6000)]))
    scan = table.scan(where="n < 10", as_of=first)
    assert scan.count() == 10
    assert "partition_stats" not in {skip.by for skip in scan.report.skipped}
    assert table.scan(where="n < 10").count() == 0


# Slices of several files


def slices(*files: tuple[str, list[str]]) -> pa.Table:
    rows = [
        {
            "partition_path": "",
            "file_id": base,
            "base_instant": "1",
            "base_file": base,
            "base_size": 1,
            "log_files": logs,
            "log_sizes": [1] * len(logs),
        }
        for base, logs in files
    ]
    return pa.Table.from_pylist(rows, slices_schema())


def statistics(**files: tuple[int | None, int | None]) -> pa.Table:
    low, high = zip(*files.values(), strict=True)
    return pa.table(
        {
            "file_name": list(files),
            "min": pa.array(low, pa.int64()),
            "max": pa.array(high, pa.int64()),
            "null_count": pa.array([0] * len(files), pa.int64()),
            "value_count": pa.array([10] * len(files), pa.int64()),
        }
    )


def kept(where: str, given: pa.Table, **columns: pa.Table) -> list[bool]:
    files = FilesOfSlices.of(given)
    bound = bind(parse(where), pa.schema([(name, pa.int64()) for name in columns]))
    order = FileBounds(files.names)
    found: list[bool] = by_statistics(bound, files, {n: order.of(t) for n, t in columns.items()}).keep.tolist()
    return found


def test_a_slice_is_left_out_only_when_every_file_of_it_is() -> None:
    given = slices(("base1", ["log1"]), ("base2", ["log2"]), ("base3", []))
    n = statistics(base1=(0, 9), log1=(0, 9), base2=(0, 9), log2=(50, 50), base3=(0, 9))
    assert kept("n = 50", given, n=n) == [False, True, False]


def test_a_file_without_statistics_keeps_its_slice() -> None:
    given = slices(("base1", ["log1"]), ("base2", []))
    assert kept("n = 50", given, n=statistics(base1=(0, 9), base2=(0, 9))) == [True, False]


def test_gaps_between_base_and_log_are_seen() -> None:
    given = slices(("base1", ["log1"]))
    assert kept("n = 50", given, n=statistics(base1=(0, 9), log1=(90, 99))) == [False]


def test_a_row_merged_of_two_files_is_not_lost() -> None:
    """A partial update takes `a` from the log and `b` from the base: neither file holds both halves of the match."""
    given = slices(("base1", ["log1"]))
    a, b = statistics(base1=(0, 9), log1=(90, 99)), statistics(base1=(0, 9), log1=(90, 99))
    assert kept("a = 95 AND b = 5", given, a=a, b=b) == [True]
    assert kept("a + b = 100", given, a=a, b=b) == [True]
    assert kept("a = 50 AND b = 5", given, a=a, b=b) == [False]


def test_files_of_one_name_in_two_partitions_are_judged_together() -> None:
    given = slices(("base1", []))
    twice = pa.concat_tables([statistics(base1=(0, 9)), statistics(base1=(40, 60))])
    assert kept("n = 50", given, n=twice) == [True]
    assert kept("n = 70", given, n=twice) == [False]


# Time-based partitions


def test_a_value_of_a_time_based_key_names_its_partition(conformance_table: Unpack) -> None:
    path = conformance_table("mor__avro__v9_timebasedkeygen_nonhivestyle")
    table = hudimeta.Table(path)
    (field,) = table.properties.partition_fields
    value = table.scan(columns=[field]).to_table().column(0)[0].as_py()
    scan = table.scan(where=[(field, "=", value)])
    assert 0 < scan.report.partitions_kept < scan.report.partitions
    everything = table.scan().to_table()
    assert scan.to_table().num_rows == everything.column(field).to_pylist().count(value)


def test_a_table_that_does_not_store_how_time_becomes_a_path_is_read_whole(conformance_table: Unpack) -> None:
    path = conformance_table("mor__avro__v9_timebasedkeygen_nonhivestyle", fresh=True)
    stored = Path(path, ".hoodie", "hoodie.properties")
    kept_lines = [line for line in stored.read_text().splitlines() if "keygen.timebased" not in line]
    stored.write_text("\n".join(kept_lines) + "\n")
    table = hudimeta.Table(path)
    (field,) = table.properties.partition_fields
    values = table.scan(columns=[field]).to_table().column(0).to_pylist()
    scan = table.scan(where=[(field, "=", values[0])])
    assert scan.to_table().num_rows == values.count(values[0])
    assert scan.report.partitions_kept == scan.report.partitions


# Skipping changes no answer


def filters() -> list[Any]:
    found = []
    for tables in (CONFORMANCE, RICH):
        found += [pytest.param(tables, name, id=name) for name in tables.names() if tables.answer(name).get("filters")]
    return found or [pytest.param(None, "none", marks=pytest.mark.shared)]


@pytest.mark.rotation(4)
@pytest.mark.parametrize(("tables", "name"), filters())
def test_switching_knowledge_off_changes_no_answer(tables: TableSet, name: str, recorded_table: Unpack) -> None:
    path = recorded_table(name)
    told = [f for f in tables.answer(name)["filters"] if f.get("where")][:12]
    wheres = [f["where"] for f in told] or ["_hoodie_commit_time > '2'"]
    for where in wheres:
        answers = [
            sorted(map(str, hudimeta.Table(path, options).scan(where=where).to_table().to_pylist()))
            for options in ({}, {"hoodie.enable.data.skipping": "false"}, {"hoodie.metadata.enable": "false"})
        ]
        assert answers[0] == answers[1] == answers[2], where
