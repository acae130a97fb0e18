"""Tables that hudimeta moves to another version: Apache Hudi reads them and goes on writing, with its metadata table on."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.metadata.record_index import PARTITION as RECORD_INDEX
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import OLD, Model, Ours, Row, Theirs, readers, row

INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
"""A release that knows no version 9."""


class Turns:
    """A table of Apache Hudi, and the rows that must be in it."""

    def __init__(self, path: Path, hudi: ApacheHudi, type: str, version: int) -> None:
        self.path, self.hudi, self.model = path, hudi, Model()
        self.type, self.ts = type, 0
        self.write_as(version)

    def write_as(self, version: int) -> None:
        """From now on Hudi is told this version, which it must keep."""
        options = {**INDEXED, "hoodie.write.table.version": str(version)}
        self.theirs = Theirs(self.path, self.hudi, type=self.type, options=options)

    def write(self, side: Ours | Theirs, first: int, last: int) -> None:
        self.ts += 1
        rows: list[Row] = [row(n, self.ts) for n in range(first, last)]
        side.write("upsert", rows)
        self.model.put(rows)

    def agree(self, after: str) -> None:
        for name, read in readers(self.path, self.hudi).items():
            assert read() == self.model.sorted(), f"{name} after {after}"

    def go_on(self, version: int, after: str) -> None:
        """Both read, both write, and everything holds."""
        assert hudimeta.Table(self.path).version == version
        self.write_as(version)
        self.agree(after)
        self.write(self.theirs, 10 * self.ts, 10 * self.ts + 20)
        self.write(Ours(self.path, type=self.type), 10 * self.ts, 10 * self.ts + 20)
        self.write(self.theirs, 0, 15)
        assert hudimeta.Table(self.path).version == version
        self.agree(f"writes after {after}")
        hudimeta.Table(self.path).metadata.validate().raise_if_differs()
        assert self.hudi.validate(self.path)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_goes_on_after_version_6(hudi: ApacheHudi, tmp_path: Path, type: str) -> None:
    turns = Turns(tmp_path / "table", hudi, type, 6)
    for first in (0, 10, 5):
        turns.write(turns.theirs, first, first + 20)
    indexes = hudimeta.Table(turns.path).properties.metadata_partitions
    assert RECORD_INDEX in indexes
    print(hudimeta.Table(turns.path).upgrade(8))
    assert set(indexes) <= set(hudimeta.Table(turns.path).properties.metadata_partitions)
    turns.go_on(8, "the upgrade to 8")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_goes_on_after_up_and_down(hudi: ApacheHudi, tmp_path: Path, type: str) -> None:
    turns = Turns(tmp_path / "table", hudi, type, 8)
    for first in (0, 10, 5):
        turns.write(turns.theirs, first, first + 20)
    hudimeta.Table(turns.path).upgrade(9)
    if not OLD:
        turns.go_on(9, "the upgrade to 9")
    hudimeta.Table(turns.path).downgrade(8)
    turns.go_on(8, "the downgrade to 8")
