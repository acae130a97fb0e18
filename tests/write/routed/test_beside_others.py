"""A routed write beside other writers: what it found before it was announced is looked at again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.routed import driver
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.sources import GivenRows
from tests.concurrency.side_by_side import Interrupted, interruptible


def test_a_column_that_another_writer_adds_while_the_metadata_table_is_built_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    build = driver.ensure_metadata

    def build_slowly(session: WriteSession) -> bool:
        built = build(session)
        Table(table.path).alter(add={"note": pa.string()})
        return built

    monkeypatch.setattr(driver, "ensure_metadata", build_slowly)
    parts = [simple_rows([1], 2), simple_rows([9], 2)]
    report = driver.write_routed(
        WriteSession(table.storage, OPTIONS.read(SIMPLE_OPTIONS)),
        GivenRows(Operation.UPSERT, parts[0].schema),
        LocalExecutors(parts),
    )
    assert (report.inserted, report.updated) == (1, 1)
    assert "note" in Table(table.path).schema.names
    check_all(table.storage)


def test_the_report_tells_of_the_attempt_that_was_published(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    engine = Interrupted(lambda: table.write(Operation.UPSERT, simple_rows([2], 4)))
    session = WriteSession(table.storage, table.options, engine=engine)
    parts = [simple_rows([0], 2), simple_rows([8], 2)]
    executors = interruptible(session, LocalExecutors(parts))
    report = driver.write_routed(session, GivenRows(Operation.UPSERT, parts[0].schema), executors)
    assert report.attempts == 2
    (told,) = [note for note in report.notes if note.startswith("routed: ")]
    assert told.startswith("routed: 2 rows through ")
    assert len(set(report.notes)) == len(report.notes)
    check_all(table.storage)
