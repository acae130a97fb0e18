"""How a single key field of the generator COMPLEX is spelled, which the table does not say, is learned from any row of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.storage import open_storage
from hudimeta.table.properties import update

SPELLING = "hoodie.write.complex.keygen.new.encoding"
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
}


def rows(value: str) -> pa.Table:
    return pa.table({"id": [1, 2], "a": ["x", "x"], "b": ["y", "z"], "v": [value, value]})


@pytest.mark.parametrize("prefixed", [False, True])
def test_a_table_of_log_files_alone_tells_it_too(tmp_path: Path, prefixed: bool) -> None:
    """Tables of buckets begin with log files; Apache Hudi does not write down how it spells their keys."""
    options = {**BUCKETS, SPELLING: str(not prefixed).lower()}
    made = Table.create(
        tmp_path / "t", rows("").schema, key="id", partition_by=["a", "b"], type="MERGE_ON_READ", options=options
    )
    made.upsert(rows("first"))
    assert all(one["base_file"] is None for one in Table(tmp_path / "t").file_slices().to_pylist())
    update(open_storage(str(tmp_path / "t")), {SPELLING: None})
    Table(tmp_path / "t", BUCKETS).upsert(rows("second"))
    found = Table(tmp_path / "t").scan().to_table()
    assert sorted(found["_hoodie_record_key"].to_pylist()) == (["id:1", "id:2"] if prefixed else ["1", "2"])
    assert found["v"].to_pylist() == ["second", "second"]
