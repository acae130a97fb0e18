"""What the instants' files say: commit metadata, plans, and what follows from them for readers.

Of version 8 and 9 every file is an Avro container; of version 6 commits are JSON with the same field names, while plans, cleans
and rollbacks are Avro there too. Tables upgraded from version 6 hold both. The first bytes decide, never the table's version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from hudimeta.errors import CorruptFileError
from hudimeta.formats.json_text import parse_json
from hudimeta.timeline.naming import parse_instant_name
from hudimeta.timeline.plausible import refuse_implausible, refuse_misshapen, refuse_moved
from hudimeta.types import COPYING_OPERATIONS, Action, Instant

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "SCHEMA_KEY",
    "decode_instant",
    "latest_schema",
    "lost_content",
    "replaced_groups_table",
    "schema_of",
    "undone_instants",
]

SCHEMA_KEY = "schema"
"""Key of the table's Avro schema in a commit's `extraMetadata`."""

_AVRO_MAGIC = b"Obj\x01"
_RECORDS = {
    Action.CLEAN: ("HoodieCleanerPlan", "HoodieCleanMetadata"),
    Action.ROLLBACK: ("HoodieRollbackPlan", "HoodieRollbackMetadata"),
    Action.RESTORE: ("HoodieRestorePlan", "HoodieRestoreMetadata"),
    Action.SAVEPOINT: ("HoodieSavepointMetadata",),
    Action.COMPACTION: ("HoodieCompactionPlan",),
    Action.LOG_COMPACTION: ("HoodieCompactionPlan",),
}
"""Records in the files of actions that have one kind of plan and one of outcome."""


class _Metadata(Protocol):
    def metadata(self, instant: Instant) -> dict[str, Any]: ...


def decode_instant(data: bytes, path: str, is_commit: bool) -> dict[str, Any]:
    """Decode the content of one instant's file.

    Args:
        data: The file's bytes.
        path: Relative to the table, for the error.
        is_commit: True for commit metadata, False for plans and every other record.

    Returns:
        The record with Hudi's field names. Of an empty file: {}, or commit metadata that says nothing.

    Raises:
        CorruptFileError: neither an Avro container with one record nor a JSON object, or the content of another instant.
    """
    named = parse_instant_name(path.rpartition("/")[2])
    if named is not None and data.startswith(_AVRO_MAGIC):
        refuse_moved(data, path)
    if is_commit:
        from hudimeta.formats.avro.commit_metadata import decode_commit_metadata

        metadata = decode_commit_metadata(data or b"{}", path)
        if named is not None:
            refuse_implausible(metadata, named, path)
        return metadata
    if not data:
        return {}
    kinds = _RECORDS.get(named.action, ()) if named is not None else ()
    records = _decode_container(data, path, kinds) if data.startswith(_AVRO_MAGIC) else [_decode_json(data, path)]
    if len(records) != 1:
        raise CorruptFileError(path, 0, "one record", f"{len(records)} records")
    if named is not None:
        refuse_misshapen(records[0], named, path)
    return records[0]


def _decode_container(data: bytes, path: str, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    from hudimeta.formats.avro.container import decode_container

    return decode_container(data, path, kinds)


def _decode_json(data: bytes, path: str) -> dict[str, Any]:
    try:
        found = parse_json(data)
    except ValueError as error:
        raise CorruptFileError(path, getattr(error, "pos", 0), "an Avro container or JSON", str(error)) from None
    if not isinstance(found, dict):
        raise CorruptFileError(path, 0, "a JSON object", f"a JSON {type(found).__name__}")
    return found


def schema_of(metadata: Mapping[str, Any]) -> str:
    """The Avro schema (JSON text) in commit metadata; "" when there is none."""
    return str((metadata.get("extraMetadata") or {}).get(SCHEMA_KEY) or "")


def latest_schema(newest_first: Iterable[Instant], timeline: _Metadata) -> tuple[Instant, str] | None:
    """The newest schema among completed writes, and the instant that carries it; None when none does.

    Compaction and clustering do not decide while another write has a schema: theirs may be older than their instant.
    """
    fallback: tuple[Instant, str] | None = None
    for instant in newest_first:
        metadata = timeline.metadata(instant)
        schema = schema_of(metadata)
        if not schema:
            continue
        if metadata.get("operationType") not in COPYING_OPERATIONS:
            return instant, schema
        fallback = fallback or (instant, schema)
    return fallback


def replaced_groups_table(replacing: Iterable[Instant], timeline: _Metadata) -> pa.Table:
    """File groups that completed replacecommits hid.

    Returns:
        Arrow table `partition_path: string, file_id: string, instant: string`, in the order of the instants.
    """
    import pyarrow as pa

    from hudimeta.formats.plain_arrays import texts

    partitions: list[str] = []
    file_ids: list[str] = []
    instants: list[str] = []
    for instant in replacing:
        replaced = timeline.metadata(instant).get("partitionToReplaceFileIds") or {}
        for partition, ids in replaced.items():
            partitions += [partition] * len(ids)
            file_ids += ids
            instants += [instant.time] * len(ids)
    columns = [texts(partitions), texts(file_ids), texts(instants)]
    return pa.Table.from_arrays(columns, names=["partition_path", "file_id", "instant"])


def undone_instants(undoing: Iterable[Instant], timeline: _Metadata) -> frozenset[str]:
    """Requested times that completed rollbacks and restores took back."""
    undone: set[str] = set()
    for instant in undoing:
        metadata = timeline.metadata(instant)
        undone.update(metadata.get("commitsRollback") or ())
        undone.update(metadata.get("instantsToRollback") or ())
        for named in (metadata.get("instantsRollback") or ()), (metadata.get("restoreInstantInfo") or ()):
            undone.update(info["commitTime"] for info in named)
    return frozenset(undone)


def lost_content(path: str, way_out: str) -> CorruptFileError:
    """The error for the empty file of a completed action.

    Args:
        path: Of the file.
        way_out: What helps beside a copy of the file; "" where nothing does.
    """
    hint = "If no writer is just publishing it, restore the file from a copy"
    return CorruptFileError(
        path, 0, "the metadata of a completed action", "an empty file", f"{hint}{', or: ' if way_out else ''}{way_out}."
    )
