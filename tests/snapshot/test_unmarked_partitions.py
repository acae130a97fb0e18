"""Tables without a metadata table, of which a partition lost its metafile, or in which somebody put copies of data files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.config import HudiWarning
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation

METAFILE = ".hoodie_partition_metadata"
BARE = {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"}


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), BARE)
    made.write(Operation.INSERT, simple_rows(range(6), 1))
    return made


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_a_partition_without_metafile_are_read_and_written(tmp_path: Path, type: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**BARE, "hoodie.datasource.write.table.type": type})
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    (tmp_path / "t/p1" / METAFILE).unlink()
    with pytest.warns(HudiWarning, match=r"partitions p1 of .* without .hoodie_partition_metadata were read.*repair.metafiles"):
        table.model.check(table.read())
    with pytest.warns(HudiWarning, match="partitions p1 of"):
        table.write(Operation.UPSERT, simple_rows([1, 2, 7], 2))
    Table(table.path, table.options.given).repair.metafiles()
    table.check()  # nothing warns, nothing is doubled


def test_copies_of_files_are_passed_over(table: ModelledTable, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "t/p0", tmp_path / "t/backup/p0")
    (tmp_path / "t/backup/p0" / METAFILE).unlink()
    with pytest.warns(HudiWarning, match=r"folders backup/p0 of .* have data files and were passed over.*repair.metafiles"):
        table.model.check(table.read())


def test_other_files_are_nobodys_business(table: ModelledTable, tmp_path: Path) -> None:
    (tmp_path / "t/notes").mkdir()
    (tmp_path / "t/notes/read me.parquet").write_bytes(b"")
    table.check()


@pytest.mark.parametrize("token", ["0-0-00", "9-9-9"])
@pytest.mark.parametrize("length", [0, -9, None])
def test_a_base_file_of_another_attempt_is_passed_over(table: ModelledTable, tmp_path: Path, token: str, length: int) -> None:
    """The commit names that of the attempt which came to its end."""
    named = next((tmp_path / "t/p0").glob("*.parquet"))
    file_id, _, end = named.name.split("_")
    (named.parent / f"{file_id}_{token}_{end}").write_bytes(named.read_bytes()[:length])
    table.model.check(table.read())
    assert Table(table.path, {"hoodie.metadata.enable": "false"}).scan().plan().files[0] == f"p0/{named.name}"
    table.write(Operation.UPSERT, simple_rows([0, 1, 7], 2))
    table.model.check(table.read())
    Table(table.path).metadata.rebuild()
    table.model.check(table.read())
