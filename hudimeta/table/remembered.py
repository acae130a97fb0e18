"""What never changes of a table, and where else that stands than in `hoodie.properties`: in our commits, and on storage.

A commit of ours carries the table's key, partition and ordering fields, its type, its merge mode and the form of its partition
paths. A properties file that says otherwise is an old copy, or damaged by whoever rewrote it. Apache Hudi's upgrades and
downgrades rename and reinterpret some of that, so across versions only what they leave alone is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hudimeta.errors import CorruptFileError, TableError
from hudimeta.formats.json_text import parse_json
from hudimeta.storage import Storage, join
from hudimeta.table.discovery import list_table
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.table.properties_file import PROPERTIES_PATH
from hudimeta.timeline.naming import parse_instant_name

if TYPE_CHECKING:
    from hudimeta.table.properties import TableProperties

__all__ = ["REMEMBERED_KEY", "TYPE_SINCE_KEY", "refuse_lost_timeline", "refuse_other_table", "what_never_changes"]

REMEMBERED_KEY = "hudimeta.table"
"""Entry of a commit's extraMetadata."""

TYPE_SINCE_KEY = "hudimeta.table.type.since"
"""Property of a table whose type was changed: the instant of that change. Earlier commits remember the other type."""

_VERSION = "version"
_LEFT_BY_UPGRADES = ("type", "key", "partition", "hive_style", "url_encode")
_METADATA_TIMELINE = ".hoodie/metadata/.hoodie/timeline"
_BOOTSTRAP_TIMES = "0000"
"""So begin the instants of a metadata table that was laid out before the table's first write."""


def what_never_changes(properties: TableProperties) -> dict[str, Any]:
    """The facts that a commit remembers, as JSON values.

    Args:
        properties: Of the table.
    """
    return {
        _VERSION: properties.version,
        "type": properties.type.value,
        "key": list(properties.record_keys),
        "partition": list(properties.partition_fields),
        "ordering": list(properties.ordering_fields),
        "merge": properties.merge_mode.value,
        "hive_style": properties.hive_style,
        "url_encode": properties.url_encode,
        "drop_partition_columns": properties.drop_partition_columns,
        "populate_meta": properties.populate_meta,
        "base_file_format": properties.base_file_format,
    }


def refuse_other_table(properties: TableProperties, commit: Mapping[str, Any], path: str) -> None:
    """Compare the properties with what the newest write remembers, if that was ours.

    Args:
        properties: Of the table.
        commit: Metadata of its newest completed write.
        path: Of that commit's file.

    Raises:
        CorruptFileError: The properties contradict the commit.
    """
    text = (commit.get("extraMetadata") or {}).get(REMEMBERED_KEY)
    if not text:
        return
    try:
        then = dict(parse_json(text))
    except (ValueError, TypeError) as error:
        raise CorruptFileError(path, 0, f"JSON in {REMEMBERED_KEY}", repr(error)) from error
    now = what_never_changes(properties)
    compared = now if then.get(_VERSION) == now[_VERSION] else _LEFT_BY_UPGRADES
    named = parse_instant_name(path.rpartition("/")[2])
    if named is not None and named.time <= properties.get(TYPE_SINCE_KEY, ""):
        then.pop("type", None)
    for name in compared:
        if name in then and then[name] != now[name]:
            raise CorruptFileError(
                PROPERTIES_PATH,
                0,
                f"{name} {then[name]!r}, as {path} says",
                repr(now[name]),
                "Restore the file from a copy: that never changes.",
            )


def refuse_lost_timeline(storage: Storage, folder: str) -> None:
    """Tell a table that is still empty from one whose timeline is gone or looked for in the wrong place.

    Args:
        storage: Rooted at the table.
        folder: Of the timeline, in which there is no instant.

    Raises:
        TableError: The table holds rows.
    """
    instants = [found for entry in storage.list(_METADATA_TIMELINE) if (found := parse_instant_name(entry.name)) is not None]
    written = any(not found.time.startswith(_BOOTSTRAP_TIMES) for found in instants)
    # A metadata table that has nothing but its first instants says that no write followed: then no folder of data is listed.
    if not written and (not instants or storage.stat(folder) is None):
        names = list_table(storage)["name"].to_pylist()
        written = any(parse_base_file(name) or parse_log_file(name) for name in names)
    # A first write may have begun meanwhile.
    if written and not any(parse_instant_name(entry.name) for entry in storage.list(folder)):
        raise TableError(
            f"the table at {storage.root!r} has files of rows, but no timeline in {folder}",
            f"Restore the folder {join(storage.root, folder)} from a copy, or set hoodie.timeline.path right.",
        )
