"""Which file group a record goes to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.metadata.delta import by_group
from hudimeta.metadata.group_files import file_group_id
from hudimeta.metadata.keys import secondary_heads, secondary_keys, secondary_prefixes, shard

texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=20)


@given(texts, st.integers(1, 7))
def test_every_key_goes_to_its_shard(keys: list[str], groups: int) -> None:
    array = pa.array(keys, pa.string())
    found = by_group(array, groups)
    assert sorted(row for _, rows in found for row in rows.to_pylist()) == list(range(len(keys)))
    at = shard(array, groups)
    assert all(at[row] == group for group, rows in found for row in rows.to_pylist())
    assert [group for group, _ in found] == sorted({int(n) for n in np.unique(at)})


@given(texts, st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), min_size=20, max_size=20))
def test_the_head_of_a_secondary_key_is_its_value(values: list[str], keys: list[str]) -> None:
    """Whatever letters are in the value and in the key."""
    mixed = pa.array([None if v == "0" else v for v in values], pa.string())
    made = secondary_keys(mixed, pa.array(keys[: len(values)], pa.string()))
    assert secondary_heads(made).to_pylist() == secondary_prefixes(mixed).to_pylist()


def test_secondary_values_go_where_java_looks_for_them() -> None:
    heads = secondary_heads(pa.array(["Japan Airlines$k1", "Spotify$k$2", "\x00$k3"]))
    assert shard(heads, 10).tolist() == [3, 0, 6]


def test_file_groups_are_called_as_in_java() -> None:
    assert file_group_id("files", 0) == "files-0000-0"
    assert file_group_id("column_stats", 1) == "col-stats-0001-0"
    assert file_group_id("partition_stats", 0) == "partition-stats-0000-0"
    assert file_group_id("secondary_index_rider_idx", 12) == "secondary-index-rider-idx-0012-0"
    assert file_group_id("record_index", 0, "south") == "record-index-south-0000-0"
