"""Batches of a stream that are written again: once in the table, whoever wrote them, and also when two meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.api.plain_write import PlainWrite
from hudimeta.commit.session import WriteSession
from hudimeta.commit.stream_batches import CHECKPOINT_KEY
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import ConfigError
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted

STREAM = "hoodie.datasource.write.streaming.checkpoint.identifier"
BATCH = "hudimeta.streaming.batch.id"


def batch(number: int, stream: str = "orders") -> dict[str, str]:
    return {**SIMPLE_OPTIONS, STREAM: stream, BATCH: str(number), "hoodie.datasource.write.operation": "insert"}


def keys(table: ModelledTable) -> list[str]:
    return sorted(table.read()["id"].to_pylist())


def test_a_batch_that_is_in_the_table_is_not_written_again(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    first = Table(table.path, batch(7)).insert(simple_rows([1, 2], 1))
    table.write(Operation.UPSERT, simple_rows([9], 1))
    again = Table(table.path, batch(7)).insert(simple_rows([1, 2], 1))
    assert again.completion is None
    assert f"note      {again.notes[0]}" in str(again)
    assert again.notes == (f"nothing was written: batch 7 of the stream 'orders' is in the table since {first.instant}",)
    with pytest.warns(
        HudiWarning, match="batch 6 of the stream 'orders' was not written: the table has batch 7 .*name of its own"
    ):
        assert Table(table.path, batch(6)).insert(simple_rows([1, 2], 1)).completion is None, "an older batch than the newest"
    assert keys(table) == ["k0001", "k0002", "k0009"]
    Table(table.path, batch(7, "returns")).insert(simple_rows([3], 1))
    Table(table.path, batch(8)).insert(simple_rows([4], 1))
    assert keys(table) == ["k0001", "k0002", "k0003", "k0004", "k0009"]
    timeline = Table(table.path).timeline
    said = timeline.metadata(timeline.writes[-1])["extraMetadata"][CHECKPOINT_KEY]
    assert said == '{"orders":"8"}', "not the form of Apache Hudi's sink"
    check_all(table.storage)


def test_of_two_processes_with_one_batch_one_writes(tmp_path: Path) -> None:
    """A driver died, its committing process did not, and the new driver repeats the batch."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows([0], 1))

    def meanwhile() -> None:
        Table(table.path, batch(1)).bulk_insert(simple_rows([5, 6], 1))

    session = WriteSession(table.storage, OPTIONS.read(batch(1)), engine=Interrupted(meanwhile))
    late = write_rows(session, Operation.BULK_INSERT, simple_rows([5, 6], 1))
    assert late.completion is None
    assert keys(table) == ["k0000", "k0005", "k0006"]
    check_all(table.storage)


def test_a_plain_write_whose_batch_came_otherwise_takes_its_files_back(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    rows = simple_rows([1, 2], 1)
    write = PlainWrite.begin(table.path, batch(3), rows.schema, overwrite=False)
    message = write.write(iter(rows.to_batches()), 0, 0)
    Table(table.path, batch(3)).insert(rows)
    assert write.commit([message]).completion is None
    assert keys(table) == ["k0001", "k0002"]
    check_all(table.storage)


@pytest.mark.parametrize("number", ["seven", "-1", "²", "9" * 5000], ids=["word", "negative", "odd digit", "long"])
def test_what_is_no_number_of_a_batch_is_refused(tmp_path: Path, number: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    with pytest.raises(ConfigError, match=r"hudimeta\.streaming\.batch\.id"):
        Table(table.path, {**SIMPLE_OPTIONS, BATCH: number}).insert(simple_rows([1], 1))
    assert len(Table(table.path).timeline) == 0
