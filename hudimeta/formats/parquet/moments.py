"""Dates and moments that Spark wrote in ways of its own: INT96, and the calendar of Java before Spark 3.

INT96 is a moment in UTC; Arrow takes it for one without a zone, and counts it in nanoseconds, of which 64 bits do not reach
beyond the years 1677 and 2262. Numbers of days and microseconds may be of the calendar that was Julian until 1582 (in zones
other than UTC also of another time of day until 1900). A file of Spark says which calendar it has::

    org.apache.spark.version         below 3.0 (INT96: below 3.1) the old one; without it, the one that Arrow knows
    org.apache.spark.legacyDateTime  dates and 64-bit moments are of the old one whatever the version, if there is this entry
    org.apache.spark.legacyINT96     INT96 likewise
    org.apache.spark.timeZone        zone of the writer, by whose old clock moments are
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of

__all__ = ["CALENDAR_KEY", "READ_INT96", "Moments", "of_any_calendar"]

CALENDAR_KEY = "org.apache.spark.version"
"""Files with a Spark version from 3.0 on have dates of the calendar that Arrow knows; without one Spark refuses to read dates
before 1582 and timestamps before 1900."""
READ_INT96 = "us"
"""How Arrow shall read INT96."""
_FIRST_DAY = -141_427
"""1582-10-15, from which on both calendars are the same."""
_FIRST_MICROSECOND = -2_208_988_800_000_000
"""1900-01-01T00:00:00Z, from which on clocks are the same in every zone."""

_DATES, _INT96, _ZONE = (f"org.apache.spark.{name}" for name in ("legacyDateTime", "legacyINT96", "timeZone"))
_UTC = frozenset(("UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "GMT0", "UCT", "Zulu", "Universal", "+00:00"))
_DAY = 86_400_000_000
_JULIAN_DAY_OF_1970 = 2_440_588
_MOMENT = pa.timestamp("us", "UTC")
Place: TypeAlias = tuple[str, ...]
"""Of a value: names of columns and fields, and what a list or map has it as."""
_Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Moments:
    """Those of a file. Attributes: metadata: pyarrow's `FileMetaData`. path: For errors."""

    metadata: Any
    path: str = ""

    @cached_property
    def _entries(self) -> dict[str, str]:
        """Those of the footer that are told of above; pyarrow copies all of them each time, and a filter is large."""
        found: dict[bytes, bytes] = self.metadata.metadata or {}
        names = (CALENDAR_KEY, _DATES, _INT96, _ZONE)
        return {name: found[name.encode()].decode("utf-8", "replace") for name in names if name.encode() in found}

    def _is_old(self, key: str, since: str) -> bool:
        version = self._entries.get(CALENDAR_KEY)
        return version is not None and (version < since or key in self._entries)

    @cached_property
    def are_old(self) -> bool:
        """Whether dates and moments of the file may be of the old calendar."""
        return self._is_old(_DATES, "3.0.0") or (bool(self._int96) and self._is_old(_INT96, "3.1.0"))

    @cached_property
    def _int96(self) -> frozenset[Place]:
        """Where INT96 stand."""
        schema = self.metadata.schema
        kinds = [schema.column(at).physical_type for at in range(self.metadata.num_columns)]
        if "INT96" not in kinds:
            return frozenset()
        leaves = iter(kinds)
        places = [place for field in schema.to_arrow_schema() for place in _places(field.type, (field.name,))]
        return frozenset(place for place in places if next(leaves) == "INT96")

    @property
    def are_plain(self) -> bool:
        """Whether Arrow reads them as they are."""
        return not self.are_old and not self._int96

    def schema(self, read: pa.Schema) -> pa.Schema:
        """The columns of the file, with the types that `of` gives them; `read` is the schema as Arrow tells it."""
        if not self._int96:
            return read
        return pa.schema([field.with_type(self._type(field.type, (field.name,))) for field in read], read.metadata)

    def of(self, rows: pa.Table) -> pa.Table:
        """Rows of the file, with the moments that were written.

        Args:
            rows: As Arrow reads them with `READ_INT96`; some columns, or some fields of structs.

        Raises:
            UnsupportedFeature: Moments before 1900 by the old clock of a zone other than UTC.
        """
        if self.are_plain:
            return rows
        for number, field in enumerate(rows.schema):
            kind = self._type(field.type, (field.name,))
            if _has_moments(kind):
                chunks = [self._corrected(chunk, (field.name,)) for chunk in rows.column(number).chunks]
                rows = rows.set_column(number, field.with_type(kind), pa.chunked_array(chunks, kind))
        return rows

    def _type(self, kind: pa.DataType, place: Place) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([field.with_type(self._type(field.type, (*place, field.name))) for field in kind.fields])
        if pa.types.is_map(kind):
            item = kind.item_field.with_type(self._type(kind.item_type, (*place, "value")))
            return pa.map_(kind.key_field.with_type(self._type(kind.key_type, (*place, "key"))), item)
        if pa.types.is_list(kind):
            return pa.list_(kind.value_field.with_type(self._type(kind.value_type, (*place, "element"))))
        return _MOMENT if place in self._int96 else kind

    def _corrected(self, values: pa.Array, place: Place) -> pa.Array:
        kind = values.type
        if not _has_moments(kind):
            return values
        wanted = self._type(kind, place)
        if pa.types.is_struct(kind):
            children = [self._corrected(values.field(n), (*place, field.name)) for n, field in enumerate(kind.fields)]
            return pa.StructArray.from_arrays(children, fields=wanted.fields, mask=values.is_null())
        if pa.types.is_map(kind) or pa.types.is_list(kind):
            return self._elements(values, wanted, place)
        if place in self._int96:
            values = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(_MOMENT)
            return self._by_new_clock(values) if self._is_old(_INT96, "3.1.0") else values
        if not self._is_old(_DATES, "3.0.0"):
            return values
        if pa.types.is_date32(kind):
            return _replaced(values, pa.int32(), _FIRST_DAY, _new_days)
        return self._by_new_clock(values) if kind.tz is not None else values  # Spark takes those without a zone as they are

    def _elements(self, values: pa.Array, wanted: pa.DataType, place: Place) -> pa.Array:
        first, last = (values.offsets[at].as_py() for at in (0, -1))
        offsets = array_of(numpy_of(values.offsets) - first, pa.int32())
        mask = values.is_null() if values.null_count else None
        if pa.types.is_list(wanted):
            inner = self._corrected(values.values.slice(first, last - first), (*place, "element"))
            return pa.ListArray.from_arrays(offsets, inner, type=wanted, mask=mask)
        keys, items = (part.slice(first, last - first) for part in (values.keys, values.items))
        keys, items = self._corrected(keys, (*place, "key")), self._corrected(items, (*place, "value"))
        return pa.MapArray.from_arrays(offsets, keys, items, type=wanted, mask=mask)

    def _by_new_clock(self, values: pa.Array) -> pa.Array:
        zone, unit = self._entries.get(_ZONE) or "an unknown zone", values.type.unit
        per_day = _DAY // {"us": 1, "ms": 1_000, "ns": 1}[unit] * (1_000 if unit == "ns" else 1)

        def moved(numbers: _Numbers) -> _Numbers:
            if zone not in _UTC:
                hint = "Read the table with Apache Hudi, or write these rows anew with it."
                raise UnsupportedFeature(f"moments before 1900 by the clock of {zone} (in {self.path})", hint)
            days = numbers // per_day
            return _new_days(days) * per_day + (numbers - days * per_day)

        first = _FIRST_MICROSECOND // _DAY * per_day
        return _replaced(values, pa.int64(), first, moved)


def of_any_calendar(low: pa.Array, high: pa.Array, known: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bounds of dates or moments, unknown where the numbers mean others in the old calendar.

    Args:
        low: Smallest value of each file.
        high: Greatest.
        known: Where true, bounds are of the calendar of today; false or null where nobody knows.
    """
    import pyarrow.compute as pc

    kind = low.type
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}.get(getattr(kind, "unit", ""))
    first = _FIRST_DAY if per_second is None else _FIRST_MICROSECOND // 1_000_000 * per_second
    numbers, loose = pa.int32() if per_second is None else pa.int64(), pc.invert(fill_null(known, False))

    def judged(side: pa.Array) -> pa.Array:
        lost = pc.and_(loose, fill_null(pc.less(side.view(numbers), scalar_of(first, numbers)), False))
        return pc.if_else(lost, scalar_of(None, kind), side)

    return judged(low), judged(high)


def _places(kind: pa.DataType, place: Place) -> Iterator[Place]:
    """Where the leaves of a column stand, in the order of a Parquet file."""
    if pa.types.is_struct(kind):
        for field in kind.fields:
            yield from _places(field.type, (*place, field.name))
    elif pa.types.is_map(kind):
        yield from _places(kind.key_type, (*place, "key"))
        yield from _places(kind.item_type, (*place, "value"))
    elif pa.types.is_list(kind):
        yield from _places(kind.value_type, (*place, "element"))
    else:
        yield place


def _has_moments(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_moments(field.type) for field in kind.fields)
    if pa.types.is_map(kind):
        return _has_moments(kind.key_type) or _has_moments(kind.item_type)
    if pa.types.is_list(kind):
        return _has_moments(kind.value_type)
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _replaced(values: pa.Array, kind: pa.DataType, first: int, new: Any) -> pa.Array:
    """Values of which those before a number are others."""
    numbers = numpy_of(fill_null(values.cast(kind), first)).astype(np.int64)
    early = numbers < first
    if not early.any():
        return values
    numbers[early] = new(numbers[early])
    nulls = numpy_of(values.is_null()) if values.null_count else None
    return array_of(numbers.astype(kind.to_pandas_dtype()), kind, nulls).cast(values.type)


def _new_days(days: _Numbers) -> _Numbers:
    """Days of today's calendar that are called as those of the old one; a 29th of February may become a 1st of March."""
    early = days < _FIRST_DAY
    f = days[early] + _JULIAN_DAY_OF_1970 + 1401
    e = 4 * f + 3
    h = 5 * (e % 1461 // 4) + 2
    day, month = h % 153 // 5, (h // 153 + 2) % 12 + 1
    year = e // 1461 - 4716 + (14 - month) // 12
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    found: _Numbers = days.copy()
    found[early] = months.astype("datetime64[D]").astype(np.int64) + day
    return found
