"""Writes HFiles that every Hudi reader accepts: one index level, full keys in the index, blocks of at most 64 KiB.

Java's reader loses the last cell of a block when that cell is no longer than the block's checksum area; below 64 KiB it cannot
be. Keys and values become blocks through Arrow kernels, without a Python object per record.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.hfile.block import encode_block, frame_block, pack
from hudimeta.formats.hfile.index import encode_meta_root, encode_root
from hudimeta.formats.hfile.layout import (
    KEY_SUFFIX,
    MAX_BLOCK_BYTES,
    MAX_KEY_BYTES,
    BlockKind,
    ChecksumType,
    Compression,
    encode_key,
)
from hudimeta.formats.hfile.parallel import run_blocks
from hudimeta.formats.hfile.seal import seal_entries
from hudimeta.formats.hfile.trailer import Trailer, encode_file_info
from hudimeta.formats.plain_arrays import array_of, numpy_of, scalar_of, single_array

__all__ = ["DEFAULT_BLOCK_SIZE", "HFileInfo", "HFileWriter", "Packing", "write_hfile"]

DEFAULT_BLOCK_SIZE = 65536

_INT32_BYTES = (1 << 31) - 1
_CELL_BYTES = 21
_FALSE_POSITIVES = 1e-2
"""Of the bloom filter. Readers take its size from the filter itself; Hudi's own 1e-9 would cost 5.4 bytes a key, a sixth of a
record index, where look-ups by index entry are exact anyway."""


@dataclass(frozen=True)
class Packing:
    """How blocks are packed.

    Attributes:
        compression: `GZ` or `NONE`.
        level: Effort of the deflate, 1 to 9.
        block_size: Unpacked bytes that a block holds at most, unless one cell alone is larger. Stay at or below 65536.
        checksum: What stands after each block; None for zeros with GZ, whose members carry a CRC-32, and CRC32 with NONE.
        threads: Threads that pack blocks of large files; None for one per core.
    """

    compression: str = "GZ"
    level: int = 6
    block_size: int = DEFAULT_BLOCK_SIZE
    checksum: ChecksumType | None = None
    threads: int | None = None

    @property
    def codec(self) -> Compression:
        """Of all blocks. Raises UnsupportedFeature: One that is not written."""
        codec = Compression.__members__.get(self.compression.upper())
        if codec not in (Compression.GZ, Compression.NONE):
            raise UnsupportedFeature(f"HFile compression {self.compression}", "Use GZ or NONE.")
        return codec

    @property
    def sums(self) -> ChecksumType:
        """The checksum that is meant."""
        if self.checksum is not None:
            return self.checksum
        return ChecksumType.NULL if self.codec is Compression.GZ else ChecksumType.CRC32


@dataclass(frozen=True)
class HFileInfo:
    """What the file says of itself.

    Attributes:
        schema_text: Avro schema of the values as JSON, kept as `schema`; None leaves it out.
        with_min_max: Adds `minRecordKey` and `maxRecordKey`, as in base files.
        extra: Further entries.
        created_ms: `hfile.CREATE_TIME_TS`, epoch milliseconds; 0 keeps the bytes a function of the content.
        sealed: Adds checksums of body and trailer (see `seal`).
    """

    schema_text: str | None = None
    with_min_max: bool = False
    extra: Mapping[str, bytes] = field(default_factory=dict)
    created_ms: int = 0
    sealed: bool = False


def write_hfile(
    keys: Sequence[bytes] | Any,
    values: Sequence[bytes] | Any,
    info: HFileInfo = HFileInfo(),
    *,
    bloom: bool = False,
    unique: bool = True,
    packing: Packing = Packing(),
) -> bytes:
    """The bytes of an HFile; arguments and errors are those of `HFileWriter` and its `add`."""
    writer = HFileWriter(info, bloom=bloom, unique=unique, packing=packing)
    writer.add(keys, values)
    return writer.finish()


class HFileWriter:
    """An HFile whose records come piece by piece, and are packed as they come: its bytes do not depend on the pieces.

    What is packed stays in memory until the file is whole, and so do the keys where it gets a bloom filter.

    Args:
        info: What the file says of itself.
        bloom: True adds a bloom filter over the keys (base files of Hudi have one), sized to their number.
        unique: Refuse equal keys. When False, equal keys keep their order and share a block.
        packing: How blocks are packed.

    Attributes:
        records: How many came.

    Raises:
        UnsupportedFeature: A codec other than GZ and NONE.
    """

    def __init__(
        self, info: HFileInfo = HFileInfo(), *, bloom: bool = False, unique: bool = True, packing: Packing = Packing()
    ) -> None:
        self._info, self._bloom, self._unique, self._packing, self._codec = info, bloom, unique, packing, packing.codec
        self.records = self._key_bytes = self._value_bytes = self._unpacked = 0
        self._first, self._last = b"", b""
        self._keys: list[Any] = []
        self._open: tuple[Any, Any] | None = None
        """Keys and values of the last block, which may still grow."""
        self._blocks: list[bytes] = []
        self._places: list[tuple[int, int, bytes]] = []
        """Offset, size and first key of each block."""

    def add(self, keys: Sequence[bytes] | Any, values: Sequence[bytes] | Any) -> None:
        """Add some records.

        Args:
            keys: Sorted by their bytes, after those that came before, at most 32767 bytes each; a sequence or an Arrow array
                (binary, string, large ones).
            values: As many.

        Raises:
            ValueError: Keys are not sorted or not unique, or numbers of keys and values differ.
            UnsupportedFeature: A key or value that the format cannot hold.
        """
        import pyarrow.compute as pc

        rows, data = _binary(keys), _binary(values)
        _check_input(rows, data, self._unique)
        if not len(rows):
            return
        first, last = rows[0].as_py(), rows[-1].as_py()
        if self.records and (first < self._last or (self._unique and first == self._last)):
            raise _not_sorted(self._unique, self._last, first)
        self._first, self._last = self._first if self.records else first, last
        self.records += len(rows)
        self._key_bytes += pc.sum(pc.binary_length(rows)).as_py()
        self._value_bytes += pc.sum(pc.binary_length(data)).as_py()
        if self._bloom:
            self._keys.append(rows)
        if self._open is not None:
            rows, data = (_joined([before, now]) for before, now in zip(self._open, (rows, data), strict=True))
        self._pack(rows, data, whole=False)

    def _pack(self, rows: Any, data: Any, *, whole: bool) -> None:
        """Pack blocks; without `whole` the last one stays open."""
        cells, borders = _cells(rows, data)
        cuts = _cuts(borders, self._packing.block_size, None if self._unique else _repeats(rows))
        if not whole:
            self._open = rows[int(cuts[-2]) :], data[int(cuts[-2]) :]
            cuts = cuts[:-1]
        if len(cuts) < 2:
            return
        self._unpacked += int(borders[cuts[-1]])
        offset, previous = (sum(self._places[-1][:2]), self._places[-1][0]) if self._places else (0, -1)
        blocks = _data_blocks(cells, borders, cuts, self._packing, previous, offset)
        for block, at in zip(blocks, cuts[:-1].tolist(), strict=True):
            self._places.append((offset, len(block), rows[at].as_py()))
            self._blocks.append(block)
            offset += len(block)

    def finish(self) -> bytes:
        """The bytes of the file; nothing can be added any more."""
        if self._open is not None:
            self._pack(*self._open, whole=True)
        at, filters = sum(self._places[-1][:2]) if self._places else 0, list[bytes]()
        root = encode_root(self._places)
        if self._bloom:
            from hudimeta.formats.bloom import BloomFilter

            keys = _joined(self._keys) if self._keys else _binary([])
            text = BloomFilter.create_dynamic(keys, _FALSE_POSITIVES).to_base64()
            filters.append(self._block(BlockKind.META, text.encode()))
        metas = [(at, len(block), b"bloomFilter") for block in filters]
        at += sum(map(len, filters))
        indexes = [self._block(BlockKind.ROOT_INDEX, index) for index in (root, encode_meta_root(metas))]
        trailer = Trailer(
            file_info_offset=at + sum(map(len, indexes)),
            load_on_open_offset=at,
            data_index_size=len(root),
            total_uncompressed=self._unpacked,
            data_index_count=len(self._places),
            meta_index_count=len(metas),
            entry_count=self.records,
            index_levels=1,
            first_data_block=self._places[0][0] if self._places else -1,
            last_data_block=self._places[-1][0] if self._places else -1,
            codec=self._codec,
        ).encode()
        body, entries = [*self._blocks, *filters, *indexes], self._entries()
        entries.update(seal_entries(body, trailer) if self._info.sealed else {})
        return b"".join((*body, self._block(BlockKind.FILE_INFO, encode_file_info(entries)), trailer))

    def _block(self, kind: BlockKind, content: bytes) -> bytes:
        return encode_block(kind, content, self._codec, level=self._packing.level, checksum=self._packing.sums)

    def _entries(self) -> dict[str, bytes]:
        """The file info, but for the seal."""
        count, info = self.records, self._info
        entries = {
            "KEY_VALUE_VERSION": (1).to_bytes(4, "big"),
            "MAX_MEMSTORE_TS_KEY": bytes(8),
            "hfile.CREATE_TIME_TS": info.created_ms.to_bytes(8, "big"),
            "hfile.AVG_KEY_LEN": (self._key_bytes // count + 12 if count else 0).to_bytes(4, "big"),
            "hfile.AVG_VALUE_LEN": (self._value_bytes // count if count else 0).to_bytes(4, "big"),
        }
        if count:
            entries["hfile.LASTKEY"] = encode_key(self._last)
        if info.schema_text is not None:
            entries["schema"] = info.schema_text.encode()
        entries.update({"bloomFilterTypeCode": b"DYNAMIC_V0"} if self._bloom else {})
        entries.update({"minRecordKey": self._first, "maxRecordKey": self._last} if info.with_min_max else {})
        return {**entries, **info.extra}


def _binary(values: Sequence[bytes] | Any) -> Any:
    """One Arrow array of binary or large_binary."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        values = single_array(values)
    if not isinstance(values, pa.Array):
        return array_of(values, pa.binary())
    wide = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    return values.cast(pa.large_binary() if wide else pa.binary())


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays of binary or large_binary as one."""
    import pyarrow as pa

    wide = sum(part.nbytes for part in parts) > _INT32_BYTES or any(pa.types.is_large_binary(part.type) for part in parts)
    return pa.concat_arrays([part.cast(pa.large_binary() if wide else pa.binary()) for part in parts])


def _check_input(rows: Any, data: Any, unique: bool) -> None:
    import pyarrow.compute as pc

    if len(rows) != len(data):
        raise ValueError(f"{len(rows)} keys but {len(data)} values")
    if rows.null_count or data.null_count:
        raise ValueError("an HFile holds no null key and no null value")
    if not len(rows):
        return
    longest = pc.max(pc.binary_length(rows)).as_py()
    if longest > MAX_KEY_BYTES:
        raise UnsupportedFeature(f"an HFile key of {longest} bytes", f"Keys have at most {MAX_KEY_BYTES} bytes.")
    largest = pc.max(pc.binary_length(data)).as_py()
    if largest > MAX_BLOCK_BYTES - MAX_KEY_BYTES - _CELL_BYTES:
        raise UnsupportedFeature(f"an HFile value of {largest} bytes", f"A block has at most {MAX_BLOCK_BYTES} bytes.")
    ordered = (pc.less if unique else pc.less_equal)(rows[:-1], rows[1:])
    if not pc.all(ordered, min_count=0).as_py():
        at = pc.index(ordered, False).as_py()
        raise _not_sorted(unique, rows[at].as_py(), rows[at + 1].as_py())


def _not_sorted(unique: bool, before: bytes, after: bytes) -> ValueError:
    what = f"keys must be sorted by their bytes{' and unique' if unique else ''}"
    return ValueError(f"{what}: {before!r} stands before {after!r}")


def _cells(rows: Any, data: Any) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """All cells one after the other, and where each begins, with the end as last element."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(rows)
    if count == 0:
        return memoryview(b""), np.zeros(1, dtype=np.int64)
    row_len = numpy_of(pc.binary_length(rows)).astype(np.int64)
    value_len = numpy_of(pc.binary_length(data)).astype(np.int64)
    borders = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(row_len + value_len + _CELL_BYTES, out=borders[1:])
    heads = np.zeros(count, dtype=[("key", ">i4"), ("value", ">i4"), ("row", ">i2")])
    heads["key"], heads["value"], heads["row"] = row_len + 12, value_len, row_len
    kind = pa.large_binary() if borders[-1] > _INT32_BYTES else pa.binary()
    head = pa.Array.from_buffers(pa.binary(10), count, [None, pa.py_buffer(heads.tobytes())])
    joined = pc.binary_join_element_wise(
        head.cast(kind),
        rows.cast(kind),
        scalar_of(KEY_SUFFIX, kind),
        data.cast(kind),
        scalar_of(b"\x00", kind),
        scalar_of(b"", kind),
    )
    return memoryview(joined.buffers()[2])[: int(borders[-1])], borders


def _repeats(rows: Any) -> npt.NDArray[np.bool_]:
    """True where a key equals the one before it."""
    import pyarrow.compute as pc

    same = np.zeros(len(rows), dtype=np.bool_)
    if len(rows) > 1:
        same[1:] = numpy_of(pc.equal(rows[:-1], rows[1:]))
    return same


def _cuts(borders: npt.NDArray[np.int64], block_size: int, repeats: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int64]:
    """The first cell of every block, and the number of cells; equal keys are not parted."""
    count = len(borders) - 1
    cuts = [0]
    while cuts[-1] < count:
        start = cuts[-1]
        stop = int(np.searchsorted(borders, borders[start] + block_size, side="right")) - 1
        stop = min(max(stop, start + 1), count)
        if repeats is not None and stop < count and repeats[stop]:
            stop = _between_keys(repeats, start, stop, count)
        cuts.append(stop)
    return np.array(cuts, dtype=np.int64)


def _between_keys(repeats: npt.NDArray[np.bool_], start: int, stop: int, count: int) -> int:
    """The nearest place at or before `stop` where the key changes; after it when the block holds one key only."""
    earlier = stop
    while earlier > start and repeats[earlier]:
        earlier -= 1
    if earlier > start:
        return earlier
    while stop < count and repeats[stop]:
        stop += 1
    return stop


def _data_blocks(
    cells: memoryview,
    borders: npt.NDArray[np.int64],
    cuts: npt.NDArray[np.int64],
    packing: Packing,
    previous: int,
    offset: int,
) -> list[bytes]:
    """The data blocks from an offset on; `previous` is where the block before them begins."""
    edges = itertools.pairwise(borders[cuts].tolist())
    contents = [cells[start:end] for start, end in edges]
    codec, checksum = packing.codec, packing.sums
    packed = run_blocks(lambda content: pack(content, codec, packing.level), contents, len(cells), packing.threads)
    blocks: list[bytes] = []
    for content, data in zip(contents, packed, strict=True):
        blocks.append(frame_block(BlockKind.DATA, data, len(content), previous_offset=previous, checksum=checksum))
        offset, previous = offset + len(blocks[-1]), offset
    return blocks
