"""Creating a table from options and a schema: checks first, the metadata table next, hoodie.properties last.

The properties make the table: until they are there nothing is, and what a creation that died left behind is removed by the
next one. All of it happens under the table lock, so that of two creations at once one succeeds.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pyarrow as pa

from hudimeta.commit.concurrency import Concurrency
from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.metadata_bootstrap import lay_out_indexes
from hudimeta.commit.supported import asked_key_generator, check_supported
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, TableError, UnsupportedFeature
from hudimeta.indexes.bucket.partition_rules import FIRST_INSTANT, RULES_KEY, PartitionRules, put_rules
from hudimeta.indexes.bucket.partition_rules import FOLDER as RULES_FOLDER
from hudimeta.indexes.choice import bucket_settings, choose_index
from hudimeta.indexes.planned import PlannedIndex, index_properties, planned_indexes
from hudimeta.indexes.record_window.settings import WindowSettings, check_fits
from hudimeta.indexes.tagging import IndexKind
from hudimeta.keys import FIRST_VERSION_WITH_PREFIX, NEW_ENCODING
from hudimeta.keys.timestamp_partition import stated_zone, time_settings
from hudimeta.metadata import record_index
from hudimeta.metadata.index_definitions import DEFAULT_PATH
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.schema import normalise_schema, table_avro_schema
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.storage import Storage
from hudimeta.storage.at_once import at_once
from hudimeta.table.create import NewTable, create_table_layout
from hudimeta.table.discovery import file_of_a_table
from hudimeta.table.key_generator import KeyGeneratorType
from hudimeta.table.merge_settings import delete_properties, merge_settings, payload_properties
from hudimeta.table.places import file_above, table_above
from hudimeta.table.properties import TableProperties
from hudimeta.table.properties_file import BACKUP_PATH, PROPERTIES_PATH
from hudimeta.timeline import DEFAULT_FOLDER, Clock, InstantGenerator, SystemClock
from hudimeta.types import MergeMode, TableType
from hudimeta.write.key_settings import check_key_settings, key_settings, stored_columns

__all__ = ["check_named_columns", "create_table", "planned_properties"]

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
        TableError: There is a table already, or the folder lies in that of another one.
    """
    data = normalise_schema(schema)
    properties, planned = planned_properties(data, options)
    rules = _bucket_rules(options, properties)
    clock = clock or SystemClock()
    _check_nothing_is_here(storage)  # before the lock, which leaves a file behind
    _check_stands_alone(storage, options)
    with table_lock(storage, options, properties.name).held():
        _check_nothing_is_here(storage)
        _remove_leftovers(storage)
        if rules is not None:
            put_rules(storage, rules)
        if properties.has_metadata_table:
            times = InstantGenerator(clock, properties.zone)
            lay_out_indexes(storage, properties, planned, data, options, times)
        return create_table_layout(storage, properties, clock)


def _remove_leftovers(storage: Storage) -> None:
    """What a creation that died may have left."""

    def remove(path: str) -> None:
        if path == DEFAULT_PATH:
            storage.delete(path)
        else:
            storage.delete_folder(path)

    at_once(remove, (METADATA_ROOT, DEFAULT_PATH, RULES_FOLDER), storage)


def _check_nothing_is_here(storage: Storage) -> None:
    place = storage.stat("")
    file = file_above(storage.root) if place is None else None if place.is_folder else "this"
    if file is not None:
        hint = f"Choose another path: {file} is a file."
        raise ConfigError("path", storage.root, "a folder, or a path where nothing is yet", hint)
    if any(at_once(storage.is_file, (PROPERTIES_PATH, BACKUP_PATH), storage)):
        raise TableError(f"there is a table at {storage.root} already", "Open it with hudimeta.Table(path).")
    if any(not entry.is_folder for entry in storage.list(DEFAULT_FOLDER)):
        raise TableError(
            f"there is a timeline without {PROPERTIES_PATH} at {storage.root}",
            "Restore that file from a copy, or remove the folder .hoodie if the table is not needed any more.",
        )


def _check_stands_alone(storage: Storage, options: Options) -> None:
    """Whoever lists the folders of the outer table would take the inner one's files for its own."""
    above = table_above(storage.root, options.texts)
    if above is not None:
        raise TableError(f"{storage.root} is in the folder of the table at {above}", "Choose a folder beside that table.")
    found = file_of_a_table(storage)
    if found is not None:
        hint = "Choose a folder of its own for the table. If that file is of this one, restore its .hoodie from a copy."
        raise TableError(f"{storage.root} holds a file of another table, {found}", hint)


def planned_properties(schema: pa.Schema, options: Options) -> tuple[TableProperties, list[PlannedIndex]]:
    """The properties that a new table would have, and its metadata partitions; writes nothing. See `create_table`."""
    name = options.get(keys.TABLE_NAME)
    if name is None:
        raise ConfigError("hoodie.table.name", None, "a name", "Name the table with the option hoodie.table.name.")
    record_keys, partitions = options.get(keys.RECORD_KEY), options.get(keys.PARTITION_PATH)
    ordering = options.get(keys.ORDERING)
    check_named_columns(record_keys, partitions, ordering, schema)
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
    times = time_settings(options.texts)
    more |= times | stated_zone(times)
    more |= _merge_properties(options, version)
    if options.get(keys.CDC_ENABLED):
        more |= {keys.CDC_ENABLED.key: "true", keys.CDC_MODE.key: options.get(keys.CDC_MODE) or "DATA_BEFORE_AFTER"}
    elif (images := options.get(keys.CDC_MODE)) is not None:
        more[keys.CDC_MODE.key] = images  # what the writes of its maker say, too
    more |= _bucket_properties(options) | key_settings(options) | _window_properties(options)
    kind = asked_key_generator(options, len(record_keys), len(partitions))
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
    if (window := WindowSettings.of(properties)) is not None:
        if record_index.PARTITION in properties.metadata_partitions:
            allowed = "a table without a record index, which knows the keys of all days"
            raise ConfigError(keys.WINDOW_DAYS.key, window.days, allowed, "Leave one of them out.")
        check_fits(window, properties, schema, ())
    _bucket_rules(options, properties)
    _check_first_write(options, properties, planned)
    return properties, planned


def _check_first_write(options: Options, properties: TableProperties, planned: Sequence[PlannedIndex]) -> None:
    """What the first write would be refused for, whose options are most often those of its table."""
    check_supported(properties, options)
    Concurrency.of(options, properties)
    MergeRules.from_properties(properties, options.texts)
    definitions = {one.partition: one.definition for one in planned if one.definition is not None}
    choose_index(options, properties, lambda: True, lambda: definitions)


def check_named_columns(
    record_keys: Sequence[str], partitions: Sequence[str], ordering: Sequence[str], schema: pa.Schema
) -> None:
    """Refuse columns of keys, partitions and order that rows have not, or by which none can be named.

    Raises:
        ConfigError: With the option that names one.
    """
    for option, names in ((keys.RECORD_KEY, record_keys), (keys.PARTITION_PATH, partitions), (keys.ORDERING, ordering)):
        _check_columns(option.key, names, schema)


def _check_columns(option: str, names: Sequence[str], schema: pa.Schema) -> None:
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
    mode = MergeMode(text) if text and (text != MergeMode.CUSTOM.value or payload is None) else None
    if mode is MergeMode.CUSTOM:
        raise UnsupportedFeature("merge mode CUSTOM without a payload class", f"Name one with {keys.PAYLOAD_CLASS.key}.")
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
    marks = delete_properties(options.get(keys.DELETE_FIELD), options.get(keys.DELETE_MARKER))
    return found | (marks if version >= 9 else {})


def _is_complex(kind: KeyGeneratorType | None, n_partitions: int) -> bool:
    return kind is KeyGeneratorType.COMPLEX or (kind is None and n_partitions > 1)


def _window_properties(options: Options) -> dict[str, str]:
    window = WindowSettings.asked(options)
    return {} if window is None else dict(window.properties())


def _bucket_rules(options: Options, properties: TableProperties) -> PartitionRules | None:
    """Other numbers of buckets for some partitions, where options ask for them."""
    if options.get(keys.INDEX_TYPE) != IndexKind.BUCKET.value:
        return None
    settings = bucket_settings(options, properties)
    return PartitionRules(settings.rules, settings.count).check() if settings.rules else None


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
    if options.get(keys.BUCKET_RULES):
        stated[RULES_KEY] = FIRST_INSTANT
    return {key: text for key, text in stated.items() if text}
