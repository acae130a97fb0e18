"""Which tables a write refuses, and why: before anything is read or written."""

from __future__ import annotations

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.indexes.choice import bucket_settings, named_index
from hudimeta.indexes.expression_index.facts import index_timezone
from hudimeta.indexes.record_window.settings import WindowSettings
from hudimeta.indexes.registry import maintainer_of
from hudimeta.indexes.tagging import IndexKind
from hudimeta.keys import NEW_ENCODING
from hudimeta.keys.timestamp_partition import time_settings
from hudimeta.metadata.expression_index import PREFIX as EXPRESSION_PREFIX
from hudimeta.slices.custom_merger import load_merger
from hudimeta.table.key_generator import KeyGeneratorType, key_generator_type
from hudimeta.table.merge_settings import MergeSettings, merge_settings, name_of_own
from hudimeta.table.properties import TableProperties
from hudimeta.types import MergeMode

__all__ = ["asked_key_generator", "check_supported", "contradictions", "refuse_contradictions"]


def check_supported(properties: TableProperties, options: Options) -> None:
    """Refuse tables that we would damage, by the name of what they use, and options that fit no write to this one.

    See `WriteSession`. Options that are needed late are looked at here, before anything is announced.
    """
    properties.check_writable()
    unmaintained = [name for name in properties.metadata_partitions if maintainer_of(name) is None]
    refusals = (
        (bool(unmaintained), f"keeping the metadata partitions {', '.join(unmaintained)} up to date"),
        (properties.base_file_format != "PARQUET", f"writing {properties.base_file_format} base files"),
    )
    readable = "" if properties.base_file_format in ("HFILE", "LANCE") else "; reading it works"
    for applies, feature in refusals:
        if applies:
            raise UnsupportedFeature(feature, f"Write to this table with Apache Hudi{readable}.")
    least, most = options.get(keys.ARCHIVE_MIN), options.get(keys.ARCHIVE_MAX)
    if options.is_set(keys.ARCHIVE_MIN) and options.is_set(keys.ARCHIVE_MAX) and most <= least:
        raise ConfigError(keys.ARCHIVE_MAX.key, most, f"more than {keys.ARCHIVE_MIN.key}, which is {least}")
    merger = options.get(keys.MERGER)
    if merger is not None:
        load_merger(merger)
    if named_index(options, properties) == IndexKind.BUCKET.value:
        bucket_settings(options, properties)
    if any(name.startswith(EXPRESSION_PREFIX) for name in properties.metadata_partitions):
        _check_index_timezone(properties, options)
    refuse_contradictions(properties, options)


def refuse_contradictions(properties: TableProperties, options: Options) -> None:
    """Raise ConfigError for an option that says of a table what it is not; see `contradictions`."""
    for key, (have, given) in contradictions(properties, options).items():
        hint = f"Leave out {key}: what a table was created with cannot be changed by a write."
        raise ConfigError(key, given, f"what the table has: {have!r}", hint)


def _check_index_timezone(properties: TableProperties, options: Options) -> None:
    zone = index_timezone(options, properties)
    if zone is not None:
        from hudimeta.predicate import check_zone

        said_by = keys.SESSION_TIMEZONE if zone == options.get(keys.SESSION_TIMEZONE) else keys.INDEX_TIMEZONE
        check_zone(zone, said_by.key)


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
        given_text = options.get(text_option)
        if given_text == MergeMode.CUSTOM.value and properties.merge_settings.payload_class:
            continue  # what its payload class says, which is compared below
        if options.is_set(text_option) and given_text != text:
            found[text_option.key] = (text, str(given_text))
    payload, rules = options.get(keys.PAYLOAD_CLASS), properties.merge_settings
    if payload is not None and not _is_followed(payload, rules):
        found[keys.PAYLOAD_CLASS.key] = (rules.payload_class or rules.mode.value, payload)
    for mark, stated in ((keys.DELETE_FIELD, rules.delete_field), (keys.DELETE_MARKER, rules.delete_marker)):
        if options.is_set(mark) and stated is not None and options.get(mark) != stated:
            found[mark.key] = (stated, str(options.get(mark)))
    found |= _key_contradictions(properties, options)
    window = WindowSettings.of(properties)
    if window is not None and options.is_set(keys.WINDOW_DAYS):
        found |= _window_contradictions(window, WindowSettings.asked(options))
    index, given_index = properties.get(keys.INDEX_TYPE.key) or "", options.get(keys.INDEX_TYPE)
    if given_index is not None and IndexKind.BUCKET.value in {index.strip().upper()} - {given_index.strip().upper()}:
        found[keys.INDEX_TYPE.key] = (index, given_index)  # later writes would meet file groups that are no bucket's
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


def _window_contradictions(have: WindowSettings, given: WindowSettings | None) -> dict[str, tuple[str, str]]:
    """What options say otherwise of a table's record window."""
    theirs, ours = have.properties(), {keys.WINDOW_DAYS.key: "0"} if given is None else given.properties()
    return {
        key: (theirs.get(key, "none"), ours.get(key, "none")) for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)
    }


def _key_contradictions(properties: TableProperties, options: Options) -> dict[str, tuple[str, str]]:
    """Options about keys and partition paths that contradict a table; see `contradictions`."""
    found: dict[str, tuple[str, str]] = {}
    n_keys, n_partitions = len(properties.record_keys), len(properties.partition_fields)
    kind = asked_key_generator(options, n_keys, n_partitions)
    if kind not in (None, properties.keygen) and not _means_the_same(kind, properties.keygen, n_partitions):
        given = options.get(keys.KEY_GENERATOR) or options.get(keys.KEY_GENERATOR_CLASS)
        found[keys.KEY_GENERATOR.key] = (properties.keygen.value, str(given))
    stored = properties.get(NEW_ENCODING)
    if options.is_set(keys.COMPLEX_KEY_ENCODING) and stored is not None:
        wanted = str(options.get(keys.COMPLEX_KEY_ENCODING)).lower()
        if wanted != stored.strip().lower():
            found[NEW_ENCODING] = (stored, wanted)
    have = time_settings(properties)
    for key, text in time_settings(options.given).items():
        if have.get(key, text) != text:
            found[key] = (have[key], text)
    return found


def _means_the_same(one: KeyGeneratorType, other: KeyGeneratorType, n_partitions: int) -> bool:
    """True where two generators make the same paths; how a table writes its keys is found out from its rows."""
    alike = {KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX}
    return {one, other} <= (alike if n_partitions else alike | {KeyGeneratorType.NON_PARTITION})


def _is_followed(payload_class: str, have: MergeSettings) -> bool:
    """Whether a table has this payload class, or the rules of one that is known here.

    Version 9 keeps the name of each class beside what it amounts to, also of those whose rules no table here is made with.
    """
    name = name_of_own(payload_class)
    if payload_class == have.payload_class or (name and name == name_of_own(have.payload_class)):
        return True
    return _same_rules(merge_settings(payload_class=payload_class), have)


def _same_rules(one: MergeSettings, other: MergeSettings) -> bool:
    return (one.mode, one.partial_update) == (other.mode, other.partial_update) and (
        one.delete_field is None or (one.delete_field, one.delete_marker) == (other.delete_field, other.delete_marker)
    )


def asked_key_generator(options: Options, n_keys: int, n_partitions: int) -> KeyGeneratorType | None:
    """The key generator that options name, for so many key and partition columns; None where they name none.

    Raises:
        ConfigError: A class of the user's own.
    """
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
    return found
