"""Creating a table: its properties and its folders, with nothing in it yet.

The folders that Apache Hudi makes are made too; nobody reads them, but its writers assume that `.temp` exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hudimeta.errors import AlreadyExists, ConfigError, StorageError, TableError
from hudimeta.schema.internal_schema import SCHEMA_FOLDER
from hudimeta.storage import Storage, join, put_own
from hudimeta.table.key_generator import KeyGeneratorType
from hudimeta.table.merge_settings import STRATEGY_IDS, payload_class_of
from hudimeta.table.properties import WRITABLE_VERSIONS, TableProperties
from hudimeta.table.properties_file import CHECKSUM_KEY, PROPERTIES_PATH, properties_text
from hudimeta.timeline import TIMEZONE_KEY, Clock, SystemClock
from hudimeta.types import MergeMode, TableType

__all__ = ["DEFAULT_VERSION", "FOLDERS", "NewTable", "create_table_layout"]

DEFAULT_VERSION = 8

FOLDERS = (
    ".hoodie/.aux/.bootstrap/.fileids",
    ".hoodie/.aux/.bootstrap/.partitions",
    SCHEMA_FOLDER,
    ".hoodie/.temp",
    ".hoodie/timeline/history",
)

_PLACEHOLDER = ".folder"


@dataclass(frozen=True, kw_only=True)
class NewTable:
    """What a new table shall be.

    Attributes:
        name: The table's name.
        type: Copy on write or merge on read.
        version: 8 or 9.
        record_keys: Key fields; empty for generated keys.
        partition_fields: Partition fields, of a CUSTOM key generator as `field:TYPE`; empty without partitions.
        ordering_fields: Event time fields; version 8 takes one at most.
        merge_mode: EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING; None for the former with, the latter without ordering fields.
        keygen: None for what the fields suggest.
        database: The database's name, "" without.
        create_schema: Avro schema (JSON text) without meta columns; None to leave it out.
        hive_style: Name partition folders `field=value`.
        url_encode: URL encode partition values in folder names.
        timezone: UTC or LOCAL.
        more: Further properties, which go before these.
    """

    name: str
    type: TableType = TableType.COPY_ON_WRITE
    version: int = DEFAULT_VERSION
    record_keys: Sequence[str] = ()
    partition_fields: Sequence[str] = ()
    ordering_fields: Sequence[str] = ()
    merge_mode: MergeMode | None = None
    keygen: KeyGeneratorType | None = None
    database: str = ""
    create_schema: str | None = None
    hive_style: bool = False
    url_encode: bool = False
    timezone: str = "UTC"
    more: Mapping[str, str] = field(default_factory=dict)

    def properties(self) -> TableProperties:
        """The properties, complete enough for every reader and writer, checksum included, checked as if they had been read.

        Raises:
            ConfigError: A value that a new table cannot have.
            TableError, UnsupportedTableVersion: See `TableProperties.check_writable`.
        """
        if not self.name.strip():
            raise ConfigError("hoodie.table.name", self.name, "a name")
        if self.version not in WRITABLE_VERSIONS:
            raise ConfigError("hoodie.table.version", self.version, " or ".join(str(v) for v in WRITABLE_VERSIONS))
        texts = {key: text for key, text in self._texts().items() if text}
        properties = TableProperties({**texts, **self.more})
        properties.check_writable()
        return properties

    def _texts(self) -> dict[str, str]:
        return {
            "hoodie.table.name": self.name,
            "hoodie.table.type": self.type.value,
            "hoodie.table.version": str(self.version),
            "hoodie.table.initial.version": str(self.version),
            "hoodie.timeline.layout.version": "2",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.archivelog.folder": "archived",
            "hoodie.database.name": self.database,
            "hoodie.table.recordkey.fields": ",".join(self.record_keys),
            "hoodie.table.partition.fields": ",".join(self.partition_fields),
            "hoodie.table.keygenerator.type": self._keygen().value,
            **self._merging(),
            "hoodie.table.create.schema": self.create_schema or "",
            "hoodie.datasource.write.hive_style_partitioning": _flag(self.hive_style),
            "hoodie.datasource.write.partitionpath.urlencode": _flag(self.url_encode),
            "hoodie.datasource.write.drop.partition.columns": "false",
            TIMEZONE_KEY: self.timezone,
        }

    def _keygen(self) -> KeyGeneratorType:
        if self.keygen is not None:
            return self.keygen
        if not self.partition_fields:
            return KeyGeneratorType.NON_PARTITION
        # With one key field COMPLEX encodes keys in two ways, by release; SIMPLE in one.
        if len(self.record_keys) <= 1 and len(self.partition_fields) == 1:
            return KeyGeneratorType.SIMPLE
        return KeyGeneratorType.COMPLEX

    def _merging(self) -> dict[str, str]:
        by_default = MergeMode.EVENT_TIME_ORDERING if self.ordering_fields else MergeMode.COMMIT_TIME_ORDERING
        mode = self.merge_mode or by_default
        fields = ",".join(self.ordering_fields)
        if self.version >= 9:
            return {
                "hoodie.table.ordering.fields": fields,
                "hoodie.record.merge.mode": mode.value,
                "hoodie.table.format": "native",
            }
        if len(self.ordering_fields) > 1:
            raise ConfigError(
                "hoodie.table.precombine.field", fields, "one field in table version 8", "Several need version 9."
            )
        return {
            "hoodie.table.precombine.field": fields,
            "hoodie.record.merge.mode": mode.value,
            "hoodie.record.merge.strategy.id": STRATEGY_IDS[mode],
            "hoodie.compaction.payload.class": payload_class_of(mode),
        }


def create_table_layout(storage: Storage, properties: Mapping[str, str], clock: Clock | None = None) -> TableProperties:
    """Create a table: the properties file, and the folders where the store has folders.

    Of two that create the same table at once one succeeds.

    Args:
        storage: Rooted where the table shall be (for a metadata table at `.hoodie/metadata`).
        properties: Of `NewTable.properties`.
        clock: The present, for the comment in the file.

    Returns:
        The properties as written.

    Raises:
        TableError: a table is there already.
    """
    checked = TableProperties(properties)
    checked.check_writable()
    data = properties_text(checked, (clock or SystemClock()).now_ms())
    if "://" not in storage.root and not storage.is_file(PROPERTIES_PATH):
        for folder in FOLDERS:
            _make_folder(storage, folder)
    try:
        put_own(storage, PROPERTIES_PATH, data)
    except AlreadyExists:
        raise TableError(
            f"there is a table at {storage.root!r} already",
            "Open it with hudimeta.Table(path), choose another path, or remove the folder first.",
        ) from None
    except StorageError:
        # The request may have been carried out although its answer was lost.
        if not storage.is_file(PROPERTIES_PATH) or storage.read(PROPERTIES_PATH) != data:
            raise
    return checked.with_changes({CHECKSUM_KEY: str(checked.right_checksum)})


def _make_folder(storage: Storage, folder: str) -> None:
    """A folder comes with its first file and stays when the file goes."""
    placeholder = join(folder, _PLACEHOLDER)
    storage.put(placeholder, b"")
    storage.delete(placeholder)


def _flag(value: bool) -> str:
    return "true" if value else "false"
