"""What `hoodie.properties` says otherwise in the next version of a table, step by step: 6 → 8 → 9, and 9 → 8.

Version 6 names a payload class; version 8 the merge mode, its strategy and the class; version 9 the mode alone, the class under
another name, several ordering fields. Source: RFC-78 and RFC-97, and Apache Hudi's handlers of these steps.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.keys import NEW_ENCODING
from hudimeta.table.key_generator import KeyGeneratorType
from hudimeta.table.merge_settings import (
    DELETE_PROPERTY,
    MERGE_MODE_KEY,
    STRATEGY_IDS,
    delete_properties,
    name_of_own,
    payload_class_of,
    payload_properties,
)
from hudimeta.table.properties import TableProperties
from hudimeta.types import MergeMode, TableType

__all__ = ["STEPS_DOWN", "STEPS_UP", "property_changes"]

STEPS_UP: Mapping[int, int] = {6: 8, 8: 9}
STEPS_DOWN: Mapping[int, int] = {9: 8}
"""From a version to the one beside it; 7 was a bridge that no release writes, and nothing here writes 6."""

PARTITION_FIELDS_OPTION = "hoodie.datasource.write.partitionpath.field"

_VERSION = "hoodie.table.version"
_STRATEGY_ID = "hoodie.record.merge.strategy.id"
_PAYLOAD_CLASS = "hoodie.compaction.payload.class"
_LEGACY_CLASS = "hoodie.table.legacy.payload.class"
_PARTIAL_UPDATE = "hoodie.table.partial.update.mode"
_ONE_ORDERING, _ORDERING = "hoodie.table.precombine.field", "hoodie.table.ordering.fields"
_DEFAULT_CLASSES = ("DefaultHoodieRecordPayload", "EventTimeAvroPayload", "OverwriteWithLatestAvroPayload")
_BY_HUDI = "Upgrade it with Apache Hudi."
_HANDLED_BY_JAVA = ("MySqlDebeziumAvroPayload", "PostgresDebeziumAvroPayload")

Changes = dict[str, str | None]


def property_changes(properties: TableProperties, to: int, options: Mapping[str, str]) -> Changes:
    """The properties that one step changes, those of the metadata table aside.

    Args:
        properties: Of the table.
        to: The version beside the table's own.
        options: Of the caller: `hoodie.datasource.write.partitionpath.field` where version 6 does not say enough,
            `hoodie.payload.delete.field` and `….marker` where version 9 shall keep them.

    Returns:
        New texts by key; None removes the key.

    Raises:
        UnsupportedFeature: The table has what the other version cannot say.
        ConfigError: An option is needed.
    """
    steps = {(6, 8): _from_6_to_8, (8, 9): _from_8_to_9, (9, 8): _from_9_to_8}
    return {**steps[properties.version, to](properties, options), _VERSION: str(to)}


def _from_6_to_8(properties: TableProperties, options: Mapping[str, str]) -> Changes:
    changes: Changes = {
        "hoodie.table.initial.version": str(properties.initial_version or properties.version),
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        **_merge_mode_of_8(properties),
    }
    if properties.keygen_class is not None:
        changes["hoodie.table.keygenerator.type"] = properties.keygen.value
    if properties.keygen is KeyGeneratorType.CUSTOM:
        changes["hoodie.table.partition.fields"] = _typed_partition_fields(properties, options)
    if "hoodie.bootstrap.index.class" in properties:
        changes["hoodie.bootstrap.index.type"] = "HFILE"
    return changes


def _merge_mode_of_8(properties: TableProperties) -> Changes:
    """Merge-on-read tables with an ordering field go by it whatever their class was, as Hudi has it.

    Copy-on-write tables of EventTimeAvroPayload stay with event time, as with Hudi 1.0.2, which keeps the class; 1.2.0 lets the
    later write win from then on.
    """
    payload_class = properties.payload_class or ""
    own_strategy = properties.merge_settings.own_strategy
    if own_strategy:
        raise UnsupportedFeature(f"upgrading a table whose rows a merger of strategy {own_strategy} merges", _BY_HUDI)
    if payload_class and name_of_own(payload_class) not in _DEFAULT_CLASSES:
        mode = MergeMode.CUSTOM
    elif properties.type is TableType.MERGE_ON_READ and properties.ordering_fields:
        mode, payload_class = MergeMode.EVENT_TIME_ORDERING, payload_class_of(MergeMode.EVENT_TIME_ORDERING)
    elif payload_class == payload_class_of(MergeMode.EVENT_TIME_ORDERING):
        mode = MergeMode.EVENT_TIME_ORDERING
    elif name_of_own(payload_class) == "EventTimeAvroPayload" and properties.ordering_fields:
        mode, payload_class = MergeMode.EVENT_TIME_ORDERING, payload_class_of(MergeMode.EVENT_TIME_ORDERING)
    else:
        mode, payload_class = MergeMode.COMMIT_TIME_ORDERING, payload_class_of(MergeMode.COMMIT_TIME_ORDERING)
    return {MERGE_MODE_KEY: mode.value, _STRATEGY_ID: STRATEGY_IDS[mode], _PAYLOAD_CLASS: payload_class}


def _typed_partition_fields(properties: TableProperties, options: Mapping[str, str]) -> str:
    """Version 6 leaves to each writer's options which fields of a custom key generator are timestamps."""
    text = options.get(PARTITION_FIELDS_OPTION) or ",".join(
        f"{name}:{kind}" if kind else name
        for name, kind in zip(properties.partition_fields, properties.partition_field_types, strict=True)
    )
    parts = [part.partition(":") for part in text.split(",") if part.strip()]
    if [name.strip() for name, _, _ in parts] != list(properties.partition_fields) or not all(kind for _, _, kind in parts):
        expected = ",".join(f"{name}:SIMPLE" for name in properties.partition_fields)
        hint = "The key generator is a custom one: say of each partition field whether it is SIMPLE or TIMESTAMP."
        raise ConfigError(PARTITION_FIELDS_OPTION, text, f"fields with their types, such as {expected}", hint)
    return ",".join(f"{name.strip()}:{kind.strip().upper()}" for name, _, kind in parts)


def _from_8_to_9(properties: TableProperties, options: Mapping[str, str]) -> Changes:
    """Version 8 leaves it to options what marks deletes; what an upgrade is told version 9 keeps, as Hudi has it."""
    payload_class = properties.payload_class or ""
    if name_of_own(payload_class) in _HANDLED_BY_JAVA:
        raise UnsupportedFeature(f"upgrading a table with payload class {payload_class}", _BY_HUDI)
    stated, mode = payload_properties(payload_class, 9), properties.get(MERGE_MODE_KEY)
    changes: Changes = {}
    if payload_class:
        changes |= delete_properties(options.get(keys.DELETE_FIELD.key), options.get(keys.DELETE_MARKER.key))
    if stated is not None:
        changes |= {_PAYLOAD_CLASS: None, _LEGACY_CLASS: payload_class, **stated}
    if stated or (not properties.merge_settings.own_strategy and (stated is not None or mode != MergeMode.CUSTOM.value)):
        changes[_STRATEGY_ID] = None
    fields = properties.get(_ORDERING) or properties.get(_ONE_ORDERING)
    if fields:
        changes |= {_ONE_ORDERING: None, _ORDERING: fields}
    return changes


def _from_9_to_8(properties: TableProperties, _: Mapping[str, str]) -> Changes:
    if len(properties.ordering_fields) > 1:
        names = ", ".join(properties.ordering_fields)
        raise UnsupportedFeature(f"version 8 of a table with several ordering fields ({names})", "It stays at version 9.")
    legacy = properties.get(_LEGACY_CLASS) or ""
    if name_of_own(legacy) in _HANDLED_BY_JAVA:
        raise UnsupportedFeature(f"downgrading a table with payload class {legacy}", "Downgrade it with Apache Hudi.")
    changes: Changes = {_PARTIAL_UPDATE: None, **_merge_mode_back(properties, legacy)}
    fields = properties.get(_ORDERING) or properties.get(_ONE_ORDERING)
    if fields:
        changes |= {_ORDERING: None, _ONE_ORDERING: fields}
    if properties.keygen is KeyGeneratorType.COMPLEX and len(properties.record_keys) == 1:
        changes[NEW_ENCODING] = "false"  # version 9 has spelled its keys as field:value
    return changes


def _merge_mode_back(properties: TableProperties, legacy: str) -> Changes:
    """Version 8 says by a class what version 9 says by properties; what no class says stays behind."""
    if legacy:
        if properties.merge_settings.own_strategy:
            return {_LEGACY_CLASS: None, _PAYLOAD_CLASS: legacy}
        default = name_of_own(legacy) in _DEFAULT_CLASSES
        # Apache Hudi 1.0.2 knows EventTimeAvroPayload beside CUSTOM alone.
        of_a_mode = legacy in map(payload_class_of, MergeMode)
        mode = properties.merge_mode if of_a_mode else MergeMode.CUSTOM
        gone: Changes = {key: None for key in properties if key.startswith(DELETE_PROPERTY)} if not default else {}
        return gone | {
            _LEGACY_CLASS: None,
            _PAYLOAD_CLASS: legacy,
            MERGE_MODE_KEY: mode.value,
            _STRATEGY_ID: STRATEGY_IDS[mode],
        }
    mode = properties.merge_mode
    if mode is MergeMode.CUSTOM:
        return {}
    if properties.get(_PARTIAL_UPDATE, "NONE") not in ("", "NONE"):
        what = f"version 8 of a table with {_PARTIAL_UPDATE}={properties[_PARTIAL_UPDATE]}"
        raise UnsupportedFeature(what, "Version 8 has no property for that: it stays at version 9.")
    return {_STRATEGY_ID: STRATEGY_IDS[mode], _PAYLOAD_CLASS: payload_class_of(mode)}
