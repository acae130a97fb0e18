"""Services that write rows anew leave columns as they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta import Table
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64())])


def rows(*parts: str | None, ts: int) -> pa.Table:
    """A row for each partition, from id 0 on."""
    return pa.Table.from_pylist([{"id": number, "part": part, "ts": ts} for number, part in enumerate(parts)], SCHEMA)


def stored(path: Path) -> set[tuple[int, str | None]]:
    """Ids and partition columns as the newest base files hold them."""
    newest = max(file.name.rpartition("_")[2] for file in path.rglob("*.parquet") if ".hoodie" not in file.parts)
    files = [pq.ParquetFile(file).read(["id", "part"]) for file in path.glob(f"*/*_{newest}")]
    return {(row["id"], row["part"]) for row in pa.concat_tables(files).to_pylist()}


@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_partition_columns_stay_what_files_hold(tmp_path: Path, service: str) -> None:
    """The path of an empty text says null. Written to files, it belied the statistics of the partition."""
    table = Table.create(tmp_path / "t", SCHEMA, key="id", partition_by="part", ordering="ts", type="MERGE_ON_READ")
    table.insert(rows("", "a", ts=1))
    table.upsert(rows("", "a", ts=2))
    getattr(table.services, service)()
    assert stored(tmp_path / "t") == {(0, ""), (1, "a")}
    assert table.scan(where="part IS NULL").to_table()["id"].to_pylist() == [0]
    check_all(open_storage(tmp_path / "t"))
