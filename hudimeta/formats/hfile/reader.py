"""Reads HFiles with few requests: whole when small, else the tail and then only the data blocks that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.hfile.block import Block, block_pieces, decode_block
from hudimeta.formats.hfile.cells import KeyValues, RawCells, find_cells
from hudimeta.formats.hfile.index import BlockIndex, decode_index_block, decode_meta_root, decode_root
from hudimeta.formats.hfile.layout import BlockKind
from hudimeta.formats.hfile.parallel import most_threads, run_blocks
from hudimeta.formats.hfile.range_reader import RangeReader, as_range_reader
from hudimeta.formats.hfile.seal import check_body, check_trailer
from hudimeta.formats.hfile.spans import SpanReader
from hudimeta.formats.hfile.trailer import TRAILER_SIZE, Trailer, decode_file_info, decode_trailer
from hudimeta.formats.plain_arrays import array_of, binaries, places

if TYPE_CHECKING:
    from hudimeta.formats.bloom import BloomFilter

__all__ = ["HFileReader"]

_MAX_LOAD_ON_OPEN = 256 << 20
_MAX_INDEX_LEVELS = 6
_LEAST_BATCH_BYTES, _MOST_BATCH_BYTES = 64 << 10, 64 << 20
_PICK_BYTES = 4 << 20
"""Packed bytes that are searched at once; what they unpack to is little beside the file."""

_BLOOM_META = "bloomFilter"

_Select = Callable[[BlockIndex], npt.NDArray[np.int64]]


class HFileReader:
    """One HFile, opened: trailer, indexes and file info are read, data blocks are not.

    Args:
        source: The file's bytes, or a RangeReader over them.
        path: For errors.
        size: Bytes of the file; only checked against `source`, None to trust it.
        threads: Threads that unpack blocks of large reads; None for one per core.

    Raises:
        CorruptFileError: The file is no HFile, is cut short, or contradicts itself.
        UnsupportedFeature: Another version or codec, encryption, cell versions or tags: nothing that Hudi writes.

    Attributes:
        trailer: The trailer's fields.
        blocks_opened: Data blocks unpacked so far.
    """

    def __init__(
        self,
        source: RangeReader | bytes | bytearray | memoryview,
        path: str = "",
        size: int | None = None,
        *,
        threads: int | None = None,
    ) -> None:
        self.path = path
        self.blocks_opened = 0
        self._threads = threads
        self._spans = SpanReader(as_range_reader(source), path)
        if size is not None and size != self._spans.size:
            raise CorruptFileError(path, min(size, self._spans.size), f"a file of {size} bytes", f"{self._spans.size}")
        self.trailer = self._read_trailer()
        self._leaves: dict[int, BlockIndex] = {}
        self._load_on_open()

    # --- what the file says of itself

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._spans.size

    @property
    def entry_count(self) -> int:
        """Records in the file, as its trailer says."""
        return self.trailer.entry_count

    @property
    def file_info(self) -> Mapping[str, bytes]:
        """The file info block, such as `schema`, `hfile.LASTKEY`, `minRecordKey`."""
        return MappingProxyType(self._file_info)

    @property
    def schema_text(self) -> str | None:
        """The Avro schema of the values as JSON; None when the file does not carry it (bootstrap indexes do not)."""
        schema = self._file_info.get("schema")
        return None if schema is None else schema.decode()

    @property
    def last_key(self) -> bytes | None:
        """The greatest key; None in an empty file or when the file does not say."""
        text = self._file_info.get("hfile.LASTKEY", b"")
        return text[2 : 2 + int.from_bytes(text[:2], "big")] if len(text) >= 2 else None

    @property
    def min_record_key(self) -> bytes | None:
        """`minRecordKey` of the file info; None when absent, as in log blocks."""
        return self._file_info.get("minRecordKey")

    @property
    def max_record_key(self) -> bytes | None:
        """`maxRecordKey` of the file info; None when absent, as in log blocks."""
        return self._file_info.get("maxRecordKey")

    @property
    def root_index(self) -> BlockIndex:
        """The root of the data index: data blocks, or with several levels index blocks."""
        return self._root

    @property
    def meta_names(self) -> tuple[str, ...]:
        """Names of the meta blocks."""
        return tuple(self._meta)

    def data_index(self) -> BlockIndex:
        """All data blocks; reads the index blocks of every level."""
        return self._choose(BlockIndex.all_blocks)

    def meta_block(self, name: str) -> bytes | None:
        """Content of a meta block, None when there is none of the name. One request unless the file is in memory."""
        if name not in self._meta:
            return None
        offset, size = self._meta[name]
        (raw,) = self._spans.read_many([(offset, size)])
        return self._block(raw, BlockKind.META, offset, size).data

    def bloom_filter(self) -> BloomFilter | None:
        """The filter over the file's keys; None when the file has none."""
        if _BLOOM_META not in self._meta:
            return None
        from hudimeta.formats.bloom import BloomFilter

        offset, size = self._meta[_BLOOM_META]
        (raw,) = self._spans.read_many([(offset, size)])
        text = block_pieces(raw, BlockKind.META, self.trailer.codec, path=self.path, offset=offset, exact_size=size)
        # A filter with few keys in it is mostly zeros and packs well: its text, 4/3 of its size, is never there as a whole.
        return BloomFilter.from_base64_pieces(text, path=self.path)

    # --- records

    def scan(self) -> KeyValues:
        """All records. Needs memory for some copies of them, unpacked; that of `scan_batches` depends on the file's size."""
        found = self._picked(self.data_index(), None)
        self._check_count(len(found))
        return found

    def scan_batches(self, batch_bytes: int | None = None, fetch_bytes: int | None = None) -> Iterator[KeyValues]:
        """All records, in pieces; see `scan_cell_batches`."""
        for cells in self.scan_cell_batches(batch_bytes, fetch_bytes):
            yield cells.to_key_values()

    def scan_cell_batches(self, batch_bytes: int | None = None, fetch_bytes: int | None = None) -> Iterator[RawCells]:
        """All records, as places in a buffer, in pieces of about `batch_bytes` unpacked bytes, and of one block at least.

        Args:
            batch_bytes: See above. None for the size of the file, between 64 KiB and 64 MiB: however well the file is
                packed, reading it takes no more than some times its size.
            fetch_bytes: Packed bytes that are fetched at once; None for a quarter of `batch_bytes`, so that memory stays
                below three batches and two blocks. More saves requests.
        """
        batch_bytes = batch_bytes or min(max(self._spans.size, _LEAST_BATCH_BYTES), _MOST_BATCH_BYTES)
        index = self.data_index()
        seen = held = 0
        blocks: list[bytes] = []
        offsets: list[int] = []
        for group in _groups(index, fetch_bytes or max(batch_bytes // 4, 1)):
            for offset, block in self._unpacked(index.take(group)):
                blocks.append(block.data)
                offsets.append(offset)
                held += len(block.data)
                if held >= batch_bytes:
                    yield (cells := find_cells(blocks, offsets, self.path))
                    seen += len(cells)
                    blocks, offsets, held = [], [], 0
        if blocks:
            yield (cells := find_cells(blocks, offsets, self.path))
            seen += len(cells)
        self._check_count(seen)

    def lookup(self, keys: Sequence[bytes] | Any) -> KeyValues:
        """The records of `keys`, in file order; keys that are not there are left out.

        Args:
            keys: Sorted byte strings, or an Arrow array of them.
        """
        wanted = _byte_strings(keys)
        index = self._choose(lambda index: index.blocks_of_keys(wanted))
        if not len(index):
            return KeyValues.empty()
        import pyarrow.compute as pc

        values = binaries(wanted)
        return self._picked(index, lambda stored: pc.is_in(stored, value_set=values.cast(stored.type)))

    def prefix(self, prefixes: Sequence[bytes]) -> KeyValues:
        """The records whose keys start with any of `prefixes`, in file order, each once."""
        return KeyValues.concat(list(self.prefix_batches(prefixes)))

    def prefix_batches(self, prefixes: Sequence[bytes]) -> Iterator[KeyValues]:
        """The same in pieces, each of some mebibytes packed."""
        wanted = _byte_strings(prefixes)
        index = self._choose(lambda index: index.blocks_of_prefixes(wanted))
        if not len(index):
            return
        import pyarrow as pa
        import pyarrow.compute as pc

        by_length = [(n, array_of([p for p in wanted if len(p) == n], pa.binary())) for n in sorted({len(p) for p in wanted})]

        def begins(stored: Any) -> Any:
            found = None
            for length, values in by_length:
                hits = pc.is_in(pc.binary_slice(stored, 0, length), value_set=values.cast(stored.type))
                found = hits if found is None else pc.or_(found, hits)
            return found

        yield from self._picked_batches(index, begins)

    # --- opening

    def _read_trailer(self) -> Trailer:
        size = self._spans.size
        if size < TRAILER_SIZE:
            raise CorruptFileError(self.path, size, f"an HFile of at least {TRAILER_SIZE} bytes", f"{size} bytes")
        (raw,) = self._spans.read_many([(size - TRAILER_SIZE, TRAILER_SIZE)])
        self._trailer_bytes = bytes(raw)
        trailer = decode_trailer(raw, self.path, size - TRAILER_SIZE)
        end = size - TRAILER_SIZE
        for name, offset in (
            ("load-on-open data", trailer.load_on_open_offset),
            ("the file info", trailer.file_info_offset),
        ):
            if not 0 <= offset < end:
                raise CorruptFileError(self.path, end, f"{name} below byte {end}", f"offset {offset}")
        if trailer.file_info_offset < trailer.load_on_open_offset:
            raise CorruptFileError(
                self.path, end, f"the file info after byte {trailer.load_on_open_offset}", trailer.file_info_offset
            )
        if end - trailer.load_on_open_offset > _MAX_LOAD_ON_OPEN:
            raise CorruptFileError(
                self.path, end, f"at most {_MAX_LOAD_ON_OPEN} bytes of indexes", end - trailer.load_on_open_offset
            )
        if not 1 <= trailer.index_levels <= _MAX_INDEX_LEVELS:
            raise CorruptFileError(self.path, end, f"1 to {_MAX_INDEX_LEVELS} index levels", trailer.index_levels)
        return trailer

    def _load_on_open(self) -> None:
        start, end = self.trailer.load_on_open_offset, self._spans.size - TRAILER_SIZE
        (raw,) = self._spans.read_many([(start, end - start)])
        root = self._block(raw, BlockKind.ROOT_INDEX, start)
        self._root = decode_root(
            root.data,
            self.trailer.data_index_count,
            multi_level=self.trailer.index_levels > 1,
            path=self.path,
            offset=start,
            limit=start,
        )
        meta = self._block(raw[root.size :], BlockKind.ROOT_INDEX, start + root.size)
        self._meta = decode_meta_root(
            meta.data, self.trailer.meta_index_count, path=self.path, offset=start + root.size, limit=start
        )
        at = self.trailer.file_info_offset
        info = self._block(raw[at - start :], BlockKind.FILE_INFO, at)
        self._file_info = decode_file_info(info.data, self.path, at)
        check_trailer(self._file_info, self._trailer_bytes, self.path, end)
        self._refuse_other_cells()
        if (self.trailer.entry_count == 0) != (len(self._root) == 0):
            raise CorruptFileError(
                self.path, end, f"{self.trailer.entry_count} records after the index", f"{len(self._root)} entries"
            )

    def _refuse_other_cells(self) -> None:
        version = int.from_bytes(self._file_info.get("KEY_VALUE_VERSION", b"\x00\x00\x00\x01"), "big")
        if version != 1:
            raise UnsupportedFeature(f"HFile cell version {version} ({self.path or 'in memory'})")
        if int.from_bytes(self._file_info.get("MAX_MEMSTORE_TS_KEY", b""), "big"):
            raise UnsupportedFeature(f"HFile cells with MVCC versions ({self.path or 'in memory'})")
        if "hfile.MAX_TAGS_LEN" in self._file_info:
            raise UnsupportedFeature(f"HFile cells with tags ({self.path or 'in memory'})")

    # --- verifying

    def verify(self) -> None:
        """Read every byte.

        Raises:
            CorruptFileError: Something is damaged, be it in bytes that reading passes over.
        """
        self.scan()
        for name in self.meta_names:
            self.meta_block(name)
        (body,) = self._spans.read_many([(0, self.trailer.file_info_offset)])
        check_body(self._file_info, body, self.path)

    # --- blocks

    def _choose(self, select: _Select) -> BlockIndex:
        """The data blocks that `select` picks, reading on the way only the index blocks that it picks."""
        index = self._root.take(select(self._root))
        for level in range(self.trailer.index_levels - 1, 0, -1):
            kind = BlockKind.LEAF_INDEX if level == 1 else BlockKind.INTERMEDIATE_INDEX
            below = BlockIndex.concat(self._index_blocks(index, kind))
            index = below.take(select(below))
        return index

    def _index_blocks(self, index: BlockIndex, kind: BlockKind) -> list[BlockIndex]:
        places = list(zip(index.offsets.tolist(), index.sizes.tolist(), strict=True))
        missing = [place for place in places if place[0] not in self._leaves]
        for (offset, size), raw in zip(missing, self._spans.read_many(missing), strict=True):
            block = self._block(raw, kind, offset, size)
            self._leaves[offset] = decode_index_block(
                block.data, path=self.path, offset=offset, limit=self.trailer.load_on_open_offset
            )
        return [self._leaves[offset] for offset, _ in places]

    def _picked(self, index: BlockIndex, matches: Callable[[Any], Any] | None) -> KeyValues:
        """The records of some blocks whose keys, an Arrow array, match; None for all records."""
        return KeyValues.concat(list(self._picked_batches(index, matches)))

    def _picked_batches(self, index: BlockIndex, matches: Callable[[Any], Any] | None) -> Iterator[KeyValues]:
        """The same, some blocks at a time, so that most of what is unpacked is soon gone."""
        for fetched in _groups(index, _MOST_BATCH_BYTES):
            some = index.take(fetched)
            places = list(zip(some.offsets.tolist(), some.sizes.tolist(), strict=True))
            raws = self._spans.read_many(places)
            self.blocks_opened += len(places)
            yield from self._picked_from(raws, places, list(_groups(some, _PICK_BYTES)), matches)

    def _picked_from(
        self,
        raws: Sequence[memoryview],
        places: Sequence[tuple[int, int]],
        groups: Sequence[npt.NDArray[np.int64]],
        matches: Callable[[Any], Any] | None,
    ) -> Iterator[KeyValues]:
        """The same of blocks that were fetched, as many groups at a time as there are threads."""

        def pick(group: npt.NDArray[np.int64]) -> KeyValues:
            chosen = group.tolist()
            opened = [self._block(raws[i], BlockKind.DATA, *places[i]).data for i in chosen]
            cells = find_cells(opened, [places[i][0] for i in chosen], self.path)
            return (cells if matches is None else _where(cells, matches(cells.keys()))).to_key_values()

        step = most_threads(self._threads)
        for start in range(0, len(groups), step):
            some = groups[start : start + step]
            size = sum(places[i][1] for group in some for i in group)
            yield from run_blocks(pick, some, size, self._threads)

    def _unpacked(self, index: BlockIndex) -> Iterator[tuple[int, Block]]:
        """The data blocks of `index` with their offsets; fetched together, unpacked one by one."""
        places = list(zip(index.offsets.tolist(), index.sizes.tolist(), strict=True))
        for (offset, size), raw in zip(places, self._spans.read_many(places), strict=True):
            self.blocks_opened += 1
            yield offset, self._block(raw, BlockKind.DATA, offset, size)

    def _block(self, raw: memoryview, kind: BlockKind, offset: int, size: int | None = None) -> Block:
        return decode_block(raw, kind, self.trailer.codec, path=self.path, offset=offset, exact_size=size)

    def _check_count(self, seen: int) -> None:
        if seen != self.trailer.entry_count:
            raise CorruptFileError(
                self.path, self._spans.size - TRAILER_SIZE, f"{self.trailer.entry_count} records", f"{seen} in the data blocks"
            )


def _groups(index: BlockIndex, most_bytes: int) -> Iterator[npt.NDArray[np.int64]]:
    """Positions of consecutive entries, each group of at most `most_bytes` packed bytes or of one entry."""
    ends = np.cumsum(index.sizes)
    start = 0
    while start < len(index):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + most_bytes, side="right")), start + 1)
        yield np.arange(start, stop, dtype=np.int64)
        start = stop


def _byte_strings(keys: Sequence[bytes] | Any) -> list[bytes]:
    values: list[Any] = keys.to_pylist() if hasattr(keys, "to_pylist") else list(keys)
    if set(map(type, values)) != {bytes}:
        values = [key.encode() if isinstance(key, str) else key for key in values]
    return sorted(values)


def _where(cells: RawCells, mask: Any) -> RawCells:
    return cells.take(places(mask))
