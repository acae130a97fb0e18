"""Keys are found also where compactions of the metadata table passed over the file group that holds them."""

from __future__ import annotations

from pathlib import Path

import hudimeta
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation

OPTIONS = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.compact.max.delta.commits": "2",
}


def test_every_key_is_found_after_compactions_of_single_groups(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), OPTIONS)
    for number in range(9):
        table.write(Operation.INSERT, simple_rows([number], 1))
        keys = [f"k{n:04d}" for n in range(number + 1)]
        found = hudimeta.Table(table.path).metadata.record_index(keys)
        assert sorted(found["record_key"].to_pylist()) == keys
        report = table.write(Operation.UPSERT, simple_rows([number // 2], number + 2))
        assert (report.updated, report.inserted) == (1, 0)
    table.check()
