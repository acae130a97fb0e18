"""Keys are hashed as Java hashes them: against recorded tables, and the quick ways against the plain one."""

from __future__ import annotations

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.indexes.bucket.hash_keys import HASH_MASK, hashed_values, list_hashes, ring_hashes
from tests.indexes.key_tables import texts

FIELDS = ["a", "b"]
VALUES = st.text(alphabet="xy1é𝄞", max_size=3) | st.sampled_from(["__null__", "__empty__", "1:2", "p,q", "a:1,b:2", ":", ","])


def java_hash(text: str) -> int:
    total = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        total = (31 * total + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return total


def plain_hash(key: str, fields: list[str]) -> int:
    total = 1
    for value in hashed_values(key, fields):
        total = (31 * total + (0 if value is None else java_hash(value))) & 0xFFFFFFFF
    return total & HASH_MASK


@pytest.mark.parametrize(
    ("key", "fields", "values"),
    [
        ("ord-1", FIELDS, ["ord-1"]),
        ("a:1", FIELDS, ["a:1"]),
        ("x,y", FIELDS, ["x,y"]),
        ("a:1,b:2", FIELDS, ["1", "2"]),
        ("b:2,a:1", FIELDS, ["2", "1"]),
        ("a:1,b:2", ["b"], ["2"]),
        ("a:__null__,b:__empty__", FIELDS, [None, ""]),
        ("a:x:y,b:1,2", FIELDS, ["x:y", "1,2"]),
        ("a:1,c:z,b:3", FIELDS, ["1", "3"]),
        ("c:1,d:2", FIELDS, ["c:1,d:2"]),
        ("k,v:w", FIELDS, ["k,v:w"]),
    ],
)
def test_values_are_cut_out_of_keys(key: str, fields: list[str], values: list[str | None]) -> None:
    assert hashed_values(key, fields) == values


@given(st.lists(st.lists(VALUES, min_size=1, max_size=3), max_size=8), st.sampled_from([["a"], FIELDS, ["z"], ["c", "a"]]))
def test_whole_batches_are_hashed_as_each_key_is(rows: list[list[str]], fields: list[str]) -> None:
    keys = [",".join(f"{name}:{value}" for name, value in zip("abc", values, strict=False)) for values in rows]
    keys += [values[0] for values in rows]
    assert list_hashes(texts(keys), fields).tolist() == [plain_hash(key, fields) for key in keys]
    joined = ["".join("null" if v is None else v for v in hashed_values(key, fields)) for key in keys]
    assert ring_hashes(texts(keys), fields).tolist() == [xxhash.xxh32_intdigest(t.encode()) & HASH_MASK for t in joined]


def test_no_keys() -> None:
    assert len(list_hashes(pa.array([], pa.string()), FIELDS)) == len(ring_hashes(pa.array([], pa.string()), FIELDS)) == 0
