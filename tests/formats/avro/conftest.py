"""The container files that Apache Hudi wrote, read straight from the packed tables."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CONTAINER_MAGIC = b"Obj\x01"


@pytest.fixture(scope="session")
def recorded_timeline(shared: Path) -> dict[str, bytes]:
    """Every file of the recorded tables that is an Avro container or version 6's JSON of a commit, by table and path."""
    found: dict[str, bytes] = {}
    for path in sorted((shared / "interop" / "tables").glob("*.tar.xz")):
        found.update(kept for kept in _tar_members(path) if _is_metadata(*kept))
    for path in sorted((shared / "conformance" / "zips").glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                data = archive.read(name)
                if _is_metadata(name, data):
                    found[f"{path.stem}:{name}"] = data
    return found


@pytest.fixture(scope="session")
def recorded_containers(recorded_timeline: dict[str, bytes]) -> dict[str, bytes]:
    """The Avro containers among them."""
    return {name: data for name, data in recorded_timeline.items() if data.startswith(CONTAINER_MAGIC)}


def _tar_members(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                yield member.name, content.read()


def _is_metadata(name: str, data: bytes) -> bool:
    is_commit = name.endswith("commit") and data.startswith(b"{") and b"partitionToWriteStats" in data
    return data.startswith(CONTAINER_MAGIC) or is_commit
