"""Writing to tables that capture changes: replaying the changes of every commit gives every moment of the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta import Table
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError
from hudimeta.formats.log import BlockType, decode_data_block, read_blocks
from hudimeta.storage import open_storage
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import META_COLUMNS, Operation

TYPE, CAPTURE = "hoodie.datasource.write.table.type", "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
MODES = ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"]


def table_of(path: Path, kind: str, mode: str, **more: str) -> ModelledTable:
    return ModelledTable(str(path), {**SIMPLE_OPTIONS, TYPE: kind, CAPTURE: "true", MODE: mode, **more})


def image(text: str | None) -> tuple[Any, ...] | None:
    if text is None:
        return None
    return tuple(sorted((k, v) for k, v in json.loads(text).items() if k not in META_COLUMNS))


def changes_of(path: str, begin: str, end: str) -> list[tuple[str, Any, Any]]:
    found = Table(path).scan(query_type="cdc", begin=begin, end=end).to_table().to_pylist()
    return [(row["op"], image(row["before"]), image(row["after"])) for row in found]


def check_changes(table: ModelledTable) -> None:
    """The changes of each commit are what lies between the moments before and after it."""
    rows: list[tuple[Any, ...]] = []
    begin = "000"
    for instant in Table(table.path).timeline.writes:
        end = instant.completion or ""
        for op, before, after in changes_of(table.path, begin, end):
            assert (before is None, after is None) == {"i": (True, False), "u": (False, False), "d": (False, True)}[op]
            assert op != "u" or before != after, "rows that stay as they were are not changes"
            if before is not None:
                rows.remove(before)
            if after is not None:
                rows.append(after)
        expected = table.model.past.get(instant.time)
        if expected is not None:
            assert sorted(rows) == sorted(tuple(sorted(row.items())) for row in expected)
        begin = end


@pytest.mark.rotation(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_every_operation(tmp_path: Path, kind: str, mode: str) -> None:
    table = table_of(tmp_path / "t", kind, mode)
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(range(15, 30), 3))
    table.write(Operation.UPSERT, simple_rows(range(10, 18), 2))  # late for some
    table.write(Operation.DELETE, simple_rows(range(0, 30, 3), 9))
    table.write(Operation.INSERT, simple_rows(range(40, 44), 4))
    table.write(Operation.INSERT_OVERWRITE, simple_rows(range(0, 10, 2), 5))
    if kind == "MERGE_ON_READ":
        Table(table.path).compact()
    table.write(Operation.UPSERT, simple_rows(range(50), 6))
    table.write(Operation.DELETE, simple_rows(range(1, 50, 2), 7))
    table.write(Operation.BULK_INSERT, simple_rows(range(60, 64), 8))
    table.check()
    check_all(table.storage)
    check_changes(table)


@pytest.mark.parametrize("mode", MODES)
def test_what_a_change_file_holds(tmp_path: Path, mode: str) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE", mode)
    table.write(Operation.INSERT, simple_rows([0, 2, 4], 1))
    table.write(Operation.UPSERT, simple_rows([2, 6], 2))
    instant = Table(table.path).timeline.writes[-1]
    ((partition, stats),) = Table(table.path).timeline.metadata(instant)["partitionToWriteStats"].items()
    ((path, size),) = stats[0]["cdcStats"].items()
    base = stats[0]["path"].rpartition("/")[2]
    assert path == f"{partition}/.{stats[0]['fileId']}_{instant.time}.log.1_{base.split('_')[1]}.cdc"
    storage = open_storage(table.path)
    info = storage.stat(path)
    assert info is not None
    assert info.size == size
    (block,) = read_blocks(storage.read(path), path).blocks
    assert (block.type, block.instant) == (BlockType.CDC_DATA, instant.time)
    assert path.rpartition("/")[2] in Table(table.path).metadata.files([partition])["name"].to_pylist()


@pytest.mark.parametrize("mode", MODES)
def test_a_write_of_nothing_new_captures_nothing(tmp_path: Path, mode: str) -> None:
    """It has a change file without changes: Apache Hudi refuses a rewritten base file without one."""
    table = table_of(tmp_path / "t", "COPY_ON_WRITE", mode)
    table.write(Operation.INSERT, simple_rows(range(4), 5))
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    last = Table(table.path).timeline.writes[-1]
    for stats in Table(table.path).timeline.metadata(last)["partitionToWriteStats"].values():
        assert all(read_blocks(table.storage.read(path), path).blocks for stat in stats for path in stat["cdcStats"])
    assert changes_of(table.path, Table(table.path).timeline.writes[0].completion or "", last.completion or "") == []


@pytest.mark.rotation(3)
@pytest.mark.parametrize("kind", KINDS)
def test_cleaning_removes_change_files_with_their_base_files(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind, "DATA_BEFORE_AFTER")
    for step in range(1, 7):
        rows = range(10 + step)  # always a new row, so that merge-on-read tables rewrite base files too
        table.write(Operation.UPSERT, simple_rows(rows, step))
    Table(table.path, {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"}).clean()
    storage = open_storage(table.path)
    left = [f.name for part in ("p0", "p1") for f in storage.list(part)]
    captured = [found for name in left if (found := parse_log_file(name)) is not None and found.is_cdc]
    bases = {(found.file_id, found.instant) for name in left if (found := parse_base_file(name)) is not None}
    assert captured
    assert {(found.file_id, found.instant) for found in captured} <= bases, "none outlives the base file beside it"
    if kind == "COPY_ON_WRITE":
        assert (len(bases), len(captured)) == (4, 4), "two slices a group, each with its changes"
    table.model.check(table.read())
    check_all(table.storage)


def test_a_change_file_of_an_unfinished_write_is_no_version(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE", "DATA_BEFORE_AFTER")
    for step in (1, 2):
        table.write(Operation.UPSERT, simple_rows(range(4), step))
    slices = Table(table.path).file_slices().to_pylist()
    for one in slices:
        name = f".{one['file_id']}_29990101000000000.log.1_0-0-0.cdc"
        open_storage(table.path).put(f"{one['partition_path']}/{name}", b"x")
    Table(table.path, {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}).clean()
    table.model.check(table.read())


def test_capturing_is_fixed_at_creation(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    with pytest.raises(ConfigError, match=CAPTURE):
        table.session(options=OPTIONS.read({**table.options.given, CAPTURE: "true"}))


@pytest.mark.parametrize("mode", MODES)
def test_rows_beside_a_doubled_key_are_not_changes(tmp_path: Path, mode: str) -> None:
    """Also where the key is doubled on one side of the write only: rows are told apart by key and number there."""
    rows = pa.table({"id": ["a", "b\0001", "b"], "x": [1, 2, 3]})
    table = Table.create(tmp_path / "t", rows.schema, key="id", options={CAPTURE: True, MODE: mode})
    table.insert(rows)
    told = []
    for change in (lambda: table.insert(rows.slice(0, 1)), lambda: table.delete(keys=["a"]), lambda: table.delete(keys=["b"])):
        since = table.timeline.writes[-1].completion or ""
        change()
        told.append([op for op, _, _ in changes_of(str(tmp_path / "t"), since, table.timeline.writes[-1].completion or "")])
    assert told == [["i"], ["d", "d"], ["d"]]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from([Operation.UPSERT, Operation.UPSERT, Operation.DELETE, Operation.INSERT_OVERWRITE]),
        st.lists(st.integers(0, 12), min_size=1, max_size=6, unique=True),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=12)
@given(steps=_STEPS, kind=st.sampled_from(KINDS), mode=st.sampled_from(MODES))
def test_random_histories_replay(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Operation, list[int], int]], kind: str, mode: str
) -> None:
    table = table_of(tmp_path_factory.mktemp("cdc") / "t", kind, mode)
    for number, (operation, ids, ts) in enumerate(steps):
        table.write(operation, simple_rows(ids, ts, value=float(number)))
    check_changes(table)


def test_partial_updates_are_captured_as_what_came_of_them(tmp_path: Path) -> None:
    payload = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
    rows = simple_rows([0], 5)
    table = Table.create(tmp_path / "t", rows.schema, key="id", ordering="ts", options={CAPTURE: True, **payload})
    table.upsert(rows.set_column(3, "x", pa.array([None], pa.float64())))
    table.upsert(simple_rows([0], 1, value=7.0))
    begin = table.timeline.writes[0].completion or ""
    ((op, before, after),) = changes_of(str(tmp_path / "t"), begin, table.timeline.writes[1].completion or "")
    assert op == "u"
    assert dict(before or ())["x"] is None if "x" in dict(before or ()) else True
    assert dict(after or ())["x"] == 7.0


@pytest.mark.parametrize(("mode", "stored"), [("OP_KEY_ONLY", "true"), ("DATA_BEFORE", "false"), ("DATA_BEFORE_AFTER", "true")])
def test_a_compaction_leaves_change_files(tmp_path: Path, mode: str, stored: str) -> None:
    """Readers of Apache Hudi that take changes from compactions, as Flink's do, refuse one without."""
    rows = simple_rows(range(4), 2)
    more = {"hoodie.populate.meta.fields": stored, "hoodie.index.type": "SIMPLE", "hoodie.metadata.enable": "true"}
    table = Table.create(
        tmp_path / "t", rows.schema, key="id", ordering="ts", type="MERGE_ON_READ", options={CAPTURE: True, MODE: mode, **more}
    )
    table.upsert(rows)
    table.upsert(simple_rows([0], 3))
    table.upsert(simple_rows([1], 1))  # late
    table.delete(simple_rows([2], 4))
    told = table.scan(query_type="cdc", begin="earliest").count()
    table.compact()
    ((stat,),) = table.timeline.metadata(table.timeline.writes[-1])["partitionToWriteStats"].values()
    ((path, _),) = stat["cdcStats"].items()
    (block,) = read_blocks(table.snapshot().storage.read(path), path).blocks
    assert block.type is BlockType.CDC_DATA
    changes = decode_data_block(block).select(["op"]).to_pylist()
    assert [change["op"] for change in changes] == ["u", "d"]
    assert table.scan(query_type="cdc", begin="earliest").count() == told, "the logs have told these changes"
