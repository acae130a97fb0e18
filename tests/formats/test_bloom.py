"""Bloom filters: bit for bit those of Java, in both directions, and never a false "no"."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.bloom import BloomFilter, hash_chain, size_of_filter

KEYS = st.lists(st.binary(max_size=50), max_size=80)


def java_murmur(key: bytes, seed: int) -> int:
    """The hash one byte at a time, with Java's signed integers, as a second opinion."""

    def wrap(value: int) -> int:
        return (value + (1 << 31)) % (1 << 32) - (1 << 31)

    def signed(byte: int) -> int:
        return byte - 256 if byte > 127 else byte

    def shift(value: int, by: int) -> int:
        return (value & 0xFFFF_FFFF) >> by

    m = 0x5BD1E995
    h = wrap(seed ^ len(key))
    whole = len(key) // 4 * 4
    for i in range(0, whole, 4):
        k = signed(key[i + 3]) << 24 | key[i + 2] << 16 | key[i + 1] << 8 | key[i]
        k = wrap(k * m)
        k ^= shift(k, 24)
        h = wrap(wrap(h * m) ^ wrap(k * m))
    left = len(key) - whole
    if left:
        if left >= 3:
            h ^= wrap(signed(key[-3]) << 16)
        if left >= 2:
            h ^= wrap(signed(key[-2]) << 8)
        h = wrap((h ^ signed(key[-1])) * m)
    h ^= shift(h, 13)
    h = wrap(h * m)
    return wrap(h ^ shift(h, 15))


def java_positions(key: bytes, bits: int, hashes: int) -> list[int]:
    seed, positions = 0, []
    for _ in range(hashes):
        seed = java_murmur(key, seed)
        positions.append(abs(seed) % bits)
    return positions


def java_dynamic(keys: list[bytes], per_row: int, most: int, p: float) -> bytes:
    """Adds key after key as Java does, growing rows."""
    bits, hashes = size_of_filter(per_row, p)
    rows = [bytearray((bits + 7) // 8)]
    in_row = turn = 0
    full = False
    for key in keys:
        if full:
            row = rows[turn % len(rows)]
            turn += 1
        elif in_row >= per_row and len(rows) * per_row < most:
            row = bytearray((bits + 7) // 8)
            rows.append(row)
            in_row = 0
        elif in_row >= per_row:
            full, row = True, rows[0]
        else:
            row = rows[-1]
        for position in java_positions(key, bits, hashes):
            row[position >> 3] |= 1 << (position & 7)
        in_row += 1
    head = struct.pack(">iiBi", -1, hashes, 1, bits)
    return head + struct.pack(">iii", per_row, in_row, len(rows)) + b"".join(head + bytes(row) for row in rows)


@pytest.mark.parametrize(
    ("key", "hashed"),
    [("a", -1838653602), ("ab", 1525573013), ("abc", 1775488903), ("abcd", 646393889), ("abcdefg", -14544559)],
)
def test_known_hashes(key: str, hashed: int) -> None:
    assert java_murmur(key.encode(), 0) == hashed
    assert hash_chain([key], 1).tolist() == [[abs(hashed)]]


def test_known_positions_and_sizes() -> None:
    chain = hash_chain([b"__all_partitions__"], 3).astype(np.int64)
    assert (chain % 431328).tolist() == [[420375, 185188, 294263]]
    assert size_of_filter(60_000, 1e-9) == (2587966, 30)
    assert size_of_filter(10_000, 1e-9) == (431328, 30)
    assert size_of_filter(1_000, 1e-9) == (43133, 30)


@given(keys=KEYS)
def test_hashing_many_keys_is_hashing_each(keys: list[bytes]) -> None:
    expected = [java_positions(key, 1 << 40, 5) for key in keys]
    assert hash_chain(keys, 5).tolist() == expected


@given(keys=KEYS, strangers=KEYS, dynamic=st.booleans())
def test_every_key_is_found_and_bytes_survive(keys: list[bytes], strangers: list[bytes], dynamic: bool) -> None:
    create = BloomFilter.create_dynamic if dynamic else BloomFilter.create_simple
    made = create(keys)
    assert made.type_code == ("DYNAMIC_V0" if dynamic else "SIMPLE")
    assert made.might_contain_many(keys).all()
    assert all(made.might_contain(key) for key in keys)
    for read in (BloomFilter.decode(made.encode()), BloomFilter.from_base64(made.to_base64(), made.type_code)):
        assert read.encode() == made.encode()
        assert read.type_code == made.type_code
        asked = keys + strangers
        assert read.might_contain_many(asked).tolist() == made.might_contain_many(asked).tolist()
        bits = [all(_bit(read, p) for p in java_positions(k, read.rows[0].bit_count, read.hash_count)) for k in asked]
        assert read.might_contain_many(asked).tolist() == bits


def _bit(filter_: BloomFilter, position: int) -> bool:
    return bool(filter_.rows[0].content[position >> 3] >> (position & 7) & 1)


@given(
    count=st.integers(0, 60),
    per_row=st.integers(1, 20),
    most=st.integers(1, 50),
    p=st.sampled_from([0.1, 1e-3, 1e-9]),
)
def test_a_dynamic_filter_grows_as_java_does(count: int, per_row: int, most: int, p: float) -> None:
    keys = [b"key %d" % i for i in range(count)]
    made = BloomFilter.create_dynamic(keys, p, keys_per_row=per_row, max_keys=most)
    assert made.encode() == java_dynamic(keys, per_row, most, p)
    assert made.might_contain_many(keys).all()


def test_hudis_default_filter() -> None:
    """What Java puts into the footer of a file with two rows: 323534 bytes, whatever the rows."""
    made = BloomFilter.create_dynamic([b"1", b"2"], keys_per_row=60_000)
    data = made.encode()
    assert data[:38] == bytes.fromhex("ffffffff 0000001e 01 00277d3e 0000ea60 00000002 00000001 ffffffff 0000001e 01 00277d3e")
    assert len(data) == 323534
    assert len(made.to_base64()) == 431380


def test_foreign_keys_pass_as_seldom_as_promised() -> None:
    keys = [b"in-%d" % i for i in range(5_000)]
    strangers = [b"out-%d" % i for i in range(20_000)]
    assert BloomFilter.create_simple(keys).might_contain_many(strangers).sum() == 0
    passed = BloomFilter.create_simple(keys, p=0.01).might_contain_many(strangers).mean()
    assert 0.005 < passed < 0.02


def test_a_filter_that_is_too_small_lets_fewer_pass_with_fewer_hashes() -> None:
    keys = [b"in-%d" % i for i in range(20_000)]
    strangers = [b"out-%d" % i for i in range(100_000)]
    made = BloomFilter.create_sized(keys, "DYNAMIC_V0", 1e-9, 8_000)
    assert (made.rows[0].bit_count, made.hash_count, len(made.rows)) == (size_of_filter(8_000, 1e-9)[0], 9, 1)
    assert made.might_contain_many(keys).all()
    read = BloomFilter.decode(made.encode())
    assert all(all(_bit(read, p) for p in java_positions(k, read.rows[0].bit_count, read.hash_count)) for k in keys[:50])
    passed = made.might_contain_many(strangers).mean()
    thirty = BloomFilter.create_dynamic(keys, keys_per_row=8_000, max_keys=8_000)
    assert thirty.hash_count == 30
    assert passed < thirty.might_contain_many(strangers).mean() / 2
    full = BloomFilter.create_sized(keys, "SIMPLE", 1e-9, 20_000)
    assert full.hash_count == 30


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()])
def test_arrow_arrays_of_every_kind(kind: pa.DataType) -> None:
    keys = pa.array(["x", "größe", "", "long key " * 20], kind)
    made = BloomFilter.create_simple(keys)
    assert made.encode() == BloomFilter.create_simple(["x", "größe", "", "long key " * 20]).encode()
    asked = pa.array(["x", "no", None, "größe", "no no"], kind)
    assert made.might_contain_many(asked).tolist() == [True, False, True, True, False]
    assert made.might_contain_many(asked[1:4]).tolist() == [False, True, True]
    assert made.might_contain_many(pa.chunked_array([asked[:2], asked[2:]])).tolist() == [True, False, True, True, False]


def test_nulls_are_not_in_a_filter_but_never_excluded() -> None:
    made = BloomFilter.create_simple(pa.array(["a", None]))
    assert made.encode() == BloomFilter.create_simple(["a"]).encode()
    assert made.might_contain_many(pa.array([None], pa.string())).tolist() == [True]


def test_one_chain_serves_filters_of_all_sizes() -> None:
    chain = hash_chain(["k1", "k9"], 30)
    for count in (1, 10, 1_000):
        made = BloomFilter.create_simple([f"k{i}" for i in range(count)])
        expected = made.might_contain_many(["k1", "k9"]).tolist()
        assert made.might_contain_hashes(chain).tolist() == expected


@pytest.mark.parametrize("dynamic", [True, False])
def test_a_filter_cut_anywhere_is_refused(dynamic: bool) -> None:
    keys = [f"{n}" for n in range(12)]
    made = BloomFilter.create_dynamic(keys, keys_per_row=5) if dynamic else BloomFilter.create_simple(keys)
    data = made.encode()
    for end in range(len(data)):
        with pytest.raises(CorruptFileError):
            BloomFilter.decode(data[:end], made.type_code, "f")
    with pytest.raises(CorruptFileError):
        BloomFilter.decode(data + b"\x00", made.type_code)


@pytest.mark.parametrize(
    "head",
    [
        "fffffffe 0000001e 01 00000064",
        "ffffffff 00000000 01 00000064",
        "ffffffff 7fffffff 01 00000064",
        "ffffffff 0000001e 02 00000064",
        "ffffffff 0000001e 01 00000000",
        "ffffffff 0000001e 01 7fffffff",
        "ffffffff 0000001e 01 80000000",
        "ffffffff 0000001e 01 00000064 00000001 00000001 7fffffff",
        "ffffffff 0000001e 01 00000064 00000001 00000001 00000000",
        "ffffffff 0000001e 01 00000064 ffffffff 00000001 00000001",
    ],
)
def test_hostile_heads_are_refused(head: str) -> None:
    with pytest.raises(CorruptFileError) as caught:
        BloomFilter.decode(bytes.fromhex(head) + bytes(40), path="f.parquet")
    assert caught.value.path == "f.parquet"


@given(groups=st.lists(KEYS, min_size=1, max_size=4), strangers=KEYS)
def test_filters_side_by_side_let_pass_what_any_of_them_does(groups: list[list[bytes]], strangers: list[bytes]) -> None:
    """Rows of different sizes, each of which Java reads with its own head."""
    filters = [BloomFilter.create_sized(keys, "DYNAMIC_V0", 1e-3, max(len(keys), 1)) for keys in groups]
    made = BloomFilter.side_by_side(filters)
    assert (made.keys_per_row, made.keys_in_last_row) == (max(1, *map(len, groups)), len(groups[-1]))
    asked = [*strangers, *(key for keys in groups for key in keys)]
    expected = np.logical_or.reduce([one.might_contain_many(asked) for one in filters])
    read = BloomFilter.decode(made.encode())
    assert read.might_contain_many(asked).tolist() == expected.tolist()
    assert read.might_contain_many(asked[len(strangers) :]).all()
    assert read.encode() == made.encode()
    rows = b"".join(one.rows[0].encode() for one in filters)
    assert made.encode() == rows[:13] + struct.pack(">iii", made.keys_per_row, made.keys_in_last_row, len(groups)) + rows


def test_a_row_that_states_another_size_is_refused() -> None:
    data = bytearray(BloomFilter.create_dynamic(["a", "b"], keys_per_row=1).encode())
    data[25 + 11] ^= 64
    with pytest.raises(CorruptFileError):
        BloomFilter.decode(bytes(data))


@pytest.mark.parametrize("head", ["ffffffff 0000001e 00 00000064", "0000001e 00000064"])
def test_the_jenkins_hash_is_named(head: str) -> None:
    with pytest.raises(UnsupportedFeature, match="jenkins"):
        BloomFilter.decode(bytes.fromhex(head) + bytes(13))


@pytest.mark.parametrize("dynamic", [True, False])
def test_the_bytes_tell_the_type_not_the_label(dynamic: bool) -> None:
    """Apache Hudi labels filters that it collects with the type that it would write itself."""
    made = BloomFilter.create_dynamic(["a", "b"]) if dynamic else BloomFilter.create_simple(["a", "b"])
    read = BloomFilter.decode(made.encode(), "SIMPLE" if dynamic else "DYNAMIC_V0")
    assert (read.type_code, read.encode()) == (made.type_code, made.encode())


@given(keys=KEYS)
def test_a_sized_filter_has_the_same_bits_in_either_form(keys: list[bytes]) -> None:
    simple, dynamic = (BloomFilter.create_sized(keys, kind, 1e-9, 30) for kind in ("SIMPLE", "DYNAMIC_V0"))
    assert dynamic.encode() == BloomFilter.create_dynamic(keys, keys_per_row=30, max_keys=30).encode()
    assert dynamic.rows[0].content.tolist() == simple.rows[0].content.tolist()


def test_another_type_is_named() -> None:
    with pytest.raises(UnsupportedFeature, match="RIBBON"):
        BloomFilter.decode(BloomFilter.create_simple(["a"]).encode(), "RIBBON")


@pytest.mark.parametrize("text", ["", "not base64!", "AAAA", base64.b64encode(b"\xff" * 13).decode()])
def test_text_that_holds_no_filter(text: str) -> None:
    with pytest.raises((CorruptFileError, UnsupportedFeature)):
        BloomFilter.from_base64(text)


@pytest.mark.parametrize("p", [1e-300, 1e-320, 5e-324])
def test_a_filter_of_next_to_no_false_positives_can_be_read(p: float) -> None:
    keys = pa.array(["a", "b"])
    made = BloomFilter.create_dynamic(keys, p, 10, 100)
    assert BloomFilter.decode(made.encode(), "DYNAMIC_V0", "f").encode() == made.encode()
