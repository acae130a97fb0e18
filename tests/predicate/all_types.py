"""Rows of every type that a predicate may name: borders, odd values and random ones, reproducible from a seed."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa

D = decimal.Decimal
INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
DECIMALS = {"e1": (9, 3), "e2": (18, 0), "e3": (38, 18), "e4": (38, 0), "e5": (5, 5), "e6": (20, 7), "e7": (10, 2)}
MICROS_IN_DAY = 86_400_000_000
FIRST, LAST = dt.date(1, 1, 1).toordinal(), dt.date(9999, 12, 31).toordinal()
EPOCH = dt.date(1970, 1, 1).toordinal()

ODD_TEXTS = ["", " ", "abc", "ABC", "é😀", "a_c%", "Straße", " a ", "\U0010ffff", "a\nb", "b\n", "x\r\n", "\u2028"]
ODD_TEXTS += ["a\\b", "İI", "ﬀi", "ΑΣ", "ΣΑΣ Σ", "a\x00b", "\t5\t", "%", "_", "aaaaaaaaab", "a,b,,c,", "foo bar  baz"]
ODD_TEXTS += ["日本語", "e\u0301"]
NUMBER_TEXTS = ["5", " -7 ", "+0", "2000000000", "1.5", "-0", "1e3", "1E-2", "0x1p3", "NaN", "nan", "+NaN", "-inf"]
NUMBER_TEXTS += ["Infinity", "inf", "+infinity", "1d", "2.5F", ".5", "5.", ".", "", "+", "--1", "9223372036854775807"]
NUMBER_TEXTS += ["9223372036854775808", "-9223372036854775808", "127", "128", "-128", "00000000000000000000012", "6.8202"]
NUMBER_TEXTS += ["0.1", "1_000", "1,5", "٣", "\x7f5\x7f", "\xa05", "\x0b5", "true", "T", " yes ", "no", "off", "1e400"]
NUMBER_TEXTS += ["-1e400", "1e-400", "99999.99999", "12345678901234567890.123456789012345678", "1.005", "2.675", "1L"]
NUMBER_TEXTS += ["0x10", "1e", "e5", "+.5e+1", "- 5", "5 5"]
TIME_TEXTS = ["2024-02-29", "1969-12-31", "2024-7-1", "2024", "2023-02-29", "2024-02", "2024-02-29 12:30:01.12"]
TIME_TEXTS += ["10000-01-01", "2024-02-29T12:30:01.1234567Z", "2024-02-29 12:30", "2024-02-29 12", "2024-02-29 24:00:00"]
TIME_TEXTS += ["2024-02-29 12:30:01+02:00", "2024-02-29 12:30:01 Europe/Berlin"]
TIME_TEXTS += ["2024-02-29 12:30:01 UTC+1", "0001-01-01", "0000-01-01", "-0001-01-01", "+2024-01-01", "2024-1-1 1:2:3"]
TIME_TEXTS += ["2:3", "T12", " 1:2:3.45 ", "12:", " T12", "23:59:59.9Pacific/Auckland", "2024-02-29 12:30:01.1 "]
TIME_TEXTS += ["2024-02-29T", "2024-02-29 ", " 2024-02-29", "2024-02-29x", "20240229", "2024-03-31 02:30:00"]
TIME_TEXTS += ["2024-10-27 02:30:00", "1582-10-10", "1582-10-04 00:00:00", "2024-02-29 12:30:01.", "2024-13-01", "epoch"]
TIME_TEXTS += ["now", "today", "2024-02-29 12:30:01 PST", "2024-02-29 12:30:01Z", "2024-02-29 12:30:01.123456789012", ""]
TIME_TEXTS += ["99999-01-01", "2024-02-29 12:30:01GMT-03:00", "2024-02-29 12:30:01-0330", "2024-02-29 12:30:01+5"]
TIME_TEXTS += ["2024-02-29 1", "2024-02-29 12:30:60"]


def integers(random_: random.Random, bits: int) -> int:
    """A border or any value of a signed integer."""
    half = 1 << (bits - 1)
    if random_.random() < 0.5:
        return random_.choice([0, 1, -1, 2, 5, -7, 10, half - 1, -half, half - 2, 1 - half, half // 2])
    return random_.randint(-half, half - 1) >> random_.randrange(bits)


def doubles(random_: random.Random) -> float:
    """A border, a short decimal, a whole number, or any bits."""
    kind = random_.randrange(4)
    if kind == 0:
        borders = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, 2.5, -2.5, 0.5, 1e10, 1e-5]
        return random_.choice([*borders, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**31, 127.5, 1e7, 1e-3, 123456789.125])
    if kind == 1:
        return float(f"{random_.randint(-99999999, 99999999)}e-{random_.randrange(9)}")
    if kind == 2:
        return float(integers(random_, 64))
    return float(struct.unpack("<d", random_.randbytes(8))[0])


def floats(random_: random.Random) -> float:
    """As :func:`doubles`, of 32 bits."""
    if random_.random() < 0.5:
        return float(struct.unpack("<f", random_.randbytes(4))[0])
    value = doubles(random_)
    return value if not math.isfinite(value) or abs(value) < 3e38 else 3.4028234663852886e38


def decimals(random_: random.Random, precision: int, scale: int) -> decimal.Decimal:
    """A border or any number of so many digits."""
    largest = 10**precision - 1
    borders = [0, 1, -1, 5 * 10 ** max(scale - 1, 0), 10**scale, largest, -largest, 15 * 10 ** max(scale - 1, 0)]
    unscaled = random_.choice(borders) if random_.random() < 0.3 else random_.randint(-largest, largest)
    if random_.random() < 0.5:
        unscaled = int(unscaled / 10 ** random_.randrange(precision))
    sign = "-" if unscaled < 0 else ""
    return D(f"{sign}{min(abs(unscaled), largest)}E-{scale}")


def days(random_: random.Random) -> int:
    """Days since the epoch of a year that Python has."""
    borders = ["0001-01-01", "9999-12-31", "1582-10-04", "1582-10-15", "1970-01-01", "1969-12-31", "2024-02-29", "2024-03-31"]
    if random_.random() < 0.4:
        return dt.date.fromisoformat(random_.choice([*borders, "2023-01-01", "2024-12-30", "2024-10-27"])).toordinal() - EPOCH
    if random_.random() < 0.5:
        return random_.randint(15_000, 22_000)
    return random_.randint(FIRST + 400, LAST - 400) - EPOCH


def moments(random_: random.Random) -> int:
    """Microseconds since the epoch."""
    of_day = random_.choice(
        [0, 1, MICROS_IN_DAY - 1, 3_600_000_000, 5_400_000_000, 45_001_120_000, random_.randrange(MICROS_IN_DAY)]
    )
    return max(days(random_), FIRST - EPOCH + 400) * MICROS_IN_DAY + of_day


def texts(random_: random.Random, pool: list[str]) -> str:
    """One of a pool, or random letters."""
    if random_.random() < 0.85:
        return random_.choice(pool)
    return "".join(random_.choice("abAB01 é%_.\n-") for _ in range(random_.randrange(8)))


def number_text(random_: random.Random) -> str:
    """A text that may be a number."""
    kind = random_.randrange(4)
    if kind == 0:
        return repr(doubles(random_))
    if kind == 1:
        return str(integers(random_, 64))
    return str(decimals(random_, 20, 7)) if kind == 2 else random_.choice(NUMBER_TEXTS)


def rows(random_: random.Random, length: int) -> pa.Table:
    """A table of every type; a tenth of each column is null."""

    def column(t: pa.DataType, make: Callable[[], Any], border: list[Any] | None = None) -> pa.Array:
        values = [None if random_.random() < 0.1 else make() for _ in range(length)]
        for at, value in enumerate((border or [])[:length]):
            values[at] = value
        return pa.array(values, t)

    def array(make: Callable[[], Any]) -> list[Any]:
        return [None if random_.random() < 0.15 else make() for _ in range(random_.randrange(4))]

    def mapping(key: Callable[[], Any], make: Callable[[], Any]) -> list[tuple[Any, Any]]:
        return list({key(): None if random_.random() < 0.15 else make() for _ in range(random_.randrange(4))}.items())

    short = ["a", "b", "c", "k", "", "é"]

    def word() -> str:
        return random_.choice(short)

    def small() -> int:
        return random_.randint(-2, 5)

    inner = pa.struct([("d", pa.float64()), ("e", pa.decimal128(9, 3))])
    columns = {
        "b": column(pa.int8(), lambda: integers(random_, 8)),
        "h": column(pa.int16(), lambda: integers(random_, 16)),
        "i": column(pa.int32(), lambda: integers(random_, 32)),
        "j": column(pa.int32(), lambda: random_.randint(-3, 12)),
        "l": column(pa.int64(), lambda: integers(random_, 64)),
        "f": column(pa.float32(), lambda: floats(random_)),
        "d": column(pa.float64(), lambda: doubles(random_)),
        "w": column(pa.float64(), lambda: random_.randint(-40, 40) / 8),
        "s": column(pa.string(), lambda: texts(random_, ODD_TEXTS), list(ODD_TEXTS)),
        "n": column(pa.string(), lambda: number_text(random_), list(NUMBER_TEXTS)),
        "x": column(pa.string(), lambda: texts(random_, TIME_TEXTS), list(TIME_TEXTS)),
        "bi": column(pa.binary(), lambda: random_.choice([b"", b"abc", b"\xff\x00", b"5", b"\xc3\x28", random_.randbytes(4)])),
        "da": column(pa.int32(), lambda: days(random_)).view(pa.date32()),
        "ts": column(pa.int64(), lambda: moments(random_)).view(INSTANT),
        "tn": column(pa.int64(), lambda: moments(random_)).view(LOCAL),
        "bo": column(pa.bool_(), lambda: random_.random() < 0.5),
        "st": column(
            pa.struct([("a", pa.int32()), ("t", pa.string()), ("x", inner)]),
            lambda: {
                "a": random_.choice([None, 1, 5, integers(random_, 32)]),
                "t": random_.choice([None, *short]),
                "x": random_.choice([None, {"d": doubles(random_), "e": decimals(random_, 9, 3)}]),
            },
        ),
        "ai": column(pa.list_(pa.int32()), lambda: array(lambda: random_.randint(-2, 5))),
        "ad": column(pa.list_(pa.float64()), lambda: array(lambda: doubles(random_))),
        "at": column(pa.list_(pa.string()), lambda: array(lambda: random_.choice(short))),
        "ms": column(
            pa.map_(pa.string(), pa.int32()), lambda: mapping(lambda: random_.choice(short), lambda: random_.randint(-2, 5))
        ),
        "mi": column(
            pa.map_(pa.int32(), pa.string()), lambda: mapping(lambda: random_.randint(-2, 5), lambda: random_.choice(short))
        ),
    }
    for name, (precision, scale) in DECIMALS.items():
        columns[name] = column(pa.decimal128(precision, scale), lambda p=precision, s=scale: decimals(random_, p, s))
    return pa.table(columns)


def plain(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values that compare as Spark's do bit for bit: NaN equal to itself, times as numbers, so that any year has one."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    t = values.type
    if pa.types.is_timestamp(t):
        return values.cast(pa.timestamp("us", t.tz), safe=False).view(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_date(t):
        return values.view(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_floating(t):
        return [None if value is None else repr(value) for value in values.to_pylist()]
    if pa.types.is_struct(t):
        parts = [plain(values.field(i)) for i in range(t.num_fields)]
        here = values.is_valid().to_pylist()
        return [dict(enumerate(row)) if valid else None for valid, *row in zip(here, *parts, strict=True)]
    if pa.types.is_string(t):
        values = values.cast(pa.binary())  # BINARY as STRING need not be UTF-8
    return values.to_pylist()  # type: ignore[no-any-return]
