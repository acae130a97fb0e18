"""Tables over Parquet files of other tools, which Apache XTable makes: refused by name, and not read without their rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.avro.commit_metadata import decode_commit_metadata, encode_commit_metadata


def test_files_that_apache_hudi_did_not_write_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "n": [1]})
    table = Table.create(tmp_path / "t", rows.schema, key="id")
    table.insert(rows)
    written = table.timeline.writes[0]
    file = tmp_path / "t/.hoodie/timeline" / written.file_name
    said = decode_commit_metadata(file.read_bytes())
    for stats in said["partitionToWriteStats"].values():
        for stat in stats:
            stat.update(path=f"part-0.parquet_{written.time}_hudiext", fileId="part-0.parquet")
    file.write_bytes(encode_commit_metadata(said))
    with pytest.raises(UnsupportedFeature, match=r"base files that Apache Hudi did not write, such as part-0\.parquet_"):
        Table(tmp_path / "t").scan().to_table()
