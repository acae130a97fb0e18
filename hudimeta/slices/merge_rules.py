"""What a table says about merging two versions of a row, as one value that merging works by.

`hudimeta.table.merge_settings` finds the mode in the many ways in which tables state it; here the ordering fields, the delete
marker that a reader may give, and the columns that merging needs come together, and what cannot be merged is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.slices.custom_merger import MERGER_KEY
from hudimeta.table.merge_settings import PartialUpdateMode
from hudimeta.table.properties import TableProperties
from hudimeta.types import MergeMode

__all__ = ["DELETED_COLUMN", "KEY_COLUMN", "OPERATION_COLUMN", "MergeRules", "PartialUpdateMode"]

KEY_COLUMN: Final = "_hoodie_record_key"
DELETED_COLUMN: Final = "_hoodie_is_deleted"
OPERATION_COLUMN: Final = "_hoodie_operation"

DELETE_FIELD: Final = "hoodie.payload.delete.field"
DELETE_MARKER: Final = "hoodie.payload.delete.marker"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How two versions of a row become one.

    Attributes:
        mode: COMMIT_TIME_ORDERING (the later write wins) or EVENT_TIME_ORDERING (the higher ordering value wins, of equal ones
            the later write). Without ordering fields the second is the first.
        ordering_fields: Columns that are compared one after the other; a dot reaches into a struct.
        delete_field: Column whose text, when it is `delete_marker`, makes the row a delete; None when there is no such column.
        delete_marker: See `delete_field`.
        partial_mode: Which of a winner's values give way to the loser's: none, defaults, or texts that are `unavailable`.
        column_defaults: Defaults other than null, by column, for IGNORE_DEFAULTS.
        last_keeps_meta: The later written of two rows gives the meta columns even when it loses (see `MergeSettings`).
        unavailable: For FILL_UNAVAILABLE; without it no value gives way.
        deletes_always: A delete that is written takes away whatever is older (see `MergeSettings`).
        merger: Name of the function that merges two versions (see `custom_merger`); mode and ordering fields then decide about
            deletes only. None goes by the mode.
    """

    mode: MergeMode
    ordering_fields: tuple[str, ...] = ()
    delete_field: str | None = None
    delete_marker: str | None = None
    partial_mode: PartialUpdateMode = PartialUpdateMode.NONE
    column_defaults: tuple[tuple[str, object], ...] = ()
    merger: str | None = None
    last_keeps_meta: bool = False
    deletes_always: bool = False
    unavailable: str | None = None

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
    def delete_fields(self) -> tuple[str, ...]:
        """Ordering fields whose values a delete in a log states."""
        return self.ordering_fields if self.by_event_time or self.deletes_always else ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Top-level columns that merging needs where the table has them: a projected read must ask for these as well."""
        named = (KEY_COLUMN, *self.ordering_fields, self.delete_field or "", DELETED_COLUMN, OPERATION_COLUMN)
        return tuple(dict.fromkeys(name.split(".")[0] for name in named if name))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], options: Mapping[str, str] | None = None) -> MergeRules:
        """The rules that a table's properties ask for.

        Args:
            properties: The table's properties.
            options: The reader's or writer's; `hoodie.payload.delete.field` and `….marker` count where the table has none, and
                `hudimeta.merger` goes before what the table says.

        Raises:
            UnsupportedFeature: A payload class, merge strategy or partial update mode that hudimeta does not do.
            ConfigError: A mode that does not exist, or only one of delete field and marker.
        """
        table = properties if isinstance(properties, TableProperties) else TableProperties(dict(properties))
        stated = table.merge_settings
        given = options or {}
        merger = given.get(MERGER_KEY) or None
        field = stated.delete_field or given.get(DELETE_FIELD) or None
        marker = stated.delete_marker or given.get(DELETE_MARKER) or None
        if merger is None:
            stated.check_known()
            ordering = tuple(table.ordering_fields)
            return cls(
                stated.mode,
                ordering,
                field,
                marker,
                stated.partial_update,
                last_keeps_meta=stated.last_keeps_meta,
                deletes_always=stated.deletes_always,
                unavailable=stated.unavailable,
            )
        ordering = tuple(table.ordering_fields)
        mode = MergeMode.EVENT_TIME_ORDERING if stated.mode is MergeMode.CUSTOM and ordering else stated.mode
        mode = MergeMode.COMMIT_TIME_ORDERING if mode is MergeMode.CUSTOM else mode
        return cls(mode, ordering, field, marker, merger=merger, deletes_always=stated.deletes_always)
