"""The record of a savepoint: who asked for it, when and why, and the names of the files that stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import SAVEPOINT_METADATA

__all__ = ["encode_savepoint", "files_of_savepoint"]

_VERSION = 1


def encode_savepoint(user: str, at_ms: int, comment: str, files: Mapping[str, Sequence[str]]) -> bytes:
    """As the Avro container in the completed file of a savepoint.

    Args:
        user: Who asked for it.
        at_ms: When, in epoch milliseconds.
        comment: Why.
        files: Names of the files that it keeps, by partition path.
    """
    record = {
        "savepointedBy": user,
        "savepointedAt": at_ms,
        "comments": comment,
        "partitionMetadata": {
            partition: {"partitionPath": partition, "savepointDataFile": list(names)} for partition, names in files.items()
        },
        "version": _VERSION,
    }
    return encode_container(SAVEPOINT_METADATA, [record])


def files_of_savepoint(record: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Names of the files that a savepoint keeps, by partition path; `record` is what its completed file holds."""
    parts = record.get("partitionMetadata") or {}
    return {partition: tuple(part["savepointDataFile"]) for partition, part in parts.items()}
