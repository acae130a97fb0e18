"""Options of the record window: an index of the record keys of a table's last days."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = ["WINDOW_COLUMN", "WINDOW_DAYS", "WINDOW_OLDER"]

WINDOW_DAYS = OPTIONS.number(
    "hudimeta.record.window.days",
    0,
    "Record window: the table has an index of the record keys of its newest so many days alone; 0 for none. Given when a table "
    "is created, later by t.indexes.create(type='record_window').",
)
WINDOW_COLUMN = OPTIONS.text(
    "hudimeta.record.window.column",
    None,
    "Record window: the column of event time that decides which file slices are in it, by their column statistics; by default "
    "the days that partition paths name.",
)
WINDOW_OLDER = OPTIONS.choice(
    "hudimeta.record.window.older",
    "bloom",
    ["bloom", "refuse"],
    "Record window: rows of older partitions are looked up in their partition by bloom filters, or are an error.",
)
