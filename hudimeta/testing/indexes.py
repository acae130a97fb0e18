"""Do the indexes of a metadata table answer as a look at every row would? By the validator that users have."""

from __future__ import annotations

from collections.abc import Callable

from hudimeta.engine import LocalEngine
from hudimeta.metadata import bloom_filters, expression_index, record_index, secondary_index
from hudimeta.services.validation import validate
from hudimeta.testing.inspection import Inspection

__all__ = [
    "blooms_have_no_false_negative",
    "expression_indexes_enclose_every_value",
    "record_index_is_the_live_keys",
    "secondary_indexes_are_the_live_values",
]


def record_index_is_the_live_keys(table: Inspection) -> None:
    """Every live key is where the record index says, and it names no other."""
    _check(table, lambda name: name == record_index.PARTITION)


def secondary_indexes_are_the_live_values(table: Inspection) -> None:
    """Secondary indexes hold the values of the live rows and no others."""
    _check(table, lambda name: name.startswith(secondary_index.PREFIX))


def blooms_have_no_false_negative(table: Inspection) -> None:
    """Every live base file has its bloom filter in the metadata table, which denies none of its keys."""
    _check(table, lambda name: name == bloom_filters.PARTITION)


def expression_indexes_enclose_every_value(table: Inspection) -> None:
    """What expression indexes say of a file is true of the expression's value in every row of it."""
    _check(table, lambda name: name.startswith(expression_index.PREFIX))


def _check(table: Inspection, is_meant: Callable[[str], bool]) -> None:
    names = [name for name in table.properties.metadata_partitions if is_meant(name)]
    if names:
        validate(table.snapshot, names, LocalEngine(1)).raise_if_differs()
