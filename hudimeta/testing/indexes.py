"""Do the indexes of a metadata table answer as a look at every row would? By the validator that users have."""

from __future__ import annotations

from hudimeta.engine import LocalEngine
from hudimeta.metadata import bloom_filters, expression_index, record_index, secondary_index
from hudimeta.services.validation import validate
from hudimeta.testing.inspection import Inspection

__all__ = ["indexes_know_every_row"]


def indexes_know_every_row(table: Inspection) -> None:
    """What the indexes say is true of every live row, and of the rows they speak of only.

    The record index names every live key, where it is, and no other; secondary indexes hold the values of the live rows and no
    others; bloom filters deny no key of their file; what expression indexes say of a file holds in every row of it. All in one
    validation, which looks at the table once.
    """
    single = (record_index.PARTITION, bloom_filters.PARTITION)
    families = (secondary_index.PREFIX, expression_index.PREFIX)
    names = [n for n in table.properties.metadata_partitions if n in single or n.startswith(families)]
    if names and table.metadata is not None:
        validate(table.snapshot, names, LocalEngine(1)).raise_if_differs()
