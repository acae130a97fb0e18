"""The bytes of BLOBs: in their rows, or in the files that rows refer to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.errors import SchemaMismatch, StorageError
from hudimeta.storage import open_storage

if TYPE_CHECKING:
    from hudimeta.storage import Storage

__all__ = ["read_blobs"]

_PARTS = {"type", "data", "reference"}
_PLACE = {"external_path", "offset", "length"}
_INLINE = "INLINE"


def read_blobs(blobs: pa.Array | pa.ChunkedArray, options: Mapping[str, str] | None = None) -> pa.Array:
    """The bytes of BLOBs, as `read_blob` of Apache Hudi gives them.

    >>> table.scan(columns=["id", "doc"]).to_table()["doc"]             # doctest: +SKIP
    >>> hudimeta.read_blobs(_)                                          # doctest: +SKIP

    Args:
        blobs: Structs of a BLOB column. Those that refer to a file are read from it, wherever it lies: from `offset` on (its
            beginning where that is null), `length` bytes (to its end where that is null).
        options: Those that begin with `hudimeta.storage.` reach the store of the files.

    Returns:
        large_binary; null for a null, and for a BLOB without bytes and without a reference.

    Raises:
        SchemaMismatch: The column holds no BLOBs.
        StorageError: A file cannot be read, or ends before the bytes that a row refers to.
    """
    kind = blobs.type if isinstance(blobs, (pa.Array, pa.ChunkedArray)) else None
    if kind is None:
        hint = 'Give such a column, such as table.scan().to_table()["doc"].'
        raise SchemaMismatch("blobs", type(blobs).__name__, "a column of Arrow", hint)
    if not pa.types.is_struct(kind) or {field.name for field in kind} != _PARTS:
        raise SchemaMismatch("blobs", kind, "structs of type, data, reference", "Give a column of BLOBs.")

    @cache
    def storage(folder: str) -> Storage:
        return open_storage(folder, options)

    def content(blob: dict[str, object] | None) -> bytes | None:
        if blob is None:
            return None
        place = blob["reference"]
        if blob["type"] == _INLINE or not isinstance(place, Mapping):
            data = blob["data"]
            return data if isinstance(data, bytes) else None
        folder, name = os.path.split(str(place["external_path"]))
        return _range(storage(folder), name, place["offset"] or 0, place["length"])

    return pa.array([content(blob) for blob in blobs.to_pylist()], pa.large_binary())


def _range(storage: Storage, name: str, offset: int, length: int | None) -> bytes:
    path, info, hint = f"{storage.root}/{name}", storage.stat(name), "Restore the file, or update the row with the BLOB."
    if info is None:
        raise StorageError(path, "a BLOB refers to it, and it is not there", hint)
    wanted = info.size - offset if length is None else length
    if min(offset, wanted) < 0 or offset + wanted > info.size:
        raise StorageError(path, f"a BLOB refers to {wanted} bytes from {offset} on, and it has {info.size}", hint)
    return storage.read_range(name, offset, wanted)
