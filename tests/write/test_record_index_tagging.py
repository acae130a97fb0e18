"""Writing with a record index: when it is used, what is said when it is unproven, and what happens when it is damaged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError, HudiError
from tests.recorded_tables import RICH

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
RECORDS = {"hoodie.metadata.record.index.enable": "true"}
ASKED = {"hoodie.index.type": "RECORD_INDEX"}


def rows(*given: tuple[str, str, int]) -> pa.Table:
    return pa.Table.from_pylist([{"id": k, "part": p, "v": v, "ts": v} for k, p, v in given], SCHEMA)


def contents(path: Path) -> list[tuple[str, str, int]]:
    found = hudimeta.Table(path).scan().to_table()
    return sorted(zip(*(found[c].to_pylist() for c in ("id", "_hoodie_partition_path", "v")), strict=True))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    table = hudimeta.Table.create(
        tmp_path / "t", SCHEMA, key="id", partition_by="part", ordering="ts", options=RECORDS, name="t"
    )
    table.insert(rows(*((f"k{n}", "xyz"[n % 3], 1) for n in range(9))))
    return tmp_path / "t"


def test_a_proven_record_index_is_the_tables_own(written: Path) -> None:
    report = hudimeta.Table(written).upsert(rows(("k0", "y", 2), ("k1", "y", 2), ("new", "z", 2)))
    assert report.index == "record index: 3 keys looked up, 2 keys found"
    assert (report.looked_up, report.found, report.moved) == (3, 2, 0)
    assert ("k0", "x", 2) in contents(written), "without moves a row stays in its partition"
    moves = {"hoodie.record.index.update.partition.path": "true"}
    report = hudimeta.Table(written, options=moves).upsert(rows(("k0", "y", 3)))
    assert report.moved == 1
    assert ("k0", "y", 3) in contents(written)
    report = hudimeta.Table(written).delete(pa.table({"id": ["k0", "k2", "none"]}))
    assert (report.deleted, report.unmatched_deletes) == (2, 1)
    assert len(contents(written)) == 8


def test_an_unproven_record_index_is_used_only_when_it_is_asked_for(tmp_path: Path) -> None:
    """That of a table which Apache Hudi wrote: nothing says that it lacks no row."""
    path = RICH.unpack("mdt_all_v8", tmp_path)
    one = hudimeta.Table(path).scan().to_table().slice(0, 1)
    before = contents_of(path)
    report = hudimeta.Table(path, options=ASKED).upsert(one)
    assert "record index: 1 keys looked up, 1 keys found" in report.index
    assert "nothing proves that it lacks no row" in report.index
    report = hudimeta.Table(path).upsert(one)
    assert report.index.startswith("global simple index")
    assert "not the record index: nothing proves that it lacks no row" in report.index
    assert contents_of(path) == before


def contents_of(path: Path) -> list[str]:
    return sorted(hudimeta.Table(path).scan().to_table()["_hoodie_record_key"].to_pylist())


def test_a_damaged_record_index_is_an_error_unless_falling_back_is_allowed(written: Path) -> None:
    for file in (written / ".hoodie/metadata/record_index").iterdir():
        if file.name.startswith((".record-index", "record-index")) and "crc" not in file.name:
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    before = contents(written)
    with pytest.raises(HudiError):
        hudimeta.Table(written).upsert(rows(("k0", "x", 2)))
    assert contents(written) == before
    report = hudimeta.Table(written, options={"hudimeta.index.allow.fallback": "true"}).upsert(rows(("k0", "x", 2)))
    assert report.index.startswith("global simple index")
    assert "instead of record index, which failed" in report.index
    assert any("keys were looked up in the files" in note for note in report.notes)
    assert ("k0", "x", 2) in contents(written)


def test_the_kind_of_record_index_is_the_tables(written: Path) -> None:
    with pytest.raises(ConfigError, match="one for the whole table"):
        hudimeta.Table(written, options={"hoodie.index.type": "RECORD_LEVEL_INDEX"}).upsert(rows(("k0", "x", 2)))
    same = {"hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"}
    assert hudimeta.Table(written, options=same).upsert(rows(("k0", "x", 2))).found == 1
