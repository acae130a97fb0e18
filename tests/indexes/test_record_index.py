"""The record index against recorded tables, and when it contradicts the table."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.errors import MetadataOutOfSync
from hudimeta.indexes.record_index.look_up import RecordIndexLookUp
from hudimeta.table.key_file import KeyFile
from tests.indexes.key_tables import KeyTable, pairs, texts
from tests.recorded_tables import RICH


@pytest.mark.parametrize(("name", "partitioned"), [("mdt_all_v8", False), ("big_mor", False), ("part_rli", True)])
def test_recorded_rows_are_found_where_they_are(name: str, partitioned: bool, tmp_path: Path) -> None:
    table = hudimeta.Table(RICH.unpack(name, tmp_path))
    slices = table.file_slices().to_pylist()
    files: dict[str, list[KeyFile]] = {}
    for one in slices:
        file = KeyFile(one["partition_path"], one["file_id"], one["base_file"] or "", 1)
        files.setdefault(one["partition_path"], []).append(file)
    rows = table.scan().to_table()
    keys, partitions = (rows[c].combine_chunks() for c in ("_hoodie_record_key", "_hoodie_partition_path"))
    index = RecordIndexLookUp(table.metadata.record_index, lambda _: files, partitioned=partitioned)
    found = index.tag(keys, partitions)
    held = rows["_hoodie_file_name"].to_pylist()
    assert {(row, partition) for row, partition, _ in pairs(found)} == set(enumerate(partitions.to_pylist()))
    assert all(held[row].startswith(file_id) for row, _, file_id in pairs(found))
    elsewhere = index.tag(keys, texts(["elsewhere"] * len(keys)))
    assert elsewhere.hits == (0 if partitioned else len(keys))
    assert index.tag(texts(["no such key"]), texts(["elsewhere"])).hits == 0


def test_a_location_that_is_gone_is_an_error() -> None:
    table = KeyTable({"a": {"f": ["k"]}})
    stale = RecordIndexLookUp(table.locate, lambda _: {"a": []})
    with pytest.raises(MetadataOutOfSync, match="file group f of 'a'"):
        stale.tag(texts(["k"]), texts(["a"]))


def test_what_is_unproven_is_said() -> None:
    table = KeyTable({"a": {"f": ["k"]}})
    index = RecordIndexLookUp(table.locate, table.files_of, unproven="nothing proves it")
    assert "nothing proves it" in str(index.tag(texts(["k"]), texts(["a"])))
