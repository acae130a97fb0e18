"""Which index is used changes no result: each one against the simple index over the same table."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hudimeta.indexes.bucket.look_up import BucketLookUp, SimpleBuckets
from hudimeta.indexes.bucket.partition_rules import PartitionRules
from tests.indexes.key_tables import KeyTable, pairs, texts

KEYS = [f"k{n}" for n in range(12)] + ["", "id:1,sub:2", "é", "𝄞"]
PARTITIONS = ["", "a", "a/b", "ö=1"]

key = st.sampled_from(KEYS)
batches = st.lists(st.tuples(key, st.sampled_from([*PARTITIONS, "new"])), max_size=16)


@st.composite
def tables(draw: st.DrawFn, *, everywhere_once: bool) -> KeyTable:
    """Tables whose keys are unique in their partition, or in the whole table."""
    held: dict[str, dict[str, list[str]]] = {}
    left = draw(st.permutations(KEYS))
    for number, partition in enumerate(PARTITIONS):
        own = left if not everywhere_once else left[number :: len(PARTITIONS)]
        files = draw(st.integers(0, 3))
        held[partition] = {f"f{number}{i}": own[i :: files + 1] for i in range(files)}
    logs = draw(st.sets(st.sampled_from([f for files in held.values() for f in files] or ["none"])))
    return KeyTable(held, draw(st.booleans()), frozenset(logs))


@given(tables(everywhere_once=True), batches)
def test_global_indexes_agree(table: KeyTable, batch: list[tuple[str, str]]) -> None:
    keys, partitions = texts([k for k, _ in batch]), texts([p for _, p in batch])
    expected = pairs(table.simple(is_global=True).tag(keys, partitions))
    assert pairs(table.bloom(is_global=True).tag(keys, partitions)) == expected
    assert pairs(table.record().tag(keys, partitions)) == expected


@given(tables(everywhere_once=False), batches)
def test_indexes_of_partitions_agree(table: KeyTable, batch: list[tuple[str, str]]) -> None:
    keys, partitions = texts([k for k, _ in batch]), texts([p for _, p in batch])
    expected = pairs(table.simple().tag(keys, partitions))
    assert pairs(table.bloom().tag(keys, partitions)) == expected
    assert pairs(table.record(partitioned=True).tag(keys, partitions)) == expected


@given(st.lists(st.tuples(key, st.sampled_from(PARTITIONS)), max_size=16), batches, st.integers(1, 5))
def test_buckets_send_a_key_to_the_file_that_has_it(
    stored: list[tuple[str, str]], batch: list[tuple[str, str]], count: int
) -> None:
    fields = ["id", "sub"]
    empty = BucketLookUp(lambda _: {}, SimpleBuckets(PartitionRules("", count), fields))
    new_groups = empty.new_groups(texts([k for k, _ in stored]), texts([p for _, p in stored]))
    held: dict[str, dict[str, list[str]]] = {}
    for row, number in zip(new_groups.row, new_groups.number, strict=True):
        of_partition = held.setdefault(new_groups.partition_paths[number], {})
        of_partition.setdefault(new_groups.file_ids[number], []).append(stored[row][0])
    table = KeyTable(held)
    keys, partitions = texts([k for k, _ in batch]), texts([p for _, p in batch])
    found = BucketLookUp(table.files_of, SimpleBuckets(PartitionRules("", count), fields)).tag(keys, partitions)
    assert pairs(table.simple().tag(keys, partitions)) <= pairs(found)
    assert found.new_groups is not None
    assert sorted([*found.row, *found.new_groups.row]) == list(range(len(batch)))
