"""Indexes of keys as they are made: their size and names, with the table or by a write, and those that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError
from hudimeta.indexes.record_index.keep import estimated_groups
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from tests.write.indexed_keys import BOTH, INDEXED, proven

# Making


def test_record_keys_are_estimated_as_hudi_does() -> None:
    def groups(records: int, **options: str) -> int:
        prefix = "hoodie.metadata.record.index."
        return estimated_groups(records, OPTIONS.read({prefix + k.replace("_", "."): v for k, v in options.items()}))

    assert groups(0) == groups(1_000_000) == 10
    assert groups(1_000_000_000) == 2_000_000_000 // ((1 << 30) // 48) == 89
    assert groups(1_000_000_000, growth_factor="0.5") == 22
    assert groups(1 << 40) == 10_000
    assert groups(5, min_filegroup_count="7", max_filegroup_count="7") == 7
    assert groups(1_000_000, min_filegroup_count="1", max_filegroup_size="4800000") == 20


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"hoodie.metadata.index.secondary.column": "ts"}, "record index"),
        ({"hoodie.metadata.index.secondary.column": "x"}, "x is double"),
        ({"hoodie.metadata.index.secondary.column": "nope"}, "nope is not there"),
        ({"hoodie.metadata.index.secondary.column": "ts", "hoodie.index.name": "a/b"}, "letters"),
        ({"hoodie.metadata.index.secondary.column": "ts", "hoodie.index.name": "ä" * 65}, "at most 128 bytes"),
        ({"hoodie.metadata.record.level.index.enable": "true"}, "one kind of record index"),
        ({"hoodie.metadata.index.secondary.column": "ts,id", "hoodie.index.name": "one"}, "one column"),
    ],
)
def test_indexes_that_cannot_be_made(tmp_path: Path, options: dict[str, str], what: str) -> None:
    record = {} if what == "record index" else {"hoodie.metadata.record.index.enable": "true"}
    with pytest.raises(ConfigError, match=what):
        ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **record, **options})
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


def test_an_index_may_have_a_name_of_its_own(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.index.name": "by_time"})
    table.write(Operation.INSERT, simple_rows(range(5), 1))
    assert hudimeta.Table(table.path).metadata.secondary_index("secondary_index_by_time", ["1"]).num_rows == 5


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_are_built_with_the_metadata_table(tmp_path: Path, kind: str, doubled: bool) -> None:
    """Of a table that has rows and log files, and never had one: proven, unless a key is there twice."""
    bare = {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false", "hoodie.datasource.write.table.type": kind}
    table = ModelledTable(str(tmp_path / "t"), {**bare, "hoodie.parquet.small.file.limit": "0"})
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    table.write(Operation.UPSERT, simple_rows(range(15, 30), 2))
    table.write(Operation.DELETE, simple_rows([3, 16], 0))
    if doubled:
        table.write(Operation.INSERT, simple_rows([5], 3))
    indexed = hudimeta.Table(table.path, {k: v for k, v in INDEXED.items() if k.startswith("hoodie.metadata")})
    fresh = simple_rows([40], 4)
    indexed.upsert(fresh)
    table.model.write(Operation.UPSERT, fresh)
    table.model.check(table.read())
    check_all(table.storage)
    assert proven(table.path) == (frozenset(BOTH) - {"record_index"} if doubled else frozenset(BOTH))
    assert indexed.scan("id = 'k0005'").to_table().num_rows == (2 if doubled else 1)


def test_a_write_builds_the_indexes_that_it_asks_for(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    asking = hudimeta.Table(table.path, {k: v for k, v in INDEXED.items() if k.startswith("hoodie.metadata")})
    fresh = simple_rows([7, 40], 4)
    report = asking.upsert(fresh)
    assert sum("which the table did not have" in note for note in report.notes) == 2
    table.model.write(Operation.UPSERT, fresh)
    table.model.check(table.read())
    check_all(table.storage)
    assert proven(table.path) == frozenset(BOTH)
    again = asking.upsert(fresh)
    assert not [note for note in again.notes if not note.startswith("routed")]
    assert again.index.startswith("record index"), "what was built is used to find rows"
