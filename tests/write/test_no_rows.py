"""Writes of no rows: nothing is left of them, or a commit where the option asks for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"], "n": [1, 2]})
NONE = ROWS.schema.empty_table()
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
WRITES = ["insert", "upsert", "bulk_insert", "delete"]


def made(path: Path, kind: str, **options: str) -> hudimeta.Table:
    indexes = ["column_stats", "record_index"]
    table = hudimeta.Table.create(path, ROWS.schema, key="id", partition_by="p", type=kind, indexes=indexes)
    table.insert(ROWS)
    return hudimeta.Table(table.path, {key.replace("__", "."): value for key, value in options.items()})


def listed(table: hudimeta.Table) -> list[Path]:
    return sorted(path for path in Path(table.path, ".hoodie", "timeline").rglob("*"))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_of_a_write_without_rows(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", kind)
    before = listed(table)
    for verb in WRITES:
        report = getattr(table, verb)(NONE)
        assert (report.instant, report.completion) == ("", None)
        assert report.notes[-1].startswith("there were no rows, and nothing was committed (hoodie.allow.empty.commit)")
    assert not table.update({"n": 3}, where="id = 'z'").instant
    assert not table.delete(where="id = 'z'").instant
    assert listed(table) == before


@pytest.mark.parametrize("kind", KINDS)
def test_the_option_makes_a_commit_of_it_which_brings_entries_of_its_metadata(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", kind, hoodie__allow__empty__commit="true", _offset="17")
    rows = table.scan().to_table()
    for verb in WRITES:
        report = getattr(table, verb)(NONE)
        assert table.timeline.writes[-1].time == report.instant
        assert table.timeline.metadata(table.timeline.writes[-1])["extraMetadata"]["_offset"] == "17"
    assert table.scan().to_table().equals(rows)
    check_all(open_storage(table.path, {}))


@pytest.mark.parametrize("kind", KINDS)
def test_overwrites_empty_what_they_overwrite_all_the_same(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", kind)
    assert table.insert_overwrite(NONE).instant
    assert table.scan().count() == 2, "no row names a partition"
    assert table.insert_overwrite_table(NONE).instant
    assert not table.scan().count()
