"""Buckets: file ids, rings, and what recorded tables of Apache Hudi say about where its keys live."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hudimeta
from hudimeta.errors import ConfigError, CorruptFileError, UnsupportedFeature
from hudimeta.formats.json_text import parse_json
from hudimeta.indexes.bucket.consistent_hashing import (
    FOLDER,
    INIT_INSTANT,
    SUFFIX,
    HashRings,
    decode_ring,
    encode_ring,
    first_ring,
)
from hudimeta.indexes.bucket.hash_keys import ring_hashes
from hudimeta.indexes.bucket.look_up import SimpleBuckets, bucket_of_file_id, looks_bucketed
from hudimeta.indexes.bucket.partition_rules import PartitionRules
from hudimeta.storage import LocalStorage
from hudimeta.table.key_file import KeyFile
from hudimeta.timeline.active import Timeline
from tests.conftest import Unpack
from tests.indexes.key_tables import texts
from tests.recorded_tables import RICH


def recorded_keys(name: str) -> list[tuple[str, str, str]]:
    """(record key, partition, file name or id) of every row that Apache Hudi reads."""
    return [(row[2], row[3], row[4]) for row in RICH.answer(name)["snapshot"]["rows"]]


@pytest.mark.parametrize(("name", "count"), [("bucket_logs_only", 2), ("nbcc_bucket", 1)])
def test_recorded_rows_lie_in_their_bucket(name: str, count: int) -> None:
    rows = recorded_keys(name)
    numbers = SimpleBuckets(PartitionRules("", count), ["id"]).numbers("", texts([key for key, _, _ in rows]))
    assert len(rows) > 10
    assert [bucket_of_file_id(file) for _, _, file in rows] == numbers.tolist()


def test_recorded_rows_lie_in_their_stretch_of_the_ring(tmp_path: Path) -> None:
    table = RICH.unpack("consistent_hash", tmp_path)
    storage = LocalStorage(str(table))
    rings = HashRings(storage, Timeline.load(storage), 2, ["id"])
    rows = recorded_keys("consistent_hash")
    for partition in ("north", "south", "east"):
        ring = rings.ring(partition)
        assert ring == first_ring(partition, 2), "Hudi names buckets after their partition and borders"
        own = [(key, file) for key, where, file in rows if where == partition]
        numbers = ring.numbers(ring_hashes(texts([key for key, _ in own]), ["id"]))
        assert [ring.nodes[number].prefix for number in numbers] == [file[:36] for _, file in own]
        assert set(numbers.tolist()) <= {0, 1}


def test_a_ring_is_written_down_once(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    timeline = Timeline.load(storage)
    first = HashRings(storage, timeline, 3, ["id"]).ring("p=1")
    assert HashRings(storage, timeline, 8, ["id"]).ring("p=1") == first
    assert decode_ring(encode_ring(first), f"{INIT_INSTANT}{SUFFIX}") == first
    assert [node.value for node in first.nodes] == [715827883, 1431655766, 2147483647]
    split = replace(first_ring("p=1", 4), instant="20260102030405678")
    storage.put(f"{FOLDER}/p=1/20260102030405678.hashing_meta", encode_ring(split))
    assert HashRings(storage, timeline, 3, ["id"]).ring("p=1") == first, "its clustering is not completed"
    storage.put(f"{FOLDER}/p=1/20260102030405678.commit", b"")
    assert HashRings(storage, timeline, 3, ["id"]).ring("p=1") == first, "it was completed after the timeline was listed"
    storage.put(".hoodie/timeline/20260202000000000_20260202000000009.commit", b"{}")
    assert len(HashRings(storage, Timeline.load(storage), 3, ["id"]).ring("p=1").nodes) == 4, "it was archived"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"nodes": []}', b'{"partitionPath":"","instant":"0","seqNo":0,"nodes":[]}'])
def test_damaged_rings_are_named(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="the/path"):
        decode_ring(data, "the/path")


def test_rings_that_change_are_left_alone() -> None:
    found = parse_json(encode_ring(first_ring("p", 2)).replace(b"NORMAL", b"REPLACE"))
    del found["hudimeta.seal"]
    with pytest.raises(UnsupportedFeature, match="split or merged"):
        decode_ring(json.dumps(found).encode())


def test_each_changed_digit_of_a_ring_of_ours_is_noticed() -> None:
    """A border between two buckets is a number like any other: nothing else would tell that keys go elsewhere."""
    data, path = encode_ring(first_ring("p", 3)), f"{INIT_INSTANT}{SUFFIX}"
    for at in (at for at, byte in enumerate(data) if chr(byte).isdigit()):
        changed = data[:at] + (b"7" if data[at : at + 1] != b"7" else b"8") + data[at + 1 :]
        with pytest.raises(CorruptFileError, match=r"seal|content of"):
            decode_ring(changed, path)


def test_the_ring_of_another_partition_is_no_ring(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    timeline = Timeline.load(storage)
    storage.put(f"{FOLDER}/p=2/{INIT_INSTANT}{SUFFIX}", encode_ring(first_ring("p=1", 3)))
    with pytest.raises(CorruptFileError, match="the hash ring of partition 'p=2', found that of 'p=1'"):
        HashRings(storage, timeline, 3, ["id"]).ring("p=2")


def test_file_groups_that_are_no_buckets_are_refused(tmp_path: Path) -> None:
    buckets = SimpleBuckets(PartitionRules("", 2), ["id"])
    mine = [KeyFile("p", buckets.new_file_id("p", number), "", 0) for number in (0, 1)]
    assert set(buckets.place("p", mine)) == {0, 1}
    for wrong in ("2f0d20ac-40fe-4212-b8fe-1b89b3856470-0", buckets.new_file_id("p", 2), buckets.new_file_id("p", 1)):
        with pytest.raises(ConfigError, match="written with"):
            buckets.place("p", [*mine, KeyFile("p", wrong, "", 0)])
    rings = HashRings(LocalStorage(str(tmp_path)), Timeline.load(LocalStorage(str(tmp_path))), 2, ["id"])
    with pytest.raises(ConfigError, match="no bucket of the hash ring"):
        rings.place("p", mine)
    assert rings.new_file_id("p", 0, again=True) != rings.new_file_id("p", 0)
    assert rings.new_file_id("p", 1, again=True) == f"{rings.overwritten('p').nodes[1].prefix}-0"


def test_tables_with_buckets_are_recognised() -> None:
    ids = [SimpleBuckets(PartitionRules("", 4), ["id"]).new_file_id("", number) for number in range(4)]
    assert looks_bucketed(ids)
    assert not looks_bucketed([*ids, "2f0d20ac-40fe-4212-b8fe-1b89b3856470-0"])
    assert not looks_bucketed([])


def test_writers_that_do_not_block_begin_a_bucket_with_one_id(tmp_path: Path) -> None:
    fixed = SimpleBuckets(PartitionRules("", 4), ["id"], Timeline.load(LocalStorage(str(tmp_path))))
    assert fixed.new_file_id("p", 3) == "00000003-0000-0000-0000-000000000000-0"
    assert fixed.logs_first
    assert fixed.new_file_id("p", 3, again=True) != fixed.new_file_id("p", 3), "an overwrite takes the old one out"


@pytest.mark.parametrize("wrong", [{"hoodie.bucket.index.num.buckets": "4"}, {}], ids=["4", "by default"])
@pytest.mark.parametrize("name", ["bucket_logs_only", "nbcc_bucket"])
def test_another_number_of_buckets_than_that_of_a_table_of_apache_hudi_is_refused(
    rich_table: Unpack, name: str, wrong: dict[str, str]
) -> None:
    """It says nowhere how many it has: every row of another number would be a second one of its key."""
    path = rich_table(name, fresh=True)
    rows = hudimeta.Table(path).scan().to_table()
    again = rows.select([column for column in rows.column_names if not column.startswith("_hoodie")])
    bucket = {"hoodie.index.type": "BUCKET"}
    with pytest.raises(ConfigError, match="what the table was written with: its key"):
        hudimeta.Table(path, {**bucket, **wrong}).upsert(again)
    right = {"hoodie.bucket.index.num.buckets": {"bucket_logs_only": "2", "nbcc_bucket": "1"}[name]}
    hudimeta.Table(path, {**bucket, **right}).upsert(again)
    assert hudimeta.Table(path).scan().to_table().num_rows == rows.num_rows
