"""Whether the content of an instant's file can be that instant's: by its seal where it is ours, else by what it says twice.

Commit metadata names each file with its partition and file group beside the path, and the path bears the instant as well. That
shows damage in any of them, and the content of another commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hudimeta.errors import CorruptFileError
from hudimeta.formats.one_apart import one_apart
from hudimeta.timeline.naming import EXTERNAL_SUFFIX, InstantFile
from hudimeta.types import Action, State

__all__ = ["refuse_implausible", "refuse_misshapen", "refuse_moved"]

_OF_PARTITIONS: Mapping[tuple[Action, State], tuple[str, tuple[str, ...]]] = {
    (Action.CLEAN, State.COMPLETED): ("partitionMetadata", ("deletePathPatterns", "successDeleteFiles")),
    (Action.SAVEPOINT, State.COMPLETED): ("partitionMetadata", ("savepointDataFile",)),
}
"""What the records of services say of each partition, and their readers count on."""

_SCHEMA_KEYS = ("schema", "latest_schema")
"""Without these a commit says nothing of the table's columns, and older ones would be believed."""


def refuse_moved(data: bytes, path: str) -> None:
    """Check a container that may be sealed.

    Args:
        data: The file.
        path: Where it lies, relative to the table.

    Raises:
        CorruptFileError: It is not what was sealed, or was sealed as another file.
    """
    from hudimeta.formats.avro.container import sealed_name

    name, found = path.rpartition("/")[2], sealed_name(data, path)
    if found is not None and found != name:
        raise CorruptFileError(path, 0, f"the content of {name}", f"that of {found}")


def refuse_implausible(metadata: Mapping[str, Any], instant: InstantFile, path: str) -> None:
    """Check commit metadata against itself and the name of its file.

    Args:
        metadata: As `formats.avro.commit_metadata` decodes it.
        instant: What the file's name says.
        path: Of the file.

    Raises:
        CorruptFileError: What it says of a file cannot be.
    """
    for key, value in metadata["extraMetadata"].items():
        meant = next((name for name in _SCHEMA_KEYS if one_apart(key, name)), None)
        if meant is not None or "\0" in key or (key in _SCHEMA_KEYS and "\0" in value):
            raise CorruptFileError(path, 0, f"the entry {meant or 'schema'} of extraMetadata", repr(key))
    for partition, stats in metadata["partitionToWriteStats"].items():
        for stat in stats:
            for right, wrong in _contradictions(partition, stat, instant):
                raise CorruptFileError(path, 0, right, wrong)


def refuse_misshapen(record: Mapping[str, Any], instant: InstantFile, path: str) -> None:
    """Check the record of a service for what all of its kind have.

    Args:
        record: As it was decoded.
        instant: What the file's name says.
        path: Of the file.

    Raises:
        CorruptFileError: A member is missing, or is of another kind.
    """
    member, names = _OF_PARTITIONS.get((instant.action, instant.state), ("", ()))
    if not member:
        return
    if member not in record or not isinstance(record[member] or {}, Mapping):
        raise CorruptFileError(path, 0, f"a record with {member}", f"one with {', '.join(record)}")
    for part in (record[member] or {}).values():
        for name in names:
            if not isinstance(part, Mapping) or not isinstance(part.get(name), list):
                raise CorruptFileError(path, 0, f"{member} with lists {name}", repr(part)[:80])


def _contradictions(partition: str, stat: Mapping[str, Any], instant: InstantFile) -> Iterable[tuple[str, str]]:
    """What must be and is not, of one write stat."""
    path, file_id = stat.get("path") or "", stat.get("fileId") or ""
    if not path or path.endswith(EXTERNAL_SUFFIX):  # its name says nothing; reads refuse it for what it is
        return
    folder, _, name = path.rpartition("/")
    if folder != partition:
        yield f"a file of partition {partition!r}", path
    if stat.get("partitionPath") not in (None, partition):
        yield f"write stats of partition {partition!r}", repr(stat["partitionPath"])
    if not name.lstrip(".").startswith(file_id):
        yield f"a file of file group {file_id!r}", path
    log = name.startswith(".")
    of_file = name.partition(".log.")[0].rpartition("_")[2] if log else name.partition(".")[0].rpartition("_")[2]
    if of_file != instant.time if not log else of_file > instant.time:
        yield f"files of instant {instant.time}", path
