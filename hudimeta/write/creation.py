"""Creating a table from options and a schema: checks first, the metadata table next, hoodie.properties last.

The properties make the table: until they are there nothing is, and what a creation that died left behind is removed by the
next one. All of it happens under the table lock, so that of two creations at once one succeeds.
"""

from __future__ import annotations

import difflib

import pyarrow as pa

from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.metadata_bootstrap import lay_out_indexes
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, TableError, UnsupportedFeature
from hudimeta.indexes.choice import bucket_settings
from hudimeta.indexes.planned import PlannedIndex, index_properties, planned_indexes
from hudimeta.indexes.tagging import IndexKind
from hudimeta.keys import FIRST_VERSION_WITH_PREFIX, NEW_ENCODING
from hudimeta.keys.timestamp_partition import PREFIXES as TIME_PREFIXES
from hudimeta.metadata.index_definitions import DEFAULT_PATH
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.schema import normalise_schema, table_avro_schema
from hudimeta.storage import Storage
from hudimeta.table.create import NewTable, create_table_layout
from hudimeta.table.key_generator import KeyGeneratorType, key_generator_type
from hudimeta.table.merge_settings import MergeSettings, delete_properties, merge_settings, payload_properties
from hudimeta.table.properties import TableProperties
from hudimeta.table.properties_file import BACKUP_PATH, PROPERTIES_PATH
from hudimeta.timeline import DEFAULT_FOLDER, Clock, InstantGenerator, SystemClock
from hudimeta.types import MergeMode, TableType
from hudimeta.write.key_settings import check_key_settings, key_settings, stored_columns

__all__ = ["contradictions", "create_table", "planned_properties"]

_BUILT_IN_MODES = (MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING)


def create_table(storage: Storage, schema: pa.Schema, options: Options, clock: Clock | None = None) -> TableProperties:
    """Create an empty table.

    Args:
        storage: Rooted where the table shall be.
        schema: Arrow schema of its rows, without meta columns.
        options: Name, keys, partitioning, ordering, statistics: see `hudimeta.config.options`.
        clock: The present.

    Returns:
        The properties as written.

    Raises:
        ConfigError, SchemaError: Bad input; nothing was written.
        TableError: There is a table already.
    """
    data = normalise_schema(schema)
    properties, planned = planned_properties(data, options)
    clock = clock or SystemClock()
    _check_nothing_is_here(storage)  # before the lock, which leaves a file behind
    with table_lock(storage, options, properties.name).held():
        _check_nothing_is_here(storage)
        storage.delete_folder(METADATA_ROOT)
        storage.delete(DEFAULT_PATH)
        if properties.has_metadata_table:
            times = InstantGenerator(clock, properties.zone)
            lay_out_indexes(storage, properties, planned, data, options, times)
        return create_table_layout(storage, properties, clock)


def _check_nothing_is_here(storage: Storage) -> None:
    place = storage.stat("")
    if place is not None and not place.is_folder:
        hint = "Choose another path: this is a file."
        raise ConfigError("path", storage.root, "a folder, or a path where nothing is yet", hint)
    if any(storage.stat(path) is not None for path in (PROPERTIES_PATH, BACKUP_PATH)):
        raise TableError(f"there is a table at {storage.root} already", "Open it with hudimeta.Table(path).")
    if any(not entry.is_folder for entry in storage.list(DEFAULT_FOLDER)):
        raise TableError(
            f"there is a timeline without {PROPERTIES_PATH} at {storage.root}",
            "Restore that file from a copy, or remove the folder .hoodie if the table is not needed any more.",
        )


def planned_properties(schema: pa.Schema, options: Options) -> tuple[TableProperties, list[PlannedIndex]]:
    """The properties that a new table would have, and its metadata partitions; writes nothing. See `create_table`."""
    name = options.get(keys.TABLE_NAME)
    if name is None:
        raise ConfigError("hoodie.table.name", None, "a name", "Name the table with the option hoodie.table.name.")
    record_keys, partitions = options.get(keys.RECORD_KEY), options.get(keys.PARTITION_PATH)
    ordering = options.get(keys.ORDERING)
    for option, names in ((keys.RECORD_KEY, record_keys), (keys.PARTITION_PATH, partitions), (keys.ORDERING, ordering)):
        _check_columns(option.key, names, schema)
    if options.get(keys.TIMEZONE) == "LOCAL":
        raise UnsupportedFeature(
            f"creating a table with {keys.TIMEZONE.key}=LOCAL", "Instants of new tables are of UTC: leave it out."
        )
    version = int(options.get(keys.TABLE_VERSION) or 8)
    mode = _merge_mode(options, ordering)
    planned: list[PlannedIndex] = []
    if options.get(keys.METADATA_ENABLE):
        planned = planned_indexes(stored_columns(schema, options), options, version, bool(partitions))
    more = index_properties(planned) if planned else {}
    more |= {k: v for k, v in options.texts.items() if k.startswith("hoodie.keygen.timebased.")}
    more |= _merge_properties(options, version)
    if options.get(keys.CDC_ENABLED):
        more |= {keys.CDC_ENABLED.key: "true", keys.CDC_MODE.key: options.get(keys.CDC_MODE) or "DATA_BEFORE_AFTER"}
    more |= _bucket_properties(options) | key_settings(options)
    kind = _key_generator(options, len(record_keys), len(partitions))
    if version < FIRST_VERSION_WITH_PREFIX and len(record_keys) == 1 and _is_complex(kind, len(partitions)):
        more[NEW_ENCODING] = str(options.get(keys.COMPLEX_KEY_ENCODING)).lower()  # nothing else tells the next writer
    properties = NewTable(
        name=name,
        type=TableType(options.get(keys.TABLE_TYPE)),
        version=version,
        record_keys=record_keys,
        partition_fields=partitions,
        ordering_fields=ordering,
        merge_mode=mode,
        keygen=kind,
        database=options.get(keys.DATABASE_NAME) or "",
        create_schema=table_avro_schema(schema, name, create_schema=True),
        hive_style=options.get(keys.HIVE_STYLE),
        url_encode=options.get(keys.URL_ENCODE),
        more=more,
    ).properties()
    check_key_settings(properties, schema)
    if options.get(keys.INDEX_TYPE) == IndexKind.BUCKET.value:
        bucket_settings(options, properties)
    return properties, planned


def _check_columns(option: str, names: tuple[str, ...], schema: pa.Schema) -> None:
    for name in names:
        column = name.partition(":")[0]
        kind = column_type(schema, column)
        if names.count(name) > 1:
            raise ConfigError(option, ",".join(names), "every column once", f"Name {name} once.")
        if kind is not None and pa.types.is_nested(kind):
            raise ConfigError(option, name, "columns with a single value a row", f"Use another column: {name} is {kind}.")
        if kind is None:
            near = difflib.get_close_matches(column, schema.names, n=1)
            raise ConfigError(
                option,
                name,
                f"columns of the rows: {', '.join(schema.names[:20])}",
                f"Did you mean {near[0]}?" if near else "",
            )


def _merge_mode(options: Options, ordering: tuple[str, ...]) -> MergeMode | None:
    """The mode that was asked for, by its name or by a payload class; None when neither was."""
    text, payload = options.get(keys.MERGE_MODE), options.get(keys.PAYLOAD_CLASS)
    mode = MergeMode(text) if text else None
    if payload is not None:
        of_payload = merge_settings(payload_class=payload).mode
        if of_payload is MergeMode.CUSTOM or (mode or of_payload) is not of_payload:
            raise UnsupportedFeature(
                f"payload class {payload}" + (f" beside merge mode {mode.value}" if mode else ""),
                f"Leave it out and set {keys.MERGE_MODE.key} to {' or '.join(m.value for m in _BUILT_IN_MODES)}.",
            )
        mode = of_payload
    if mode is MergeMode.EVENT_TIME_ORDERING and not ordering:
        hint = f"Name the column that decides which row is newer with {keys.ORDERING.key}."
        raise ConfigError(keys.MERGE_MODE.key, mode.value, "COMMIT_TIME_ORDERING for a table without ordering columns", hint)
    return mode


def _merge_properties(options: Options, version: int) -> dict[str, str]:
    """What a table keeps of a payload class and of the marks of deletes."""
    found = payload_properties(options.get(keys.PAYLOAD_CLASS) or "", version) or {}
    field, marker = options.get(keys.DELETE_FIELD), options.get(keys.DELETE_MARKER)
    if (field is None) != (marker is None):
        both = f"{keys.DELETE_FIELD.key} together with {keys.DELETE_MARKER.key}"
        raise ConfigError(keys.DELETE_FIELD.key, field, both, "Set both options or neither.")
    return found | (delete_properties(field, marker) if version >= 9 else {})


def _is_complex(kind: KeyGeneratorType | None, n_partitions: int) -> bool:
    return kind is KeyGeneratorType.COMPLEX or (kind is None and n_partitions > 1)


def _key_generator(options: Options, n_keys: int, n_partitions: int) -> KeyGeneratorType | None:
    kind, class_name = options.get(keys.KEY_GENERATOR), options.get(keys.KEY_GENERATOR_CLASS)
    if kind is None and class_name is None:
        return None
    found = key_generator_type(kind or "", class_name or "", n_keys, n_partitions)
    if found is KeyGeneratorType.USER_PROVIDED:
        raise ConfigError(
            keys.KEY_GENERATOR.key if kind else keys.KEY_GENERATOR_CLASS.key,
            kind or class_name,
            "SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP, CUSTOM, or the class of one of these",
        )
    if found is KeyGeneratorType.COMPLEX and n_keys == 1 and n_partitions <= 1:
        # Releases of Hudi write a single COMPLEX key in two ways; SIMPLE says the same in one.
        return KeyGeneratorType.SIMPLE if n_partitions else KeyGeneratorType.NON_PARTITION
    return found


def _same_rules(one: MergeSettings, other: MergeSettings) -> bool:
    return (one.mode, one.partial_update) == (other.mode, other.partial_update) and (
        one.delete_field is None or (one.delete_field, one.delete_marker) == (other.delete_field, other.delete_marker)
    )


def _bucket_properties(options: Options) -> dict[str, str]:
    """Nothing else in a table says that its keys live in buckets, and how many there are."""
    if options.get(keys.INDEX_TYPE) != IndexKind.BUCKET.value:
        return {}
    stated = {
        keys.INDEX_TYPE.key: IndexKind.BUCKET.value,
        keys.BUCKET_ENGINE.key: options.get(keys.BUCKET_ENGINE) or "",
        keys.BUCKET_COUNT.key: str(options.get(keys.BUCKET_COUNT)),
        keys.BUCKET_FIELDS.key: ",".join(options.get(keys.BUCKET_FIELDS)),
    }
    return {key: text for key, text in stated.items() if text}


def contradictions(properties: TableProperties, options: Options) -> dict[str, tuple[str, str]]:
    """Options of a write that contradict an existing table: key -> (what the table has, what was given)."""
    options = options.stated()
    found: dict[str, tuple[str, str]] = {}
    lists = (
        (keys.RECORD_KEY, properties.record_keys),
        (keys.PARTITION_PATH, properties.partition_fields),
        (keys.ORDERING, properties.ordering_fields),
    )
    for option, have in lists:
        given = tuple(name.partition(":")[0] for name in options.get(option))
        if options.is_set(option) and given != have:
            found[option.key] = (",".join(have), ",".join(given))
    texts = (
        (keys.TABLE_NAME, properties.name),
        (keys.TABLE_TYPE, properties.type.value),
        (keys.TABLE_VERSION, str(properties.version)),
        (keys.MERGE_MODE, properties.merge_mode.value),
        (keys.TIMEZONE, properties.timezone),
        (keys.CDC_MODE, properties.cdc_mode.value),
    )
    for text_option, text in texts:
        if options.is_set(text_option) and options.get(text_option) != text:
            found[text_option.key] = (text, str(options.get(text_option)))
    payload = options.get(keys.PAYLOAD_CLASS)
    if payload is not None and not _same_rules(merge_settings(payload_class=payload), properties.merge_settings):
        rules = properties.merge_settings
        found[keys.PAYLOAD_CLASS.key] = (rules.payload_class or rules.mode.value, payload)
    found |= _key_contradictions(properties, options)
    flags = (
        (keys.HIVE_STYLE, properties.hive_style),
        (keys.URL_ENCODE, properties.url_encode),
        (keys.CDC_ENABLED, properties.cdc_enabled),
        (keys.POPULATE_META_FIELDS, properties.populate_meta),
        (keys.DROP_PARTITION_COLUMNS, properties.drop_partition_columns),
    )
    for flag, value in flags:
        if options.is_set(flag) and options.get(flag) != value:
            found[flag.key] = (str(value).lower(), str(options.get(flag)).lower())
    return found


def _key_contradictions(properties: TableProperties, options: Options) -> dict[str, tuple[str, str]]:
    """Options about keys and partition paths that contradict a table; see `contradictions`."""
    found: dict[str, tuple[str, str]] = {}
    n_keys, n_partitions = len(properties.record_keys), len(properties.partition_fields)
    kind = _key_generator(options, n_keys, n_partitions)
    if kind not in (None, properties.keygen) and not _means_the_same(kind, properties.keygen, n_partitions):
        given = options.get(keys.KEY_GENERATOR) or options.get(keys.KEY_GENERATOR_CLASS)
        found[keys.KEY_GENERATOR.key] = (properties.keygen.value, str(given))
    stored = properties.get(NEW_ENCODING)
    if options.is_set(keys.COMPLEX_KEY_ENCODING) and stored is not None:
        wanted = str(options.get(keys.COMPLEX_KEY_ENCODING)).lower()
        if wanted != stored.strip().lower():
            found[NEW_ENCODING] = (stored, wanted)
    for key, text in options.given.items():
        if key.startswith(TIME_PREFIXES) and key in properties and properties[key] != text:
            found[key] = (properties[key], text)
    return found


def _means_the_same(one: KeyGeneratorType, other: KeyGeneratorType, n_partitions: int) -> bool:
    """True where two generators make the same paths; how a table writes its keys is found out from its rows."""
    alike = {KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX}
    return {one, other} <= (alike if n_partitions else alike | {KeyGeneratorType.NON_PARTITION})
