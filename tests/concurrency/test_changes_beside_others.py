"""Writes that rest on what they read, while somebody else changes it: nobody's change is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitConflict
from hudimeta.services.partial_logs import compact_partial_logs
from hudimeta.storage import LocalStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.altering import alter, alteration
from hudimeta.write.merge_builder import MergeBuilder
from hudimeta.write.table_writer import write_rows
from tests.concurrency.conftest import Changes
from tests.concurrency.side_by_side import Interrupted


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": request.param})
    made.write(Operation.INSERT, simple_rows(range(10), 1))
    return made


def session_while(table: ModelledTable, meanwhile: Callable[[], object]) -> WriteSession:
    """A session whose first write is interrupted when it has begun and planned."""
    return WriteSession(table.storage, table.options, engine=Interrupted(meanwhile, 1))


def values(table: ModelledTable) -> dict[str, float]:
    found = table.read().to_pylist()
    return {row["id"]: row["x"] for row in found}


def theirs(table: ModelledTable) -> Callable[[], CommitReport]:
    return lambda: table.write(Operation.UPSERT, simple_rows([2], 4, value=100.0))


def test_an_update_adds_to_what_the_other_wrote(table: ModelledTable, changes: Changes) -> None:
    report = changes.update(session_while(table, theirs(table)), {"x": "x + 1"}, "id <= 'k0002'")
    assert report.attempts == 2
    assert [values(table)[f"k000{n}"] for n in (0, 1, 2, 3)] == [2.0, 2.0, 101.0, 1.0]
    check_all(table.storage)


def test_a_delete_spares_a_row_that_does_not_match_any_more(table: ModelledTable, changes: Changes) -> None:
    changes.delete(session_while(table, theirs(table)), "x = 1 and id <= 'k0003'")
    assert sorted(values(table)) == ["k0002", *(f"k000{n}" for n in range(4, 10))]
    check_all(table.storage)


def test_a_merge_joins_anew(table: ModelledTable, changes: Changes) -> None:
    session = session_while(table, theirs(table))
    source = pa.table({"id": ["k0002", "k0004"], "add": [1.0, 1.0]})
    changes.merge(session, source, "id").when_matched_update({"x": "x + add"}).execute()
    assert (values(table)["k0002"], values(table)["k0004"]) == (101.0, 2.0)
    check_all(table.storage)


def test_a_column_is_added_beside_a_write(table: ModelledTable) -> None:
    def widen() -> None:
        alter(table.session(), alteration({"z": pa.int64()}), compact_partial_logs)

    rows = simple_rows([3, 20], 5)
    report = write_rows(session_while(table, widen), Operation.UPSERT, rows)
    assert report.attempts == 2
    table.model.write(Operation.UPSERT, rows)
    table.model.check(table.read())
    assert "z" in Table(table.path).schema.names
    check_all(table.storage)


class Overwritten(LocalStorage):
    """A table of which another writer overwrites a partition as soon as its rows are read, so many times."""

    meanwhile: Callable[[], object]
    times = 0

    def open_input(self, path: str, size: int = 0) -> Any:
        """See `Storage.open_input`."""
        if path.startswith("p0/") and self.times:
            self.times -= 1
            self.meanwhile()
        return super().open_input(path, size)


def test_a_merge_whose_rows_another_writer_replaced_is_tried_again(tmp_path: Path) -> None:
    """The record index tells of a later moment than the rows, and names file groups that were not there then."""
    indexed = {**SIMPLE_OPTIONS, "hoodie.metadata.record.index.enable": "true"}
    table = ModelledTable(str(tmp_path / "t"), indexed)
    table.write(Operation.INSERT, simple_rows(range(10), 1))

    def merge(times: int, **options: str) -> CommitReport:
        storage = Overwritten(table.path)
        storage.meanwhile = lambda: table.write(Operation.INSERT_OVERWRITE, simple_rows([2, 4], 3, value=100.0))
        storage.times = times
        session = WriteSession(storage, OPTIONS.read({**indexed, **options}))
        made = MergeBuilder(simple_rows([2], 4, value=5.0), "id", "target", "source", lambda changes: changes(session))
        return made.when_matched_update({"x": "target.x + source.x"}).when_not_matched_insert().execute()

    assert merge(1).attempts == 2
    assert (values(table)["k0002"], values(table)["k0004"]) == (105.0, 100.0)
    with pytest.raises(CommitConflict, match="which another write or a restore changed meanwhile: it lacks") as caught:
        merge(1, **{"hoodie.write.num.retries.on.conflict.failures": "0"})
    assert "run the write again" in str(caught.value)
    assert values(table)["k0002"] == 100.0
    check_all(table.storage)
