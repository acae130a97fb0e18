"""A completed file without content, as a killed Apache Hudi leaves it: who needs it is refused, and told what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.config.registry import HudiWarning
from hudimeta.errors import CorruptFileError
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import TimelineWriter
from hudimeta.types import Action, Operation


def table_with_an_empty_commit(path: Path, **options: str) -> tuple[ModelledTable, Path]:
    """Two writes, of which the second one's completed file lost its content."""
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **options})
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    instant = table.write(Operation.UPSERT, simple_rows(range(4), 2)).instant
    (completed,) = (path / ".hoodie" / "timeline").glob(f"{instant}_*")
    completed.write_bytes(b"")
    return table, completed


def state(path: Path) -> dict[str, bytes]:
    """Every file of the table but those of its lock."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and ".locks" not in file.parts
    }


@pytest.mark.rotation(3)
@pytest.mark.filterwarnings("ignore:.* is empty:hudimeta.config.HudiWarning")  # also said when the table is opened
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("verb", ["upsert", "clean", "recover"])
def test_writing_names_the_file_and_changes_nothing(tmp_path: Path, kind: str, verb: str) -> None:
    table, completed = table_with_an_empty_commit(tmp_path / "t", **{"hoodie.datasource.write.table.type": kind})
    before = state(tmp_path / "t")
    opened = Table(table.path)
    with pytest.raises(CorruptFileError, match="empty file") as caught:
        opened.upsert(simple_rows(range(4), 3)) if verb == "upsert" else getattr(opened, verb)()
    assert caught.value.path == f".hoodie/timeline/{completed.name}"
    assert f"t.rollback('{completed.name[:17]}')" in str(caught.value)
    assert state(tmp_path / "t") == before


def test_after_the_empty_file_is_deleted_the_write_is_taken_back(tmp_path: Path) -> None:
    table, completed = table_with_an_empty_commit(tmp_path / "t")
    completed.unlink()
    report = Table(table.path).upsert(simple_rows(range(4), 3))
    assert len(report.rolled_back) == 1
    assert Table(table.path).scan().to_table()["ts"].to_pylist() == [3] * 4
    check_all(table.storage)


def test_reading_names_the_file_where_it_is_needed(tmp_path: Path) -> None:
    table, completed = table_with_an_empty_commit(tmp_path / "t")
    with pytest.warns(HudiWarning, match=completed.name), pytest.raises(CorruptFileError, match="empty file") as caught:
        Table(table.path).scan().to_table()
    assert caught.value.path == f".hoodie/timeline/{completed.name}"


def test_reading_says_so_where_others_know_what_the_write_did(tmp_path: Path) -> None:
    """The metadata table was compacted since, and the newest write carries the schema."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"})
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    first = table.write(Operation.UPSERT, simple_rows(range(2, 6), 2)).instant
    for ts in (3, 4, 5):
        table.write(Operation.UPSERT, simple_rows(range(1), ts))
    (completed,) = (tmp_path / "t" / ".hoodie" / "timeline").glob(f"{first}_*")
    completed.write_bytes(b"")
    with pytest.warns(HudiWarning, match=completed.name):
        scan = Table(table.path).scan()
    assert sorted(scan.to_table()["ts"].to_pylist()) == [1, 2, 2, 2, 2, 5]
    assert any(completed.name in note for note in scan.report.notes)


@pytest.mark.parametrize("verb", ["upsert", "recover"])
def test_a_write_on_which_another_builds_is_not_taken_back(verb: str, tmp_path: Path) -> None:
    """It was completed: its completed file is lost, and what only its own files hold would go."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0"})
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    first = table.write(Operation.UPSERT, simple_rows(range(4), 2)).instant
    table.write(Operation.UPSERT, simple_rows([0], 3))
    (completed,) = (tmp_path / "t/.hoodie/timeline").glob(f"{first}_*")
    content = completed.read_bytes()
    completed.unlink()
    before = state(tmp_path / "t")
    with pytest.raises(CorruptFileError, match=r"builds on its files\. Restore the completed file of that instant from a copy"):
        Table(table.path).recover() if verb == "recover" else Table(table.path).upsert(simple_rows([5], 4))
    assert state(tmp_path / "t") == before
    completed.write_bytes(content)
    table.write(Operation.UPSERT, simple_rows([5], 4))
    table.check()


def test_who_lost_an_instant_to_another_is_taken_back_whatever_was_built(tmp_path: Path) -> None:
    """Two writers chose one instant: files that bear it are those of the one that was completed."""
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    shared = table.write(Operation.INSERT_OVERWRITE, simple_rows(range(8), 2)).instant
    table.write(Operation.UPSERT, simple_rows([0], 3))
    TimelineWriter(table.storage).create_requested(shared, Action.COMMIT)
    table.write(Operation.UPSERT, simple_rows([5], 4))
    table.check()
    check_all(table.storage)


def test_without_a_copy_the_write_is_left_out(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    first = table.write(Operation.INSERT, simple_rows(range(8, 12), 2)).instant
    table.write(Operation.UPSERT, simple_rows([8, 9], 3))
    for file in (tmp_path / "t/.hoodie/timeline").glob(f"{first}*"):
        file.unlink()
    Table(table.path).upsert(simple_rows([20], 4))
    assert Table(table.path).scan().count() == 13, "the last but one took over what was there"
    assert Table(table.path).metadata.validate().holds
