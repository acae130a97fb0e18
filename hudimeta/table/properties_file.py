"""Reading and replacing `.hoodie/hoodie.properties` while others do the same.

Java replaces the file in steps: it copies the file to `hoodie.properties.backup`, deletes it, writes it anew, deletes the
backup; on a local disk the new file is empty or cut short for some milliseconds. So whoever reads takes the file when its
checksum is right, else the backup, else waits a little and looks again. We replace the file in one atomic step, under the
table lock, and need no backup; a backup that a dead writer left is removed, since Java would bring it back.

Hudi's checksum covers two values. What we write carries a seal over all of it (`formats.seal`), which Java drops when it
rewrites the file. Of a file without a seal, names that are nearly those of known properties are taken for damage.

The file is only replaced while it holds what was read: a request that was under way when its writer lost the lock, and takes
effect later, does not undo what others have changed since.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from hudimeta.errors import CorruptFileError, NotFound, PropertiesUnreadable, TableNotFound, UnsupportedFeature
from hudimeta.formats.one_apart import one_apart
from hudimeta.formats.properties import MAX_PROPERTIES_BYTES, decode_properties, encode_properties, table_checksum
from hudimeta.formats.seal import sealed_properties, verify_properties
from hudimeta.storage import Storage

__all__ = [
    "BACKUP_PATH",
    "CHECKSUM_KEY",
    "PROPERTIES_PATH",
    "RETRY_PAUSES_S",
    "properties_text",
    "read_properties",
    "what_is_wrong",
    "write_properties",
]

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"
CHECKSUM_KEY = "hoodie.table.checksum"
NAME_KEY = "hoodie.table.name"
DATABASE_KEY = "hoodie.database.name"

_RESTORE = "Restore the file from a copy, or set the name right."

RETRY_PAUSES_S = (0.0, 0.01, 0.04, 0.15)
"""Pauses before the file is looked at again; the first follows at once, for a backup that vanished between two looks."""

_TABLE = (
    "base.file.format|cdc.enabled|cdc.supplemental.logging.mode|checksum|create.schema|format|index.defs.path|initial.version|"
    "keygenerator.class|keygenerator.type|legacy.payload.class|log.file.format|metadata.partitions|metadata.partitions.inflight|"
    "multiple.base.file.formats.enable|name|ordering.fields|partial.update.mode|partition.fields|precombine.field|"
    "recordkey.fields|secondary.indexes.metadata|timeline.timezone|type|version"
)
_OTHERS = (
    "archivelog.folder|bootstrap.base.path|bootstrap.index.class|bootstrap.index.enable|bootstrap.index.type|"
    "compaction.payload.class|compaction.record.merger.strategy|database.name|datasource.write.drop.partition.columns|"
    "datasource.write.hive_style_partitioning|datasource.write.partitionpath.urlencode|partition.metafile.use.base.format|"
    "populate.meta.fields|record.merge.mode|record.merge.strategy.id|timeline.history.path|timeline.layout.version|timeline.path|"
    "write.complex.keygen.new.encoding|index.type|index.bucket.engine|bucket.index.num.buckets|bucket.index.hash.field"
)
_KEYGEN = (
    "input.dateformat|input.dateformat.list.delimiter.regex|input.timezone|output.dateformat|output.timezone|timestamp.type|"
    "timestamp.scalar.time.unit|timezone"
)

_KNOWN_PROPERTIES = frozenset(
    (
        *(f"hoodie.table.{name}" for name in _TABLE.split("|")),
        *(f"hoodie.{name}" for name in _OTHERS.split("|")),
        *(f"hoodie.keygen.timebased.{name}" for name in _KEYGEN.split("|")),
        *(f"hoodie.deltastreamer.keygen.timebased.{name}" for name in _KEYGEN.split("|")),
    )
)
"""Properties that say what a table is; there are others, of users and of later releases."""


class _Look(enum.Enum):
    """What one attempt to read a file came to."""

    ABSENT = "is missing"
    CUT_SHORT = "is empty or cut short"
    UNPROVEN = "has no checksum"
    WRONG = "has a wrong checksum"
    DAMAGED = "is damaged"
    SOUND = "is sound"


@dataclass(frozen=True, slots=True)
class _Found:
    look: _Look
    data: bytes
    values: dict[str, str]
    error: CorruptFileError | None = None


def read_properties(
    storage: Storage, sleep: Callable[[float], None], judge: Callable[[Mapping[str, str]], object] = dict
) -> tuple[dict[str, str], bytes]:
    """The table's properties as they stand; one request when nobody is replacing them.

    A file without a checksum is accepted when it stays the same through all pauses (Hudi does too).

    Args:
        storage: Rooted at the table.
        sleep: Waits so many seconds.
        judge: Called with what a damaged file says, to refuse it for a better reason if there is one.

    Returns:
        The properties, and the bytes of the file, damaged or not; b"" where there is only a backup.

    Raises:
        TableNotFound: neither the file nor a backup is there.
        PropertiesUnreadable: the checksum is wrong, or the file stays empty, and no backup helps.
        CorruptFileError: its content is not what was written, and no backup helps.
    """
    main = _look(storage, PROPERTIES_PATH)
    changed = False
    for pause in RETRY_PAUSES_S:
        if main.look is _Look.SOUND:
            return main.values, main.data
        backup = _look(storage, BACKUP_PATH)
        if backup.look is _Look.SOUND:
            return backup.values, main.data
        if pause and main.look is backup.look is _Look.ABSENT:
            raise TableNotFound(storage.root)
        if pause:
            sleep(pause)
        again = _look(storage, PROPERTIES_PATH)
        changed = again.data != main.data
        main = again
    if main.look is _Look.SOUND or (main.look is _Look.UNPROVEN and not changed):
        return main.values, main.data
    if main.error is not None:
        judge(main.values)
        raise main.error
    raise _unreadable(storage.root, main)


def what_is_wrong(storage: Storage) -> tuple[str | None, bool]:
    """What is wrong with the file, None when it is sound; and whether there is a backup. Call it under the table lock."""
    main, backup = _look(storage, PROPERTIES_PATH), _look(storage, BACKUP_PATH)
    return None if main.look is _Look.SOUND else main.look.value, backup.look is not _Look.ABSENT


def write_properties(storage: Storage, values: Mapping[str, str], now_ms: int, replaced: bytes) -> dict[str, str] | None:
    """Replace the file; call it under the table lock.

    Args:
        storage: Rooted at the table.
        values: All properties; the checksum among them is computed anew.
        now_ms: The present, for the comment in the first lines.
        replaced: What the file holds, b"" where it is not there.

    Returns:
        The properties as written; None where the file holds something else by now.
    """
    written = _with_checksum(values)
    if not _replaced(storage, properties_text(written, now_ms, "Updated at"), replaced):
        return None
    storage.delete(BACKUP_PATH)
    return written


def _replaced(storage: Storage, text: bytes, replaced: bytes) -> bool:
    if replaced:
        try:
            return storage.put_if_unchanged(PROPERTIES_PATH, text, replaced)
        except NotFound:  # Java removes it before it writes it anew
            return False
        except UnsupportedFeature:
            pass  # the store replaces nothing on a condition: the lock alone keeps others out
    storage.put(PROPERTIES_PATH, text)
    return True


def properties_text(values: Mapping[str, str], now_ms: int, verb: str = "Properties saved on") -> bytes:
    """The file's bytes, sealed, with a right checksum and the two comment lines that Java writes.

    Args:
        values: All properties.
        now_ms: The present.
        verb: Begins the first comment.
    """
    now = datetime.fromtimestamp(now_ms / 1000, timezone.utc)
    iso = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    comments = (f"{verb} {iso}", f"{now:%a %b %d %H:%M:%S} UTC {now:%Y}")
    return sealed_properties(encode_properties(_with_checksum(values), comments))


def _with_checksum(values: Mapping[str, str]) -> dict[str, str]:
    checksum = table_checksum(values.get(DATABASE_KEY, ""), values.get(NAME_KEY, ""))
    return {**values, CHECKSUM_KEY: str(checksum)}


def _look(storage: Storage, path: str) -> _Found:
    try:
        data = storage.read_range(path, 0, MAX_PROPERTIES_BYTES + 1)
    except NotFound:
        return _Found(_Look.ABSENT, b"", {})
    try:
        sealed = verify_properties(data, path)
    except CorruptFileError as broken:
        return _Found(_Look.DAMAGED, data, _readable(data, path), broken)
    try:
        values = decode_properties(data, path)
    except CorruptFileError:
        # Cut within an escape.
        return _Found(_Look.CUT_SHORT, data, {})
    error = None if sealed else _implausible(data, values, path)
    return _Found(_judge(data, values) if error is None else _Look.DAMAGED, data, values, error)


def _readable(data: bytes, path: str) -> dict[str, str]:
    try:
        return decode_properties(data, path)
    except CorruptFileError:
        return {}


def _implausible(data: bytes, values: Mapping[str, str], path: str) -> CorruptFileError | None:
    """The error for text without a seal that nobody can have written so."""
    if b"\0" in data:
        return CorruptFileError(path, data.index(b"\0"), "text", "a zero byte", _RESTORE)
    for key in values:
        meant = _damaged_name(key)
        if meant is not None:
            offset = max(data.find(key.encode("latin-1", "replace")), 0)
            return CorruptFileError(path, offset, f"the property {meant}", repr(key), _RESTORE)
    return None


def _judge(data: bytes, values: Mapping[str, str]) -> _Look:
    if not values:
        return _Look.CUT_SHORT
    stored = values.get(CHECKSUM_KEY)
    if stored is None:
        return _Look.UNPROVEN
    if stored.strip() != str(table_checksum(values.get(DATABASE_KEY, ""), values.get(NAME_KEY, ""))):
        return _Look.WRONG
    # The checksum covers two values only and may stand anywhere; Java ends its last line, so a file that does not is cut.
    return _Look.SOUND if data.endswith((b"\n", b"\r")) else _Look.UNPROVEN


def _unreadable(root: str, found: _Found) -> PropertiesUnreadable:
    if found.look is not _Look.WRONG:
        return PropertiesUnreadable(
            root,
            f"{found.look.value}, and there is no sound {BACKUP_PATH}",
            "If a writer is at work try again; else restore the file from a copy.",
        )
    database, name = found.values.get(DATABASE_KEY, ""), found.values.get(NAME_KEY, "")
    right = table_checksum(database, name)
    return PropertiesUnreadable(
        root,
        f"has {CHECKSUM_KEY}={found.values[CHECKSUM_KEY]}, but database {database!r} and table {name!r} give {right}",
        f"Restore the file from a copy; if {NAME_KEY} or {DATABASE_KEY} was changed on purpose, set {CHECKSUM_KEY}={right}.",
    )


def _damaged_name(key: str) -> str | None:
    """The known property whose name differs from an unknown one by a single character; None without such."""
    if key in _KNOWN_PROPERTIES:
        return None
    return next((known for known in sorted(_KNOWN_PROPERTIES) if one_apart(key, known)), None)
