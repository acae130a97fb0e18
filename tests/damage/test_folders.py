"""A folder in the place of a data file, and a file in the place of a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import CorruptFileError, StorageError

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])


@pytest.mark.parametrize("pattern", [".*.log.*", "*.parquet"])
def test_a_listing_of_storage_does_not_pass_it_over(pattern: str, tmp_path: Path) -> None:
    options = {"hoodie.metadata.enable": "false"}
    keys = {"key": "id", "partition_by": "part", "ordering": "ts"}
    table = Table.create(tmp_path, SCHEMA, type="MERGE_ON_READ", options=options, **keys)
    table.insert([{"id": i, "part": "one", "ts": 1} for i in "abc"])
    table.upsert([{"id": "a", "part": "one", "ts": 2}])
    file = next(tmp_path.glob(f"one/{pattern}"))
    file.unlink()
    file.mkdir()
    with pytest.raises(CorruptFileError, match="expected a file, found a folder") as told:
        Table(tmp_path).scan().to_table()
    assert told.value.path == f"one/{file.name}"
    (file / "empty").mkdir()
    with pytest.raises(CorruptFileError):
        Table(tmp_path).upsert([{"id": "b", "part": "one", "ts": 2}])


@pytest.mark.parametrize("folder", [".hoodie/.locks", ".hoodie/.temp"])
def test_a_file_in_the_place_of_a_folder_is_no_other_writer(folder: str, tmp_path: Path) -> None:
    table = Table.create(tmp_path, SCHEMA, key="id", partition_by="part", ordering="ts")
    place = tmp_path / folder
    if place.exists():
        shutil.rmtree(place)
    place.write_text("")
    with pytest.raises(StorageError, match=f"{folder}: a file is in the place of this folder. Move it away"):
        table.insert([{"id": "a", "part": "one", "ts": 1}])
    place.unlink()
    assert table.insert([{"id": "a", "part": "one", "ts": 1}]).inserted == 1
