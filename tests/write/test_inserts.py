"""How inserts treat keys that come up again, and the order in which bulk inserts store rows."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudimeta
from hudimeta.api.plain_write import PlainWrite, operation_of
from hudimeta.commit.report import CommitReport
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import ConfigError, DuplicateKeys
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows

TYPE = "hoodie.datasource.write.table.type"
BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
POLICY, DROP = "hoodie.datasource.insert.dup.policy", "hoodie.datasource.write.insert.drop.duplicates"
COMBINE = "hoodie.combine.before.insert"
MODE, COLUMNS = "hoodie.bulkinsert.sort.mode", "hoodie.bulkinsert.user.defined.partitioner.sort.columns"


def insert(table: ModelledTable, rows: pa.Table, operation: Operation = Operation.INSERT, **options: Any) -> CommitReport:
    return write_rows(table.session(options=OPTIONS.read({**table.options.given, **options})), operation, rows)


def table_of(tmp_path: Path, kind: str = "COPY_ON_WRITE") -> ModelledTable:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, TYPE: kind})
    table.write(Operation.INSERT, simple_rows(range(10), 1))
    table.write(Operation.UPSERT, simple_rows(range(8, 13), 2))
    return table


@pytest.mark.rotation(3)
@BOTH
@pytest.mark.parametrize("options", [{POLICY: "drop"}, {DROP: "true"}], ids=["policy", "flag"])
def test_rows_with_known_keys_are_dropped(tmp_path: Path, kind: str, options: dict[str, str]) -> None:
    table = table_of(tmp_path, kind)
    report = insert(table, simple_rows(range(5, 20), 7), **options)
    assert (report.inserted, report.dropped_duplicates) == (7, 8)
    assert "8 rows whose key was in the table" in str(report)
    table.model.write(Operation.INSERT, simple_rows(range(13, 20), 7))
    table.check()
    assert insert(table, simple_rows(range(20), 8), **options).inserted == 0
    table.check()
    check_all(table.storage)


def test_dropping_by_the_flag_keeps_one_row_a_key_of_the_batch_as_well(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    twice = pa.concat_tables([simple_rows([30, 31], 5), simple_rows([30], 6)])
    assert insert(table, twice, **{DROP: "true"}).inserted == 2
    table.model.write(Operation.INSERT, pa.concat_tables([simple_rows([31], 5), simple_rows([30], 6)]))
    table.check()


@pytest.mark.parametrize("operation", [Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE], ids=str)
def test_dropping_by_the_flag_keeps_one_row_a_key_of_an_overwrite(tmp_path: Path, operation: Operation) -> None:
    table = table_of(tmp_path)
    twice = pa.concat_tables([simple_rows([30, 31], 5), simple_rows([30], 6)])
    assert insert(table, twice, operation, **{DROP: "true"}).inserted == 2
    assert table.read().sort_by("id").select(["id", "ts"]).to_pylist() == [{"id": "k0030", "ts": 6}, {"id": "k0031", "ts": 5}]


@pytest.mark.parametrize("options", [{POLICY: "drop"}, {POLICY: "fail"}, {DROP: "true"}], ids=str)
def test_a_bulk_insert_that_shall_look_for_known_keys_is_refused(tmp_path: Path, options: dict[str, str]) -> None:
    table = table_of(tmp_path)
    with pytest.raises(ConfigError, match="looks no key up"):
        insert(table, simple_rows([3], 7), Operation.BULK_INSERT, **options)
    table.check()


@pytest.mark.parametrize("options", [{POLICY: "drop"}, {POLICY: "fail"}, {DROP: "true"}, {COMBINE: "true"}], ids=str)
def test_a_table_without_keys_takes_no_word_on_rows_of_one_key(tmp_path: Path, options: dict[str, str]) -> None:
    """It would store all of them: Apache Hudi refuses these options as well."""
    rows = pa.table({"n": [1, 1]})
    hudimeta.Table.create(tmp_path / "t", rows.schema).insert(rows)
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    for data in (rows, rows.to_reader(max_chunksize=1)):
        table = hudimeta.Table(tmp_path / "t", {**options, "hudimeta.write.portion.bytes": "1"})
        with pytest.raises(ConfigError, match="table without key columns"):
            table.insert(data)
    named = {**options, "hoodie.datasource.write.operation": "insert"}
    for folder in ("t", "new"):
        with pytest.raises(ConfigError, match="table without key columns"):
            PlainWrite.begin(str(tmp_path / folder), named, rows.schema, overwrite=False)
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == before
    assert hudimeta.Table(tmp_path / "t").scan().to_table().num_rows == 2


@pytest.mark.parametrize("options", [{POLICY: "drop"}, {POLICY: "fail"}, {DROP: "true"}], ids=str)
def test_a_frame_that_drops_or_refuses_known_keys_is_inserted(options: dict[str, str]) -> None:
    """Where it says nothing of its operation, which is an upsert by default, and where it says upsert, as in Apache Hudi."""
    named = {"hoodie.datasource.write.operation": "upsert"}
    assert [operation_of(OPTIONS.read({**options, **more}), False) for more in ({}, named)] == [Operation.INSERT] * 2


@BOTH
def test_an_insert_may_fail_at_known_keys_and_writes_nothing_then(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, kind)
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(DuplicateKeys, match=r"2 of the rows.*k0003, k0012") as raised:
        insert(table, simple_rows([3, 12, 40], 7), **{POLICY: "fail"})
    assert raised.value.keys == 2
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == before
    table.check()
    assert insert(table, simple_rows([40, 41], 7), **{POLICY: "fail"}).inserted == 2
    table.model.write(Operation.INSERT, simple_rows([40, 41], 7))
    table.check()
    check_all(table.storage)


def test_without_a_policy_keys_are_doubled_as_in_hudi(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.write(Operation.INSERT, simple_rows([3], 7))
    table.check()
    assert table.read().num_rows == 14


@BOTH
def test_a_delete_by_predicate_takes_every_row_of_a_doubled_key(tmp_path: Path, kind: str) -> None:
    """Of MERGE_ON_READ too, where a delete in a log would meet the first of the rows alone: the base file is written anew."""
    modelled = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, TYPE: kind})
    modelled.write(Operation.INSERT, simple_rows([3, 5, 8], 1))
    modelled.write(Operation.INSERT, simple_rows([3, 5], 7))
    modelled.check()
    table = hudimeta.Table(tmp_path / "t")
    table.delete("id = 'k0003'")
    assert sorted(table.scan(columns=["id"]).to_table()["id"].to_pylist()) == ["k0005", "k0005", "k0008"]
    table.delete("true")
    assert table.scan().to_table().num_rows == 0
    check_all(modelled.storage)


@settings(max_examples=20)
@given(ids=st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_a_row_is_inserted_once_however_often_its_key_comes(tmp_path_factory: pytest.TempPathFactory, ids: list[int]) -> None:
    table = ModelledTable(str(tmp_path_factory.mktemp("dup") / "t"))
    half = len(ids) // 2
    for some in (ids[:half], ids[half:]):
        insert(table, simple_rows(some, 1), **{DROP: "true"})
    assert sorted(table.read()["id"].to_pylist()) == sorted({f"k{n:04d}" for n in ids})


SHUFFLED = [7, 2, 9, 4, 1, 8, 3, 6]


def stored(table: ModelledTable, column: str) -> list[list[Any]]:
    """The values of each file, in their order."""
    rows = table.read()
    files = sorted(set(rows["_hoodie_file_name"].to_pylist()))
    return [rows.filter(pa.compute.equal(rows["_hoodie_file_name"], file))[column].to_pylist() for file in files]


@pytest.mark.parametrize("mode", ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "partition_path_repartition_and_sort"])
def test_bulk_inserts_store_rows_in_the_order_of_the_mode(tmp_path: Path, door: str, mode: str) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    insert(table, simple_rows(SHUFFLED, 1), Operation.BULK_INSERT, **{MODE: mode})
    numbers = sorted(SHUFFLED) if mode in ("GLOBAL_SORT", "PARTITION_SORT") else SHUFFLED
    in_order(stored(table, "id"), [f"k{n:04d}" for n in numbers], door)
    check_all(table.storage)


def test_bulk_inserts_sort_by_columns_of_the_user(tmp_path: Path, door: str) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    rows = simple_rows(SHUFFLED, 1).set_column(3, "x", pa.array([1.0, None, 3.0, 0.5, -1.0, 7.0, 2.0, -3.0]))
    insert(table, rows, Operation.BULK_INSERT, **{COLUMNS: "ts,x", MODE: "GLOBAL_SORT"})
    in_order(stored(table, "x"), [-3.0, -1.0, 0.5, 1.0, 2.0, 3.0, 7.0, None], door)
    with pytest.raises(ConfigError, match="nosuch"):
        insert(table, rows, Operation.BULK_INSERT, **{COLUMNS: "nosuch"})


def in_order(files: list[list[Any]], order: list[Any], door: str) -> None:
    """Every task of a routed write sorts its own rows, into its own files; the engine has one for each partition."""
    assert sorted(map(repr, chain(*files))) == sorted(map(repr, order))
    assert all(values == [value for value in order if value in values] for values in files)
    assert len(files) == 2 if door == "engine" else len(files) >= 2


def test_a_refused_write_that_cannot_be_taken_back_is_left_to_the_next(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    options = OPTIONS.read({**table.options.given, POLICY: "fail"})

    def refused(at: int | None) -> FaultPlan:
        plan = FaultPlan(at, Fault.ERROR_BEFORE, times=1000)
        with pytest.raises(DuplicateKeys):
            write_rows(table.session(FaultyStorage(table.storage, plan), options), Operation.INSERT, simple_rows([3], 7))
        return plan

    calls = refused(None).calls
    begun = next(at for at, call in enumerate(calls) if "delete" in call)
    with pytest.warns(HudiWarning, match="is left to the next writer"):
        refused(begun)
    table.write(Operation.UPSERT, simple_rows([3], 8))
    table.check()
    assert hudimeta.Table(table.path).timeline.pending == ()
    check_all(table.storage)
