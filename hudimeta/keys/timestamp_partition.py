"""Partition paths of the TIMESTAMP key generator: a moment, or its text, shown by a date pattern.

Options begin with `hoodie.keygen.timebased.`, those of older writers with `hoodie.deltastreamer.keygen.timebased.` or
`hoodie.streamer.keygen.timebased.`:

=====================================  ===================================================================================
option                                 meaning
=====================================  ===================================================================================
`timestamp.type`                       UNIX_TIMESTAMP (seconds), EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR (a number in
                                       `timestamp.scalar.time.unit`), DATE_STRING and MIXED (text)
`output.dateformat`                    Joda pattern of the path; its slashes are folders
`input.dateformat`                     Joda patterns of text, separated by `input.dateformat.list.delimiter.regex` (`,`)
`timezone`                             zone of both sides; else `input.timezone` and `output.timezone`
=====================================  ===================================================================================

A null counts as the number 1 (for text: as the moment one millisecond after the epoch, written by the first input pattern).
Text whose zone nobody names keeps the offset that it states. Where a zone is needed and not named (`lacks_zone`), Java takes
that of its machine: `stated_zone` names one for new tables, rows of others tell it (`KeyGenerator.learned_from`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.errors import ConfigError, SchemaMismatch
from hudimeta.keys.columns import Rows, column, first_row
from hudimeta.keys.joda import FIRST_SHOWN, LAST_SHOWN, Parsed, format_local, format_times, parse_times, tokens
from hudimeta.keys.partition_path import PURPOSE, decorate
from hudimeta.keys.zones import offsets_of_local

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ZONE_KEY", "TimestampPartition", "stated_zone", "time_settings"]

PREFIXES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.", "hoodie.streamer.keygen.timebased.")
ZONE_KEY = PREFIXES[0] + "timezone"
TYPES = ("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR", "DATE_STRING", "MIXED")

_PER_MILLISECOND = {"NANOSECONDS": 1_000_000, "MICROSECONDS": 1_000, "MILLISECONDS": 1}
_MILLISECONDS = {"SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
_UNIT_OF_TYPE = {"UNIX_TIMESTAMP": "SECONDS", "EPOCHMILLISECONDS": "MILLISECONDS", "EPOCHMICROSECONDS": "MICROSECONDS"}


def time_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The settings of times among options, by the names that tables store them under.

    Args:
        options: Keys in lower case, with any of the prefixes; the first of these counts where several are given.
    """
    found: dict[str, str] = {}
    for prefix in PREFIXES:
        for key, value in options.items():
            if key.startswith(prefix):
                found.setdefault(PREFIXES[0] + key.removeprefix(prefix), value)
    return found


def stated_zone(settings: Mapping[str, str]) -> dict[str, str]:
    """What a new table says of the zone that its settings of times lack: UTC, so that machines in all zones agree."""
    if PREFIXES[0] + "output.dateformat" not in settings:
        return {}
    time = TimestampPartition.from_properties(settings)
    return {PREFIXES[0] + ("output" if time.unit else "input") + ".timezone": "UTC"} if time.lacks_zone else {}


@dataclass(frozen=True)
class TimestampPartition:
    """The settings of a table's time-based partition field.

    Attributes:
        unit: Name of Java's TimeUnit of numbers; None for DATE_STRING and MIXED, which take text only.
        output_format: Joda pattern.
        input_formats: Joda patterns, tried in order.
        input_zone, output_zone: IANA names or offsets; None where the table names none.
    """

    unit: str | None
    output_format: str
    input_formats: tuple[str, ...] = ()
    input_zone: str | None = None
    output_zone: str | None = None
    hive: bool = False
    encode: bool = False
    consistent_timestamp: bool = False

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], *, hive: bool = False, encode: bool = False, consistent: bool = False
    ) -> TimestampPartition:
        """Read the options. Raises ConfigError for one that is missing or not understood."""
        implied = "DATE_STRING" if _option(properties, "input.dateformat", "") else ""
        kind = _option(properties, "timestamp.type", implied).strip().upper()
        if kind not in TYPES:
            raise ConfigError(PREFIXES[0] + "timestamp.type", kind, f"one of {', '.join(TYPES)}")
        output = _option(properties, "output.dateformat", "")
        if not output:
            raise ConfigError(PREFIXES[0] + "output.dateformat", output, "a Joda date pattern such as yyyy/MM/dd")
        tokens(output, PREFIXES[0] + "output.dateformat")
        unit = _UNIT_OF_TYPE.get(kind)
        if kind == "SCALAR":
            unit = _option(properties, "timestamp.scalar.time.unit", "SECONDS").strip().upper()
            if unit not in _MILLISECONDS and unit not in _PER_MILLISECOND:
                raise ConfigError(PREFIXES[0] + "timestamp.scalar.time.unit", unit, "a unit from nanoseconds to days")
        zone = _zone(_option(properties, "timezone", ""))
        return cls(
            unit,
            output,
            _input_formats(properties) if unit is None else (),
            zone or _zone(_option(properties, "input.timezone", "")),
            zone or _zone(_option(properties, "output.timezone", "")),
            hive,
            encode,
            consistent,
        )

    @property
    def levels(self) -> int:
        """How many folders one path has."""
        if self.encode:
            return 1
        return 1 + sum(t.text.count("/") for t in tokens(self.output_format) if not t.letter)

    @property
    def lacks_zone(self) -> bool:
        """True where paths depend on a zone that nobody names."""
        return self.output_zone is None if self.unit else self.input_zone is None and self.output_zone is not None

    def in_zone(self, zone: str) -> TimestampPartition:
        """The same settings, with a zone in the place of the one that they lack."""
        if not self.lacks_zone:
            return self
        return replace(self, output_zone=zone) if self.unit else replace(self, input_zone=zone)

    def segment(self, rows: Rows, field: str) -> pa.Array:
        """The part of the path that the field gives, one text per row.

        Raises:
            SchemaMismatch: The column is missing, of a type that the settings cannot read, or holds text that fits no pattern.
        """
        values = column(rows, field, PURPOSE)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        shown = self._of_text(values, field) if is_text else self._of_numbers(values, field)
        return decorate(shown, field, hive=self.hive, encode=self.encode)

    def _of_numbers(self, values: pa.Array, field: str) -> pa.Array:
        return format_times(self._milliseconds(values, field), self.output_format, self.output_zone or "UTC")

    def _milliseconds(self, values: pa.Array, field: str) -> NDArray[np.int64]:
        import pyarrow.compute as pc

        kind = values.type
        types = pa.types
        moment = types.is_timestamp(kind) and self.consistent_timestamp
        if moment:
            values = pc.cast(pc.floor_temporal(values, unit="millisecond"), pa.timestamp("ms", kind.tz), safe=False)
        numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if not (numeric or types.is_timestamp(kind) or types.is_date32(kind) or types.is_null(kind)):
            raise SchemaMismatch(field, kind, "a number, text, date or timestamp", "Cast the column before writing.")
        if self.unit is None and not moment:
            raise SchemaMismatch(field, kind, "text, as the table's timestamp.type says", "Cast the column to string.")
        if types.is_date32(kind):
            values = pc.cast(values, pa.int32())
        whole = pc.fill_null(pc.cast(values, pa.int64(), safe=False), 1)
        numbers: NDArray[np.int64] = whole.to_numpy(zero_copy_only=False)
        return _scaled(numbers, "MILLISECONDS" if moment else self.unit or "SECONDS", field)

    def _of_text(self, values: pa.Array, field: str) -> pa.Array:
        import pyarrow.compute as pc

        if not self.input_formats:
            raise SchemaMismatch(
                field,
                "text",
                "a number, as the table's timestamp.type says",
                "Cast it, or set timestamp.type=DATE_STRING.",
            )
        coded = pc.fill_null(pc.cast(values, pa.string()), self._null_text()).dictionary_encode()
        return self._show(coded.dictionary, field, values).take(coded.indices)

    def _null_text(self) -> str:
        import numpy as np

        zone = self.input_zone or self.output_zone or "UTC"
        return str(format_times(np.array([1], np.int64), self.input_formats[0], zone)[0].as_py())

    def _show(self, texts: pa.Array, field: str, values: pa.Array) -> pa.Array:
        import numpy as np
        import pyarrow.compute as pc

        parsed = self._parse(texts)
        times, good = self._moments(parsed)
        for shown in (parsed.local, times):
            good = good & (shown >= FIRST_SHOWN) & (shown <= LAST_SHOWN)
        if not good.all():
            text = texts[int(np.argmin(good))].as_py()
            raise SchemaMismatch(
                field,
                f"{text!r} in row {first_row(pc.equal(values, text))}",
                f"a date like {' or '.join(self.input_formats)}",
                "Correct the value, or add its pattern to hoodie.keygen.timebased.input.dateformat.",
            )
        if self.output_zone is None and self.input_zone is None:
            return format_local(parsed.local, self.output_format, offsets=parsed.offset)
        return format_times(times, self.output_format, self.output_zone or self.input_zone or "UTC")

    def _parse(self, texts: pa.Array) -> Parsed:
        """The first pattern that fits wins."""
        import numpy as np

        best: Parsed | None = None
        for pattern in self.input_formats:
            new = parse_times(texts, pattern, PREFIXES[0] + "input.dateformat")
            if best is None:
                best = new
                continue
            use = best.matched
            best = Parsed(
                np.where(use, best.local, new.local),
                np.where(use, best.offset, new.offset),
                np.where(use, best.has_offset, new.has_offset),
                use | new.matched,
            )
        if best is None:
            raise ConfigError(PREFIXES[0] + "input.dateformat", "", "at least one Joda date pattern")
        return best

    def _moments(self, parsed: Parsed) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Epoch milliseconds: by the offset that the text states, else by the clock of the input zone (UTC when none).

        Also whether there is such a moment: not where the text fits no pattern, nor in the hour that a clock jumps over.
        """
        import numpy as np

        by_zone, exists = offsets_of_local(parsed.local, self.input_zone or "UTC")
        offset = np.where(parsed.has_offset, parsed.offset, by_zone)
        return parsed.local - offset, parsed.matched & (parsed.has_offset | exists)


def _scaled(numbers: NDArray[np.int64], unit: str, field: str) -> NDArray[np.int64]:
    """Numbers of a unit as milliseconds, as `TimeUnit.convert` makes them: towards zero.

    Raises:
        SchemaMismatch: A number that is no moment with a date: most likely the column is of another unit than the table.
    """
    import numpy as np

    per, factor = _PER_MILLISECOND.get(unit, 1), _MILLISECONDS.get(unit, 1)
    limits = np.iinfo(np.int64)
    low, high = max(-(-FIRST_SHOWN // factor) * per, limits.min), min(LAST_SHOWN // factor * per, limits.max)
    odd = np.flatnonzero((numbers < low) | (numbers > high))
    if len(odd):
        raise SchemaMismatch(
            field,
            f"{numbers[odd[0]]} in row {odd[0]}",
            f"a moment of the years 1 to 9999 in {unit.lower()}",
            "Bring the column to the unit that the table's hoodie.keygen.timebased.timestamp.type says.",
        )
    scaled: NDArray[np.int64] = (numbers // per + ((numbers < 0) & (numbers % per != 0))) * factor
    return scaled


def _option(properties: Mapping[str, str], name: str, default: str) -> str:
    return next((properties[p + name] for p in PREFIXES if p + name in properties), default)


def _input_formats(properties: Mapping[str, str]) -> tuple[str, ...]:
    # Empty in the examples of Hudi's documentation, where it means a comma.
    delimiter = _option(properties, "input.dateformat.list.delimiter.regex", "").strip() or ","
    text = _option(properties, "input.dateformat", "")
    formats = tuple(part.strip() for part in re.split(delimiter, text) if part.strip())
    if not formats:
        raise ConfigError(PREFIXES[0] + "input.dateformat", text, "Joda date patterns such as yyyy-MM-dd HH:mm:ss")
    return formats


def _zone(name: str) -> str | None:
    """Java's zone names as Arrow knows them: `GMT+8:00` is an offset, GMT and Z are UTC."""
    name = name.strip()
    if not name:
        return None
    if name.upper() in ("GMT", "UTC", "Z", "UT"):
        return "UTC"
    offset = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::?(\d{2}))?", name)
    return f"{offset[1]}{int(offset[2]):02d}:{offset[3] or '00'}" if offset else name
