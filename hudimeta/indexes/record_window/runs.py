"""A run: prints of record keys, sorted, each with the file group that holds the key.

Layout, integers little endian::

    blocks     one after the other, each of n entries:
                   u64 × n    first half of each print, ascending in the whole run; equal ones are in one block
                   u64 × n    second half
                   u32 × n    twice the number of a segment, plus 1 where its file group does not hold the key any more
    segments   Arrow IPC file, zstd: `SEGMENTS`, a row a file group that the run speaks of
    index      Arrow IPC file, zstd: `_BLOCKS`, a row a block
    (sizes, and a digest of segments and index, are kept by whoever names the run: `RunStamp`)

A print is 124 bits of a key's hash chain (see `formats.bloom`), so that a key that is taken for another one is nothing to
reckon with: of 10^9 keys two are alike with a chance of 10^-19. Each block has an XXH3 of its own, so that a look-up of few
keys reads and checks few blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError
from hudimeta.formats.arrow_ipc import decode_table, encode_table
from hudimeta.formats.bloom import hash_chain
from hudimeta.storage import Storage

__all__ = [
    "REMOVED",
    "SEGMENTS",
    "Matches",
    "Prints",
    "Run",
    "RunContent",
    "RunStamp",
    "sorted_entries",
    "whole_prints",
    "write_run",
]

_U64 = npt.NDArray[np.uint64]
_U32 = npt.NDArray[np.uint32]
_BLOCK_ENTRIES = 1 << 14
_ENTRY_BYTES = 20
_READ_AT_ONCE = 16 << 20
_SMALL_BYTES = 256 << 10
"""A run of so many bytes is read by one request."""
_MOST_TAIL_BYTES = 256 << 20
REMOVED = np.uint32(1)
"""The bit of an entry whose file group does not hold the key any more."""

SEGMENTS = pa.schema(
    [
        ("partition_path", pa.string()),
        ("file_id", pa.string()),
        ("full", pa.bool_()),
        ("before", pa.uint64()),
        ("after", pa.uint64()),
        ("entries", pa.int64()),
    ]
)
"""File group; whether these are all of its keys; files of its slice before and after, see `chains.slice_print`; how many."""

_BLOCKS = pa.schema([("first", pa.uint64()), ("entries", pa.uint32()), ("digest", pa.uint64())])


@dataclass(frozen=True)
class Prints:
    """Prints of keys, ascending by their first halves.

    Attributes:
        first, second: The halves.
        order: int64, the key of each, as a position in what they were made of.
    """

    first: _U64
    second: _U64
    order: npt.NDArray[np.int64]

    @classmethod
    def of(cls, keys: pa.StringArray) -> Prints:
        """Of record keys, in any order."""
        words = hash_chain(keys, 4).astype(np.uint64)
        first, second = words[:, 0] << np.uint64(31) | words[:, 1], words[:, 2] << np.uint64(31) | words[:, 3]
        order = np.argsort(first, kind="stable")
        return cls(first[order], second[order], order)

    def __len__(self) -> int:
        return len(self.first)


def whole_prints(first: _U64, second: _U64) -> npt.NDArray[np.void]:
    """Prints as one array, whose elements can be told apart: u64 `first` and `second`."""
    whole = np.empty(len(first), [("first", "<u8"), ("second", "<u8")])
    whole["first"], whole["second"] = first, second
    return whole


@dataclass(frozen=True)
class Matches:
    """Entries of prints that were looked for.

    Attributes:
        at: int64, positions in the prints, ascending.
        owner: uint32, see the module's head.
    """

    at: npt.NDArray[np.int64]
    owner: _U32


@dataclass(frozen=True)
class RunContent:
    """A run in memory.

    Attributes:
        segments: `SEGMENTS`.
        first, second, owner: Entries, ascending by `first`.
    """

    segments: pa.Table
    first: _U64
    second: _U64
    owner: _U32

    def __len__(self) -> int:
        return len(self.first)

    def find(self, wanted: Prints) -> Matches:
        """The entries of some keys."""
        low = np.searchsorted(self.first, wanted.first, "left")
        counts = np.searchsorted(self.first, wanted.first, "right") - low
        at = np.repeat(np.arange(len(wanted)), counts)
        place = np.arange(len(at)) + np.repeat(low - (np.cumsum(counts) - counts), counts)
        same = self.second[place] == wanted.second[at]
        return Matches(at[same], self.owner[place[same]])


def sorted_entries(parts: Sequence[tuple[_U64, _U64, _U32]]) -> tuple[_U64, _U64, _U32]:
    """Entries together, ascending by first halves; equal ones in the order in which they came."""
    first, second, owner = _together(parts)
    order = np.argsort(first, kind="stable")  # of sorted parts: merges them
    return first[order], second[order], owner[order]


@dataclass(frozen=True)
class RunStamp:
    """What names a run.

    Attributes:
        name: Of its file.
        entries: How many.
        segment_bytes, index_bytes: Of these two parts.
        digest: XXH3 of both, hexadecimal.
    """

    name: str
    entries: int
    segment_bytes: int
    index_bytes: int
    digest: str

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.entries * _ENTRY_BYTES + self.segment_bytes + self.index_bytes


class Run:
    """A run on storage; blocks are read when they are asked for.

    Args:
        storage: Rooted at the folder.
        stamp: Names it.
    """

    def __init__(self, storage: Storage, stamp: RunStamp) -> None:
        self._storage, self.stamp = storage, stamp

    def __len__(self) -> int:
        return self.stamp.entries

    @property
    def segments(self) -> pa.Table:
        """`SEGMENTS`. Raises CorruptFileError, NotFound."""
        return self._tail[0]

    def find(self, wanted: Prints) -> Matches:
        """The entries of some keys. Raises CorruptFileError, NotFound."""
        touched = np.unique(np.searchsorted(self._first, wanted.first, "right") - 1)
        return self._content(touched[touched >= 0]).find(wanted)

    def whole(self) -> RunContent:
        """All of it in memory. Raises CorruptFileError, NotFound."""
        return self._content(np.arange(len(self._first)))

    def _content(self, blocks: npt.NDArray[np.int64]) -> RunContent:
        parts = [part for group in self._side_by_side(blocks) for part in self._read(group)]
        return RunContent(self.segments, *_together(parts))

    def _side_by_side(self, blocks: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
        """Blocks that lie side by side, so many at a time as are read at once."""
        if not len(blocks):
            return
        most = max(1, _READ_AT_ONCE // (_BLOCK_ENTRIES * _ENTRY_BYTES))
        for group in np.split(blocks, np.flatnonzero(np.diff(blocks) != 1) + 1):
            yield from np.split(group, np.arange(most, len(group), most))

    def _read(self, blocks: npt.NDArray[np.int64]) -> Iterator[tuple[_U64, _U64, _U32]]:
        ends = self._ends[blocks]
        begin, name = int(ends[0] - self._counts[blocks[0]]) * _ENTRY_BYTES, self.stamp.name
        data = memoryview(self._bytes(begin, int(ends[-1]) * _ENTRY_BYTES - begin))
        at = 0
        for block in blocks:
            count = int(self._counts[block])
            piece = data[at : at + count * _ENTRY_BYTES]
            if xxhash.xxh3_64_intdigest(piece) != int(self._digests[block]):
                raise CorruptFileError(name, begin + at, "a block with the digest that was written", "another one")
            yield _entries(piece, count)
            at += len(piece)

    def _bytes(self, begin: int, length: int) -> bytes:
        if self.stamp.size > _SMALL_BYTES:
            return self._storage.read_range(self.stamp.name, begin, length)
        return self._whole_file[begin : begin + length]

    @cached_property
    def _whole_file(self) -> bytes:
        return self._storage.read(self.stamp.name)

    @cached_property
    def _tail(self) -> tuple[pa.Table, pa.Table]:
        stamp = self.stamp
        size = stamp.segment_bytes + stamp.index_bytes
        if min(stamp.segment_bytes, stamp.index_bytes, stamp.entries) < 0 or size > _MOST_TAIL_BYTES:
            raise CorruptFileError(stamp.name, 0, f"at most {_MOST_TAIL_BYTES:,} bytes after the blocks", f"{size:,}")
        data = self._bytes(stamp.entries * _ENTRY_BYTES, size)
        if len(data) != size or xxhash.xxh3_64_hexdigest(data) != stamp.digest:
            raise CorruptFileError(stamp.name, stamp.size - size, "segments with the digest that was written", "others")
        parts = (data[: stamp.segment_bytes], data[stamp.segment_bytes :])
        segments, blocks = (decode_table(part, stamp.name) for part in parts)
        if not (segments.schema.equals(SEGMENTS) and blocks.schema.equals(_BLOCKS)):
            raise CorruptFileError(stamp.name, stamp.size - size, "segments and blocks", "other columns")
        return segments.combine_chunks(), blocks.combine_chunks()

    @cached_property
    def _first(self) -> _U64:
        first: _U64 = self._tail[1]["first"].to_numpy()
        return first

    @cached_property
    def _digests(self) -> _U64:
        digests: _U64 = self._tail[1]["digest"].to_numpy()
        return digests

    @cached_property
    def _counts(self) -> npt.NDArray[np.int64]:
        counts: npt.NDArray[np.int64] = self._tail[1]["entries"].to_numpy().astype(np.int64)
        if counts.sum() != self.stamp.entries:
            raise CorruptFileError(self.stamp.name, 0, f"{self.stamp.entries} entries", f"{counts.sum()} in its blocks")
        return counts

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.cumsum(self._counts)


def write_run(storage: Storage, name: str, content: RunContent) -> RunStamp:
    """Write a run.

    Args:
        storage: Rooted at the folder.
        name: Of a file that is not there.
        content: What it holds.

    Raises:
        StorageError: The store does not take it.
    """
    firsts, counts, digests = [], [], []
    with storage.open_output(name) as out:
        for begin, end in _cuts(content.first):
            block = b"".join(
                np.ascontiguousarray(part[begin:end], kind).tobytes()
                for part, kind in ((content.first, "<u8"), (content.second, "<u8"), (content.owner, "<u4"))
            )
            out.write(block)
            firsts.append(content.first[begin])
            counts.append(end - begin)
            digests.append(xxhash.xxh3_64_intdigest(block))
        segments = encode_table(content.segments)
        index = encode_table(pa.table([firsts, counts, digests], schema=_BLOCKS))
        out.write(segments)
        out.write(index)
    return RunStamp(name, len(content), len(segments), len(index), xxhash.xxh3_64_hexdigest(segments + index))


def _cuts(first: _U64) -> Iterator[tuple[int, int]]:
    """Where blocks begin and end: equal prints stay together."""
    begin = 0
    while begin < len(first):
        last = min(begin + _BLOCK_ENTRIES, len(first)) - 1
        end = int(np.searchsorted(first, first[last], "right"))
        yield begin, end
        begin = end


def _entries(data: memoryview, count: int) -> tuple[_U64, _U64, _U32]:
    halves = np.frombuffer(data, "<u8", 2 * count)
    return halves[:count], halves[count:], np.frombuffer(data, "<u4", count, 16 * count)


def _together(parts: Sequence[tuple[_U64, _U64, _U32]]) -> tuple[_U64, _U64, _U32]:
    nothing = (np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint32))
    first, second, owner = (np.concatenate(columns) for columns in zip(nothing, *parts, strict=True))
    return first, second, owner
