"""Which tables are read and written: versions, layouts, and properties that ask for what is not done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hudimeta.config import OPTIONS
from hudimeta.errors import TableError, UnsupportedFeature, UnsupportedTableVersion
from hudimeta.timeline.naming import LAYOUT_V1, LAYOUT_V2

if TYPE_CHECKING:
    from hudimeta.table.properties import TableProperties

__all__ = ["READABLE_VERSIONS", "WRITABLE_VERSIONS", "refuse_unreadable", "refuse_unwritable"]

READABLE_VERSIONS = (6, 8, 9)
WRITABLE_VERSIONS = (8, 9)
_LAYOUT_OF_VERSION = {6: LAYOUT_V1, 8: LAYOUT_V2, 9: LAYOUT_V2}

_UNREADABLE = ("hoodie.table.log.file.format",)
"""Properties that change what rows are; see `hudimeta.config.not_done`."""
_UNWRITABLE = (
    "hoodie.datasource.write.slash.separated.date.partitioning",
    "hoodie.table.multiple.base.file.formats.enable",
    "hoodie.partition.metafile.use.base.format",
    "hoodie.bucket.index.partition.rule.type",
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
    "hoodie.allow.operation.metadata.field",
    "hoodie.storage.layout.partitioner.class",
    "hoodie.index.class",
)
"""Properties that a writer would have to follow."""

_CHECKED_AT_OPEN = (
    "name",
    "type",
    "zone",
    "base_file_format",
    "merge_settings",
    "cdc_mode",
    "hive_style",
    "url_encode",
    "drop_partition_columns",
    "populate_meta",
    "cdc_enabled",
)
"""Attributes whose texts are judged when a table is opened, not when they are first used."""


def refuse_unreadable(properties: TableProperties) -> None:
    """Refuse what cannot be read, before anything is read.

    Args:
        properties: Of the table.

    Raises:
        UnsupportedTableVersion: not one of `READABLE_VERSIONS`.
        UnsupportedFeature: a table format that is not Hudi's own.
        TableError: a required property is missing, or the timeline's layout does not belong to the version.
        ConfigError: a property's text means nothing.
    """
    version = properties.version
    if version not in READABLE_VERSIONS:
        raise UnsupportedTableVersion(version, READABLE_VERSIONS)
    if properties.layout != _LAYOUT_OF_VERSION[version]:
        raise TableError(
            f"a table of version {version} has timeline layout {_LAYOUT_OF_VERSION[version]}, "
            f"hoodie.timeline.layout.version says {properties.layout}",
            "An upgrade may have been interrupted: let Apache Hudi finish it, or restore hoodie.properties from a copy.",
        )
    table_format = properties.get("hoodie.table.format", "native").strip().lower()
    if table_format != "native":
        raise UnsupportedFeature(f"table format {table_format!r}", "Only Hudi's own format is read.")
    _refuse(properties, _UNREADABLE, "Read this table with Apache Hudi.")
    for attribute in _CHECKED_AT_OPEN:
        getattr(properties, attribute)


def refuse_unwritable(properties: TableProperties) -> None:
    """Refuse what cannot be written: see `refuse_unreadable`; version 6 is read only."""
    refuse_unreadable(properties)
    if properties.version not in WRITABLE_VERSIONS:
        raise UnsupportedTableVersion(properties.version, WRITABLE_VERSIONS, "written")
    _refuse(properties, _UNWRITABLE, "Write to this table with Apache Hudi; reading it works.")


def _refuse(properties: TableProperties, keys: tuple[str, ...], hint: str) -> None:
    """Raise UnsupportedFeature where the table uses something that is not done, as the registry of options knows it."""
    for key in keys:
        option, text = OPTIONS.find_not_done(key), properties.get(key)
        if option is not None and text is not None and not option.is_fine(text):
            raise UnsupportedFeature(f"a table with {key}={text}", hint)
