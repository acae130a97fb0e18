"""Dates and times in Parquet files: of which calendar they are, and the instants that INT96 mean to Spark.

Spark takes dates and times of a file as they are, or brings them from the calendar of before Spark 3 to that of today. It
goes by the version of Spark and a note of the calendar in the footer, and by the session where there is no version; of INT96 by
a note and a setting of their own. Times that it would change stay with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.schema import assemble, list_runs

__all__ = ["Calendars", "int96_as_times", "with_int96_as_times"]

_VERSION = b"org.apache.spark.version"
_LEGACY_DATES, _LEGACY_INT96 = b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"
_DATES_SINCE, _INT96_SINCE = b"3.0.0", b"3.1.0"
"""The versions of Spark that first wrote dates and times of today's calendar."""

_BYTES = pa.binary(12)
_TIMES = pa.timestamp("us", tz="UTC")
_STORED = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])
_EPOCH = np.int32(2_440_588)
"""The Julian day of 1970-01-01."""
_MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True)
class Calendars:
    """What session and reader say of dates and times.

    Attributes:
        dates: Dates and times of files that do not say their calendar are taken as they are.
        int96: Alike, INT96.
        against_int96: Why INT96 are Spark's in any file; empty when they need not be.
    """

    dates: bool
    int96: bool
    against_int96: str

    def refused(self, entries: Mapping[bytes, bytes], kinds: Iterable[pa.DataType]) -> str:
        """Why dates and times of a file must be read by Spark; empty when they need not.

        Args:
            entries: Keys and values of its footer.
            kinds: Types of the columns that are read, with INT96 as bytes.
        """
        kinds = list(kinds)
        if any(_has(kind, _is_date) for kind in kinds):
            if entries.get(_VERSION, _DATES_SINCE) < _DATES_SINCE or _LEGACY_DATES in entries:
                return "has dates of the calendar of before Spark 3"
            if _VERSION not in entries and not self.dates:
                return "does not say of which calendar its dates are"
        if any(_has(kind, _BYTES.equals) for kind in kinds):
            if self.against_int96:
                return f"has timestamps of type INT96, and {self.against_int96}"
            if entries.get(_VERSION, _INT96_SINCE) < _INT96_SINCE or _LEGACY_INT96 in entries:
                return "has timestamps of type INT96 of the calendar of before Spark 3.1"
            if _VERSION not in entries and not self.int96:
                return "does not say of which calendar its timestamps of type INT96 are"
        return ""


def int96_as_times(kind: pa.DataType) -> pa.DataType:
    """A type that has timestamps wherever it has values of twelve bytes."""
    types = pa.types
    if kind == _BYTES:
        return _TIMES
    if types.is_list(kind):
        return pa.list_(_timed(kind.value_field))
    if types.is_map(kind):
        return pa.map_(_timed(kind.key_field), _timed(kind.item_field))
    if types.is_struct(kind):
        return pa.struct([_timed(part) for part in kind])
    return kind


def _timed(field: pa.Field) -> pa.Field:
    return field.with_type(int96_as_times(field.type))


def with_int96_as_times(values: pa.Array) -> pa.Array:
    """Values that hold timestamps wherever they hold INT96 as twelve bytes; the same values where they hold none."""
    target = int96_as_times(values.type)
    if target == values.type:
        return values
    valid = values.is_valid() if values.null_count else None
    if values.type == _BYTES:
        return assemble(target, len(values), valid, [pa.py_buffer(_microseconds(values))], [])
    if pa.types.is_struct(target):
        # What lies below a null is anything: flatten makes it null.
        return assemble(target, len(values), valid, [], [with_int96_as_times(part) for part in values.flatten()])
    offsets, inner = list_runs(values, "INT96")
    return assemble(target, len(values), valid, [offsets], [with_int96_as_times(inner)])


def _microseconds(values: pa.Array) -> npt.NDArray[np.int64]:
    """Microseconds since 1970, with the arithmetic of Java that Spark does it by: signed, towards 0, and without an end."""
    if not len(values):
        return np.empty(0, np.int64)
    stored = np.frombuffer(values.buffers()[1], _STORED, len(values), values.offset * _STORED.itemsize)
    nanoseconds = stored["nanoseconds"]
    part = nanoseconds // 1000
    part += (nanoseconds < 0) & (part * 1000 != nanoseconds)
    days: npt.NDArray[np.int64] = (stored["day"] - _EPOCH).astype(np.int64)
    days *= _MICROSECONDS_A_DAY
    days += part
    return days


def _has(kind: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type is, or holds at any depth, one that is wanted."""
    return wanted(kind) or any(_has(kind.field(number).type, wanted) for number in range(kind.num_fields))


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
