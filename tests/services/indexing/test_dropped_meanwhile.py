"""An index that is dropped while a write or a clean is under way stays dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.services.clean import clean
from hudimeta.table.properties import load, update
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted

INDEX = "bloom_filters"


def _table(folder: Path, kind: str) -> ModelledTable:
    table = ModelledTable(str(folder / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    hudimeta.Table(table.path).metadata.create_index(type=INDEX)
    return table


def _folders(table: ModelledTable) -> set[str]:
    return {
        entry.name for entry in table.storage.list(".hoodie/metadata") if entry.is_folder and not entry.name.startswith(".")
    }


def _holds(table: ModelledTable) -> None:
    check_all(table.storage)
    report = hudimeta.Table(table.path).metadata.validate()
    assert report.holds, report
    table.model.check(table.read())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_does_not_bring_a_dropped_index_back(tmp_path: Path, kind: str) -> None:
    table = _table(tmp_path, kind)
    drop = Interrupted(lambda: hudimeta.Table(table.path).metadata.drop_index(INDEX))
    rows = simple_rows(range(5, 30), 2)
    report = write_rows(WriteSession(table.storage, table.options, engine=drop), Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    assert report.attempts == 1
    assert _folders(table) == set(load(table.storage).metadata_partitions)
    timeline = hudimeta.Table(table.path).timeline
    extra = timeline.metadata(timeline.writes[-1])["extraMetadata"]
    assert INDEX not in json.loads(extra["hudimeta.metadata.groups"])
    hudimeta.Table(table.path).metadata.create_index(type=INDEX)
    table.write(Operation.UPSERT, simple_rows(range(25, 35), 3))
    _holds(table)


def test_a_clean_does_not_bring_a_dropped_index_back(tmp_path: Path) -> None:
    table = _table(tmp_path, "COPY_ON_WRITE")
    for turn in range(3):
        table.write(Operation.UPSERT, simple_rows(range(20), 2 + turn))
    options = table.options.having({"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"})
    session = WriteSession(table.storage, options)
    assert session.coordinator  # opened while the index was there
    hudimeta.Table(table.path).metadata.drop_index(INDEX)
    assert clean(session).deleted
    assert _folders(table) == set(load(table.storage).metadata_partitions)
    _holds(table)


def test_a_write_goes_on_without_a_metadata_table_that_was_removed_meanwhile(tmp_path: Path) -> None:
    """Apache Hudi's writers remove it, and write on, when they are told hoodie.metadata.enable=false."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "true"})
    table.write(Operation.INSERT, simple_rows(range(20), 1))

    def remove() -> None:
        update(table.storage, {"hoodie.table.metadata.partitions": ""})
        table.storage.delete_folder(".hoodie/metadata")
        elsewhere = simple_rows([47], 1, partitions=8)
        hudimeta.Table(table.path, {"hoodie.metadata.enable": "false"}).upsert(elsewhere)
        table.model.write(Operation.UPSERT, elsewhere)

    rows = simple_rows(range(5, 30), 2)
    report = write_rows(WriteSession(table.storage, table.options, engine=Interrupted(remove)), Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    assert report.attempts == 2
    _holds(table)
