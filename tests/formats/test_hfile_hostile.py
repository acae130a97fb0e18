"""Damaged and hostile HFiles: each is refused by name, quickly and without taking memory, and never read wrongly."""

from __future__ import annotations

import contextlib
import itertools
import random
import struct
import tracemalloc
import zlib
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hudimeta.errors import CorruptFileError, HudiError, UnsupportedFeature
from hudimeta.formats.hfile import ChecksumType, Compression, HFileInfo, HFileReader, Packing, write_hfile
from hudimeta.formats.hfile.block import decode_block
from hudimeta.formats.hfile.layout import MAX_BLOCK_BYTES, BlockHeader, BlockKind
from hudimeta.formats.hfile.trailer import TRAILER_SIZE, decode_trailer
from tests.formats.hfile_shapes import Shape

KEYS = [b"key-%03d" % i for i in range(40)]
VALUES = [b"value-%d" % (i * i) for i in range(40)]


def small_file(compression: str, checksum: ChecksumType | None = None) -> bytes:
    return write_hfile(
        KEYS, VALUES, HFileInfo('"bytes"'), bloom=True, packing=Packing(compression, block_size=300, checksum=checksum)
    )


def read_all(data: bytes) -> list[tuple[bytes, bytes]]:
    reader = HFileReader(data, "t.hfile")
    found = reader.scan()
    return list(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True))


PAIRS = list(zip(KEYS, VALUES, strict=True))


@pytest.mark.parametrize("compression", ["GZ", "NONE"])
def test_a_file_cut_anywhere_is_refused(compression: str) -> None:
    data = small_file(compression)
    for end in range(len(data)):
        with pytest.raises(CorruptFileError) as caught:
            HFileReader(data[:end], "t.hfile")
        assert caught.value.path == "t.hfile"
    with pytest.raises(CorruptFileError):
        HFileReader(data[1:], "t.hfile").scan()


@pytest.mark.rotation(3)
@pytest.mark.parametrize(
    ("compression", "checksum"), [("GZ", None), ("NONE", None), ("NONE", ChecksumType.CRC32C), ("GZ", ChecksumType.CRC32)]
)
def test_any_flipped_bit_is_reported_or_harmless(compression: str, checksum: ChecksumType | None) -> None:
    """Bits of names and of what readers ignore may flip; records never change."""
    data = bytearray(small_file(compression, checksum))
    assert read_all(bytes(data)) == PAIRS
    used = len(data) - TRAILER_SIZE + 100
    # Our CRC-32C takes a quarter of a millisecond a block, so there only some bits take part.
    bits = (1, 6) if checksum is not ChecksumType.CRC32C else (5,)
    step = 1 if checksum is not ChecksumType.CRC32C else 5
    reported = tried = 0
    for at in itertools.chain(range(0, used, step), range(len(data) - 4, len(data))):
        for bit in bits:
            tried += 1
            data[at] ^= 1 << bit
            try:
                assert read_all(bytes(data)) == PAIRS, f"byte {at} bit {bit}"
            except HudiError:
                reported += 1
            data[at] ^= 1 << bit
    assert reported > tried * 0.5


@pytest.mark.parametrize("where", ["key length", "value length", "row length", "family", "type", "mvcc"])
@pytest.mark.parametrize("cell", [0, 5, 19])
def test_a_cell_of_another_shape_is_refused(where: str, cell: int) -> None:
    """The block's own frame is sound here, only its content is not."""
    content = bytearray()
    borders = [0]
    for key, value in PAIRS[:20]:
        content += struct.pack(">iih", len(key) + 12, len(value), len(key)) + key
        content += b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04" + value + b"\x00"
        borders.append(len(content))
    start, end = borders[cell], borders[cell + 1]
    at = {
        "key length": start + 3,
        "value length": start + 7,
        "row length": start + 9,
        "family": start + 10 + 7,
        "type": start + 10 + 7 + 9,
        "mvcc": end - 1,
    }[where]
    for bit in range(8):
        damaged = bytearray(content)
        damaged[at] ^= 1 << bit
        with pytest.raises(CorruptFileError) as caught:
            HFileReader(_file_of_block(bytes(damaged), 20), "t.hfile").scan()
        assert caught.value.offset == 0
        with pytest.raises(CorruptFileError):
            HFileReader(_file_of_block(bytes(damaged), 20), "t.hfile").lookup([KEYS[19]])


@pytest.mark.parametrize("lengths", [(-1, 5), (5, -1), (0x7FFFFFFF, 0), (12, 0x7FFFFFFF), (0, 0), (-0x80000000, -0x80000000)])
def test_hostile_lengths_of_a_cell_end_at_once(lengths: tuple[int, int]) -> None:
    content = struct.pack(">ii", *lengths) + bytes(100)
    with pytest.raises(CorruptFileError, match="damaged at byte 0"):
        HFileReader(_file_of_block(content, 1)).scan()


@pytest.mark.parametrize("content", [b"", b"\x00", bytes(9), bytes(10), bytes(21)])
def test_data_blocks_too_short_for_a_cell(content: bytes) -> None:
    with pytest.raises(CorruptFileError):
        HFileReader(_file_of_block(content, 1)).scan()


def test_a_gzip_bomb_is_refused_without_memory() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(300)) + bomb.flush()
    for announced in (100, 1 << 20, MAX_BLOCK_BYTES + 1, 300 << 20, -1):
        header = BlockHeader(b"DATABLK*", len(packed), announced, -1, 0, 16384, 33 + len(packed)).encode()
        tracemalloc.start()
        with pytest.raises(CorruptFileError):
            decode_block(memoryview(header + packed), BlockKind.DATA, Compression.GZ, path="t", offset=0)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("on_disk_size", -1),
        ("on_disk_size", -34),
        ("on_disk_size", 0x7FFFFFFF),
        ("uncompressed_size", -1),
        ("uncompressed_size", 0x7FFFFFFF),
        ("uncompressed_size", 7),
        ("on_disk_data_size", 0),
        ("on_disk_data_size", -5),
        ("on_disk_data_size", 0x7FFFFFFF),
        ("checksum_type", 7),
        ("bytes_per_checksum", 0),
        ("bytes_per_checksum", -16384),
        ("magic", b"DATABLKX"),
    ],
)
@pytest.mark.parametrize("codec", [Compression.GZ, Compression.NONE])
def test_hostile_block_headers(field: str, value: object, codec: Compression) -> None:
    data = bytearray(small_file(codec.name, ChecksumType.CRC32))
    header = BlockHeader.decode(data[:33])
    data[:33] = replace(header, **{field: value}).encode()  # type: ignore[arg-type]
    with pytest.raises(CorruptFileError) as caught:
        HFileReader(bytes(data), "t.hfile").scan()
    assert 0 <= caught.value.offset <= header.on_disk_data_size
    assert caught.value.path == "t.hfile"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("file_info_offset", 0),
        ("file_info_offset", 1 << 62),
        ("load_on_open_offset", 1 << 62),
        ("load_on_open_offset", 3),
        ("data_index_count", 0),
        ("data_index_count", 1),
        ("data_index_count", 1 << 40),
        ("meta_index_count", 0),
        ("meta_index_count", 2),
        ("entry_count", 0),
        ("entry_count", 39),
        ("entry_count", 1 << 50),
        ("index_levels", 0),
        ("index_levels", 2),
        ("index_levels", 1 << 30),
    ],
)
def test_hostile_trailers(field: str, value: int) -> None:
    data = small_file("GZ")
    trailer = decode_trailer(memoryview(data[-TRAILER_SIZE:]), "", 0)
    with pytest.raises(CorruptFileError):
        read_all(data[:-TRAILER_SIZE] + replace(trailer, **{field: value}).encode())  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", [Compression.LZO, Compression.SNAPPY, Compression.LZ4, Compression.BZIP2, Compression.ZSTD])
def test_other_codecs_are_named(codec: Compression) -> None:
    data = small_file("GZ")
    trailer = decode_trailer(memoryview(data[-TRAILER_SIZE:]), "", 0)
    with pytest.raises(UnsupportedFeature, match=codec.name):
        HFileReader(data[:-TRAILER_SIZE] + replace(trailer, codec=codec).encode())


def test_other_versions_are_named() -> None:
    data = small_file("GZ")
    trailer = decode_trailer(memoryview(data[-TRAILER_SIZE:]), "", 0)
    with pytest.raises(UnsupportedFeature, match="HFile version 2"):
        HFileReader(data[:-TRAILER_SIZE] + replace(trailer, major=2).encode())


@pytest.mark.parametrize(
    ("name", "value", "feature"),
    [
        ("KEY_VALUE_VERSION", b"\x00\x00\x00\x02", "cell version 2"),
        ("MAX_MEMSTORE_TS_KEY", b"\x00" * 7 + b"\x05", "MVCC"),
        ("hfile.MAX_TAGS_LEN", b"\x00\x00\x00\x00", "tags"),
    ],
)
def test_cells_that_hudi_never_writes_are_named(name: str, value: bytes, feature: str) -> None:
    with pytest.raises(UnsupportedFeature, match=feature):
        HFileReader(write_hfile(KEYS, VALUES, HFileInfo(extra={name: value})))


def test_an_index_that_names_a_block_twice_is_refused() -> None:
    """Else a small file could unpack one block a million times."""
    shape = Shape()
    place = shape.data(PAIRS)
    with pytest.raises(CorruptFileError, match="one after the other"):
        HFileReader(shape.finish([place, place], entry_count=80))


@pytest.mark.parametrize(("offset", "size"), [(-1, 100), (0, 0), (0, -1), (0, 1 << 30), (1 << 40, 100)])
def test_an_index_that_points_outside_is_refused(offset: int, size: int) -> None:
    shape = Shape()
    shape.data(PAIRS)
    with pytest.raises(CorruptFileError):
        HFileReader(shape.finish([(offset, size, b"k")]))


def test_an_index_entry_of_another_size_than_its_block_is_refused() -> None:
    shape = Shape()
    offset, size, row = shape.data(PAIRS)
    with pytest.raises(CorruptFileError, match="as the index says"):
        HFileReader(shape.finish([(offset, size - 1, row)])).scan()


def test_leaf_blocks_that_lie_are_refused() -> None:
    for count, ends in ((-1, [0]), (1 << 30, [0]), (1, [0, 5]), (1, [4, 40]), (2, [0, 50, 20])):
        shape = Shape()
        shape.data(PAIRS)
        payload = struct.pack(f">i{len(ends)}i", count, *ends) + bytes(40)
        leaf = shape._append(BlockKind.LEAF_INDEX, payload, KEYS[0])
        with pytest.raises(CorruptFileError):
            HFileReader(shape.finish([leaf], levels=2)).scan()


def test_a_source_that_gives_less_than_it_said_is_refused() -> None:
    class Short:
        size = 10_000

        def read(self, offset: int, length: int) -> bytes:
            return bytes(length // 2)

        def read_all(self, spans: Sequence[tuple[int, int]]) -> list[bytes]:
            return [self.read(*span) for span in spans]

    with pytest.raises(CorruptFileError, match="10000 bytes from byte 0"):
        HFileReader(Short())
    with pytest.raises(CorruptFileError):
        HFileReader(small_file("GZ"), "t", size=17)


def test_noise_is_never_taken_for_a_file() -> None:
    rng = random.Random(3)
    data = small_file("GZ")
    for _ in range(300):
        at = rng.randrange(len(data) - TRAILER_SIZE)
        end = min(at + rng.randrange(1, 200), len(data) - TRAILER_SIZE)
        noisy = data[:at] + rng.randbytes(end - at) + data[end:]
        with contextlib.suppress(CorruptFileError):
            assert read_all(noisy) == PAIRS


def _file_of_block(content: bytes, entries: int) -> bytes:
    shape = Shape()
    place = shape._append(BlockKind.DATA, content, KEYS[0])
    return shape.finish([place], entry_count=entries)
