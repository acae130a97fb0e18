"""The simple index: every key is found in every file that holds it, and files that cannot hold one are not read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hudimeta.indexes.simple.look_up import files_in_range
from hudimeta.table.key_file import KeyFile
from tests.indexes.key_tables import KeyTable, pairs, texts

keys = st.text(alphabet="aZ0~é𝄞\x00", max_size=3)


@given(st.lists(keys, max_size=12), st.lists(st.lists(keys, max_size=6), max_size=4), st.booleans())
def test_every_key_is_found_in_every_file_that_holds_it(wanted: list[str], held: list[list[str]], ranges: bool) -> None:
    table = KeyTable({"": {str(number): own for number, own in enumerate(held)}}, ranges)
    found = table.simple(is_global=True).tag(texts(wanted), texts(["elsewhere"] * len(wanted)))
    assert pairs(found) == {(row, "", str(i)) for row, key in enumerate(wanted) for i, own in enumerate(held) if key in own}
    if ranges:
        encoded = [[key.encode() for key in own] for own in held]
        needed = {str(i) for i, own in enumerate(encoded) if not own or any(min(own) <= k.encode() <= max(own) for k in wanted)}
        assert set(table.read) <= needed


def test_files_whose_range_excludes_all_keys_are_not_read() -> None:
    files = [KeyFile("", "a", "a", 1, "a", "f"), KeyFile("", "b", "b", 1, "g", "m"), KeyFile("", "c", "c", 1)]
    assert files_in_range(files, texts(["h", "z"])).tolist() == [False, True, True]
    assert files_in_range(files, texts(["f"])).tolist() == [True, False, True]
    assert files_in_range(files, texts([])).tolist() == [False, False, False]


def test_keys_are_looked_for_in_their_own_partition() -> None:
    table = KeyTable({p: {p: ["k"]} for p in ("a", "b", "unasked")})
    found = table.simple().tag(texts(["k", "k", "k"]), texts(["a", "b", "new"]))
    assert pairs(found) == {(0, "a", "a"), (1, "b", "b")}
    assert found.read == 2
    assert found.hits == 2
    everywhere = table.simple(is_global=True).tag(texts(["k"]), texts(["new"]))
    assert {partition for _, partition, _ in pairs(everywhere)} == {"a", "b", "unasked"}
    assert "global simple index: 1 keys looked up" in str(everywhere)
