"""Names of partitions, as users give them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta

PARTS = ["a", "a ", " a", "*", "b", "b/c"]


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        *(("a", ["a"]), ("a ", ["a "]), (" a", [" a"]), ("*", ["*"])),
        *(("b/", ["b"]), (" b ", ["b"]), ("b*", ["b", "b/c"]), ("a  ", ["a"])),
    ],
)
def test_a_partition_of_that_very_name_goes_before_others(tmp_path: Path, name: str, gone: list[str]) -> None:
    table = hudimeta.Table.create(tmp_path / "t", pa.schema({"id": pa.string(), "part": pa.string()}), "id", "part")
    table.insert([{"id": part, "part": part} for part in PARTS])
    report = table.delete_partition(name)
    assert not [note for note in report.notes if "has rows" in note]
    left = table.scan(columns="part").to_table()["part"].to_pylist()
    assert sorted(left) == sorted(set(PARTS) - set(gone))
