"""CDC queries: what a range of commits changed must be what the tables before and after show, and what Apache Hudi says."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError, CorruptFileError, TableError
from hudimeta.formats.log import BlockType, HeaderKey, encode_block
from hudimeta.formats.log.data_blocks import encode_avro_content
from hudimeta.read.cdc_images import row_images
from hudimeta.read.cdc_plan import ChangeSource
from hudimeta.storage import open_storage
from hudimeta.table import properties as table_properties
from hudimeta.testing.builders import simple_rows
from hudimeta.types import META_COLUMNS
from tests.conformance import reader
from tests.recorded_tables import RICH, checker

CAPTURED = ["cdc_cow_full", "cdc_cow_keyonly", "cdc_mor_before", "cdc_mor_full8"]
EXACT = ["cdc_cow_full", "cdc_mor_before"]
"""Tables of which Apache Hudi's own answers are whole; 1.0.2, which wrote the others, loses changes."""

SWITCHED_ON = [
    "bucket_logs_only",
    "compacted_mor",
    "deletes_cow",
    "deletes_mor",
    "drop_partition_cols",
    "alter_rename_mor",
    "global_index_moves",
    "log_compacted",
    "nbcc_bucket",
    "partial_merge_mor",
    "partial_payload_mor9",
    "partition_ops_cow",
    "pending_compaction_run",
    "rolled_back_mor",
    "upgraded_6_8_9_mor",
    "v6_mor_written_by_12",
]
"""Tables written without change files: everything is inferred."""

Row = dict[str, Any]


def capture(path: str | Path) -> hudimeta.Table:
    """The table, from now on said to capture changes."""
    table_properties.update(open_storage(path), {"hoodie.table.cdc.enabled": "true"})
    return hudimeta.Table(path)


def data_of(image: str) -> Row:
    """The data columns of an image."""
    return {k: v for k, v in json.loads(image).items() if k not in META_COLUMNS and v is not None}


def place_of(image: str) -> tuple[str, str]:
    """Partition path and key of an image of a data file."""
    row = json.loads(image)
    return row["_hoodie_partition_path"], row["_hoodie_record_key"]


def replayed(changes: pa.Table, place: Callable[[str], Any] = place_of) -> dict[Any, Row]:
    """The rows that the changes leave of an empty table; every change must fit what is there by then."""
    rows: dict[Any, Row] = {}
    for change in changes.to_pylist():
        before, after = change["before"], change["after"]
        assert (before is None, after is None) == {"i": (True, False), "u": (False, False), "d": (False, True)}[change["op"]]
        if before is not None:
            assert rows.pop(place(before)) == data_of(before)
        if after is not None:
            assert place(after) not in rows
            rows[place(after)] = data_of(after)
    return rows


def shown(table: hudimeta.Table, as_of: str | None = None) -> dict[Any, Row]:
    """The rows of a snapshot, as `replayed` gives them."""
    batches = table.scan(as_of=as_of).to_table().combine_chunks().to_batches()
    return {place_of(image): data_of(image) for batch in batches for image in row_images(batch).to_pylist()}


# Tables of Apache Hudi


@pytest.mark.parametrize("name", CAPTURED)
def test_every_recorded_range_is_answered(rich_table: Callable[[str], Path], name: str) -> None:
    check, recorded = checker(), RICH.answer(name)
    for kind, label, options, acceptable in check.queries(recorded):
        if kind == "cdc":
            answer = reader.read(str(rich_table(name)), kind, {**options, "record": recorded})
            assert not check.judge(kind, recorded, answer, acceptable, False), label


@pytest.mark.parametrize("name", EXACT)
def test_images_are_those_of_apache_hudi(rich_table: Callable[[str], Path], name: str) -> None:
    check, table = checker(), hudimeta.Table(rich_table(name))
    for label, recorded in RICH.answer(name)["cdc"].items():
        changes = table.scan(query_type="cdc", begin=recorded["start"], end=recorded["end"]).to_table()
        without_model = {key: value for key, value in recorded.items() if key != "model"}
        assert not check.compare_cdc(check.answer(changes), without_model), label
        texts = {text for row in recorded["rows"] for text in row if text not in (None, "null")}
        ours = {text for row in changes.to_pylist() for text in row.values() if text is not None}
        assert {json.dumps(json.loads(text)) for text in ours if text[0] == "{"} == {
            json.dumps(json.loads(text)) for text in texts if text[0] == "{"
        }, "members stand in Hudi's order"


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", SWITCHED_ON)
def test_inferred_changes_lead_to_the_snapshot(rich_table: Callable[..., Path], name: str) -> None:
    table = capture(rich_table(name, fresh=True))
    assert replayed(table.scan(query_type="cdc", begin="earliest").to_table()) == shown(table)


def test_changes_of_consecutive_ranges_are_those_of_the_whole(rich_table: Callable[[str], Path]) -> None:
    table = hudimeta.Table(rich_table("cdc_mor_full8"))
    ends = [i.completion for i in table.timeline.writes]
    parts = [
        table.scan(query_type="cdc", begin=begin, end=end).to_table()
        for begin, end in zip(["000", *ends[:-1]], ends, strict=True)
    ]
    whole = table.scan(query_type="cdc", begin="000").to_table()
    assert pa.concat_tables(parts).equals(whole)
    assert whole.column("ts_ms").to_pylist() == sorted(whole.column("ts_ms").to_pylist()), "in the order of the commits"


def test_archived_commits_are_refused_unless_what_is_left_will_do(rich_table: Callable[..., Path]) -> None:
    path = rich_table("archived_kept", fresh=True)
    with pytest.raises(TableError, match=r"9 commits between earliest and now are archived.*20261121035834347") as refused:
        capture(path).scan(query_type="cdc", begin="000").plan()
    assert "hoodie.datasource.read.incr.fallback.fulltablescan.enable" in refused.value.hint
    fallback = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"}
    scan = hudimeta.Table(path, fallback).scan(query_type="cdc", begin="000")
    left = {i.time for i in hudimeta.Table(path).timeline.writes}
    assert set(scan.to_table().column("ts_ms").to_pylist()) <= left
    assert scan.report.notes == ("9 commits of the range are archived: left out",)


def test_the_beginning_that_is_advised_is_taken(tmp_path: Path) -> None:
    """A savepointed commit stays on the timeline, and those that follow it are archived."""
    options = {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.archive.beyond.savepoint": "true",
        "hoodie.table.services.enabled": "false",
    }
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", partition_by="part", options=options)
    for number in range(7):
        table.insert(simple_rows([number], number))
        if number == 1:
            table.savepoint()
    few = {**options, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.automatic": "false"}
    assert hudimeta.Table(table.path, few).archive().archived
    with pytest.raises(TableError, match="are archived") as refused:
        table.scan(query_type="cdc", begin="earliest").plan()
    advised = re.search(r"Begin at (\d+) or later", refused.value.hint)
    assert advised is not None
    assert table.scan(query_type="cdc", begin=advised.group(1)).count() > 0


def test_cleaned_files_are_named(rich_table: Callable[..., Path]) -> None:
    table = capture(rich_table("cleaned_commits", fresh=True))
    with pytest.raises(TableError, match=r"changes of commit 20261121040103094 cannot be known: east/.*parquet is gone"):
        table.scan(query_type="cdc", begin="000").to_table()


def test_a_replaced_file_group_that_is_cleaned_is_not_passed_over(rich_table: Callable[..., Path]) -> None:
    path = rich_table("cdc_cow_full", fresh=True)
    for file in path.glob("north/6dc2e074*"):
        file.unlink()
    table = hudimeta.Table(path, {"hoodie.metadata.enable": "false"})
    with pytest.raises(TableError, match=r"removed the file group 6dc2e074-ebbb-4d61-a19b-33ec71784781-0"):
        table.scan(query_type="cdc", begin="20261121030634788").to_table()


def test_a_torn_change_file_is_refused(rich_table: Callable[..., Path]) -> None:
    path = rich_table("cdc_cow_full", fresh=True)
    torn = next(path.glob("south/.*_20261121030615321.log.1_*.cdc"))
    torn.write_bytes(torn.read_bytes()[:-9])
    with pytest.raises(CorruptFileError) as caught:
        hudimeta.Table(path).scan(query_type="cdc", begin="20261121030615145", end="20261121030619100").count()
    assert caught.value.path == f"south/{torn.name}"


def test_a_change_of_a_row_that_no_file_has_is_damage(rich_table: Callable[..., Path]) -> None:
    path = rich_table("cdc_cow_keyonly", fresh=True)
    file = next(path.glob("east/.*_20261121032628851.log.1_*.cdc"))
    schema = json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": n, "type": "string"} for n in ("op", "record_key")]}
    )
    header = {HeaderKey.INSTANT_TIME: "20261121032628851", HeaderKey.SCHEMA: schema}
    stranger = encode_avro_content(pa.table({"op": ["u"], "record_key": ["nobody"]}), schema)
    size = file.stat().st_size - len(encode_block(BlockType.CDC_DATA, header, stranger))
    header[HeaderKey.SCHEMA] = schema + " " * size
    file.write_bytes(encode_block(BlockType.CDC_DATA, header, stranger))
    with pytest.raises(CorruptFileError, match="'nobody'"):
        hudimeta.Table(path).scan(query_type="cdc", begin="20261121032626512").to_table()


# Tables of the engine


def written(path: Path, kind: str, options: Mapping[str, str] | None = None) -> hudimeta.Table:
    """A table of five commits: inserts, an upsert with a new row, a delete, an emptied partition, an overwritten one."""
    schema = simple_rows([], 0).schema
    given = {"hoodie.index.type": "SIMPLE", **(options or {})}
    table = hudimeta.Table.create(
        path, schema, key="id", partition_by="part", ordering="ts", type=kind, options=given, name="t"
    )
    table.insert(simple_rows(range(9), 1, partitions=3))
    table.upsert(simple_rows([0, 1, 9], 2, partitions=3))
    table.delete(simple_rows([3], 3, partitions=3))
    table.delete(simple_rows([1, 4, 7], 4, partitions=3))
    table.insert_overwrite(simple_rows([2, 11], 5, partitions=3))
    return capture(path)


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> hudimeta.Table:
    return written(tmp_path_factory.mktemp("cdc") / "t", request.param)


def test_each_commit_tells_its_changes(table: hudimeta.Table) -> None:
    changes = table.scan(query_type="cdc", begin="earliest").to_table().to_pylist()
    times = [i.time for i in table.timeline.writes]
    told: dict[str, list[tuple[str, str]]] = {time: [] for time in times}
    for change in changes:
        told[change["ts_ms"]].append((change["op"], place_of(change["after"] or change["before"])[1]))
    assert [sorted(told[time]) for time in times] == [
        [("i", f"k{n:04d}") for n in range(9)],
        [("i", "k0009"), ("u", "k0000"), ("u", "k0001")],
        [("d", "k0003")],
        [("d", "k0001"), ("d", "k0004"), ("d", "k0007")],
        [("d", "k0002"), ("d", "k0005"), ("d", "k0008"), ("i", "k0002"), ("i", "k0011")],
    ]


def test_replaying_up_to_any_commit_gives_the_table_of_then(table: hudimeta.Table) -> None:
    for instant in table.timeline.writes:
        changes = table.scan(query_type="cdc", begin="earliest", end=instant.completion).to_table()
        assert replayed(changes) == shown(table, as_of=instant.time)


def test_columns_and_predicates_apply_to_changes(table: hudimeta.Table) -> None:
    scan = table.scan(where="op = 'u' and after like '%k0001%'", columns=["after", "op"], query_type="cdc", begin="earliest")
    assert scan.schema == pa.schema([("after", pa.string()), ("op", pa.string())])
    assert [(row["op"], data_of(row["after"])["x"]) for row in scan.to_table().to_pylist()] == [("u", 2.0)]
    assert scan.count() == 1
    assert table.scan(query_type="cdc", begin="earliest").count() == 21


def test_options_ask_for_changes_as_arguments_do(table: hudimeta.Table) -> None:
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "earliest",
        "hudimeta.columns": "op,`ts_ms`",
    }
    by_options = hudimeta.Table(table.path, options).scan().to_table()
    assert by_options.equals(table.scan(columns=["op", "ts_ms"], query_type="cdc", begin="earliest").to_table())
    inserts = hudimeta.Table(table.path, {**options, "hudimeta.filter": "op = 'i'"})
    assert inserts.scan("ts_ms > '0'", columns=["op"]).to_table().to_pydict() == {"op": ["i"] * inserts.scan().count()}
    with pytest.raises(ConfigError, match="names: op, ts_ms"):
        inserts.scan(columns=["before"])


def test_splits_hold_every_change_once_and_travel(table: hudimeta.Table) -> None:
    scan = table.scan(query_type="cdc", begin="earliest")
    splits = scan.plan().splits(target_bytes=1)
    assert len(splits) > 3
    task, splits = pickle.loads(pickle.dumps((scan.task, splits)))
    parts = [pa.Table.from_batches(hudimeta.read_split(task, split), task.output_schema) for split in splits]
    order = [(name, "ascending") for name in scan.schema.names]
    assert pa.concat_tables(parts).sort_by(order).equals(scan.to_table().sort_by(order))


def test_report_and_plan_name_what_is_read(table: hudimeta.Table) -> None:
    scan = table.scan(query_type="cdc", begin="earliest")
    changes, plan = scan.to_table(), scan.plan()
    assert (scan.report.query_type, scan.report.rows) == ("cdc", changes.num_rows)
    assert scan.report.files_kept == len(plan.files) > 0
    assert all((Path(table.path) / file).is_file() for file in plan.files)
    assert str(plan).count(".parquet") >= 3


def test_compaction_changes_nothing(tmp_path: Path) -> None:
    table = hudimeta.Table.create(
        tmp_path / "t", simple_rows([], 0).schema, key="id", partition_by="part", ordering="ts", type="MERGE_ON_READ"
    )
    table.insert(simple_rows(range(4), 1))
    table.upsert(simple_rows([1], 2))
    last_write = table.timeline.writes[-1].completion
    assert table.compact()
    table.upsert(simple_rows([1, 2], 3))
    table = capture(tmp_path / "t")
    since = table.scan(query_type="cdc", begin=last_write).to_table()
    assert sorted(place_of(image)[1] for image in since.column("after").to_pylist()) == ["k0001", "k0002"]
    assert replayed(table.scan(query_type="cdc", begin="earliest").to_table()) == shown(table)


def test_savepoints_hide_no_change(tmp_path: Path) -> None:
    """The oldest writes, all savepointed, are older than what counts as the first write that is not archived."""
    schema, captured = simple_rows([], 0).schema, {"hoodie.table.cdc.enabled": "true"}
    table = hudimeta.Table.create(
        tmp_path / "t", schema, key="id", partition_by="part", ordering="ts", type="MERGE_ON_READ", options=captured
    )
    for ids, ts in (([0, 1, 2, 3], 1), ([1], 2), ([2], 3)):
        table.upsert(simple_rows(ids, ts))
    before = table.scan(query_type="cdc", begin="earliest").to_table()
    for write in table.timeline.writes[:2]:
        table.savepoint(write.time)
    assert table.scan(query_type="cdc", begin="earliest").to_table().equals(before)
    assert table.scan(query_type="cdc", begin="earliest").count() == 6


def test_a_late_row_changes_nothing(tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = hudimeta.Table.create(tmp_path / kind, simple_rows([], 0).schema, key="id", ordering="ts", type=kind)
        table.insert(simple_rows([0, 1], 5))
        table.upsert(simple_rows([1], 3))
        begin = table.timeline.writes[0].completion
        assert capture(table.path).scan(query_type="cdc", begin=begin).count() == 0


def test_tables_that_capture_nothing_are_refused_by_the_property_s_name(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id")
    with pytest.raises(TableError, match=r"hoodie\.table\.cdc\.enabled is not true"):
        table.scan(query_type="cdc", begin="earliest").plan()


def test_an_empty_range_gives_no_changes(table: hudimeta.Table) -> None:
    scan = table.scan(query_type="cdc", begin="99991231235959999")
    assert scan.to_table().equals(scan.schema.empty_table())
    assert scan.plan().files == []


@pytest.mark.parametrize("columns", [["id"], [], ["op", "op"]])
def test_only_the_four_columns_can_be_chosen(table: hudimeta.Table, columns: list[str]) -> None:
    with pytest.raises(ConfigError, match="op, ts_ms, before, after"):
        table.scan(columns=columns, query_type="cdc", begin="earliest")


def test_full_images_are_read_from_the_change_file_alone(rich_table: Callable[[str], Path]) -> None:
    scan = hudimeta.Table(rich_table("cdc_cow_full")).scan(query_type="cdc", begin="20261121030615145", end="20261121030619100")
    assert {change.source for change in scan.plan().changes} == {ChangeSource.CHANGE_FILE}
    scan.to_table()
    assert scan.report.requests["GET", "data"] == 3, "one change file for each file group"


def test_log_files_that_do_not_fit_memory_are_compared_block_by_block(tmp_path: Path) -> None:
    options = {"hoodie.table.cdc.enabled": "true"}
    how: dict[str, Any] = {"key": "id", "partition_by": "part", "ordering": "ts", "type": "MERGE_ON_READ", "options": options}
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, **how)
    table.insert(simple_rows(range(6), 1))
    table.upsert(simple_rows(range(4), 2))
    table.delete(simple_rows([0, 2], 0))

    def changes(limit: int) -> list[Row]:
        opened = hudimeta.Table(tmp_path / "t", {"hudimeta.merge.memory.bytes": limit})
        found = opened.scan(query_type="cdc", begin="earliest").to_table().to_pylist()
        return sorted(found, key=lambda one: (one["ts_ms"], one["op"], one["before"] or "", one["after"] or ""))

    assert [change["op"] for change in changes(1 << 20)] == [*"iiiiii", *"uuuu", *"dd"]
    assert changes(1) == changes(1 << 20)


def test_images_of_change_files_have_the_columns_of_today(tmp_path: Path) -> None:
    rows = pa.table({"k": ["a"], "n": pa.array([1], pa.int32()), "gone": [1], "st": [{"x": 1, "y": 2}], "ts": [1]})
    options = {"hoodie.table.cdc.enabled": "true", "hoodie.schema.on.read.enable": "true"}
    table = hudimeta.Table.create(tmp_path, rows.schema, key="k", ordering="ts", options=options, name="t")
    table.insert(rows)
    table.upsert(rows.set_column(1, "n", pa.array([2], pa.int32())))
    table.alter(drop="gone")
    table.alter(drop="st.y")
    table.alter(rename={"n": "m"})
    table.alter(retype={"m": pa.float64()})
    table.alter(add={"new": pa.int64()})
    update = table.scan(query_type="cdc", begin="earliest").to_table().to_pylist()[1]
    assert update["op"] == "u"
    before, after = ({"k": "a", "m": m, "st": {"x": 1}, "ts": 1, "new": None} for m in (1.0, 2.0))
    assert (json.loads(update["before"]), json.loads(update["after"])) == (before, after)


def test_images_of_change_files_have_columns_that_no_file_holds(tmp_path: Path) -> None:
    options = {"hoodie.table.cdc.enabled": "true", "hoodie.datasource.write.drop.partition.columns": "true"}
    options["hoodie.datasource.write.hive_style_partitioning"] = "true"
    rows = simple_rows([0], 1)
    table = hudimeta.Table.create(
        tmp_path, rows.schema, key="id", partition_by="part", ordering="ts", options=options, name="t"
    )
    table.insert(rows)
    table.upsert(simple_rows([0], 2))
    update = table.scan(query_type="cdc", begin="earliest").to_table().to_pylist()[1]
    assert [json.loads(update[side])["part"] for side in ("before", "after")] == [rows["part"][0].as_py()] * 2
