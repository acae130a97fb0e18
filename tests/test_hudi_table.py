"""`hudimeta.Table` as a user meets it: opening, scanning, time travel, options, errors, and what it costs to start."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.errors import ConfigError, IndexNotReady, MissingLibrary, TableError, TableNotFound, UnsupportedTableVersion
from hudimeta.read.split import read_split
from tests.acceptance.counted import Counter
from tests.conftest import Unpack

ROWS = pa.table(
    {
        "id": pa.array(["a", "b", "c", "d"]),
        "month": pa.array(["01", "01", "02", "03"]),
        "fare": pa.array([10.0, 70.0, 80.0, None]),
        "ts": pa.array([1, 2, 3, 4]),
    }
)


@pytest.fixture
def trips(tmp_path: Path) -> hudimeta.Table:
    table = hudimeta.Table.create(tmp_path / "trips", ROWS.schema, key="id", partition_by="month", ordering="ts")
    table.insert(ROWS)
    return table


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    counter = Counter()
    monkeypatch.setattr("hudimeta.api.table.open_storage", counter.open)
    return counter


def ids(rows: pa.Table) -> list[str]:
    return sorted(rows.column("id").to_pylist())


# Opening


def test_a_path_without_a_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound) as caught:
        hudimeta.Table(tmp_path / "nothing")
    assert caught.value.path == str(tmp_path / "nothing")
    assert str(caught.value).startswith("HUDIMETA_TABLE_NOT_FOUND: ")


def test_a_metadata_table_is_not_opened_as_a_table(trips: hudimeta.Table) -> None:
    with pytest.raises(TableNotFound, match="metadata table of another table"):
        hudimeta.Table(Path(trips.path) / ".hoodie" / "metadata")


def test_a_version_that_cannot_be_read_is_refused(trips: hudimeta.Table) -> None:
    properties = Path(trips.path) / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.version=8", "hoodie.table.version=7"))
    with pytest.raises(UnsupportedTableVersion) as caught:
        hudimeta.Table(trips.path)
    assert (caught.value.found, caught.value.can) == (7, (6, 8, 9))


@pytest.mark.parametrize(
    ("options", "suggestion"),
    [
        ({"hudimeta.filters": "x > 1"}, "hudimeta.filter"),
        ({"hoodie.datasource.query.typ": "snapshot"}, "hoodie.datasource.query.type"),
        ({"hoodie.datasource.query.type": "snapshots"}, "read_optimized"),
    ],
)
def test_a_mistyped_option_is_refused_with_the_right_one(
    trips: hudimeta.Table, options: dict[str, str], suggestion: str
) -> None:
    with pytest.raises(ConfigError, match=suggestion):
        hudimeta.Table(trips.path, options)


def test_it_says_what_it_is(trips: hudimeta.Table) -> None:
    assert repr(trips) == f"Table({trips.path!r}: trips, copy on write, version 8)"
    assert trips.version == 8
    assert trips.schema.names[5:] == ROWS.column_names
    assert trips.properties["hoodie.table.name"] == "trips"
    assert "1 completed" in repr(trips.timeline)


def test_without_a_metadata_table_the_reason_is_told(rich_table: Unpack) -> None:
    with pytest.raises(IndexNotReady, match="the table has no metadata table"):
        _ = hudimeta.Table(rich_table("auto_keys")).metadata.ready
    with pytest.raises(IndexNotReady, match="switched off"):
        _ = hudimeta.Table(rich_table("deletes_cow"), {"hoodie.metadata.enable": False}).metadata.ready


# Scanning


def test_filters_in_every_notation_and_projection(trips: hudimeta.Table) -> None:
    wanted = ["b", "c"]
    assert ids(trips.scan(where="fare > 60").to_table()) == wanted
    assert ids(trips.scan(where=[("fare", ">", 60)]).to_table()) == wanted
    assert ids(trips.scan(where=[">", {"col": "fare"}, {"lit": 60}]).to_table()) == wanted
    narrow = trips.scan(where="fare > 60", columns=["ts", "ID"]).to_table()
    assert narrow.column_names == ["ts", "id"]
    assert trips.scan(columns="ts, id").to_table().column_names == ["ts", "id"]
    assert sorted(narrow.column("ts").to_pylist()) == [2, 3], "the column of the predicate need not be returned"


def test_names_of_columns_stand_between_backticks_as_in_spark(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "place": pa.array([{"x": 1, "y": 2}]), "order": [3]})
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id")
    table.insert(rows)
    quoted = hudimeta.Table(table.path, {"hudimeta.columns": "`order`, `Place`.`x`,place.`y`"})
    assert quoted.scan().to_table().to_pydict() == {"order": [3], "place.x": [1], "place.y": [2]}
    assert table.scan(columns="`order`,id").to_table().to_pydict() == {"order": [3], "id": ["a"]}
    assert table.scan(columns=["`order`", "id"]).to_table().column_names == ["order", "id"]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ("`place.x`", "columns of the table: .*place"),
        ("`id, order`", "columns of the table: "),
        ("`id", "allowed is names separated by commas"),
        ("`id``", "allowed is names separated by commas"),
        ("i`d`", "Backticks stand in pairs around whole parts"),
        ("`place``x`", "columns of the table: "),
        ("``", "Backticks stand in pairs around whole parts|columns of the table"),
    ],
)
def test_what_stands_between_backticks_is_one_name(tmp_path: Path, columns: str, text: str) -> None:
    rows = pa.table({"id": ["a"], "place": pa.array([{"x": 1}]), "order": [3]})
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id")
    for wanted in (
        lambda: table.scan(columns=columns),
        lambda: hudimeta.Table(table.path, {"hudimeta.columns": columns}).scan(),
    ):
        with pytest.raises(ConfigError, match=text):
            wanted().schema  # noqa: B018 - looks at the table


def test_arguments_choose_within_what_options_leave(trips: hudimeta.Table) -> None:
    table = hudimeta.Table(trips.path, {"hudimeta.filter": "month = '01'", "hudimeta.columns": "id, month, fare"})
    assert table.scan().to_table().to_pydict() == {"id": ["a", "b"], "month": ["01", "01"], "fare": [10.0, 70.0]}
    for where in ("fare > 60", [("fare", ">", 60)], pc.field("fare") > 60, pc.field("fare") + 1 > 60):
        scan = table.scan(where=where, columns=["id"])
        assert scan.to_table().to_pydict() == {"id": ["b"]}
        assert "month = '01'" in str(scan.report.predicate)
    assert table.scan(where="fare > 60").count() == 1
    assert not table.scan(where="month = '03'").to_table().num_rows
    with pytest.raises(ConfigError, match=r"\['id', 'ts'\], allowed is what the option hudimeta.columns names: id, month"):
        table.scan(columns=["id", "ts"]).plan()


def test_of_a_struct_that_an_option_names_its_fields_may_be_asked_for(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "place": pa.array([{"x": 1, "y": 2}])})
    path = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id").path
    hudimeta.Table(path).insert(rows)
    assert hudimeta.Table(path, {"hudimeta.columns": "place"}).scan(columns=["place.x"]).to_table().to_pydict() == {
        "place.x": [1]
    }
    with pytest.raises(ConfigError, match=r"names: place\.x"):
        hudimeta.Table(path, {"hudimeta.columns": "place.x"}).scan(columns=["place"]).plan()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"columns": ["idd"]}, "Did you mean id?"),
        ({"columns": []}, "at least one column"),
        ({"columns": " "}, "at least one column"),
        ({"columns": ["id", "ID"]}, "each column once"),
        ({"where": "fares > 60"}, "fare"),
        ({"where": "fare >"}, "predicate .fare >.: allowed is"),
        ({"as_of": "yesterday"}, "yyyy-MM-dd"),
    ],
)
def test_what_does_not_fit_is_refused_before_reading(trips: hudimeta.Table, arguments: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text.replace("?", r"\?")):
        trips.scan(**arguments).plan()  # type: ignore[arg-type]


def test_every_way_out_gives_the_same_rows(trips: hudimeta.Table) -> None:
    scan = trips.scan()
    whole = scan.to_table()
    assert whole.schema == trips.schema
    assert pa.Table.from_batches(scan.to_batches(), scan.schema).equals(whole)
    assert scan.to_reader().read_all().equals(whole)
    assert pa.table(scan).equals(whole), "through the PyCapsule protocol"
    assert scan.count() == 4
    assert trips.scan(where="fare is null").count() == 1
    assert trips.scan(where="1 = 0").count() == 0


@pytest.mark.parametrize("used", [False, True], ids=["just opened", "used before"])
@pytest.mark.parametrize("asked", [{"where": "fare > 60"}, {"query_type": "incremental", "begin": "earliest"}], ids=str)
def test_a_scan_asks_storage_for_nothing_before_it_is_used(
    trips: hudimeta.Table, asked: dict[str, str], used: bool, counter: Counter
) -> None:
    table = hudimeta.Table(trips.path)
    if used:
        assert table.scan().count() == 4
    mark = len(counter.log)
    scan = table.scan(**asked)  # type: ignore[arg-type]
    assert counter.log.since(mark) == ()
    assert ids(scan.to_table()) == (["b", "c"] if "where" in asked else ["a", "b", "c", "d"])
    assert counter.data_files(mark)


def test_a_limit_stops_reading(trips: hudimeta.Table, counter: Counter) -> None:
    table = hudimeta.Table(trips.path)
    for limit, files in ((0, 0), (1, 1), (2, 1), (3, 2), (99, 3)):
        mark = len(counter.log)
        scan = table.scan(limit=limit)
        assert scan.to_table().num_rows == scan.report.rows == min(limit, 4)
        assert len(counter.data_files(mark)) == files, f"3 files hold 2, 1 and 1 rows, limit {limit}"
        assert scan.count() == table.scan(where="ts > 0", limit=limit).count() == min(limit, 4)
    assert "limit: reading stops after 99 rows" in str(scan.report)
    assert table.scan(where="fare is null", limit=1).to_table()["id"].to_pylist() == ["d"], "rows are counted after the filter"
    changes = table.scan(query_type="incremental", begin="earliest", limit=3)
    assert changes.to_table().num_rows == 3
    with pytest.raises(ConfigError, match="0 or more"):
        table.scan(limit=-1)


def test_rows_come_as_other_libraries_hold_them(trips: hudimeta.Table) -> None:
    scan = trips.scan(where="fare > 60", columns=["id"])
    assert sorted(scan.to_pandas()["id"]) == ["b", "c"]
    assert sorted(scan.to_polars()["id"]) == ["b", "c"]
    relation = scan.to_duckdb()
    for _ in range(2):
        assert sorted(relation.fetchall()) == [("b",), ("c",)], "a relation can be asked again"
    import duckdb

    with duckdb.connect() as connection:
        assert scan.to_duckdb(connection).aggregate("count(*)").fetchall() == [(2,)]
    with pytest.raises(ConfigError, match=r"'connection' .* duckdb\.connect"):
        scan.to_duckdb("trips.db")


@pytest.mark.parametrize("name", ["pandas", "polars", "duckdb"])
def test_a_library_that_is_missing_is_named(trips: hudimeta.Table, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibrary, match=f"{name} is not installed.*pip install {name}"):
        getattr(trips.scan(), f"to_{name}")()


@pytest.mark.parametrize(
    "wrong", ["fares > 60", "fare >", [("fares", ">", 60)], pc.field("fares") > 60, pc.utf8_length(pc.field("ID")) == 2]
)
def test_errors_of_where_speak_of_where(trips: hudimeta.Table, wrong: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        trips.scan(where=wrong).plan()
    assert caught.value.key == "where"
    assert "option" not in str(caught.value).replace("expression", "")


def test_a_table_sees_what_others_commit(trips: hudimeta.Table) -> None:
    reader = hudimeta.Table(trips.path)
    assert reader.scan().count() == 4
    before, unused = reader.scan(), reader.scan()
    assert before.plan().files
    hudimeta.Table(trips.path).upsert(ROWS.slice(0, 1).set_column(2, "fare", pa.array([99.0])))
    assert ids(reader.scan(where="fare = 99").to_table()) == ["a"]
    assert before.to_table().num_rows == 4
    assert 99.0 not in before.to_table().column("fare").to_pylist(), "a scan shows the moment at which it was first used"
    assert 99.0 in unused.to_table().column("fare").to_pylist(), "one that was not used yet shows that of its own first use"


@pytest.mark.parametrize("service", ["compact", "clean"])
def test_a_table_sees_what_its_own_services_do(tmp_path: Path, service: str) -> None:
    options = {"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"}
    table = hudimeta.Table.create(tmp_path / "t", ROWS.schema, key="id", type="MERGE_ON_READ", options=options)
    for _ in range(3):
        table.upsert(ROWS)
    if service == "clean":
        table.compact()
        table.upsert(ROWS)
        table.compact()
    other = hudimeta.Table(tmp_path / "t", options)
    getattr(other, service)()
    assert other.timeline.last_time == hudimeta.Table(tmp_path / "t").timeline.last_time


def test_an_unchanged_table_is_not_read_again(trips: hudimeta.Table) -> None:
    reader = hudimeta.Table(trips.path)
    reader.scan().plan()
    again = reader.scan().plan().report
    assert dict(again.requests) == {("LIST", "timeline"): 1}


# Time travel


def test_time_travel_takes_instants_and_dates(trips: hudimeta.Table) -> None:
    first = trips.timeline.completed[0].time
    trips.upsert(pa.table({**ROWS.slice(0, 1).to_pydict(), "id": ["e"]}, schema=ROWS.schema))
    assert trips.scan().count() == 5
    assert trips.scan(as_of=first).count() == 4
    assert trips.scan(as_of="2000-01-01").count() == 0
    assert trips.scan(as_of="2999-01-01 00:00:00").count() == 5
    assert hudimeta.Table(trips.path, {"as.of.instant": first}).scan().count() == 4
    assert trips.file_slices(as_of=first).num_rows == 3


def test_a_moment_that_was_cleaned_away_is_refused_with_the_earliest_that_is_not(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("archived_lsm"))
    with pytest.raises(TableError, match="cleaning removed files") as caught:
        table.scan(as_of="2026-11-21 03:56:20").plan()
    earliest = caught.value.hint.rstrip(".").split()[-1]
    assert table.scan(as_of=earliest).count() > 0


def test_columns_that_came_later_are_not_shown_in_the_past(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("evolve_write_mor"))
    first = table.timeline.writes[0].time
    then = table.scan(as_of=first).schema
    assert "extra" in table.schema.names
    assert "extra" not in then.names
    assert then.field("s").type.get_field_index("c") < 0 <= table.schema.field("s").type.get_field_index("c")


# Plans and reports


def test_a_plan_prints_its_files_before_anything_is_read(trips: hudimeta.Table) -> None:
    scan = trips.scan(where="month = '01'")
    plan = scan.plan()
    assert [path.split("/")[0] for path in plan.files] == ["01"]
    assert plan.files[0] in str(plan)
    assert ("GET", "data") not in scan.report.requests
    scan.to_table()
    assert scan.report.requests[("GET", "data")] == 1


def test_splits_travel_to_other_processes(rich_table: Unpack) -> None:
    scan = hudimeta.Table(rich_table("big_mor")).scan(where="amount > 10", columns=["id", "amount"])
    splits = scan.plan().splits(target_bytes=1 << 22, at_most=5)
    assert len(splits) == 5
    task, sent = pickle.loads(pickle.dumps((scan.task, splits)))
    assert len(pickle.dumps(scan.task)) < 100_000
    rows = [batch for split in sent for batch in read_split(task, split)]
    assert all(batch.schema == scan.schema for batch in rows)
    there = pa.Table.from_batches(rows, scan.schema).sort_by("id")
    assert there.equals(scan.to_table().sort_by("id"))
    assert there.num_rows > 0


# Starting


def test_listing_partitions_loads_nothing_heavy(trips: hudimeta.Table) -> None:
    program = (
        "import sys, hudimeta\n"
        "t = hudimeta.Table(sys.argv[1])\n"
        "assert len(t.metadata.partitions()) == 3\n"
        "print(*sorted({'pandas', 'sqlglot', 'pyarrow.parquet', 'pyarrow.dataset', 'fsspec', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, trips.path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_first_row_does_not_wait_for_pandas(kind: str, tmp_path: Path) -> None:
    """It takes a third of a second to import, as much as everything else, and 40 MB."""
    rows = pa.table({"id": ["a", "b"], "day": ["d", "e"], "ts": [1, 1]})
    trips = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", partition_by="day", ordering="ts", type=kind)
    trips.bulk_insert(rows)
    for _ in range(2):  # entries of the listing that three logs name are folded one by one
        trips.upsert(rows.slice(0, 1))
    program = (
        "import sys, hudimeta\n"
        "t = hudimeta.Table(sys.argv[1])\n"
        "assert len(t.metadata.partitions()) == 2\n"
        "assert t.file_slices().num_rows > 0\n"
        "assert next(t.scan().to_batches()).num_rows > 0\n"
        "print(*sorted({'pandas', 'sqlglot', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, trips.path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_importing_the_package_costs_no_arrow() -> None:
    program = "import sys, hudimeta; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
