"""Keys of metadata records against values that Apache Hudi wrote, and against plain definitions."""

from __future__ import annotations

import base64
import hashlib

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import UnsupportedFeature
from hudimeta.metadata.group_files import file_group_id
from hudimeta.metadata.keys import (
    bloom_filter_keys,
    column_id,
    column_stats_keys,
    file_ids,
    from_key_partition,
    java_hash,
    partition_stats_keys,
    secondary_keys,
    secondary_prefixes,
    shard,
    shard_to_write,
    split_secondary_keys,
    to_key_partition,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def plain_hash(text: str) -> int:
    """Java's String.hashCode, one UTF-16 unit after the other."""
    units = text.encode("utf-16-be")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("_hoodie_record_key", "uSJGdDiVr/k="),
        ("_hoodie_commit_time", "JBBzUToHtLc="),
        ("_hoodie_partition_path", "qeAH/5q1L8c="),
        (".", "FXThHwelITM="),
        ("", "FXThHwelITM="),
        ("region=us", "431THTTwO5Q="),
        ("__partition_stat__", "2CMHrhWVE9w="),
    ],
)
def test_column_and_partition_ids(text: str, expected: str) -> None:
    assert column_id(text).decode() == expected


def test_key_of_a_recorded_column_statistic() -> None:
    name = "f3414a65-b324-41f5-bc43-4a95ffa6b845-0_1-3117-4188_20261121040122745.parquet"
    columns, partitions, names = (pa.array([text]) for text in ("note", "south", name))
    assert column_stats_keys(columns, partitions, names).to_pylist() == [b"Ie5jBWPsGL8=uU7KLI7IFI4=IOKerQnz78yWGvYNNy6Xkw=="]
    assert partition_stats_keys(columns, partitions).to_pylist() == [b"Ie5jBWPsGL8=uU7KLI7IFI4="]
    assert bloom_filter_keys(partitions, names).to_pylist() == [b"uU7KLI7IFI4=IOKerQnz78yWGvYNNy6Xkw=="]


@pytest.mark.parametrize(
    ("text", "hashed", "groups", "expected"),
    [
        ("e96c4396-3fad-413a-a942-4cb36106d721", 343329391, 10, 1),
        ("TXN-018", -166313900, 10, 0),
        ("Japan Airlines$", -485221643, 10, 3),
        ("Spotify$", -1766239030, 10, 0),
        ("\0$", 36, 10, 6),
        ("rider-J$c8abbe79-8d89-47ea-b4ce-4d224bae5bfa", 852481520, 10, 0),
        ("polygenelubricants", -2147483648, 10, 8),
        ("", 0, 10, 0),
    ],
)
def test_shard_of_known_texts(text: str, hashed: int, groups: int, expected: int) -> None:
    column = pa.array([text, "x"])
    assert java_hash(column)[0] == hashed
    assert shard(column, groups)[0] == expected


@given(st.lists(TEXT, max_size=30), st.integers(1, 10_000))
def test_shard_is_javas(texts: list[str], groups: int) -> None:
    expected = [plain_hash(text) for text in texts]
    for kind in (pa.string(), pa.large_string()):
        column = pa.array(texts, kind)
        assert java_hash(column).tolist() == expected
        assert shard(column, groups).tolist() == [abs(h) % groups for h in expected]
        assert java_hash(column[1:]).tolist() == expected[1:]
    assert java_hash(pa.chunked_array([texts[:3], texts[3:]], pa.string())).tolist() == expected


@given(st.lists(TEXT, min_size=1, max_size=20))
def test_ids_of_many_texts_are_those_of_each(texts: list[str]) -> None:
    md5 = [base64.b64encode(hashlib.md5(t.encode(), usedforsecurity=False).digest()) for t in texts]
    assert file_ids(pa.array(texts)).to_pylist() == md5
    hashed = [base64.b64encode(xxhash.xxh64((t or ".").encode(), seed=0xFFFFFFFFDABADABA).digest()) for t in texts]
    assert [column_id(t) for t in texts] == hashed
    assert partition_stats_keys(pa.array(texts), pa.array(texts)).to_pylist() == [h + h for h in hashed]


SPECIAL = st.text(st.sampled_from("ab$\\\0é\U0001f600"), max_size=8)


@given(st.lists(st.tuples(st.none() | SPECIAL, SPECIAL), max_size=20))
def test_secondary_keys_come_apart_again(pairs: list[tuple[str | None, str]]) -> None:
    values, keys = pa.array([v for v, _ in pairs], pa.string()), pa.array([k for _, k in pairs], pa.string())
    found = split_secondary_keys(secondary_keys(values, keys))
    assert list(zip(*(c.to_pylist() for c in found), strict=True)) == pairs
    joined = secondary_keys(values, keys).to_pylist()
    prefixes = secondary_prefixes(values).to_pylist()
    assert all(key.startswith(prefix) for key, prefix in zip(joined, prefixes, strict=True))


@given(st.lists(st.tuples(st.none() | SPECIAL, SPECIAL), unique=True, max_size=12))
def test_a_secondary_prefix_finds_its_value_alone(pairs: list[tuple[str | None, str]]) -> None:
    values = pa.array([v for v, _ in pairs], pa.string())
    joined = secondary_keys(values, pa.array([k for _, k in pairs], pa.string())).to_pylist()
    for (value, _), prefix in zip(pairs, secondary_prefixes(values).to_pylist(), strict=True):
        assert {pairs[i] for i, key in enumerate(joined) if key.startswith(prefix)} == {p for p in pairs if p[0] == value}


def test_secondary_keys_as_hudi_spells_them() -> None:
    found = secondary_keys(pa.array(["Amazon", None, "a$b\\c"]), pa.array(["TXN-001", "TXN-003", "k$"]))
    assert found.to_pylist() == [b"Amazon$TXN-001", b"\0$TXN-003", b"a\\$b\\\\c$k\\$"]


def test_the_table_without_partitions_has_a_name() -> None:
    assert (to_key_partition(""), to_key_partition("a/b")) == (".", "a/b")
    assert (from_key_partition("."), from_key_partition("a/b")) == ("", "a/b")


def test_keys_go_by_the_order_of_names_which_is_that_of_numbers_with_four_digits() -> None:
    names = [file_group_id("record_index", number) for number in range(10_000)]
    assert names == sorted(names)
    keys_of_five = pa.array(["a", "b"])
    assert shard_to_write(keys_of_five, 10_000).tolist() == shard(keys_of_five, 10_000).tolist()
    with pytest.raises(UnsupportedFeature, match=r"more than 10,000 file groups \(10,001\).*indexes\.create"):
        shard_to_write(keys_of_five, 10_001)
