"""What a small write asks of storage, besides data files and markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.storage import CountingStorage, RequestKind, open_storage
from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

BUDGET = {"LIST": 3, "PUT": 12, "GET": 20}


@pytest.mark.parametrize("partitions", [1, 7])
def test_an_upsert_stays_within_its_budget(tmp_path: Path, partitions: int) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    for turn in range(2):
        table.write(Operation.BULK_INSERT, simple_rows(range(56 * turn, 56 * (turn + 1)), 1, partitions=partitions))
    storage = CountingStorage(open_storage(table.path))
    report = table.write(Operation.UPSERT, simple_rows(range(40, 120), 2, partitions=partitions), storage)
    assert report.updated == 72
    spent: dict[str, int] = {}
    for (kind, purpose), n in storage.log.by_purpose().items():
        if purpose not in ("data", "markers"):
            spent[kind] = spent.get(kind, 0) + n
    over = {kind: n for kind, n in spent.items() if n > BUDGET.get(kind, 10)}
    assert not over, f"{over} of {dict(storage.log.by_purpose())}"
    assert report.requests["LIST", "timeline"] == 2
    assert ("LIST", "data") not in report.requests
    assert ("HEAD", "data") not in report.requests, "a partition that has files has its metafile"
    assert report.requests["PUT", "data"] == report.files_written
    assert report.requests["PUT", "markers"] == report.files_written
    counted = dict(storage.log.by_purpose())
    counted.pop(("GET", "properties"))
    assert dict(report.requests) == counted, "the report tells all but the opening of the table"


def test_the_next_write_by_the_same_storage_reads_nothing_small_again(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    storage = CountingStorage(open_storage(table.path))
    for turn in range(4):
        mark = len(storage.log)
        table.write(Operation.UPSERT, simple_rows(range(turn, turn + 20), turn), storage)
        read = [path for path in storage.log.paths(RequestKind.GET, mark) if "/timeline/" in path or path.endswith(".hfile")]
    assert len(read) == 1, "the commit before, which nobody has read yet"
    table.check()


def test_what_was_kept_of_a_metadata_table_goes_when_it_is_built_anew(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = ModelledTable(path)
    opened = Table(path)
    for turn in range(3):
        opened.upsert(rows := simple_rows(range(turn, turn + 20), turn))
        table.model.write(Operation.UPSERT, rows)
        opened.metadata.rebuild()
    table.check()
    check_all(table.storage)
