"""Indexing actions of makers that stood still for longer than their lock lasted: what they left harms nobody."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.errors import InstantExists
from hudimeta.metadata.indexing import announce
from hudimeta.services.indexing import create_index
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation

OPTIONS = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def tables(path: Path) -> tuple[ModelledTable, ModelledTable]:
    """A table, and one that was the same."""
    table = ModelledTable(str(path / "t"), OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    return table, table.copy(str(path / "other"))


def moved(source: ModelledTable, target: ModelledTable, pattern: str) -> list[Path]:
    """Copy files of the timeline."""
    timeline = Path(target.path) / ".hoodie" / "timeline"
    found = sorted((Path(source.path) / ".hoodie" / "timeline").glob(pattern))
    return [Path(shutil.copy(file, timeline)) for file in found]


def test_a_dead_maker_takes_nothing_of_a_writer_with_its_instant(tmp_path: Path) -> None:
    table, other = tables(tmp_path)
    instant = table.write(Operation.UPSERT, simple_rows([1, 9], 2)).instant
    announce(other.storage, Table(other.path).timeline, instant, ["bloom_filters"], "")
    assert len(moved(other, table, f"{instant}.indexing*")) == 2
    assert instant in Table(table.path).recover()
    assert Table(table.path).timeline.pending == ()
    table.check()
    check_all(table.storage)
    Table(table.path).metadata.validate().raise_if_differs()


def test_a_maker_that_is_done_too_late_is_forgotten(tmp_path: Path) -> None:
    table, other = tables(tmp_path)
    create_index(other.session(), kind="bloom_filters")
    late = moved(other, table, "*_*.indexing")
    table.write(Operation.UPSERT, simple_rows([1, 9], 2))
    Table(table.path).recover()
    assert late
    assert not any(file.exists() for file in late)
    table.check()
    check_all(table.storage)


def test_a_maker_takes_no_instant_that_a_writer_has(tmp_path: Path) -> None:
    table, _ = tables(tmp_path)
    newest = Table(table.path).timeline.writes[-1].time
    with pytest.raises(InstantExists):
        announce(table.storage, Table(table.path).timeline, newest, ["bloom_filters"], "")
    assert all(instant.action is not Action.INDEXING for instant in Table(table.path).timeline.pending)
