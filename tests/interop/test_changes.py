"""Tables that hudimeta repaired or changed: Apache Hudi reads them and goes on writing, with its metadata table on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import MONTHS, SCHEMA, TABLE_VERSION, Model, Ours, Row, Theirs, readers, row

INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
PLAIN = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}


class Turns:
    """A table on which both write, and the rows that must be in it."""

    def __init__(self, path: Path, hudi: ApacheHudi, type: str, options: dict[str, str] = INDEXED) -> None:
        self.path, self.hudi, self.options, self.model, self.ts = path, hudi, options, Model(), 0
        self.become(type)

    def become(self, type: str) -> None:
        """From now on both are told this type."""
        self.ours = Ours(self.path, type=type, options=self.options)
        self.theirs = Theirs(self.path, self.hudi, type=type, options=self.options)

    def write(self, side: Ours | Theirs, first: int, last: int, operation: str = "upsert") -> None:
        self.ts += 1
        rows = [row(n, self.ts) for n in range(first, last)]
        side.write(operation, rows)
        self.model.put(rows)

    def agree(self, after: str) -> None:
        for name, read in readers(self.path, self.hudi).items():
            assert read() == self.model.sorted(), f"{name} after {after}"

    def go_on(self, after: str) -> None:
        """Both read, both write, and everything holds."""
        self.agree(after)
        self.write(self.theirs, 5, 25)
        self.write(self.ours, 15, 35)
        self.write(self.theirs, 0, 12)
        self.agree(f"writes after {after}")
        hudimeta.Table(self.path).metadata.validate().raise_if_differs()
        assert self.hudi.validate(self.path)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_goes_on_after_a_deduplication(hudi: ApacheHudi, tmp_path: Path, type: str) -> None:
    turns = Turns(tmp_path / "table", hudi, type)
    turns.write(turns.theirs, 0, 20)
    turns.write(turns.theirs, 10, 30, "bulk_insert")
    turns.write(turns.ours, 0, 5)
    report = hudimeta.Table(turns.path).repair.deduplicate()
    assert report.plan.dropped == 10
    turns.go_on("the deduplication")
    check_all(open_storage(str(turns.path)))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("first", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_goes_on_after_a_change_of_type(hudi: ApacheHudi, tmp_path: Path, first: str) -> None:
    turns = Turns(tmp_path / "table", hudi, first)
    turns.write(turns.theirs, 0, 20)
    turns.write(turns.ours, 10, 30)
    turns.write(turns.theirs, 40, 60)
    turns.write(turns.theirs, 5, 15)
    second = "MERGE_ON_READ" if first == "COPY_ON_WRITE" else "COPY_ON_WRITE"
    for type in (second, first):
        print(hudimeta.Table(turns.path).change_type(type))
        turns.become(type)
        turns.go_on(f"the change to {type}")
        if type == "MERGE_ON_READ":
            turns.theirs.write("compact", [])
            turns.agree("a compaction")
    check_all(open_storage(str(turns.path)))


def source_of(path: Path, rows: list[Row]) -> Path:
    """A dataset as Spark leaves one: a folder a partition, whose column no file has."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    for month in MONTHS:
        folder = path / f"month={month}"
        folder.mkdir(parents=True)
        own = table.filter(pc.equal(table["month"], month)).drop_columns(["month"])
        pq.write_table(own.slice(0, 4), folder / "part-0.parquet")
        pq.write_table(own.slice(4), folder / "part-1.parquet")
    return path


@pytest.mark.timeout(400)
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_goes_on_after_a_bootstrap(hudi: ApacheHudi, tmp_path: Path, type: str) -> None:
    """Two partitions are described, one is copied; both upsert into both, and compact."""
    turns = Turns(tmp_path / "table", hudi, type, PLAIN)
    rows = [row(n, 1) for n in range(30)]
    turns.model.put(rows)
    turns.ts = 1
    source = source_of(tmp_path / "source", rows)
    options = {**PLAIN, "hoodie.write.table.version": TABLE_VERSION}
    pattern = f"month={MONTHS[0]}|month={MONTHS[1]}"
    print(
        hudimeta.bootstrap(
            source, turns.path, "id", "month", "ts", type, options=options, name="turns", mode="METADATA_ONLY", pattern=pattern
        )
    )
    for name, read in bootstrapped_readers(turns).items():
        assert read() == turns.model.sorted(), name
    turns.write(turns.theirs, 5, 12)
    turns.write(turns.ours, 10, 16)
    for name, read in bootstrapped_readers(turns).items():
        assert read() == turns.model.sorted(), f"{name} after upserts"
    turns.write(turns.theirs, 0, 40)
    if type == "MERGE_ON_READ":
        turns.theirs.write("compact", [])
    for name, read in bootstrapped_readers(turns).items():
        assert read() == turns.model.sorted(), f"{name} at the end"
    hudimeta.Table(turns.path).metadata.validate(["files"]).raise_if_differs()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudimeta_writes_to_tables_that_hudi_bootstrapped(hudi: ApacheHudi, tmp_path: Path, type: str) -> None:
    turns = Turns(tmp_path / "table", hudi, type, {**PLAIN, "hoodie.datasource.write.hive_style_partitioning": "true"})
    rows = [row(n, 1) for n in range(30)]
    turns.model.put(rows)
    turns.ts = 1
    turns.theirs.options = {
        **turns.theirs.options,
        "hoodie.bootstrap.base.path": str(source_of(tmp_path / "source", rows)),
        "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
    }
    turns.theirs.write("bootstrap", [])
    assert len(list(turns.path.rglob("*_00000000000001.parquet"))) == 6
    turns.become(type)
    turns.write(turns.ours, 5, 12)
    for name, read in bootstrapped_readers(turns).items():
        assert read() == turns.model.sorted(), name
    turns.write(turns.theirs, 10, 20)
    turns.write(turns.ours, 0, 40)
    if type == "MERGE_ON_READ":
        turns.ours.write("compact", [])
    for name, read in bootstrapped_readers(turns).items():
        assert read() == turns.model.sorted(), f"{name} at the end"


def bootstrapped_readers(turns: Turns) -> dict[str, Callable[[], list[Row]]]:
    """All but hudi-rs, which does not know of bootstraps; columns in the order of the model."""
    found = {name: read for name, read in readers(turns.path, turns.hudi).items() if name != "hudi-rs"}
    return {name: lambda read=read: [{n: r[n] for n in SCHEMA.names} for r in read()] for name, read in found.items()}
