"""What a table says about merging two versions of a row, as one value.

A version 9 table says it by mode: which version wins (`hoodie.record.merge.mode`), whether the loser fills gaps
(`hoodie.table.partial.update.mode`), and what marks a delete (`hoodie.record.merge.property.*`). Older tables may say it by the
name of a payload class instead; the classes that have an equivalent are translated, the others are refused by name.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.types import MergeMode

__all__ = ["DELETED_COLUMN", "KEY_COLUMN", "OPERATION_COLUMN", "MergeRules", "PartialMode"]

KEY_COLUMN: Final = "_hoodie_record_key"
DELETED_COLUMN: Final = "_hoodie_is_deleted"
OPERATION_COLUMN: Final = "_hoodie_operation"

MERGE_MODE: Final = "hoodie.record.merge.mode"
PARTIAL_MODE: Final = "hoodie.table.partial.update.mode"
STRATEGY_ID: Final = "hoodie.record.merge.strategy.id"
PAYLOAD_KEYS: Final = ("hoodie.compaction.payload.class", "hoodie.datasource.write.payload.class")
ORDERING_KEYS: Final = ("hoodie.table.ordering.fields", "hoodie.table.precombine.field")
DELETE_FIELD: Final = "hoodie.payload.delete.field"
DELETE_MARKER: Final = "hoodie.payload.delete.marker"
PROPERTY_PREFIX: Final = "hoodie.record.merge.property."
_PAYLOAD_PACKAGE: Final = "org.apache.hudi.common.model."
_PAYLOAD_STRATEGY: Final = "00000000-0000-0000-0000-000000000000"


class PartialMode(enum.Enum):
    """Whether the losing version fills gaps of the winning one (`hoodie.table.partial.update.mode`)."""

    NONE = "NONE"
    IGNORE_DEFAULTS = "IGNORE_DEFAULTS"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How two versions of a row become one.

    Attributes:
        mode: COMMIT_TIME_ORDERING (the later write wins) or EVENT_TIME_ORDERING (the higher ordering value wins, of equal ones
            the later write). Without ordering fields the second is the first.
        ordering_fields: Columns that are compared one after the other; a dot reaches into a struct.
        delete_field: Column whose text, when it is `delete_marker`, makes the row a delete; None when there is no such column.
        delete_marker: See `delete_field`.
        partial_mode: Whether a winner's default values give way to the loser's.
        column_defaults: Defaults other than null, by column, for IGNORE_DEFAULTS.
    """

    mode: MergeMode
    ordering_fields: tuple[str, ...] = ()
    delete_field: str | None = None
    delete_marker: str | None = None
    partial_mode: PartialMode = PartialMode.NONE
    column_defaults: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        if self.mode is MergeMode.CUSTOM:
            raise UnsupportedFeature("merge mode CUSTOM without a payload class that is known")
        if (self.delete_field is None) != (self.delete_marker is None):
            raise ConfigError(
                DELETE_FIELD,
                self.delete_field,
                f"a column together with {DELETE_MARKER}",
                "Set both options or neither.",
            )

    @property
    def by_event_time(self) -> bool:
        """True when ordering values decide."""
        return self.mode is MergeMode.EVENT_TIME_ORDERING and bool(self.ordering_fields)

    @property
    def columns(self) -> tuple[str, ...]:
        """Top-level columns that merging needs where the table has them: a projected read must ask for these as well."""
        named = (KEY_COLUMN, *self.ordering_fields, self.delete_field or "", DELETED_COLUMN, OPERATION_COLUMN)
        return tuple(dict.fromkeys(name.split(".")[0] for name in named if name))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> MergeRules:
        """The rules that a table's properties, with the reader's options laid over them, ask for.

        Raises:
            UnsupportedFeature: A payload class, merge strategy or partial update mode that hudimeta does not do.
            ConfigError: A merge mode that does not exist, or only one of delete field and marker.
        """
        ordering = _first(properties, ORDERING_KEYS)
        fields = tuple(name.strip() for name in ordering.split(",") if name.strip())
        payload = _first(properties, PAYLOAD_KEYS)
        stated = properties.get(MERGE_MODE, "").strip().upper()
        if stated and stated not in MergeMode.__members__:
            raise ConfigError(MERGE_MODE, stated, ", ".join(MergeMode.__members__))
        if stated and stated != MergeMode.CUSTOM.value:
            rules = cls(MergeMode[stated], fields)
        elif payload:
            rules = _rules_of_payload(payload, fields)
        elif stated and properties.get(STRATEGY_ID, _PAYLOAD_STRATEGY) != _PAYLOAD_STRATEGY:
            raise UnsupportedFeature(
                f"record merge strategy {properties[STRATEGY_ID]}", "Read the table with Apache Hudi."
            )
        elif stated:
            raise UnsupportedFeature("merge mode CUSTOM without a payload class", "Read the table with Apache Hudi.")
        else:
            rules = cls(MergeMode.EVENT_TIME_ORDERING if fields else MergeMode.COMMIT_TIME_ORDERING, fields)
        return _with_stated_details(rules, properties)


def _rules_of_payload(payload: str, fields: tuple[str, ...]) -> MergeRules:
    """The rules that a payload class of Hudi implements."""
    commit, event = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING
    rules = {
        "OverwriteWithLatestAvroPayload": MergeRules(commit, fields),
        "DefaultHoodieRecordPayload": MergeRules(event, fields),
        "EventTimeAvroPayload": MergeRules(event, fields),
        "AWSDmsAvroPayload": MergeRules(commit, fields, "Op", "D"),
        "OverwriteNonDefaultsWithLatestAvroPayload": MergeRules(
            commit, fields, partial_mode=PartialMode.IGNORE_DEFAULTS
        ),
        "PartialUpdateAvroPayload": MergeRules(event, fields, partial_mode=PartialMode.IGNORE_DEFAULTS),
    }.get(payload.removeprefix(_PAYLOAD_PACKAGE))
    if rules is None:
        raise UnsupportedFeature(
            f"payload class {payload}", "Read the table with Apache Hudi, or change how it is merged there."
        )
    return rules


def _with_stated_details(rules: MergeRules, properties: Mapping[str, str]) -> MergeRules:
    """Lay the partial update mode and the delete marker that the table states over what its mode or payload class implies."""
    partial = properties.get(PARTIAL_MODE, "").strip().upper()
    if partial and partial not in PartialMode.__members__:
        raise UnsupportedFeature(f"partial update mode {partial}", "Read the table with Apache Hudi.")
    if partial and partial != PartialMode.NONE.value:
        rules = replace(rules, partial_mode=PartialMode[partial])
    field = _first(properties, (PROPERTY_PREFIX + DELETE_FIELD, DELETE_FIELD))
    marker = _first(properties, (PROPERTY_PREFIX + DELETE_MARKER, DELETE_MARKER))
    if field or marker:
        rules = replace(rules, delete_field=field or None, delete_marker=marker or None)
    return rules


def _first(properties: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((properties[key].strip() for key in keys if properties.get(key, "").strip()), "")
