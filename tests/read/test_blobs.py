"""The bytes of BLOBs, from their rows and from the files that these refer to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import SchemaMismatch, StorageError
from hudimeta.testing.blobs import BLOB_STRUCT, inline


def outside(path: object, offset: int | None = None, length: int | None = None) -> dict[str, Any]:
    """A BLOB in a file."""
    place = {"external_path": str(path), "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": place}


@pytest.fixture
def content(tmp_path: Path) -> Path:
    path = tmp_path / "content"
    path.write_bytes(b"0123456789")
    return path


def test_bytes_come_from_rows_and_from_files(content: Path) -> None:
    blobs = [inline(b"own"), None, outside(content), outside(content, 8), outside(content, 2, 3), outside(content, 0, 0)]
    found = hudimeta.read_blobs(pa.chunked_array([pa.array(blobs[:2], BLOB_STRUCT), pa.array(blobs[2:], BLOB_STRUCT)]))
    assert found.to_pylist() == [b"own", None, b"0123456789", b"89", b"234", b""]
    assert hudimeta.read_blobs(pa.array([{**inline(b""), "data": None}], BLOB_STRUCT)).to_pylist() == [None]


@pytest.mark.parametrize(
    ("offset", "length", "says"),
    [(8, 3, "3 bytes from 8 on, and it has 10"), (11, None, "-1 bytes from 11 on"), (-1, 2, "2 bytes from -1 on")],
)
def test_bytes_that_a_file_does_not_have_are_told(content: Path, offset: int, length: int | None, says: str) -> None:
    with pytest.raises(StorageError, match=rf"content: a BLOB refers to {says}.*Restore the file"):
        hudimeta.read_blobs(pa.array([outside(content, offset, length)], BLOB_STRUCT))


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="gone: a BLOB refers to it, and it is not there"):
        hudimeta.read_blobs(pa.array([outside(tmp_path / "gone")], BLOB_STRUCT))


def test_other_columns_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="Give a column of BLOBs"):
        hudimeta.read_blobs(pa.array([b"x"]))
    with pytest.raises(SchemaMismatch, match=r"column 'blobs' is list, the table needs a column of Arrow"):
        hudimeta.read_blobs([None])  # type: ignore[arg-type]
