"""The write instants of a timeline as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["WriteTimes"]


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """The write instants of a timeline as columns, for work on many files at once.

    Attributes:
        requested: Arrow string array, requested times of the completed writes, ascending.
        completion: Arrow string array, their completion times, row by row.
        pending: Arrow string array, requested times of the writes that are not completed, ascending.
        first_active: See `Timeline.first_active_write`.
    """

    requested: pa.StringArray
    completion: pa.StringArray
    pending: pa.StringArray
    first_active: str | None
