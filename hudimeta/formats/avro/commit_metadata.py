"""Commit metadata in and out: one shape in memory, whatever form it has on disk.

Table versions 8 and 9 keep it as an Avro container (`HoodieCommitMetadata`, or `HoodieReplaceCommitMetadata` for
replacecommits); version 6 keeps pretty-printed JSON with the same field names. Java maps both through a class whose
counters are primitive longs, so a counter must be a number: null would fail there. All else that is not known is null.
"""

from __future__ import annotations

from typing import Any

from hudimeta.errors import CorruptFileError
from hudimeta.formats.avro.container import MAGIC, decode_container, decode_container_schema, encode_container
from hudimeta.formats.avro.schemas import COMMIT_METADATA, REPLACE_COMMIT_METADATA, RUNTIME_STATS, WRITE_STAT
from hudimeta.formats.json_text import parse_json

__all__ = ["decode_commit_metadata", "encode_commit_metadata", "write_stat"]

_STAT_FIELDS: tuple[str, ...] = tuple(f["name"] for f in WRITE_STAT["fields"])
_RUNTIME_FIELDS: tuple[str, ...] = tuple(f["name"] for f in RUNTIME_STATS["fields"])
_NULLABLE_NUMBERS = frozenset({"totalLogFiles", "logOffset", "minEventTime", "maxEventTime"})
_COUNTERS: tuple[str, ...] = tuple(
    f["name"] for f in WRITE_STAT["fields"] if f["type"] == ["null", "long"] and f["name"] not in _NULLABLE_NUMBERS
)
_REQUIRED_FACTS = ("fileId", "path", "partitionPath", "fileSizeInBytes")
_KINDS = ("HoodieCommitMetadata", "HoodieReplaceCommitMetadata")


def decode_commit_metadata(data: bytes, path: str = "") -> dict[str, Any]:
    """What a commit, deltacommit or replacecommit says of itself.

    Args:
        data: The file: an Avro container, or JSON (table version 6).
        path: For error messages.

    Returns:
        `partitionToWriteStats` (partition -> list of write stats, each with every field of HoodieWriteStat, None where
        unknown), `compacted` (bool), `extraMetadata` (str -> str), `version` (None in practice), `operationType` (None when
        the file does not say), `partitionToReplaceFileIds` (partition -> list of file ids, {} unless it is a replacecommit).

    Raises:
        CorruptFileError: The bytes are neither form, also when the file is empty (as it is for a moment while Java writes it).
    """
    raw = _decode_avro(data, path) if data[:4] == MAGIC else _decode_json(data, path)
    try:
        return {
            "partitionToWriteStats": {
                partition: [_full_stat(stat) for stat in stats]
                for partition, stats in (raw.get("partitionToWriteStats") or {}).items()
            },
            "compacted": bool(raw.get("compacted")),
            "extraMetadata": raw.get("extraMetadata") or {},
            "version": raw.get("version"),
            "operationType": raw.get("operationType"),
            "partitionToReplaceFileIds": raw.get("partitionToReplaceFileIds") or {},
        }
    except (AttributeError, TypeError) as error:
        raise CorruptFileError(path, 0, "the fields of commit metadata", repr(error)) from error


def encode_commit_metadata(metadata: dict[str, Any], *, replace: bool = False, sync: bytes | None = None) -> bytes:
    """The Avro container of commit metadata, with defaults where Java wants them.

    Args:
        metadata: The fields that `decode_commit_metadata` returns; absent ones take their defaults (`version` null, counters of
            write stats 0, `compacted` False, maps empty).
        replace: Write `HoodieReplaceCommitMetadata`, the form of a completed replacecommit.
        sync: The sync marker of the container, random when None.

    Raises:
        ValueError: An unknown field, or replaced file ids without `replace`.
    """
    replaced = metadata.get("partitionToReplaceFileIds")
    if replaced and not replace:
        raise ValueError("only a replacecommit names replaced file ids")
    record: dict[str, Any] = {
        **metadata,
        "partitionToWriteStats": {
            partition: [_stat_for_java(stat) for stat in stats]
            for partition, stats in (metadata.get("partitionToWriteStats") or {}).items()
        },
        "compacted": bool(metadata.get("compacted")),
        "extraMetadata": metadata.get("extraMetadata") or {},
        "version": metadata.get("version"),
    }
    record.pop("partitionToReplaceFileIds", None)
    if replace:
        record["partitionToReplaceFileIds"] = replaced or {}
    return encode_container(REPLACE_COMMIT_METADATA if replace else COMMIT_METADATA, [record], sync)


def write_stat(**facts: Any) -> dict[str, Any]:
    """One write stat (`HoodieWriteStat`), complete and as Java would fill it.

    Args:
        **facts: Fields under their Avro names. Needed are `fileId`, `path` (relative to the table), `partitionPath` and
            `fileSizeInBytes`. Left out: `prevCommit` becomes the text "null" (a new file group), `totalWriteBytes` the file's
            size, every counter 0; with `logVersion` also `logOffset` 0, `baseFile` "" and `logFiles` the file's own name.
            `runtimeStats` may name only the member that counts.

    Raises:
        ValueError: A needed fact is missing, or a name is not a field of the record.
    """
    missing = [name for name in _REQUIRED_FACTS if facts.get(name) is None]
    if missing:
        raise ValueError(f"a write stat needs {', '.join(missing)}")
    defaults: dict[str, Any] = {"prevCommit": "null", "totalWriteBytes": facts["fileSizeInBytes"], "runtimeStats": {}}
    if facts.get("logVersion") is not None:
        defaults |= {"logOffset": 0, "baseFile": "", "logFiles": [facts["path"].rpartition("/")[2]]}
    given = {name: value for name, value in facts.items() if value is not None}
    return _stat_for_java({**defaults, **given})


def _decode_avro(data: bytes, path: str) -> dict[str, Any]:
    kind = decode_container_schema(data, path).get("name")
    if kind not in _KINDS:
        raise CorruptFileError(path, 4, " or ".join(_KINDS), kind)
    records = decode_container(data, path)
    if len(records) != 1:
        raise CorruptFileError(path, 0, "one record", len(records))
    return records[0]


def _decode_json(data: bytes, path: str) -> dict[str, Any]:
    try:
        raw = parse_json(data)
    except (ValueError, RecursionError) as error:
        found = repr(bytes(data[:16])) if data else "an empty file"
        raise CorruptFileError(path, 0, "commit metadata as an Avro container or JSON", found) from error
    if not isinstance(raw, dict):
        raise CorruptFileError(path, 0, "a JSON object", type(raw).__name__)
    return raw


def _full_stat(stat: dict[str, Any]) -> dict[str, Any]:
    return {name: stat.get(name) for name in _STAT_FIELDS}


def _stat_for_java(stat: dict[str, Any]) -> dict[str, Any]:
    unknown = stat.keys() - set(_STAT_FIELDS)
    if unknown:
        raise ValueError(f"HoodieWriteStat has no field {', '.join(sorted(unknown))}")
    full = _full_stat(stat)
    for name in _COUNTERS:
        if full[name] is None:
            full[name] = 0
    if full["runtimeStats"] is not None:
        full["runtimeStats"] = {name: full["runtimeStats"].get(name) or 0 for name in _RUNTIME_FIELDS}
    return full
