"""What a table's record window is: of how many days, by what, and what becomes of older rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.indexes.record_window.days import day_of_path
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.table.properties import TableProperties

__all__ = ["REFUSE", "WindowSettings", "check_fits"]

REFUSE = "refuse"
_OLDER = ("bloom", REFUSE)


@dataclass(frozen=True)
class WindowSettings:
    """See the module's head.

    Attributes:
        days: So many, the newest of the table among them.
        column: Of event time: a file slice is in the window while its newest row is. None: days are those of partition paths.
        older: `bloom`: rows that the window does not know are looked up in the older files of their partition, by bloom
            filters. `refuse`: a row of an older partition is an error.
    """

    days: int
    column: str | None = None
    older: str = "bloom"

    @classmethod
    def of(cls, properties: TableProperties) -> WindowSettings | None:
        """Of a table; None for one without.

        Raises:
            ConfigError: Properties that say nothing that means anything.
        """
        days = properties.get(keys.WINDOW_DAYS.key)
        if not days:
            return None
        if not days.isdecimal() or int(days) < 1:
            raise ConfigError(keys.WINDOW_DAYS.key, days, "a number of days from 1 on", "Correct it in hoodie.properties.")
        older = properties.get(keys.WINDOW_OLDER.key) or "bloom"
        if older not in _OLDER:
            raise ConfigError(keys.WINDOW_OLDER.key, older, ", ".join(_OLDER), "Correct it in hoodie.properties.")
        return cls(int(days), properties.get(keys.WINDOW_COLUMN.key) or None, older)

    @classmethod
    def asked(cls, options: Options) -> WindowSettings | None:
        """As the options of whoever creates a table, or the index, have it; None where they do not ask for one.

        Raises:
            ConfigError: Settings that contradict each other.
        """
        days, column = options.get(keys.WINDOW_DAYS), options.get(keys.WINDOW_COLUMN)
        older = options.get(keys.WINDOW_OLDER) or "bloom"
        if not days:
            return None
        if days < 1:
            raise ConfigError(keys.WINDOW_DAYS.key, days, "a number of days from 1 on")
        if column and older == REFUSE:
            hint = "Leave one of them out: which rows a write brings is known by partition, not by their event time."
            raise ConfigError(keys.WINDOW_OLDER.key, older, f"bloom, beside {keys.WINDOW_COLUMN.key}", hint)
        return cls(days, column or None, older)

    def properties(self) -> Mapping[str, str]:
        """As a table's properties."""
        found = {keys.WINDOW_DAYS.key: str(self.days), keys.WINDOW_OLDER.key: self.older}
        return found if self.column is None else {**found, keys.WINDOW_COLUMN.key: self.column}


def check_fits(settings: WindowSettings, properties: TableProperties, schema: pa.Schema, paths: Sequence[str]) -> None:
    """Refuse a window that a table cannot have.

    Args:
        settings: Of the window.
        properties: Of the table.
        schema: Its data columns.
        paths: Its partition paths.

    Raises:
        ConfigError: No column of event time, or partitions that name no days.
        UnsupportedFeature: The table's keys are not stored, or decide in which bucket they are.
    """
    if not properties.record_keys or not properties.populate_meta:
        raise UnsupportedFeature("a record window over keys that the table does not store", "Use SIMPLE.")
    if (properties.get(keys.INDEX_TYPE.key) or "").upper() == "BUCKET":
        raise UnsupportedFeature("a record window beside buckets, which say where each key is", "Buckets need no other index.")
    if settings.column is not None:
        kind = column_type(schema, settings.column)
        if kind is None or not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            allowed = "a column of dates or timestamps"
            raise ConfigError(keys.WINDOW_COLUMN.key, settings.column, allowed, f"It is {kind or 'not there'}.")
    elif not properties.partition_fields or (paths and all(day_of_path(path) is None for path in paths)):
        hint = f"Name the column of event time: {keys.WINDOW_COLUMN.key}, in t.indexes.create columns=."
        found = repr(paths[0]) if properties.partition_fields else "no partitions"
        raise ConfigError(keys.WINDOW_DAYS.key, settings.days, f"a table whose partition paths name days, not {found}", hint)
