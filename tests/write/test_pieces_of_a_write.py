"""The pieces that a write is made of: markers, placement, one row a key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.commit.markers import (
    Marker,
    MarkerKind,
    files_of_write,
    marked_file_ids,
    marker_folder,
    read_markers,
    remove_markers,
    write_marker,
)
from hudimeta.errors import ConfigError, CorruptFileError, SchemaMismatch
from hudimeta.keys import KeyGenerator
from hudimeta.slices.merge_rules import MergeRules
from hudimeta.storage import LocalStorage, Storage
from hudimeta.testing.builders import simple_rows
from hudimeta.types import MergeMode
from hudimeta.write.batch import keyed_batch, keys_only_batch
from hudimeta.write.placement import FileSizing, SmallFile, place

T = "20260102030405678"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path))


# Markers


def test_markers_come_back(storage: Storage) -> None:
    markers = [
        Marker("f-0_0-0-0_1.parquet", MarkerKind.CREATE),
        Marker("p=a/q=b/f-0_0-0-0_1.parquet", MarkerKind.MERGE),
        Marker(f"p=a/.f-0_{T}.log.1_0-0-0", MarkerKind.CREATE),
    ]
    for marker in [*markers, markers[0]]:
        write_marker(storage, T, marker)
    storage.put(f"{marker_folder(T)}/MARKERS.type", b"DIRECT")
    assert sorted(read_markers(storage, T) or (), key=lambda m: m.path) == sorted(markers, key=lambda m: m.path)
    assert storage.stat(f"{marker_folder(T)}/p=a/q=b/f-0_0-0-0_1.parquet.marker.MERGE") is not None
    remove_markers(storage, T)
    assert read_markers(storage, T) is None
    assert storage.list(".hoodie/.temp") == []


def test_markers_of_the_timeline_server_are_read(storage: Storage) -> None:
    storage.put(f"{marker_folder(T)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.put(f"{marker_folder(T)}/MARKERS0", b"part=p0/a_0-1-2_3.parquet.marker.MERGE\n")
    storage.put(f"{marker_folder(T)}/MARKERS7", b"b_0-1-2_3.parquet.marker.CREATE\npart=p0/a_0-1-2_3.parquet.marker.MERGE\n")
    assert read_markers(storage, T) == [
        Marker("b_0-1-2_3.parquet", MarkerKind.CREATE),
        Marker("part=p0/a_0-1-2_3.parquet", MarkerKind.MERGE),
    ]


NAMED = f"p/a_0-1-2_{T}.parquet"


@pytest.mark.parametrize("torn", ["", f"{NAMED}.marker.MERGE\np/b_0-1-2_{T}.parquet.mar"], ids=["empty", "cut"])
def test_a_list_that_is_not_whole_does_not_say_which_files_there_are(storage: Storage, torn: str) -> None:
    """As a server leaves it that is killed while it writes it anew."""
    storage.put(f"{marker_folder(T)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.put(f"{marker_folder(T)}/MARKERS0", torn.encode())
    assert read_markers(storage, T) == ([Marker(NAMED, MarkerKind.MERGE)] if torn else [])
    assert files_of_write(storage, T) is None
    storage.put(f"{marker_folder(T)}/MARKERS0", f"{NAMED}.marker.MERGE\n".encode())
    assert files_of_write(storage, T) == [NAMED]


@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0b", "\x0c", "\x1c"])
def test_a_list_has_a_path_a_line_whatever_a_partition_is_called(storage: Storage, odd: str) -> None:
    named = f"p={odd}x/a_0-1-2_{T}.parquet"
    storage.put(f"{marker_folder(T)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.put(f"{marker_folder(T)}/MARKERS0", f"{named}.marker.CREATE\n".encode())
    assert files_of_write(storage, T) == [named]
    assert marked_file_ids(storage, T, f"p={odd}x") == {"a"}


def test_a_list_that_is_no_text_is_damaged(storage: Storage) -> None:
    storage.put(f"{marker_folder(T)}/MARKERS0", b"p/\xff.parquet.marker.CREATE\n")
    with pytest.raises(CorruptFileError, match=r"MARKERS0 is damaged at byte 2"):
        read_markers(storage, T)


def test_checksums_that_hadoop_keeps_of_markers_are_no_markers(storage: Storage) -> None:
    write_marker(storage, T, Marker("p/a_0-1-2_3.parquet", MarkerKind.MERGE))
    storage.put(f"{marker_folder(T)}/p/.a_0-1-2_3.parquet.marker.MERGE.crc", b"crc\x00")
    assert read_markers(storage, T) == [Marker("p/a_0-1-2_3.parquet", MarkerKind.MERGE)]


def test_a_write_without_markers_is_told_from_one_with_none_left(storage: Storage) -> None:
    assert read_markers(storage, T) is None
    storage.put(f"{marker_folder(T)}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    assert read_markers(storage, T) == []


def test_a_marker_that_says_nothing_is_an_error(storage: Storage) -> None:
    storage.put(f"{marker_folder(T)}/MARKERS0", b"a.parquet.marker.INVENTED\n")
    with pytest.raises(CorruptFileError, match="INVENTED"):
        read_markers(storage, T)


# Placement


def test_the_smallest_file_is_filled_first() -> None:
    small = [SmallFile("big", 90), SmallFile("little", 20), SmallFile("full", 100)]
    placements = place(np.arange(10), small, FileSizing(100, 95, 10.0))
    assert [(p.file_id, p.rows.tolist()) for p in placements] == [("little", list(range(8))), ("big", [8]), (None, [9])]


def test_no_file_is_filled_when_the_limit_is_0() -> None:
    placements = place(np.arange(3), [SmallFile("little", 20)], FileSizing(100, 0, 10.0))
    assert [p.file_id for p in placements] == [None]


@given(
    st.integers(0, 300),
    st.lists(st.integers(0, 2000), max_size=5),
    st.integers(1, 1500),
    st.integers(0, 1500),
    st.floats(0.5, 2000),
)
def test_every_row_is_placed_once_and_no_file_outgrows_its_size(
    n: int, sizes: list[int], target: int, limit: int, row_bytes: float
) -> None:
    small = [SmallFile(str(i), size) for i, size in enumerate(sizes)]
    placements = place(np.arange(n), small, FileSizing(target, limit, row_bytes))
    assert np.concatenate([np.zeros(0, int), *(p.rows for p in placements)]).tolist() == list(range(n))
    filled = [p.file_id for p in placements if p.file_id is not None]
    assert len(filled) == len(set(filled))
    for placement in placements:
        before = 0 if placement.file_id is None else sizes[int(placement.file_id)]
        assert len(placement.rows)
        assert len(placement.rows) == 1 or before + len(placement.rows) * row_bytes <= target
        assert placement.file_id is None or before < limit


# One row a key

EVENT_TIME = MergeRules(MergeMode.EVENT_TIME_ORDERING, ("ts",))
COMMIT_TIME = MergeRules(MergeMode.COMMIT_TIME_ORDERING)
PROPERTIES = {"hoodie.table.recordkey.fields": "id", "hoodie.table.partition.fields": "part", "hoodie.table.version": "8"}


def generator(**changes: str) -> KeyGenerator:
    return KeyGenerator.from_properties(PROPERTIES | changes)


def doubled() -> pa.Table:
    rows = simple_rows([1, 2, 1, 1, 2, 3], 0)
    rows = rows.set_column(2, "ts", pa.array([5, 1, 7, 7, 1, 0], pa.int64()))
    return rows.set_column(3, "x", pa.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))


@pytest.mark.parametrize(("rules", "kept"), [(EVENT_TIME, [3.0, 4.0, 5.0]), (COMMIT_TIME, [3.0, 4.0, 5.0])])
def test_of_equal_keys_the_newest_row_is_kept_and_of_equal_ones_the_last(rules: MergeRules, kept: list[float]) -> None:
    batch = keyed_batch(doubled(), doubled().schema, generator(), rules).combined(rules)
    assert batch.rows["x"].to_pylist() == kept
    older = doubled().take([2, 0])
    batch = keyed_batch(older, older.schema, generator(), rules).combined(rules)
    assert batch.rows["ts"].to_pylist() == [7 if rules is EVENT_TIME else 5]


def test_one_key_in_two_partitions_is_two_rows() -> None:
    rows = simple_rows([1, 1], 1).set_column(1, "part", pa.array(["a", "b"]))
    assert len(keyed_batch(rows, rows.schema, generator(), EVENT_TIME).combined(EVENT_TIME)) == 2


def test_a_null_key_or_ordering_value_is_refused_with_its_column() -> None:
    rows = simple_rows([1, 2], 1)
    for at, name in ((0, "id"), (2, "ts")):
        holes = rows.set_column(at, name, pa.array([None, rows[name][1].as_py()], rows.schema.field(name).type))
        with pytest.raises(SchemaMismatch, match=name):
            keyed_batch(holes, rows.schema, generator(), EVENT_TIME)


def test_a_delete_needs_the_key_and_partition_columns_only() -> None:
    rows = simple_rows([1, 2], 1)
    assert keys_only_batch(rows.select(["part", "id"]), generator(), rows.schema, EVENT_TIME).keys.to_pylist() == [
        "k0001",
        "k0002",
    ]  # type: ignore[union-attr]
    with pytest.raises(SchemaMismatch, match="part"):
        keys_only_batch(rows.select(["id"]), generator(), rows.schema, EVENT_TIME)
    with pytest.raises(ConfigError, match="generates its keys"):
        keys_only_batch(rows, generator(**{"hoodie.table.recordkey.fields": ""}), rows.schema, EVENT_TIME)
