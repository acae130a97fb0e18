"""The Rust implementation of Hudi reads what we write, and finds the same rows as in the file that Java wrote."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiFileGroupReader

from hudimeta.formats.hfile import HFileInfo, HFileReader, Packing, write_hfile

OURS = "files/files-0000-0_0-1-2_20990101000000000.hfile"


@pytest.fixture(params=["trips__mor__avro__v8_trips_8i3u1d", "mor__avro__v9_txns_simple_meta"])
def metadata(request: pytest.FixtureRequest, conformance_table: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of a metadata table that a test may add files to."""
    return Path(shutil.copytree(conformance_table(request.param) / ".hoodie" / "metadata", tmp_path / "metadata"))


def rows(metadata: Path, file: str) -> pa.RecordBatch:
    return HudiFileGroupReader(str(metadata)).read_file_slice_from_paths(file, [])


@pytest.mark.parametrize("compression", ["GZ", "NONE"])
@pytest.mark.parametrize("partition", ["files", "column_stats", "record_index"])
def test_a_rewritten_file_holds_the_same_rows(metadata: Path, partition: str, compression: str) -> None:
    compared = 0
    for path in sorted((metadata / partition).glob("*.hfile")):
        theirs = HFileReader(path.read_bytes())
        records = theirs.scan()
        if not len(records):
            continue
        (metadata / OURS).write_bytes(
            write_hfile(
                records.keys,
                records.values,
                HFileInfo(theirs.schema_text, with_min_max=True),
                bloom=True,
                packing=Packing(compression, block_size=400),
            )
        )
        assert rows(metadata, OURS).equals(rows(metadata, str(path.relative_to(metadata))))
        compared += len(records)
    assert compared > 0


@pytest.mark.parametrize("length", [10, 115, 116, 126, 127, 128, 140, 300, 3_000])
def test_keys_of_every_length_are_accepted(metadata: Path, length: int) -> None:
    """Lengths of index keys change their spelling at 128 and 256."""
    source = next(r for p in sorted((metadata / "files").glob("*.hfile")) if (r := HFileReader(p.read_bytes())).entry_count)
    value = source.scan().values[0].as_py()
    keys = [b"%06d" % i + b"k" * (length - 6) for i in range(300)]
    data = write_hfile(keys, [value] * 300, HFileInfo(source.schema_text, with_min_max=True), packing=Packing(block_size=2_000))
    (metadata / OURS).write_bytes(data)
    assert rows(metadata, OURS).num_rows == 300
