"""Names of base and log files, one at a time and by the million.

Layout (a name says everything about a file but its size)::

    base   <file id>_<write token>_<instant>.<extension>            6e1d…-0_2-986-2794_20251220210108078.parquet
    log   .<file id>_<instant>.log.<version>_<write token>[.cdc]    .6e1d…-0_20251220210127080.log.1_0-1072-3078

A file id holds no `_`, a write token is three decimal numbers joined by `-`, so both forms hold exactly two `_`: the vectorised
parser rests on that and leaves out every name that breaks it. The instant of a log file is its writer's own (table version 8
and later) or that of the base file which it belongs to (version 6).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.engine.machine import machine

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = [
    "BaseFileName",
    "LogFileName",
    "ParsedNames",
    "WriteToken",
    "is_base_file",
    "new_file_id",
    "parse_base_file",
    "parse_log_file",
    "parse_names",
]

BASE_FILE_EXTENSIONS = ("parquet", "orc", "hfile", "lance")
CDC_SUFFIX = ".cdc"
_BASE = re.compile(r"^([^_.][^_]*)_(\d+-\d+-\d+)_(\d+)\.([a-z]+)$")
_LOG = re.compile(r"^\.([^_]+)_(\d+)\.log\.(\d{1,18})_(\d{1,18}-\d{1,18}-\d{1,18})(\.cdc)?$")
_INSTANT_DIGITS = 17
_UNDERSCORE, _DOT = 0x5F, 0x2E


@dataclass(frozen=True, slots=True)
class BaseFileName:
    """The parts of a base file's name."""

    file_id: str
    write_token: str
    instant: str
    extension: str = "parquet"

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant}.{self.extension}"


@dataclass(frozen=True, slots=True)
class LogFileName:
    """The parts of a log file's name; `is_cdc` marks a file of change images, which holds no rows of the table."""

    file_id: str
    instant: str
    version: int
    write_token: str
    is_cdc: bool = False

    def __str__(self) -> str:
        suffix = CDC_SUFFIX if self.is_cdc else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}_{self.write_token}{suffix}"

    @property
    def order(self) -> tuple[str, int, tuple[int, ...], bool]:
        """Readers process the log files of a slice in this order."""
        return self.instant, self.version, tuple(int(n) for n in self.write_token.split("-")), self.is_cdc


def is_base_file(name: str) -> bool:
    """True for a name that ends as a base file and does not begin with a dot."""
    return not name.startswith(".") and name.rpartition(".")[2] in BASE_FILE_EXTENSIONS


def parse_base_file(name: str) -> BaseFileName | None:
    """The parts of a base file's name; None when it is not one."""
    match = _BASE.match(name)
    return BaseFileName(*match.groups()) if match else None


def parse_log_file(name: str) -> LogFileName | None:
    """The parts of a log file's name; None when it is not one."""
    match = _LOG.match(name)
    if match is None:
        return None
    file_id, instant, version, token, suffix = match.groups()
    return LogFileName(file_id, instant, int(version), token, suffix is not None)


@dataclass(frozen=True, slots=True)
class ParsedNames:
    """The parts of many names, one entry a name, in the order given.

    Attributes:
        valid: bool; False where the name is neither a base nor a log file (its other entries mean nothing).
        is_log: bool.
        is_cdc: bool.
        file_ids: pa.StringArray.
        instants: int64, the instant's digits as a number; 14-digit instants are filled up with zeros.
        instant_digits: int64, how many digits the name has.
    """

    valid: np.ndarray[Any, Any]
    is_log: np.ndarray[Any, Any]
    is_cdc: np.ndarray[Any, Any]
    file_ids: pa.StringArray
    instants: np.ndarray[Any, Any]
    instant_digits: np.ndarray[Any, Any]


def parse_names(names: pa.StringArray) -> ParsedNames:
    """Parse base and log file names, vectorised: about a million names a second, no Python object a name.

    Args:
        names: pa.string array without nulls.

    Returns:
        See `ParsedNames`.
    """
    import numpy as np

    from hudimeta.table.text_arrays import slice_text, text_buffers

    n = len(names)
    data, starts, ends = text_buffers(names)
    valid = ends > starts
    marks = np.flatnonzero(data == _UNDERSCORE)
    first = np.searchsorted(marks, starts)
    valid &= (np.searchsorted(marks, ends) - first) == 2
    if len(marks) < 2 or not valid.any():
        valid = np.zeros(n, dtype=bool)
        first = np.zeros(n, dtype=np.int64)
        marks = np.zeros(2, dtype=np.int64)
    first = np.where(valid, first, 0)
    left, right = marks[first], marks[first + 1]
    head = data[np.where(valid, starts, 0)] if len(data) else np.zeros(n, dtype=np.uint8)
    is_log = valid & (head == _DOT)
    is_cdc = is_log & _ends_with(data, ends, CDC_SUFFIX.encode())
    instant_at = np.where(is_log, left, right) + 1
    instants, digits = _leading_number(data, instant_at, np.where(is_log, right, ends))
    followed = np.minimum(instant_at + digits, max(len(data) - 1, 0))
    valid &= (digits > 0) & (digits <= _INSTANT_DIGITS) & (instant_at + digits < ends)
    if len(data):
        valid &= data[followed] == _DOT
    id_from = np.where(valid, starts + is_log, 0)
    id_to = np.where(valid, left, 0)
    return ParsedNames(valid, is_log & valid, is_cdc & valid, slice_text(data, id_from, id_to), instants, digits)


def _ends_with(data: np.ndarray[Any, Any], ends: np.ndarray[Any, Any], suffix: bytes) -> np.ndarray[Any, Any]:
    import numpy as np

    result = ends >= len(suffix)
    for back, byte in enumerate(reversed(suffix), start=1):
        result &= data[np.maximum(ends - back, 0)] == byte if len(data) else False
    return result


def _leading_number(
    data: np.ndarray[Any, Any], start: np.ndarray[Any, Any], stop: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Digits from `start` on as a number filled up to 17 digits, and how many there were (18 for "too many")."""
    import numpy as np

    value = np.zeros(len(start), dtype=np.int64)
    count = np.full(len(start), _INSTANT_DIGITS, dtype=np.int64)
    usual = (start + _INSTANT_DIGITS < stop) & (start + 16 <= len(data))
    at = start if usual.all() else np.where(usual, start, 0)
    if usual.any():
        words = np.ndarray((len(data) - 7,), "<u8", data, 0, (1,))
        (high, high_ok), (low, low_ok) = _eight_digits(words[at]), _eight_digits(words[at + 8])
        last, after = data[at + 16] - np.uint8(0x30), data[at + 17] - np.uint8(0x30)
        usual &= high_ok & low_ok & (last <= 9) & (after > 9)
        value = (high * 10**8 + low) * 10 + last
    odd = np.flatnonzero(~usual)
    if len(odd):
        value[odd], count[odd] = _any_leading_number(data, start[odd], stop[odd])
    return value, count


def _eight_digits(words: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Eight characters at once, the first in the lowest byte: their number, and whether all are digits.

    Neighbours are joined three times: digits to pairs, pairs to fours, fours to the whole.
    """
    import numpy as np

    high = np.uint64(0xF0F0F0F0F0F0F0F0)
    zeros = np.uint64(0x3030303030303030)
    digits = ((words & high) == zeros) & (((words + np.uint64(0x0606060606060606)) & high) == zeros)
    value = ((words & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(10 << 8 | 1)) >> np.uint64(8)
    value = ((value & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 << 16 | 1)) >> np.uint64(16)
    value = ((value & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(10000 << 32 | 1)) >> np.uint64(32)
    return value.astype(np.int64), digits


def _any_leading_number(
    data: np.ndarray[Any, Any], start: np.ndarray[Any, Any], stop: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """As `_leading_number`, for any number of digits."""
    import numpy as np

    value = np.zeros(len(start), dtype=np.int64)
    count = np.zeros(len(start), dtype=np.int64)
    going = np.ones(len(start), dtype=bool)
    last = max(len(data) - 1, 0)
    for step in range(_INSTANT_DIGITS + 1):
        at = start + step
        digit = data[np.minimum(at, last)].astype(np.int64) - 0x30 if len(data) else np.zeros(len(start), dtype=np.int64)
        going &= (at < stop) & (digit >= 0) & (digit <= 9)
        count += going
        if step < _INSTANT_DIGITS:
            value = value * 10 + np.where(going, digit, 0)
    return value, count


def new_file_id() -> str:
    """Id of a new file group."""
    return f"{machine().new_id()}-0"


@dataclass(frozen=True)
class WriteToken:
    """What tells the files of one task, and of one attempt at it, from those of all others.

    Attributes:
        task: Number of the task.
        attempt: Of the task.
    """

    task: int
    attempt: int = 0

    def __str__(self) -> str:
        return f"{self.task}-0-{self.attempt}"

    @property
    def of_log(self) -> str:
        """The same for log files, whose names readers sort as text: none that Apache Hudi writes comes before it.

        Where buckets are stretches of a ring, its SQL logs changes of a row under the instant of the commit that wrote the row.
        They must come after what that commit logged, and are merged before it if they have the lesser token. In one file group
        either the task is another one or the attempt at it is, so that the sum names both.
        """
        return f"0-0-{self.task + self.attempt}"
