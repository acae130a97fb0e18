"""What a table is: `hoodie.properties` as a frozen mapping with typed attributes, and which versions are read and written."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

from hudimeta.engine.machine import pause
from hudimeta.errors import ConfigError, TableError
from hudimeta.formats.properties import table_checksum
from hudimeta.storage import FileInfo, Storage, join
from hudimeta.table.gates import READABLE_VERSIONS, WRITABLE_VERSIONS, refuse_unreadable, refuse_unwritable
from hudimeta.table.key_generator import KeyGeneratorType, key_generator_type
from hudimeta.table.merge_settings import DELETE_PROPERTY, MERGE_MODE_KEY, UNAVAILABLE_PROPERTY, MergeSettings, merge_settings
from hudimeta.table.properties_file import (
    CHECKSUM_KEY,
    DATABASE_KEY,
    NAME_KEY,
    PROPERTIES_PATH,
    read_properties,
    write_properties,
)
from hudimeta.table.property_texts import PropertyTexts
from hudimeta.timeline import TIMEZONE_KEY, Clock, SystemClock, Timeline, timeline_zone
from hudimeta.timeline.naming import LAYOUT_V1, LAYOUT_V2
from hudimeta.types import MergeMode, TableType

__all__ = [
    "READABLE_VERSIONS",
    "WRITABLE_VERSIONS",
    "CdcMode",
    "TableProperties",
    "load",
    "update",
]

_FOLDER = ".hoodie"
_TRIES = 5
"""So often the file is looked at again when it was changed meanwhile: under the lock only by who does not heed it."""
_FIRST_WITH_HISTORY = 8
"""Older tables archived into log files, of which Apache Hudi makes a history whose files are not in order (`History`)."""
_BASE_FILE_FORMATS = ("PARQUET", "HFILE", "ORC", "LANCE")


class CdcMode(enum.Enum):
    """What a change data capture file holds (`hoodie.table.cdc.supplemental.logging.mode`)."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


class TableProperties(PropertyTexts):
    """The properties of a table: a mapping of their texts, and attributes for those that mean something here.

    Never changes; `with_changes` makes another. Attributes raise ConfigError where a text means nothing.
    """

    def with_changes(self, changes: Mapping[str, str | None]) -> TableProperties:
        """The same with other values; None removes a key."""
        merged = {**self._values, **changes}
        return TableProperties({key: value for key, value in merged.items() if value is not None})

    # What and where

    @property
    def name(self) -> str:
        """The table's name. Raises TableError when it is missing."""
        return self._required(NAME_KEY)

    @property
    def database(self) -> str:
        """The database's name, "" without; SQL adds it later, so never keep it."""
        return self.get(DATABASE_KEY, "")

    @property
    def type(self) -> TableType:
        """Copy on write or merge on read."""
        key = "hoodie.table.type"
        return self._choice(TableType, key, self._required(key))

    @property
    def version(self) -> int:
        """Table version: 6, 8 or 9 here."""
        return self._number("hoodie.table.version")

    @property
    def initial_version(self) -> int | None:
        """The version that the table was created with; None in old tables."""
        key = "hoodie.table.initial.version"
        return self._number(key) if key in self else None

    @property
    def layout(self) -> int:
        """Layout of the timeline: 1 for version 6, 2 for later ones."""
        return self._number("hoodie.timeline.layout.version")

    @property
    def checksum(self) -> int | None:
        """The checksum as stored; None without one."""
        return self._number(CHECKSUM_KEY) if CHECKSUM_KEY in self else None

    @property
    def right_checksum(self) -> int:
        """The checksum as it must be."""
        return table_checksum(self.database, self.get(NAME_KEY, ""))

    @property
    def timeline_folder(self) -> str:
        """Folder of the active timeline, relative to the table."""
        if self.layout == LAYOUT_V1:
            return _FOLDER
        return join(_FOLDER, self.get("hoodie.timeline.path") or "timeline")

    @property
    def history_folder(self) -> str:
        """Folder of the archived timeline, relative to the table."""
        if self.layout == LAYOUT_V1:
            return join(_FOLDER, self.get("hoodie.archivelog.folder") or "archived")
        return join(self.timeline_folder, self.get("hoodie.timeline.history.path") or "history")

    @property
    def timezone(self) -> str:
        """UTC or LOCAL; LOCAL where the property is absent."""
        return "LOCAL" if self.zone is None else "UTC"

    @property
    def zone(self) -> tzinfo | None:
        """The zone of the table's instants; None for the machine's."""
        return timeline_zone(self.get(TIMEZONE_KEY))

    def load_timeline(
        self, storage: Storage, sleep: Callable[[float], None] = pause, listed: Sequence[FileInfo] = ()
    ) -> Timeline:
        """List the table's timeline. Raises TableError when it is lost.

        Args:
            storage: Rooted at the table.
            sleep: Waits so many seconds.
            listed: What is in its folder, where that was asked for just now.
        """
        folder = self.timeline_folder
        timeline = Timeline.load(
            storage,
            folder,
            self.layout,
            history_folder=self.history_folder,
            zone=self.zone,
            sleep=sleep,
            listed=listed,
            history_in_order=(self.initial_version or _FIRST_WITH_HISTORY) >= _FIRST_WITH_HISTORY,
        )
        if not timeline.instants and self.layout == LAYOUT_V2:
            from hudimeta.table.remembered import refuse_lost_timeline

            refuse_lost_timeline(storage, folder)
        return timeline

    # Rows, keys and partitions

    @property
    def record_keys(self) -> tuple[str, ...]:
        """Record key fields; empty where keys are generated."""
        return self._listing(self.get("hoodie.table.recordkey.fields"))

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """Partition fields without the types that a CUSTOM key generator appends; empty for a table without partitions."""
        return tuple(name.strip() for name, _, _ in self._partition_parts)

    @property
    def partition_field_types(self) -> tuple[str | None, ...]:
        """Of each partition field the type after the colon (SIMPLE, TIMESTAMP), None where none stands there."""
        return tuple(kind.strip().upper() if colon else None for _, colon, kind in self._partition_parts)

    @property
    def _partition_parts(self) -> tuple[tuple[str, str, str], ...]:
        return tuple(part.partition(":") for part in self._listing(self.get("hoodie.table.partition.fields")))

    @property
    def is_partitioned(self) -> bool:
        """True when there are partition fields."""
        return bool(self.partition_fields)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """Fields by which event time is compared, under the name of version 9 or the older one (precombine)."""
        return self._listing(self.get("hoodie.table.ordering.fields") or self.get("hoodie.table.precombine.field"))

    @property
    def keygen(self) -> KeyGeneratorType:
        """The key generator, by type or by class."""
        type_name = self.get("hoodie.table.keygenerator.type", "")
        return key_generator_type(type_name, self.keygen_class or "", len(self.record_keys), len(self.partition_fields))

    @property
    def keygen_class(self) -> str | None:
        """The key generator's Java class, where one is named."""
        return self.get("hoodie.table.keygenerator.class") or None

    @property
    def hive_style(self) -> bool:
        """True when partition folders are named `field=value`."""
        return self._flag("hoodie.datasource.write.hive_style_partitioning", False)

    @property
    def url_encode(self) -> bool:
        """True when partition values are URL encoded in folder names."""
        return self._flag("hoodie.datasource.write.partitionpath.urlencode", False)

    @property
    def drop_partition_columns(self) -> bool:
        """True when partition columns are not stored in data files."""
        return self._flag("hoodie.datasource.write.drop.partition.columns", False)

    @property
    def populate_meta(self) -> bool:
        """True when the five meta columns hold values."""
        return self._flag("hoodie.populate.meta.fields", True)

    @property
    def base_file_format(self) -> str:
        """PARQUET, HFILE (metadata tables), ORC or LANCE."""
        key = "hoodie.table.base.file.format"
        name = (self.get(key) or "PARQUET").strip().upper()
        if name not in _BASE_FILE_FORMATS:
            raise ConfigError(key, self.get(key), ", ".join(_BASE_FILE_FORMATS))
        return name

    @property
    def create_schema(self) -> str | None:
        """Avro schema (JSON text) from the table's creation, without meta columns; None where it was not stored."""
        return self.get("hoodie.table.create.schema") or None

    # Merging

    @property
    def merge_settings(self) -> MergeSettings:
        """How two versions of a row become one, with payload classes resolved as far as they are known."""
        return merge_settings(
            mode=self.get("hoodie.record.merge.mode", ""),
            strategy_id=self.get("hoodie.record.merge.strategy.id") or self.get("hoodie.compaction.record.merger.strategy", ""),
            payload_class=self.payload_class or self.get("hoodie.table.legacy.payload.class", ""),
            partial_update=self.get("hoodie.table.partial.update.mode", ""),
            has_ordering=bool(self.ordering_fields),
            delete_field=self.get(DELETE_PROPERTY + "field") or None,
            delete_marker=self.get(DELETE_PROPERTY + "marker") or None,
            unavailable=self.get(UNAVAILABLE_PROPERTY) or None,
        )

    @property
    def merge_mode(self) -> MergeMode:
        """Which of two versions of a row wins; CUSTOM only where Java code decides."""
        return self.merge_settings.mode

    @property
    def fills_partial_rows(self) -> bool:
        """Whether Apache Hudi's readers fill rows of which only some columns were logged: in version 8 by event time alone.

        Its release 1.0.2 fails to read others ("Partial merging logic is not implemented"), of tables of its own too.
        """
        return self.version > 8 or self.get(MERGE_MODE_KEY) == MergeMode.EVENT_TIME_ORDERING.value

    @property
    def payload_class(self) -> str | None:
        """`hoodie.compaction.payload.class`, None in most tables of version 9."""
        return self.get("hoodie.compaction.payload.class") or None

    # Metadata table and services

    @property
    def metadata_partitions(self) -> tuple[str, ...]:
        """Partitions of the metadata table that are complete; every commit keeps them so."""
        return self._listing(self.get("hoodie.table.metadata.partitions"))

    @property
    def metadata_partitions_inflight(self) -> tuple[str, ...]:
        """Partitions of the metadata table that an indexer is building."""
        return self._listing(self.get("hoodie.table.metadata.partitions.inflight"))

    @property
    def has_metadata_table(self) -> bool:
        """True when files are listed from the metadata table."""
        return "files" in self.metadata_partitions

    @property
    def is_metadata_table(self) -> bool:
        """True when this is the metadata table of another one."""
        return self.keygen is KeyGeneratorType.METADATA_TABLE

    @property
    def index_defs_path(self) -> str | None:
        """The file of index definitions, relative to the table; None without."""
        return self.get("hoodie.table.index.defs.path") or None

    @property
    def cdc_enabled(self) -> bool:
        """True when changes are captured."""
        return self._flag("hoodie.table.cdc.enabled", False)

    @property
    def cdc_mode(self) -> CdcMode:
        """What is captured of a change."""
        key = "hoodie.table.cdc.supplemental.logging.mode"
        return self._choice(CdcMode, key, self.get(key) or CdcMode.DATA_BEFORE_AFTER.value)

    @property
    def bootstrap_base_path(self) -> str | None:
        """Where the source files of a bootstrapped table lie; None for all others."""
        return self.get("hoodie.bootstrap.base.path") or None

    # Gates

    def check_readable(self) -> None:
        """Refuse what cannot be read; see `gates.refuse_unreadable`."""
        refuse_unreadable(self)

    def check_writable(self) -> None:
        """Refuse what cannot be written; see `gates.refuse_unwritable`."""
        refuse_unwritable(self)


def load(storage: Storage, sleep: Callable[[float], None] = pause) -> TableProperties:
    """Read a table's properties and check that the table can be read.

    Args:
        storage: Rooted at the table (for the metadata table at `.hoodie/metadata`).
        sleep: Waits so many seconds, while another writer replaces the file.

    Raises:
        TableNotFound, and what `read_properties` and `TableProperties.check_readable` raise.
    """
    return _loaded(storage, sleep)[0]


def _loaded(storage: Storage, sleep: Callable[[float], None]) -> tuple[TableProperties, bytes]:
    def judge(texts: Mapping[str, str]) -> None:
        if "hoodie.table.version" in texts:
            TableProperties(texts).check_readable()

    texts, data = read_properties(storage, sleep, judge)
    properties = TableProperties(texts)
    properties.check_readable()
    return properties, data


def update(
    storage: Storage,
    changes: Mapping[str, str | None],
    clock: Clock | None = None,
    sleep: Callable[[float], None] = pause,
    *,
    anew: bool = False,
) -> TableProperties:
    """Change some properties and keep all others, known or not; call it under the table lock.

    The file is replaced in one atomic step, with a right checksum, as long as it holds what the changes were made to.

    Args:
        storage: Rooted at the table.
        changes: New texts by key; None removes the key.
        clock: The present, for the comment in the file.
        sleep: See `load`.
        anew: Write the file also where nothing changes. Whoever is about to remove what the properties do not name does so:
            a request of one who lost the lock, which would name it, finds another file then, and changes nothing.

    Returns:
        The properties as written; nothing is written when nothing changes.

    Raises:
        TableError: Somebody who does not hold the lock changes the file again and again.
    """
    for _ in range(_TRIES):
        current, data = _loaded(storage, sleep)
        changed = current.with_changes(changes)
        if changed == current and not anew:
            return current
        written = write_properties(storage, changed, (clock or SystemClock()).now_ms(), data)
        if written is not None:
            return TableProperties(written)
    why = f"{PROPERTIES_PATH} of {storage.root} was changed {_TRIES} times by somebody who does not hold the table's lock"
    raise TableError(why, "Nothing was changed; have all writers use one lock provider, and run it again.")
