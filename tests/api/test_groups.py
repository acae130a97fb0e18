"""`t.metadata`, `t.services`, `t.indexes`: verbs in groups, with names for users only."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError, IndexNotReady
from hudimeta.testing.builders import simple_rows
from tests.conftest import Unpack

UNDO = ("savepoint", "savepoints", "delete_savepoint", "rollback", "restore")
RUN = ("compact", "schedule_compaction", "compaction", "log_compaction", "log_compact", "clustering", "cluster", "indexing")
PAST = ("cleaning", "clean", "archive", "expire_partitions")
KEPT = ("wait", "recover", "upgrade", "downgrade", "maintain", "watch", "advise")
VERBS = (*RUN, *PAST, *UNDO, *KEPT, "repair", "change_type", "rescale_buckets", "rename")
"""Of `t.services`, in their order."""


@pytest.fixture
def table(tmp_path: Path) -> hudimeta.Table:
    table = hudimeta.Table.create(tmp_path / "t", simple_rows([], 0).schema, key="id", type="MERGE_ON_READ")
    table.insert(simple_rows([1, 2, 3], 1))
    return table


def shown(group: object) -> set[str]:
    return {name for name in dir(group) if not name.startswith("_")}


def test_groups_show_their_verbs_and_nothing_else(table: hudimeta.Table) -> None:
    assert shown(table.services) == set(VERBS)
    assert shown(table.indexes) == {"create", "drop", "list", "rebuild", "resize", "validate"}
    known = {"bloom_filters", "column_stats", "expression_partition_stats", "expression_stats", "partition_stats"}
    known |= {"record_index", "secondary_index"}
    held = {"file_groups", "files", "index_definitions", "partitions", "ready", "record_window", "timeline"}
    held |= {"record_schema", "records", "whole_records"}
    whole = {"create", "delete", "list_files", "list_partitions", "listing_reason", "measure", "modes", "set", "stats"}
    kept = {"create_index", "drop_index", "drop_partition", "rebuild", "resize_index", "update", "validate"}
    assert shown(table.metadata) == known | held | whole | kept


def test_services_are_the_verbs_of_the_table(table: hudimeta.Table) -> None:
    table.upsert(simple_rows([2], 2))
    planned = table.services.schedule_compaction()
    assert planned is not None
    (report,) = table.compact()
    assert report.instant == planned
    assert table.services.compact() == []
    assert table.scan().count() == 3
    assert table.services.recover() == ()
    assert str(table.services.clean())
    assert str(table.services.archive())
    assert repr(table.services) == f"TableServices({', '.join(VERBS)})"


def test_indexes_are_made_listed_checked_and_dropped(table: hudimeta.Table) -> None:
    before = table.indexes.list()["name"].to_pylist()
    assert "files" not in before
    table.indexes.create(type="record_index")
    table.indexes.create("by_ts", "secondary_index", "ts")
    table.indexes.create("day", "column_stats", "ts", expression="from_unixtime", options={"format": "yyyy-MM-dd"})
    listed = {row.pop("name"): row for row in table.indexes.list().to_pylist()}
    assert set(listed) - set(before) == {"record_index", "secondary_index_by_ts", "expr_index_day"}
    assert listed["secondary_index_by_ts"] == {"type": "secondary_index", "columns": ["ts"], "expression": None}
    assert listed["expr_index_day"] == {"type": "column_stats", "columns": ["ts"], "expression": "from_unixtime"}
    assert listed["record_index"]["expression"] is None
    assert table.indexes.validate(["record_index"]).holds
    table.indexes.drop("by_ts")
    table.indexes.rebuild()
    assert set(table.indexes.list()["name"].to_pylist()) - set(before) == {"record_index", "expr_index_day"}
    assert "record_index" in repr(table.indexes)
    assert table.metadata.record_index(["k0002"]).num_rows == 1


def test_a_table_without_metadata_table_says_so_by_name(rich_table: Unpack) -> None:
    metadata = hudimeta.Table(rich_table("auto_keys")).metadata
    assert "the table has no metadata table" in repr(metadata)
    for read in (metadata.partitions, metadata.files, lambda: metadata.timeline, lambda: metadata.records("files")):
        with pytest.raises(IndexNotReady, match="the table has no metadata table"):
            read()


@pytest.mark.parametrize("how", ["where", "lists of tuples", "where as JSON", "keys", "positional text", "positional rows"])
def test_delete_by_name(table: hudimeta.Table, how: str) -> None:
    keys = pa.table({"id": ["k0002"]})
    report = {
        "where": lambda: table.delete(where="id = 'k0002'"),
        "lists of tuples": lambda: table.delete([[("id", "=", "k0002")], [("id", "=", "none")]]),
        "where as JSON": lambda: table.delete(where=["=", {"col": "id"}, {"lit": "k0002"}]),
        "keys": lambda: table.delete(keys=keys),
        "positional text": lambda: table.delete("id = 'k0002'"),
        "positional rows": lambda: table.delete(keys),
    }[how]()
    assert report.operation == "DELETE"
    assert sorted(table.scan(columns="id").to_table()["id"].to_pylist()) == ["k0001", "k0003"]


def test_delete_takes_one_argument(table: hudimeta.Table) -> None:
    before = table.timeline.instants
    for given in ({}, {"where": "id = 'k0002'", "keys": pa.table({"id": ["k0001"]})}):
        with pytest.raises(ConfigError, match=r"either where=… or keys=…"):
            table.delete(**given)  # type: ignore[arg-type]
    assert table.timeline.instants == before
