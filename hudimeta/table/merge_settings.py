"""Which of two versions of a row wins in a table: the merge mode with what payload classes add to it.

Version 9 stores the mode; version 8 the mode, a strategy id and a payload class; version 6 the payload class alone. A mode of
CUSTOM that stands for one of Hudi's own payload classes is resolved to the rules that the class follows. Other payload and
merger classes are Java code, which cannot be run here: they stay CUSTOM, and whoever merges refuses them. Where the strategy
is that of a merger of somebody's own, Hudi stores a payload class beside it that it does not go by.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TypeVar

from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.types import MergeMode

__all__ = [
    "DELETE_PROPERTY",
    "MERGE_MODE_KEY",
    "STRATEGY_IDS",
    "UNAVAILABLE_PROPERTY",
    "MergeSettings",
    "PartialUpdateMode",
    "delete_properties",
    "merge_settings",
    "name_of_own",
    "payload_class_of",
    "payload_properties",
]

MERGE_MODE_KEY = "hoodie.record.merge.mode"
PARTIAL_UPDATE_KEY = "hoodie.table.partial.update.mode"
DELETE_PROPERTY = "hoodie.record.merge.property.hoodie.payload.delete."
_DELETE_FIELD, _DELETE_MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
UNAVAILABLE_PROPERTY = "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"

STRATEGY_IDS = {
    MergeMode.EVENT_TIME_ORDERING: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    MergeMode.COMMIT_TIME_ORDERING: "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    MergeMode.CUSTOM: "00000000-0000-0000-0000-000000000000",
}
"""`hoodie.record.merge.strategy.id` of each mode; that of CUSTOM means "as the payload class says"."""

_PACKAGE = "org.apache.hudi.common.model."
_PAYLOAD_OF_MODE = {
    MergeMode.EVENT_TIME_ORDERING: _PACKAGE + "DefaultHoodieRecordPayload",
    MergeMode.COMMIT_TIME_ORDERING: _PACKAGE + "OverwriteWithLatestAvroPayload",
}

_E = TypeVar("_E", bound=enum.Enum)


class PartialUpdateMode(enum.Enum):
    """What a winning row takes from the losing one (`hoodie.table.partial.update.mode`)."""

    NONE = "NONE"
    IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """How two versions of a row become one.

    Attributes:
        mode: CUSTOM only where the rules are Java code.
        partial_update: What the winner takes from the loser.
        delete_field: Column that marks deletes, None without; in addition to `_hoodie_is_deleted` and `_hoodie_operation`.
        delete_marker: Its value in a delete.
        payload_class: The class that decided, "" when none is named; for the reader of an error.
        own_strategy: The id of a merger's strategy that is none of Hudi's, "" without: that merger decides, no class.
        last_keeps_meta: A row that is filled, or fills another, gives its meta columns when it was written later of the two,
            whichever of them wins: so Hudi's own class does it, and the mode that version 9 stores instead does not.
        unavailable: The text in the place of a value that FILL_UNAVAILABLE takes from the loser.
        deletes_always: A delete takes away whatever is older, whatever its ordering value: so Hudi's own class does it. In
            logs it needs one even so, because release 1.0.2 compares it wherever a class merges and not a mode.
    """

    mode: MergeMode
    partial_update: PartialUpdateMode = PartialUpdateMode.NONE
    delete_field: str | None = None
    delete_marker: str | None = None
    payload_class: str = ""
    own_strategy: str = ""
    last_keeps_meta: bool = False
    deletes_always: bool = False
    unavailable: str | None = None

    def check_known(self) -> None:
        """Raises UnsupportedFeature when the rules are Java code."""
        if self.mode is MergeMode.CUSTOM:
            what = f"payload class {self.payload_class}" if self.payload_class else "a custom record merger"
            what += f" (strategy {self.own_strategy})" if self.own_strategy else ""
            raise UnsupportedFeature(
                f"merging rows with {what}",
                "Name a Python function that does it in hudimeta.merger; rows that were never updated can be read with "
                "hoodie.datasource.query.type=read_optimized.",
            )


_EVENT, _COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
_RULES_OF_PAYLOAD = {
    "DefaultHoodieRecordPayload": MergeSettings(_EVENT),
    "EventTimeAvroPayload": MergeSettings(_EVENT),
    "OverwriteWithLatestAvroPayload": MergeSettings(_COMMIT),
    "PartialUpdateAvroPayload": MergeSettings(_EVENT, PartialUpdateMode.IGNORE_DEFAULTS, last_keeps_meta=True),
    "OverwriteNonDefaultsWithLatestAvroPayload": MergeSettings(_COMMIT, PartialUpdateMode.IGNORE_DEFAULTS),
    "AWSDmsAvroPayload": MergeSettings(_COMMIT, delete_field="Op", delete_marker="D"),
}
_CUSTOM = MergeSettings(MergeMode.CUSTOM)
_DELETING_ALWAYS = ("PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload", "AWSDmsAvroPayload")


def merge_settings(
    *,
    mode: str = "",
    strategy_id: str = "",
    payload_class: str = "",
    partial_update: str = "",
    has_ordering: bool = False,
    delete_field: str | None = None,
    delete_marker: str | None = None,
    unavailable: str | None = None,
) -> MergeSettings:
    """The rules that a table's properties amount to; every argument is a property's text, "" when absent.

    Args:
        mode: `hoodie.record.merge.mode`.
        strategy_id: `hoodie.record.merge.strategy.id`, in version 6 `hoodie.compaction.record.merger.strategy`.
        payload_class: `hoodie.compaction.payload.class`, or what an upgrade kept of it.
        partial_update: `hoodie.table.partial.update.mode`.
        has_ordering: True when the table has an ordering field: without any other hint it then goes by event time.
        delete_field: Column that marks deletes, from `hoodie.record.merge.property.hoodie.payload.delete.field`.
        delete_marker: Its value, from `….delete.marker`.
        unavailable: See `MergeSettings`.

    Raises:
        ConfigError: a mode that Hudi does not know.
    """
    declared = _member(MergeMode, MERGE_MODE_KEY, mode) if mode else None
    own_strategy = "" if strategy_id in STRATEGY_IDS.values() else strategy_id
    if declared is not None and declared is not MergeMode.CUSTOM:
        rules = MergeSettings(declared)
    elif own_strategy and (declared is not None or not payload_class):  # of version 6 the class decides
        rules, payload_class = replace(_CUSTOM, own_strategy=own_strategy), ""
    elif payload_class:
        name = name_of_own(payload_class)
        rules = replace(_RULES_OF_PAYLOAD.get(name, _CUSTOM), deletes_always=name in _DELETING_ALWAYS)
    elif declared is MergeMode.CUSTOM:
        rules = _CUSTOM
    else:
        rules = MergeSettings(_mode_without_hints(strategy_id, has_ordering))
    partial = _member(PartialUpdateMode, PARTIAL_UPDATE_KEY, partial_update) if partial_update else rules.partial_update
    field, marker = delete_field or rules.delete_field, delete_marker or rules.delete_marker
    own = replace(rules, partial_update=partial, delete_field=field, delete_marker=marker, payload_class=payload_class)
    return replace(own, unavailable=unavailable)


def name_of_own(payload_class: str) -> str:
    """The bare name of a payload class, where its package is Hudi's, or left out; "" for a class of somebody else's."""
    package, _, name = payload_class.rpartition(".")
    return name if f"{package}." in (".", _PACKAGE, f"{_PACKAGE}debezium.") else ""


def payload_class_of(mode: MergeMode) -> str:
    """The payload class that version 8 stores beside a mode; "" for CUSTOM."""
    return _PAYLOAD_OF_MODE.get(mode, "")


def payload_properties(payload_class: str, version: int) -> dict[str, str] | None:
    """What a new table stores for one of Hudi's own payload classes; None for a class that is not known.

    Version 8 names the class, with CUSTOM as its mode unless it is the class of a built-in mode: Apache Hudi 1.0.2 merges no
    rows where EventTimeAvroPayload stands beside another mode, and 1.2.0 takes CUSTOM, too. Version 9 says what the class does.
    """
    name = name_of_own(payload_class)
    rules = _RULES_OF_PAYLOAD.get(name)
    if rules is None:
        return None
    built_in = {name.rpartition(".")[2] for name in _PAYLOAD_OF_MODE.values()}
    if name in built_in:
        return {}
    if version < 9:
        return {
            MERGE_MODE_KEY: MergeMode.CUSTOM.value,
            "hoodie.record.merge.strategy.id": STRATEGY_IDS[MergeMode.CUSTOM],
            "hoodie.compaction.payload.class": _PACKAGE + name,
        }
    stated = {MERGE_MODE_KEY: rules.mode.value, "hoodie.table.legacy.payload.class": _PACKAGE + name}
    if rules.partial_update is not PartialUpdateMode.NONE:
        stated[PARTIAL_UPDATE_KEY] = rules.partial_update.value
    return stated | delete_properties(rules.delete_field, rules.delete_marker)


def delete_properties(field: str | None, marker: str | None) -> dict[str, str]:
    """How version 9 stores what marks a row as a delete; nothing where nothing does.

    Raises:
        ConfigError: Only one of both is given.
    """
    if (field is None) != (marker is None):
        both = f"{_DELETE_FIELD} together with {_DELETE_MARKER}"
        raise ConfigError(_DELETE_FIELD, field, both, "Set both options or neither.")
    if field is None or marker is None:
        return {}
    return {f"{DELETE_PROPERTY}field": field, f"{DELETE_PROPERTY}marker": marker}


def _mode_without_hints(strategy_id: str, has_ordering: bool) -> MergeMode:
    for mode in (MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING):
        if strategy_id == STRATEGY_IDS[mode]:
            return mode
    return MergeMode.EVENT_TIME_ORDERING if has_ordering else MergeMode.COMMIT_TIME_ORDERING


def _member(kind: type[_E], key: str, text: str) -> _E:
    try:
        return kind(text.strip().upper())
    except ValueError:
        raise ConfigError(key, text, ", ".join(str(member.value) for member in kind)) from None
