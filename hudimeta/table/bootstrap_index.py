"""The bootstrap index: which file of the source stands behind each skeleton base file (METADATA_ONLY bootstrap).

Two HFiles without compression, whose file info has `INDEX_INFO`, an Avro container with the source's folder::

    .hoodie/.aux/.bootstrap/.fileids/…      part=<partition>;fileid=<file id> -> container of HoodieBootstrapFilePartitionInfo
    .hoodie/.aux/.bootstrap/.partitions/…   part=<partition> -> container of HoodieBootstrapPartitionMetadata

A value names the file by its absolute URI. Readers here take its name alone, below the source's folder of the properties: a
table that moved together with its source is still read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.avro.container import decode_container, encode_container
from hudimeta.formats.avro.schemas import (
    BOOTSTRAP_FILE_PARTITION_INFO,
    BOOTSTRAP_INDEX_INFO,
    BOOTSTRAP_PARTITION_METADATA,
)
from hudimeta.storage import Storage, join

if TYPE_CHECKING:
    from hudimeta.formats.hfile import HFileReader

__all__ = [
    "BASE_PATH_KEY",
    "BY_FILE",
    "BY_PARTITION",
    "METADATA_ONLY_INSTANT",
    "BootstrapIndex",
    "SourceFile",
    "encode_indexes",
]

METADATA_ONLY_INSTANT: Final = "00000000000001"
"""Instant of every skeleton."""

BASE_PATH_KEY: Final = "hoodie.bootstrap.base.path"
_NAME: Final = "00000000-0000-0000-0000-000000000000-0_1-0-1_00000000000001.hfile"
BY_FILE: Final = f".hoodie/.aux/.bootstrap/.fileids/{_NAME}"
BY_PARTITION: Final = f".hoodie/.aux/.bootstrap/.partitions/{_NAME}"
_BLOCK_BYTES = 128 << 20


@dataclass(frozen=True)
class SourceFile:
    """One file of the source, and the skeleton that stands for it.

    Attributes:
        partition_path: Of the table, and of the source.
        file_id: Of the skeleton's file group.
        name: Of the source's file.
        size: Its bytes.
        modified_ms: When it was written.
    """

    partition_path: str
    file_id: str
    name: str
    size: int
    modified_ms: int

    def status(self, base: str) -> dict[str, Any]:
        """As the index has it; `base` is the source's folder as a URI."""
        return {
            "version": None,
            "path": {"version": 1, "uri": f"{base}/{join(self.partition_path, self.name)}"},
            "length": self.size,
            "isDir": False,
            "blockReplication": 1,
            "blockSize": _BLOCK_BYTES,
            "modificationTime": self.modified_ms,
            "accessTime": self.modified_ms,
        }


def encode_indexes(base_path: str, files: Iterable[SourceFile], now_ms: int) -> Mapping[str, bytes]:
    """Both files of the index, by their paths below the table.

    Args:
        base_path: The source's folder, absolute.
        files: All of them.
        now_ms: The present.
    """
    uri = base_path if "://" in base_path else f"file:{base_path}"
    by_partition: dict[str, list[SourceFile]] = {}
    by_file: dict[bytes, bytes] = {}
    for one in files:
        by_partition.setdefault(one.partition_path, []).append(one)
        place = {"version": None, "bootstrapPartitionPath": one.partition_path, "partitionPath": one.partition_path}
        value = {**place, "bootstrapFileStatus": one.status(uri)}
        by_file[_file_key(one.partition_path, one.file_id)] = encode_container(BOOTSTRAP_FILE_PARTITION_INFO, [value])
    partitions = {
        f"part={path}".encode(): encode_container(
            BOOTSTRAP_PARTITION_METADATA,
            [
                {
                    "version": None,
                    "bootstrapPartitionPath": path,
                    "partitionPath": path,
                    "fileIdToBootstrapFile": {one.file_id: one.status(uri) for one in found},
                }
            ],
        )
        for path, found in by_partition.items()
    }
    return {BY_FILE: _hfile(base_path, by_file, now_ms), BY_PARTITION: _hfile(base_path, partitions, now_ms)}


def _hfile(base_path: str, values: Mapping[bytes, bytes], now_ms: int) -> bytes:
    from hudimeta.formats.hfile import HFileInfo, Packing, write_hfile

    said = {"version": 1, "bootstrapBasePath": base_path, "createdTimestamp": now_ms, "numKeys": len(values)}
    info = HFileInfo(extra={"INDEX_INFO": encode_container(BOOTSTRAP_INDEX_INFO, [said])})
    keys = sorted(values)
    return write_hfile(keys, [values[key] for key in keys], info, packing=Packing("NONE"))


def _file_key(partition_path: str, file_id: str) -> bytes:
    return f"part={partition_path};fileid={file_id}".encode()


class BootstrapIndex:
    """The index of one table, read when it is first asked.

    Args:
        storage: Rooted at the table.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._reader: HFileReader | None = None

    def source_path(self, partition_path: str, file_id: str) -> str:
        """The file behind a skeleton, relative to the source.

        Raises:
            CorruptFileError: The index does not know the file group, or is missing.
        """
        key = _file_key(partition_path, file_id)
        found = self._open().lookup([key]).values
        if len(found) != 1:
            raise CorruptFileError(BY_FILE, 0, f"an entry {key.decode()!r}", "none")
        (record,) = decode_container(found[0].as_py(), BY_FILE)
        uri = record["bootstrapFileStatus"]["path"]["uri"]
        return join(record["bootstrapPartitionPath"] or "", posixpath.basename(uri))

    def mapping(self) -> Iterator[tuple[str, str, str, str]]:
        """Partition, file group, partition of the source and URI of its file, for each file group, in the index's order.

        Raises:
            CorruptFileError: The index is missing, or damaged.
        """
        found = self._open().scan()
        for key, value in zip(found.keys, found.values, strict=True):
            partition, _, file_id = key.as_py().decode().removeprefix("part=").rpartition(";fileid=")
            (record,) = decode_container(value.as_py(), BY_FILE)
            yield partition, file_id, record["bootstrapPartitionPath"] or "", record["bootstrapFileStatus"]["path"]["uri"]

    def _open(self) -> HFileReader:
        if self._reader is None:
            from hudimeta.formats.hfile import HFileReader

            try:
                self._reader = HFileReader(self._storage.read(BY_FILE), BY_FILE)
            except NotFound as error:
                raise CorruptFileError(BY_FILE, 0, "the index of the bootstrapped files", "no file") from error
        return self._reader
