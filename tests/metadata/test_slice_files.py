"""Small log files of the metadata table are decoded together, and still each stands for itself."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.errors import CorruptFileError
from hudimeta.formats.hfile import HFileInfo, HFileReader, KeyValues, write_hfile
from hudimeta.indexes.expression_index.facts import filter_rows
from hudimeta.metadata import bloom_filters
from hudimeta.metadata.log_entries import LogEntry
from hudimeta.metadata.record import RecordLayout, layout_of, schema_text
from hudimeta.metadata.slice_files import SliceFiles
from hudimeta.storage import open_storage

SCHEMA = schema_text(8)
LAYOUT: RecordLayout = layout_of(SCHEMA, "")


def filters(*names: str) -> KeyValues:
    rows = [("p", name, "20260101000000000", "SIMPLE", "AAAA") for name in names]
    return bloom_filters.encode_values(filter_rows(rows), LAYOUT)


def entry(path: str, cells: KeyValues) -> LogEntry:
    data = write_hfile(cells.keys, cells.values, HFileInfo(SCHEMA))
    return LogEntry("20260101000000000", path, reader=HFileReader(data, path))


def decoded(tmp_path: Path, *entries: LogEntry) -> list[pa.Table]:
    return list(SliceFiles(open_storage(tmp_path)).decode(entries, bloom_filters.decode_values))


def test_each_log_gets_its_own_rows(tmp_path: Path) -> None:
    parts = [("a",), ("b", "c"), (), ("d",)]
    entries = [entry(f"log{n}", filters(*names)) for n, names in enumerate(parts)]
    together = decoded(tmp_path, *entries)
    assert [len(table) for table in together] == [1, 2, 0, 1]
    for table, one in zip(together, entries, strict=True):
        assert table.equals(decoded(tmp_path, one)[0])


def test_damage_is_found_in_the_log_that_has_it(tmp_path: Path) -> None:
    good = filters("a")
    damaged = KeyValues(good.keys, pa.array([good.values[0].as_py()[:-3]], pa.binary()))
    with pytest.raises(CorruptFileError) as caught:
        decoded(tmp_path, entry("whole", good), entry("torn", damaged), entry("last", good))
    assert caught.value.path == "torn"
