"""Incremental ranges beside which something was planned early and completed late, and whose files are cleaned."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import CommitReport, Table
from hudimeta.commit.session import WriteSession
from hudimeta.config.options import OPTIONS
from hudimeta.errors import RangeLost
from hudimeta.storage import open_storage
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted

COLUMNS = {"id": pa.string(), "part": pa.string(), "v": pa.string()}
SCHEMA = pa.schema(COLUMNS)
KEEPS_LITTLE = {"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "2"}


def rows(part: str, *ids: str, value: str = "then") -> pa.Table:
    return pa.table({"id": list(ids), "part": [part] * len(ids), "v": [value] * len(ids)}, schema=SCHEMA)


def changed(table: Table, begin: str, end: str) -> dict[str, str]:
    found = table.scan(query_type="incremental", begin=begin, end=end, columns=["id", "v"]).to_table().to_pylist()
    return {row["id"]: row["v"] for row in found}


def made(path: Path) -> Table:
    return Table.create(path / "t", SCHEMA, key="id", partition_by="part", options=KEEPS_LITTLE)


def test_rows_that_a_late_clustering_moved_are_in_the_range(tmp_path: Path) -> None:
    """The files that it took out are cleaned: no clean goes by when a clustering was completed."""
    table = made(tmp_path)
    table.insert(rows("p", "a", "b"))
    planned = table.services.clustering.schedule()
    assert planned is not None
    table.insert(rows("q", "c"))
    end = table.insert(rows("q", "d")).completion
    assert end is not None
    wanted = dict.fromkeys("abcd", "then")
    assert changed(table, "earliest", end) == wanted
    table.services.clustering.execute(planned)
    assert changed(table, "earliest", end) == wanted
    table.insert(rows("q", "e"))
    assert table.clean().deleted
    assert changed(table, "earliest", end) == wanted


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_logs_that_a_late_service_has_merged_are_missed(tmp_path: Path, service: str) -> None:
    """The files of the range are read by themselves: those that are cleaned are said to be, as of any other range."""
    table = Table.create(tmp_path / "t", SCHEMA, key="id", partition_by="part", type="MERGE_ON_READ", options=KEEPS_LITTLE)
    table.insert(rows("p", "a"))
    table.upsert(rows("p", "a", value="logged"))
    steps = getattr(table.services, service)
    planned = str(steps.schedule())
    begin = str(table.insert(rows("q", "c")).completion)
    end = str(table.insert(rows("q", "d")).completion)
    steps.execute(planned)
    table.insert(rows("q", "e"))
    assert table.clean().deleted
    with pytest.raises(RangeLost, match="cleaning removed files"):
        changed(table, "earliest", end)
    assert changed(table, begin, end) == {"d": "then"}


@pytest.mark.parametrize("partial", ["true", "false"])
def test_rows_that_were_logged_beside_a_late_compaction_are_in_the_range(tmp_path: Path, partial: str) -> None:
    """Updates of single columns are merged with what it wrote, since what it read is cleaned."""
    options = {**KEEPS_LITTLE, "hoodie.spark.sql.merge.into.partial.updates": partial}
    schema = SCHEMA.append(pa.field("ts", pa.int64()))
    table = Table.create(
        tmp_path / "t", schema, key="id", partition_by="part", ordering="ts", type="MERGE_ON_READ", options=options
    )
    table = Table(tmp_path / "t", options)
    times = pa.chunked_array([[1, 1]], pa.int64())
    table.insert(rows("p", "a", "b").append_column("ts", times))
    begin = str(table.upsert(rows("p", "a", "b", value="logged").append_column("ts", times)).completion)
    planned = str(table.services.compaction.schedule())
    table.update({"v": "'then'"}, where="id = 'a'")
    end = str(table.insert(rows("q", "c", "d").append_column("ts", times)).completion)
    table.services.compaction.execute(planned)
    table.insert(rows("q", "e", "f").append_column("ts", times))
    assert table.clean().deleted
    found = table.scan(query_type="incremental", begin=begin, end=end, columns=["id", "part", "v"]).to_table().to_pylist()
    wanted = rows("p", "a").to_pylist() + rows("q", "c", "d").to_pylist()
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_rows_that_a_late_write_changed_are_missed(tmp_path: Path) -> None:
    """What the range ended with is cleaned: that is said, and the rows are not left out in silence."""
    table = made(tmp_path)
    table.insert(rows("p", "a", "b"))
    others: list[CommitReport] = []

    def another_write() -> None:
        others.append(table.insert(rows("q", "c")))

    session = WriteSession(open_storage(tmp_path / "t"), OPTIONS.read(KEEPS_LITTLE), engine=Interrupted(another_write))
    late = write_rows(session, Operation.UPSERT, rows("p", "a", value="late"))
    assert late.instant < others[0].instant
    end = str(others[0].completion)
    wanted = {"a": "then", "b": "then", "c": "then"}
    assert changed(table, "earliest", end) == wanted
    table.insert(rows("q", "d"))
    assert table.clean().deleted
    with pytest.raises(RangeLost, match="cleaning removed files"):
        changed(table, "earliest", end)


def test_a_range_that_cleaning_has_passed_is_not_said_to_be_archived(tmp_path: Path) -> None:
    table = made(tmp_path)
    first = table.insert(rows("p", "a"))
    for value in ("once", "twice", "again"):
        table.upsert(rows("p", "a", value=value))
    assert table.clean().deleted
    with pytest.raises(RangeLost, match=r"range earliest to \d+ ends before what the last clean keeps: cleaning"):
        changed(table, "earliest", str(first.completion))
