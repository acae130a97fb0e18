"""What a commit states of its keys."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudimeta.table.stated_keys import Stated, none_stated, stated

MINE = pa.array(["a", "b"])


def commit(*keys: str) -> dict[str, object]:
    """A commit that states these keys."""
    return {"extraMetadata": stated(Stated.ADDED, [pa.array(keys, pa.string())])}


def test_who_has_other_keys_is_told_so() -> None:
    assert none_stated(Stated.ADDED, [MINE], [])
    assert none_stated(Stated.ADDED, [MINE], [commit(), commit("c", "d")])
    assert not none_stated(Stated.ADDED, [MINE], [commit("c"), commit("d", "b")])
    assert none_stated(Stated.ADDED, [], [commit("a")])


def test_keys_are_the_same_as_text_and_as_bytes() -> None:
    given = {"extraMetadata": stated(Stated.INDEXED, [pa.array(["a"]), pa.array([b"\xc3\xa4"], pa.binary())])}
    assert not none_stated(Stated.INDEXED, [pa.array(["ä"])], [given])
    assert not none_stated(Stated.INDEXED, [pa.array([b"a"])], [given])


@pytest.mark.parametrize("extra", [None, {}, {"hudimeta.keys.added": "??"}, {"hudimeta.keys.added": "QUJD"}])
def test_what_is_not_stated_may_be_any_key(extra: dict[str, str] | None) -> None:
    assert not none_stated(Stated.ADDED, [MINE], [commit("c"), {"extraMetadata": extra}])


def test_one_statement_is_not_taken_for_the_other() -> None:
    assert not none_stated(Stated.INDEXED, [MINE], [commit("c")])


def test_many_keys_are_not_stated() -> None:
    assert stated(Stated.ADDED, [pa.array(map(str, range(1000)))])
    assert stated(Stated.ADDED, [pa.array(map(str, range(1000))), pa.array(["x"])]) == {}
