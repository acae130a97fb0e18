"""Which keys a log file touches, in the footer of its Parquet block: what a look-up reads instead of the log.

Keys are compared by *prints*, the first bytes of a hash. Sorted, they are a filter no larger than a bloom filter of
the same share of false positives, and is searched in one pass for all keys of a batch. The smallest and the greatest key stand
in the entries that base files have for them; one entry more tells of the file and of files before it, so that the end of the
newest log tells of several::

    hudimeta.log.keys   base64 of
        4  magic        HLK1
        4  number of files, the file itself first; then of each
           2  length    and UTF-8 name, without folder
           8  bytes of the file; 0 of the file itself
           4  length    and UTF-8 smallest key; of length 0 where it touches none, as the next
           4  length    and UTF-8 greatest key
           1  bytes of a print
           4  number of prints, each of which is there once
           4  length    and prints: the differences between them as they ascend, all first bytes, all second bytes ..., by zstd

Integers are big-endian and unsigned. A key's hash has 56 bits: of the first two words of its chain (see `hash_chain`) the 31
bits of the first and the lower 25 of the second.

All keys count that the file touches, those of rows and those of deletes. The block is the last data block of its file; only a
delete block may follow. Where rows stand in Avro or HFile blocks, or in several, a Parquet block without rows follows them. The
footer is sealed (see `parquet.seal`), as is the block; readers that do not know the entry pass over it.
"""

from __future__ import annotations

import binascii
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pybase64 import b64decode, b64encode_as_string

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError
from hudimeta.formats.hash_chain import hash_chain
from hudimeta.formats.parquet import MAX_KEY_KEY, MIN_KEY_KEY

__all__ = ["ENTRY_KEY", "KeyIndex", "KeyProbe", "LogFileKeys", "decode_key_index", "encode_key_index"]

ENTRY_KEY: Final = "hudimeta.log.keys"
MAX_FILES: Final = 4096
"""Files that one entry may tell of."""
MAX_PRINTS: Final = 1 << 28
"""More keys than a block of 2 GiB holds; few bytes can claim far more."""
_BITS: Final = 56
MIN_WIDTH: Final = 4
_MOST_KEYS: Final = 1 << 18
"""Keys in the log of a slice up to which its prints together keep to the share of false positives, and those of a file alone
whatever it has."""
_BEGINNING: Final = 20
_CODEC: Final = "zstd"
_MAGIC: Final = b"HLK1"
_COUNT: Final = struct.Struct(">I")
_NAME: Final = struct.Struct(">H")
_SIZE: Final = struct.Struct(">Q")
_WIDTH: Final = struct.Struct(">B")

_Prints = npt.NDArray[np.uint64]
_Mask = npt.NDArray[np.bool_]


def _print_bytes(count: int, false_positives: float) -> int:
    bits = math.log2(max(count, _MOST_KEYS)) - math.log2(false_positives)
    return min(max(math.ceil(bits / 8), MIN_WIDTH), _BITS // 8)


class KeyProbe:
    """Keys that are looked for in many files; each of them is hashed once.

    Args:
        keys: String, no null.
    """

    def __init__(self, keys: pa.StringArray) -> None:
        self.keys = keys

    @cached_property
    def ends(self) -> tuple[str, str]:
        """The smallest and the greatest key; there is one."""
        found = pc.min_max(self.keys)
        return found["min"].as_py(), found["max"].as_py()

    @cached_property
    def _sorted(self) -> tuple[_Prints, npt.NDArray[np.int64]]:
        prints = _hashes(self.keys)
        order = np.argsort(prints)
        return prints[order], order

    @cached_property
    def _beginnings(self) -> _Mask:
        """Whether a key's hash begins with some bits: that is asked of many prints in the time of a search for few."""
        found = np.zeros(1 << _BEGINNING, np.bool_)
        found[self._sorted[0] >> np.uint64(_BITS - _BEGINNING)] = True
        return found

    def found_in(self, prints: _Prints, width: int) -> npt.NDArray[np.int64]:
        """Positions of the keys with one of some prints, which ascend."""
        few = prints[self._beginnings[prints >> np.uint64(8 * width - _BEGINNING)]]
        own, order = self._sorted
        if not len(few):
            return order[:0]
        own = own >> np.uint64(_BITS - 8 * width)
        starts, ends = (np.searchsorted(own, few, side) for side in ("left", "right"))
        counts = ends - starts
        places = np.arange(counts.sum()) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        found: npt.NDArray[np.int64] = order[places]
        return found


@dataclass(frozen=True)
class LogFileKeys:
    """Which keys a log file touches: those of its rows and those that it deletes.

    Attributes:
        name: Of the file, without its folder.
        size: Its bytes; 0 when they are not known.
        low, high: The smallest and the greatest; None in a file that touches none.
        width: Bytes of a print.
        prints: Of the keys, ascending, each once.
    """

    name: str
    size: int
    low: str | None
    high: str | None
    width: int
    prints: _Prints

    @staticmethod
    def of(name: str, size: int, keys: pa.StringArray, false_positives: float) -> LogFileKeys:
        """What is said of a file that touches some keys.

        Args:
            name: Of the file.
            size: Its bytes; 0 when they are not known yet.
            keys: In any order, also several times.
            false_positives: Share of foreign keys that may pass.
        """
        ends, width = pc.min_max(keys), _print_bytes(len(keys), false_positives)
        prints = np.unique(_hashes(keys) >> np.uint64(_BITS - 8 * width))
        return LogFileKeys(name, size, ends["min"].as_py(), ends["max"].as_py(), width, prints)

    def touched(self, probe: KeyProbe) -> npt.NDArray[np.int64]:
        """Positions of those keys of a probe that the file may touch; the others it surely does not."""
        if not len(self.prints) or not len(probe.keys) or self.low is None or self.high is None:
            return np.zeros(0, np.int64)
        low, high = probe.ends
        if high.encode() < self.low.encode() or low.encode() > self.high.encode():
            return np.zeros(0, np.int64)
        return probe.found_in(self.prints, self.width)

    @cached_property
    def encoded(self) -> bytes:
        """As it stands in an entry."""
        parts = [_NAME.pack(len(self.name.encode())), self.name.encode(), _SIZE.pack(self.size)]
        for text in ((self.low or "").encode(), (self.high or "").encode()):
            parts += [_COUNT.pack(len(text)), text]
        packed = _packed(self.prints, self.width)
        return b"".join([*parts, _WIDTH.pack(self.width), _COUNT.pack(len(self.prints)), _COUNT.pack(len(packed)), packed])


@dataclass(frozen=True)
class KeyIndex:
    """What the end of a log file says. Attributes: own: Of the file itself. others: Of files before it, the newest first."""

    own: LogFileKeys
    others: tuple[LogFileKeys, ...] = ()


def encode_key_index(own: LogFileKeys, others: Sequence[LogFileKeys], room: int) -> dict[str, str]:
    """Entries of a footer; the inverse of `decode_key_index`.

    Args:
        own: Of the file itself, whose size is not known.
        others: Of files before it, the newest first; those are left out that do not fit, the oldest first.
        room: Bytes that the others may take.
    """
    parts = [own.encoded]
    for other in others[: MAX_FILES - 1]:
        room -= len(other.encoded)
        if room < 0:
            break
        parts.append(other.encoded)
    ends = {} if own.low is None or own.high is None else {MIN_KEY_KEY: own.low, MAX_KEY_KEY: own.high}
    return {**ends, ENTRY_KEY: b64encode_as_string(_MAGIC + _COUNT.pack(len(parts)) + b"".join(parts))}


def decode_key_index(text: bytes, path: str, size: int) -> KeyIndex:
    """What an entry says.

    Args:
        text: Of the entry, in a footer whose seal was found to be right.
        path: Of the log file, for errors, and because the entry knows its name.
        size: Bytes of the file.

    Raises:
        CorruptFileError: It is not what was written, or that of another file.
    """
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptFileError(path, 0, f"base64 text in {ENTRY_KEY}", str(error)) from None
    source = _Source(data, path)
    if source.take(len(_MAGIC)) != _MAGIC:
        raise source.fault("a known form", repr(data[: len(_MAGIC)]))
    count = source.number(_COUNT)
    if not 1 <= count <= MAX_FILES:
        raise source.fault(f"1 to {MAX_FILES} files", count)
    own, *others = [source.file() for _ in range(count)]
    if source.position != len(data):
        raise source.fault("the entry's end", f"{len(data) - source.position} more bytes")
    if own.name != path.rpartition("/")[2]:
        raise source.fault(f"the file {path.rpartition('/')[2]}", f"that of {own.name}")
    return KeyIndex(LogFileKeys(own.name, size, own.low, own.high, own.width, own.prints), tuple(others))


def _hashes(keys: pa.StringArray) -> _Prints:
    chain = hash_chain(keys, 2).astype(np.uint64)
    hashes: _Prints = (chain[:, 0] & np.uint64(2**31 - 1)) << np.uint64(25) | (chain[:, 1] & np.uint64(2**25 - 1))
    return hashes


def _packed(prints: _Prints, width: int) -> bytes:
    steps = np.diff(prints, prepend=np.uint64(0)).astype(">u8")
    planes = np.ascontiguousarray(steps.view(np.uint8).reshape(-1, 8)[:, 8 - width :].T)
    packed: bytes = pa.compress(planes.tobytes(), codec=_CODEC, asbytes=True)
    return packed


def _unpacked(data: bytes, count: int, width: int) -> _Prints:
    """Raises ValueError or an error of Arrow for bytes that are no prints."""
    planes = np.frombuffer(pa.decompress(data, count * width, codec=_CODEC, asbytes=True), np.uint8)
    steps = np.zeros((count, 8), np.uint8)
    steps[:, 8 - width :] = planes.reshape(width, count).T
    ascending = steps.view(">u8").reshape(count).astype(np.uint64)
    prints: _Prints = np.add.accumulate(ascending)
    return prints


class _Source:
    """Bytes that are consumed from the front; every read past the end is a fault."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self.path, self.position = memoryview(data), path, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.position:
            raise self.fault(f"{count} bytes", f"{len(self.data) - self.position}")
        self.position += count
        return bytes(self.data[self.position - count : self.position])

    def number(self, form: struct.Struct) -> int:
        return int(form.unpack(self.take(form.size))[0])

    def text(self, form: struct.Struct) -> str:
        try:
            return self.take(self.number(form)).decode()
        except UnicodeDecodeError:
            raise self.fault("UTF-8 text", "other bytes") from None

    def file(self) -> LogFileKeys:
        name, size = self.text(_NAME), self.number(_SIZE)
        low, high = self.text(_COUNT), self.text(_COUNT)
        width, count = self.number(_WIDTH), self.number(_COUNT)
        if not MIN_WIDTH <= width <= _BITS // 8 or count > MAX_PRINTS:
            raise self.fault(f"up to {MAX_PRINTS} prints of {MIN_WIDTH} to {_BITS // 8} bytes", f"{count} of {width}")
        packed = self.take(self.number(_COUNT))
        try:
            prints = _unpacked(packed, count, width)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self.fault("prints", str(error).partition("\n")[0]) from None
        return LogFileKeys(name, size, low if count else None, high if count else None, width, prints)

    def fault(self, expected: object, actual: object) -> CorruptFileError:
        return CorruptFileError(self.path, self.position, f"{expected} in {ENTRY_KEY}", actual)
