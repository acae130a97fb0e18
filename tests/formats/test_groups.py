"""Minima, maxima and sums of groups are those of Arrow's own grouping, however many rows there are."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.formats.groups import extremes_of_groups, sums_of_groups

GROUPS = 4
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-9, 9),
    pa.float64(): st.floats(-9, 9).map(lambda v: v + 0.0) | st.just(float("nan")),
    pa.string(): st.text("abé", max_size=3),
    pa.binary(): st.binary(max_size=2),
    pa.decimal128(9, 2): st.integers(-99, 99).map(lambda i: Decimal(i) / 4),
    pa.date32(): st.dates(),
    pa.bool_(): st.booleans(),
}


def _wanted(values: pa.Array, groups: np.ndarray[Any, Any], how: str) -> list[Any]:
    """Per group, what `group_by` finds; None of groups that it does not see."""
    found = pa.table({"group": groups, "value": values}).group_by("group").aggregate([("value", how)]).to_pydict()
    by_group = dict(zip(found["group"], found[f"value_{how}"], strict=True))
    return [by_group.get(group) for group in range(GROUPS)]


@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_extremes_and_sums(kind: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(0, GROUPS - 1), VALUES[kind] | st.none())))
    groups, values = np.array([g for g, _ in rows], np.int64), pa.array([v for _, v in rows], kind)
    for times in (1, 10_000):  # few and many
        many, repeated = np.tile(groups, times), pa.concat_arrays([values] * times)
        for which in ("min", "max"):
            found = extremes_of_groups(repeated, many, GROUPS, which)
            assert found.type == kind
            assert repr(found.to_pylist()) == repr(_wanted(values, groups, which))
        if kind == pa.int64():
            sums = [None if s is None else s * times for s in _wanted(values, groups, "sum")]
            assert sums_of_groups(repeated, many, GROUPS).to_pylist() == sums
