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
