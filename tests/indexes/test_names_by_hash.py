"""Names are matched by their hashes as a dictionary would match them, or not at all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.indexes import names_by_hash
from hudimeta.indexes.names_by_hash import NamesByHash

NAMES = st.lists(st.text("abc", max_size=6), max_size=30)


def chunked(names: list[str], cut: int) -> pa.ChunkedArray:
    return pa.chunked_array([names[:cut], names[cut:]], pa.string())


@given(NAMES, NAMES, st.integers(0, 30))
def test_places_are_those_of_a_dictionary(ours: list[str], theirs: list[str], cut: int) -> None:
    given_names = chunked(theirs, cut)
    found = NamesByHash(pa.array(ours, pa.string())).places_in(given_names)
    repeated = len(set(theirs)) < len(theirs) or len({n for n in ours if n in theirs}) < len([n for n in ours if n in theirs])
    if repeated:
        assert found is None
    else:
        assert found is not None
        assert found.equals(pc.index_in(pa.array(ours, pa.string()), given_names.combine_chunks()).cast(pa.int64()))


def test_names_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names_by_hash, "_hashes", lambda names: np.asarray(pc.utf8_length(names)).astype(np.int64))
    names = NamesByHash(pa.array(["a", "bb"]))
    assert names.places_in(chunked(["bb", "a"], 1)).to_pylist() == [1, 0]
    assert names.places_in(chunked(["bc", "a"], 1)) is None
