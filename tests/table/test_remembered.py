"""Properties that are those of an earlier day or another table, and timelines that are not where they should be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.api.verbs import set_defaults
from hudimeta.config import OPTIONS
from hudimeta.errors import CorruptFileError, HudiError, TableError
from hudimeta.storage import open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from tests.conftest import Unpack
from tests.edited_properties import edit_properties


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    """A table with one commit."""
    made = ModelledTable(str(tmp_path / "t"))
    made.write(Operation.INSERT, simple_rows(range(4), 1))
    return made


CHANGES = {
    "key": ("hoodie.table.recordkey.fields=id", "hoodie.table.recordkey.fields=part"),
    "partition": ("hoodie.table.partition.fields=part", "hoodie.table.partition.fields=id"),
    "ordering": ("hoodie.table.precombine.field=ts", "hoodie.table.precombine.field=x"),
    "type": ("hoodie.table.type=COPY_ON_WRITE", "hoodie.table.type=MERGE_ON_READ"),
    "merge": ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"),
    "hive_style": ("hive_style_partitioning=false", "hive_style_partitioning=true"),
}


@pytest.mark.parametrize("fact", CHANGES)
def test_our_commits_know_what_never_changes(fact: str, table: ModelledTable) -> None:
    edit_properties(Path(table.path), lambda text: text.replace(*CHANGES[fact]))
    expected = rf"hoodie\.properties is damaged .* expected {fact} .* as \.hoodie/timeline/.*\.commit says"
    with pytest.raises(CorruptFileError, match=expected):
        Table(table.path).scan().to_table()
    with pytest.raises(HudiError, match=expected):
        Table(table.path).upsert(simple_rows(range(4), 2))


REWRITING: dict[str, Callable[[Table], object]] = {
    "rename": lambda table: table.rename("another"),
    "drop_index": lambda table: table.metadata.drop_index("partition_stats"),
    "delete": lambda table: table.metadata.delete(),
    "set": lambda table: table.metadata.set(validate=True),
    "create_index": lambda table: table.metadata.create_index("by_x", "secondary_index", "x"),
    "rebuild": lambda table: table.metadata.rebuild(),
    "defaults": lambda table: set_defaults(open_storage(table.path), OPTIONS.read({}), {"x": "1.0"}),
}


@pytest.mark.parametrize("verb", REWRITING)
def test_an_old_copy_is_never_made_whole(verb: str, table: ModelledTable) -> None:
    Table(table.path, {"hoodie.metadata.index.column.stats.enable": "true"}).upsert(simple_rows(range(4), 2))
    place = Path(table.path)
    edit_properties(place, lambda text: text.replace(*CHANGES["type"]))
    before = {file: file.read_bytes() for file in place.rglob("*") if file.is_file() and ".locks" not in file.parts}
    with pytest.raises(CorruptFileError, match=r"expected type 'COPY_ON_WRITE', as .*\.commit says"):
        REWRITING[verb](Table(table.path))
    assert {file: file.read_bytes() for file in before} == before


def test_what_users_and_java_may_change(table: ModelledTable) -> None:
    edit_properties(
        Path(table.path), lambda text: text.replace("hoodie.table.precombine.field=ts", "hoodie.table.ordering.fields=ts")
    )
    edit_properties(Path(table.path), lambda text: text + "hoodie.user.note=1\nhoodie.bootstrap.index.enable=false\n")
    table.check()


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_a_timeline_in_another_place_is_not_an_empty_table(metadata: str, tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.enable": metadata})
    Table(table.path).scan().to_table()  # without a write it is an empty one
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    edit_properties(tmp_path / "t", lambda text: text.replace("hoodie.timeline.path=timeline", "hoodie.timeline.path=timelin"))
    with pytest.raises(TableError, match=r"has files of rows, but no timeline in \.hoodie/timelin\."):
        Table(table.path)


def test_a_timeline_that_is_gone_is_not_an_empty_table(rich_table: Unpack) -> None:
    path = rich_table("deletes_cow", fresh=True)
    shutil.rmtree(path / ".hoodie/timeline")
    with pytest.raises(TableError, match="but no timeline"):
        Table(path)


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_an_emptied_timeline_is_not_an_empty_table(metadata: str, tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.enable": metadata})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    for file in (tmp_path / "t/.hoodie/timeline").iterdir():
        file.unlink() if file.is_file() else shutil.rmtree(file)
    with pytest.raises(TableError, match="but no timeline"):
        Table(table.path)


def test_a_partition_keeps_its_rows_when_a_folder_has_the_name_of_its_metafile(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    metafile = next((tmp_path / "t").glob("*/.hoodie_partition_metadata"))
    metafile.unlink()
    metafile.mkdir()
    table.check()
