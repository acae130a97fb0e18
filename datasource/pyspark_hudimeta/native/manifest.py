"""A list of files that Spark reads as a folder: the manifest of a file sink, `_spark_metadata/0` in an empty folder.

Spark asks such a folder's manifest which files there are, and lists and stats nothing. The files may lie anywhere. It is text:
a line `v1`, then one JSON object a line (here broken in two), `path` being a percent-encoded URI::

    v1
    {"path":"file:///t/p=1/a%20b.parquet","size":10,"isDir":false,"modificationTime":1767225600000,
     "blockReplication":1,"blockSize":134217728,"action":"add"}

Read it with the option `recursiveFileLookup`, which keeps Spark from taking columns out of folder names::

    spark.read.option("recursiveFileLookup", "true").schema(columns).parquet(folder)

A plan holds the list from then on, so that the folder may be deleted behind a DataFrame; a new `parquet(folder)` reads it anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timezone
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import ConfigError
from hudimeta.storage import Storage, check_native_files, join
from hudimeta.timeline import parse_instant

__all__ = ["MANIFEST_FILES", "MANIFEST_PATH", "base_files", "encode_manifest", "file_uri", "write_manifest"]

MANIFEST_PATH = "_spark_metadata/0"
"""Where the manifest lies in its folder."""

MANIFEST_FILES = pa.schema([("uri", pa.string()), ("size", pa.int64()), ("modified_ms", pa.int64())])
"""Columns of a list of files: percent-encoded URI, bytes, epoch milliseconds."""

_VERSION = "v1"
_BLOCK = 128 << 20
"""Bytes that Spark takes for a block of the store; it cuts large files by its own settings."""
_UNRESERVED = "/=:@!$&'()*+,;~"
"""Characters besides letters, digits and `_.-` that stand for themselves in the path of a URI."""


def file_uri(root: str, path: str) -> str:
    """The percent-encoded URI of a table's file.

    Args:
        root: Of the table: an absolute local path, or a URI whose path is not encoded.
        path: Relative to it.
    """
    return _root_uri(root) + quote(path, _UNRESERVED)


def _root_uri(root: str) -> str:
    """The URI of a table's folder, with a slash at its end."""
    scheme, _, rest = ("", "", root) if root.startswith("/") else root.partition(":")
    return (f"{scheme}:" if scheme else "file://") + quote(rest.rstrip("/"), _UNRESERVED) + "/"


def base_files(slices: pa.Table, root: str) -> pa.Table:
    """The base files of file slices, as a manifest lists them.

    Args:
        slices: Columns of `Table.file_slices()`; slices without a base file are passed over.
        root: Location of the table.

    Returns:
        Columns of `MANIFEST_FILES`; a file's time is the instant that made it.

    Raises:
        OutsideTable: A path leads out of the table. Spark opens what it is given, past the engine's storage.
    """
    held = slices.filter(pc.is_valid(slices.column("base_file")))
    partitions = {path: quote(path, _UNRESERVED) for path in pc.unique(held.column("partition_path")).to_pylist()}
    start = _root_uri(root)
    names = list(zip(held.column("partition_path").to_pylist(), held.column("base_file").to_pylist(), strict=True))
    check_native_files(root, (join(partition, name) for partition, name in names))
    uris = [start + join(partitions[partition], quote(name, _UNRESERVED)) for partition, name in names]
    instants = held.column("base_instant").combine_chunks().dictionary_encode()
    times = pa.array([_modified(text) for text in instants.dictionary.to_pylist()], pa.int64())
    sizes = held.column("base_size").cast(pa.int64())
    return pa.table([pa.array(uris, pa.string()), sizes, times.take(instants.indices)], schema=MANIFEST_FILES)


def _modified(instant: str) -> int:
    """Epoch milliseconds of an instant; 0 for one that is no time, as those of bootstrapped files."""
    try:
        return parse_instant(instant, timezone.utc)
    except ConfigError:
        return 0


def encode_manifest(files: pa.Table) -> bytes:
    """A manifest as bytes.

    Args:
        files: Columns of `MANIFEST_FILES`; none make an empty DataFrame.
    """
    return "\n".join([_VERSION, *_lines(files)]).encode()


def _lines(files: pa.Table) -> Iterator[str]:
    columns = (files.column(name).to_pylist() for name in MANIFEST_FILES.names)
    for uri, size, modified in zip(*columns, strict=True):
        entry = {"path": uri, "size": size, "isDir": False, "modificationTime": modified}
        yield json.dumps({**entry, "blockReplication": 1, "blockSize": _BLOCK, "action": "add"}, separators=(",", ":"))


def write_manifest(storage: Storage, folder: str, files: pa.Table) -> None:
    """Make a folder of listed files.

    Args:
        storage: One that Spark's driver reads too.
        folder: Relative to it, empty so far.
        files: See `encode_manifest`.
    """
    storage.put(join(folder, MANIFEST_PATH), encode_manifest(files))
