"""HFiles that we write are read back whole, by key, by prefix and in pieces; and few bytes are touched for it."""

from __future__ import annotations

import hashlib
import itertools
import random
import struct
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.hfile import (
    ChecksumType,
    HFileInfo,
    HFileReader,
    HFileWriter,
    KeyValues,
    Packing,
    StorageRange,
    write_hfile,
)
from hudimeta.storage.protocol import FileInfo

PLAIN = Packing()
ROWS = st.dictionaries(st.binary(max_size=40), st.binary(max_size=60), max_size=60)


def pairs(result: KeyValues) -> list[tuple[bytes, bytes]]:
    return list(zip(result.keys.to_pylist(), result.values.to_pylist(), strict=True))


class CountedRange:
    """A file whose requests are noted."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.requests: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        self.requests.append((offset, length))
        return self.data[offset : offset + length]

    def read_all(self, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.read(*span) for span in spans]


def large_file(count: int = 60_000, packing: Packing = PLAIN) -> tuple[list[bytes], bytes]:
    """Keys, and a file of more than 1 MiB whose values do not deflate."""
    keys = [b"key-%08d" % i for i in range(count)]
    values = [hashlib.sha256(key).digest() for key in keys]
    return keys, write_hfile(keys, values, HFileInfo('"bytes"'), packing=packing)


@given(
    rows=ROWS,
    codec=st.sampled_from(["GZ", "NONE"]),
    block_size=st.sampled_from([1, 64, 300, 65536]),
    bloom=st.booleans(),
    checksum=st.sampled_from([None, *ChecksumType]),
)
def test_what_is_written_is_read(
    rows: dict[bytes, bytes], codec: str, block_size: int, bloom: bool, checksum: ChecksumType | None
) -> None:
    expected = sorted(rows.items())
    data = write_hfile(
        [key for key, _ in expected],
        [value for _, value in expected],
        HFileInfo('{"type": "bytes"}', with_min_max=True),
        bloom=bloom,
        packing=Packing(codec, block_size=block_size, checksum=checksum),
    )
    reader = HFileReader(data)
    assert pairs(reader.scan()) == expected
    assert reader.entry_count == len(expected)
    assert reader.schema_text == '{"type": "bytes"}'
    assert reader.min_record_key == (expected[0][0] if expected else b"")
    assert reader.max_record_key == (expected[-1][0] if expected else b"")
    assert reader.last_key == (expected[-1][0] if expected else None)
    assert [pair for batch in HFileReader(data).scan_batches(100) for pair in pairs(batch)] == expected
    found = reader.bloom_filter()
    assert (found is not None) == bloom
    assert found is None or found.might_contain_many(list(rows)).all()


@given(rows=ROWS, asked=st.lists(st.binary(max_size=40)), block_size=st.sampled_from([1, 200, 65536]), data=st.data())
def test_a_look_up_finds_what_a_scan_would(
    rows: dict[bytes, bytes], asked: list[bytes], block_size: int, data: st.DataObject
) -> None:
    if rows:
        asked = asked + data.draw(st.lists(st.sampled_from(sorted(rows)), max_size=20))
    expected = sorted(rows.items())
    file = write_hfile([k for k, _ in expected], [v for _, v in expected], packing=Packing(block_size=block_size))
    wanted = sorted(set(asked))
    assert pairs(HFileReader(file).lookup(wanted)) == [pair for pair in expected if pair[0] in wanted]
    assert pairs(HFileReader(file).lookup(pa.array(wanted, pa.binary()))) == [p for p in expected if p[0] in wanted]
    prefixes = [key[:3] for key in wanted]
    assert pairs(HFileReader(file).prefix(prefixes)) == [p for p in expected if p[0].startswith(tuple(prefixes))]


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=10),
    block_size=st.sampled_from([1, 60, 200, 65536]),
)
def test_equal_keys_keep_their_order(counts: list[int], block_size: int) -> None:
    expected = [(b"k%02d" % key, b"v%d" % number) for key, count in enumerate(counts) for number in range(count)]
    file = write_hfile([k for k, _ in expected], [v for _, v in expected], packing=Packing(block_size=block_size), unique=False)
    reader = HFileReader(file)
    assert pairs(reader.scan()) == expected
    for key in {k for k, _ in expected}:
        assert pairs(reader.lookup([key])) == [pair for pair in expected if pair[0] == key]


@given(
    counts=st.lists(st.integers(1, 4), max_size=20),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    block_size=st.sampled_from([1, 64, 300]),
    unique=st.booleans(),
)
def test_the_bytes_do_not_depend_on_the_pieces(counts: list[int], cuts: list[int], block_size: int, unique: bool) -> None:
    keys = [b"%04d" % n for n, count in enumerate(counts) for _ in range(1 if unique else count)]
    values = [hashlib.sha256(b"%d" % n).digest()[: n % 32] for n in range(len(keys))]
    info, packing = HFileInfo('"bytes"', with_min_max=True, sealed=True), Packing(block_size=block_size)
    writer = HFileWriter(info, bloom=True, unique=unique, packing=packing)
    borders = [0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]
    for start, end in itertools.pairwise(borders):
        writer.add(keys[start:end], values[start:end])
    assert writer.records == len(keys)
    assert writer.finish() == write_hfile(keys, values, info, bloom=True, unique=unique, packing=packing)


@pytest.mark.parametrize("key", [b"a", b"b"])
def test_pieces_that_are_not_in_order_are_refused(key: bytes) -> None:
    writer = HFileWriter()
    writer.add([b"a", b"b"], [b"", b""])
    with pytest.raises(ValueError, match=f"sorted by their bytes and unique: b'b' stands before {key!r}"):
        writer.add([key], [b""])


def test_an_empty_prefix_is_everything() -> None:
    keys = [b"a", b"b\xff\xff", b"\xff\xff"]
    reader = HFileReader(write_hfile(keys, keys, packing=Packing(block_size=1)))
    assert reader.prefix([b""]).keys.to_pylist() == keys
    assert reader.prefix([b"\xff"]).keys.to_pylist() == [b"\xff\xff"]
    assert reader.prefix([b"b\xff"]).keys.to_pylist() == [b"b\xff\xff"]
    assert reader.prefix([]).keys.to_pylist() == []
    assert reader.lookup([]).keys.to_pylist() == []


def test_opening_unpacks_no_data_and_a_key_opens_one_block() -> None:
    keys, data = large_file()
    reader = HFileReader(data)
    assert reader.blocks_opened == 0
    assert len(reader.data_index()) > 40
    assert reader.lookup([keys[12_345]]).keys.to_pylist() == [keys[12_345]]
    assert reader.blocks_opened == 1
    assert len(reader.lookup([b"before", b"key-00012345x", b"zzz"])) == 0
    assert reader.blocks_opened == 3
    assert reader.prefix([b"key-000123"]).keys.to_pylist() == keys[12_300:12_400]
    assert reader.blocks_opened <= 5


def test_many_keys_choose_the_blocks_that_few_keys_choose() -> None:
    keys, data = large_file(20_000)
    reader = HFileReader(data)
    index = reader.data_index()
    dense = keys[3_000:9_000:2]
    one_by_one = {int(block) for key in dense for block in index.blocks_of_keys([key])}
    assert index.blocks_of_keys(dense).tolist() == sorted(one_by_one)
    assert reader.lookup(dense).keys.to_pylist() == dense
    assert reader.blocks_opened == len(one_by_one) < len(index)


def test_a_small_file_is_one_request() -> None:
    source = CountedRange(write_hfile([b"k"], [b"v"]))
    reader = HFileReader(source)
    reader.scan()
    reader.lookup([b"k"])
    assert source.requests == [(0, source.size)]


def test_a_large_file_is_its_tail_and_the_blocks_asked_for() -> None:
    keys, data = large_file(packing=Packing(level=1))
    source = CountedRange(data)
    assert source.size > 1 << 20
    reader = HFileReader(source)
    assert len(source.requests) == 1
    assert sum(source.requests[0]) == source.size
    reader.lookup([keys[100]])
    assert len(source.requests) == 2
    assert source.requests[1][1] < 65536
    # Neighbouring blocks come together, distant ones apart.
    reader.lookup([keys[0], keys[1_500], keys[3_000], keys[40_000]])
    assert len(source.requests) == 4
    source.requests.clear()
    reader.scan()
    assert len(source.requests) == 1


def test_batches_bound_what_is_fetched_at_once() -> None:
    keys, data = large_file()
    source = CountedRange(data)
    batches = HFileReader(source).scan_batches(400_000)
    first = next(batches)
    assert sum(length for _, length in source.requests[1:]) <= 500_000
    assert len(first) < 10_000
    assert len(first) + sum(len(batch) for batch in batches) == len(keys)


def test_an_index_beyond_the_tail_is_one_request_more() -> None:
    keys, data = large_file(12_000, Packing(block_size=64))
    source = CountedRange(data)
    reader = HFileReader(source)
    assert len(source.requests) == 2
    assert pairs(reader.lookup([keys[777]])) == [(keys[777], hashlib.sha256(keys[777]).digest())]


@pytest.mark.parametrize("pick_bytes", [1, 100_000])
def test_a_prefix_in_pieces_is_the_prefix(pick_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = large_file()
    whole = HFileReader(data).prefix([b"key-0001", b"key-00042"])
    monkeypatch.setattr("hudimeta.formats.hfile.reader._PICK_BYTES", pick_bytes)
    pieces = list(HFileReader(data).prefix_batches([b"key-0001", b"key-00042"]))
    assert len(pieces) > 2
    assert pairs(KeyValues.concat(pieces)) == pairs(whole)
    assert len(whole) == 11_000


def test_cells_say_where_values_stand() -> None:
    keys, data = large_file(3_000)
    (cells,) = HFileReader(data).scan_cell_batches(1 << 20)
    assert cells.buffer.dtype == np.uint8
    at = 1_234
    start, length = int(cells.value_start[at]), int(cells.value_len[at])
    assert cells.buffer[start : start + length].tobytes() == hashlib.sha256(keys[at]).digest()
    picked = cells.take(np.array([2_000, 5, 5]))
    assert picked.to_key_values().keys.to_pylist() == [keys[2_000], keys[5], keys[5]]


def test_cells_of_many_lengths_and_of_one_length_alike() -> None:
    rng = random.Random(7)
    keys = sorted({rng.randbytes(rng.randrange(1, 30)) for _ in range(5_000)})
    ragged = [rng.randbytes(rng.randrange(0, 200)) for _ in keys]
    even = [rng.randbytes(16) for _ in keys]
    for values in (ragged, even):
        assert pairs(HFileReader(write_hfile(keys, values)).scan()) == list(zip(keys, values, strict=True))


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()])
def test_arrow_arrays_of_every_kind_are_written(kind: pa.DataType) -> None:
    keys = pa.array(["a", "bb", "ccc"], kind)
    data = write_hfile(pa.chunked_array([keys[:1], keys[1:]]), keys.slice(0))
    assert pairs(HFileReader(data).scan()) == [(b"a", b"a"), (b"bb", b"bb"), (b"ccc", b"ccc")]
    assert data == write_hfile([b"a", b"bb", b"ccc"], [b"a", b"bb", b"ccc"])


def test_writing_is_repeatable_and_threads_change_nothing() -> None:
    assert large_file(packing=Packing(threads=1)) == large_file(packing=Packing(threads=4))
    _, data = large_file()
    assert HFileReader(data, threads=1).scan().values == HFileReader(data, threads=4).scan().values


@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"], [b"a", None]])
def test_keys_that_are_not_in_order_are_refused(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="key"):
        write_hfile(keys, [b""] * len(keys))


def test_numbers_of_keys_and_values_must_agree() -> None:
    with pytest.raises(ValueError, match="1 keys but 2 values"):
        write_hfile([b"a"], [b"", b""])


def test_keys_longer_than_the_format_holds_are_refused() -> None:
    longest = b"x" * 32767
    assert HFileReader(write_hfile([longest], [b"v"])).scan().keys.to_pylist() == [longest]
    with pytest.raises(UnsupportedFeature, match="32768 bytes"):
        write_hfile([longest + b"x"], [b"v"])


@pytest.mark.parametrize("codec", ["SNAPPY", "ZSTD", "LZ4", "nonsense"])
def test_other_codecs_are_not_written(codec: str) -> None:
    with pytest.raises(UnsupportedFeature, match=codec):
        write_hfile([b"a"], [b"v"], packing=Packing(codec))


def test_a_value_larger_than_a_block_is_alone_in_it() -> None:
    values = [b"s", b"L" * 400_000, b"s"]
    reader = HFileReader(write_hfile([b"a", b"b", b"c"], values))
    assert len(reader.data_index()) == 3
    assert reader.scan().values.to_pylist() == values


def test_a_large_value_that_repeats_itself_is_no_bomb() -> None:
    value = b"again " * (4 << 20)
    assert HFileReader(write_hfile([b"k"], [value])).lookup([b"k"]).values.to_pylist() == [value]


def test_blocks_keep_below_what_java_can_read() -> None:
    _, data = large_file(packing=Packing("NONE"))
    index = HFileReader(data).data_index()
    assert int(index.sizes.max()) <= 65536 + 33 + 4 * 5


def test_minimal_file_byte_for_byte() -> None:
    """One record `k` -> `VAL`, not packed, no checksum: the smallest file, written down by hand."""
    data = write_hfile([b"k"], [b"VAL"], HFileInfo("{}"), packing=Packing("NONE", checksum=ChecksumType.NULL))
    key = "00016b 00 7fffffffffffffff 04"
    head = "ffffffffffffffff 00 00004000"
    assert data[:62] == bytes.fromhex(
        f"44415441424c4b2a 0000001d 00000019 {head} 0000003a 0000000d 00000003 {key} 56414c 00 00000000"
    )
    assert data[62:125] == bytes.fromhex(
        f"494458524f4f5432 0000001e 0000001a {head} 0000003b 0000000000000000 0000003e 0d {key} 00000000"
    )
    assert data[125:162] == bytes.fromhex(f"494458524f4f5432 00000004 00000000 {head} 00000021 00000000")
    pairs_of_info = [
        ("KEY_VALUE_VERSION", "00000001"),
        ("MAX_MEMSTORE_TS_KEY", "00" * 8),
        ("hfile.AVG_KEY_LEN", "0000000d"),
        ("hfile.AVG_VALUE_LEN", "00000003"),
        ("hfile.CREATE_TIME_TS", "00" * 8),
        ("hfile.LASTKEY", key),
        ("schema", "7b7d"),
    ]
    message = b""
    for name, text in pairs_of_info:
        value = bytes.fromhex(text)
        pair = b"\x0a" + bytes([len(name)]) + name.encode() + b"\x12" + bytes([len(value)]) + value
        message += b"\x0a" + bytes([len(pair)]) + pair
    info = b"PBUF" + bytes.fromhex("c401") + message
    sizes = struct.pack(">ii", len(info) + 4, len(info))
    block = b"FILEINF2" + sizes + bytes.fromhex(head) + struct.pack(">i", 33 + len(info)) + info + bytes(4)
    assert data[162:-4096] == block
    trailer = bytes.fromhex("545241424c4b2224 4b 08a201 103e 181a 2019 2801 3000 3801 4001 4800 5000 5a32")
    trailer += b"org.apache.hudi.io.storage.HoodieHBaseKVComparator" + b"\x60\x02"
    assert data[-4096:] == trailer + bytes(4092 - len(trailer)) + bytes.fromhex("03000003")


class OneFile:
    """A storage with one file, enough for reading."""

    root = "memory:"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, path: str) -> bytes:
        return self.data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]

    def stat(self, path: str) -> FileInfo:
        return FileInfo(path, len(self.data), 0, False)


def test_a_file_of_a_storage_is_read() -> None:
    keys, data = large_file()
    for size in (None, len(data)):
        reader = HFileReader(StorageRange(OneFile(data), "f.hfile", size))  # type: ignore[arg-type]
        assert reader.lookup([keys[5]]).keys.to_pylist() == [keys[5]]


def test_a_prefix_opens_the_blocks_between_its_first_and_last_key() -> None:
    keys, data = large_file(20_000)
    reader = HFileReader(data)
    index = reader.data_index()
    for prefix in (b"key-0000", b"key-00012", b"k"):
        first = max(bisect_left(index.keys, prefix) - 1, 0)
        chosen = index.blocks_of_prefixes([prefix]).tolist()
        assert chosen == list(range(chosen[0], chosen[-1] + 1))
        assert chosen[0] in (first, first + 1)
        assert reader.prefix([prefix]).keys.to_pylist() == [key for key in keys if key.startswith(prefix)]
