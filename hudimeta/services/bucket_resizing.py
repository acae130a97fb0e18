"""Which buckets of a consistent hash ring a clustering splits and which it merges, as Hudi's strategy for them has it.

A bucket larger than `hoodie.bucket.index.split.threshold` whole files becomes two, neighbours that are each smaller than
`hoodie.bucket.index.merge.threshold` of one, and together begin below that, become one. A partition never has more buckets than
`hoodie.bucket.index.max.num.buckets`, nor fewer than the least number. With columns to sort by, every other bucket is written
anew as well, sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.engine.machine import machine
from hudimeta.errors import ConfigError
from hudimeta.indexes.bucket.consistent_hashing import HashRing, RingNode
from hudimeta.indexes.bucket.ring_changes import REPLACE, RingChange, merge_nodes, split_node
from hudimeta.services.clustering_strategy import Group, looked_at
from hudimeta.snapshot.file_slice import FileSlice

__all__ = ["EXECUTOR", "choose_buckets"]

EXECUTOR = "SparkConsistentBucketClusteringExecutionStrategy"

Resized = tuple[Group, RingChange]


@dataclass(frozen=True)
class _Bucket:
    """A bucket that has rows: its place on the ring, and its slice."""

    place: int
    slice: FileSlice


def choose_buckets(
    slices: Sequence[FileSlice], ring_of: Callable[[str], HashRing], options: Options, hour: int, count: int
) -> list[Resized]:
    """The groups of a plan, each with what it does to its partition's ring.

    Args:
        slices: Those of partitions in which nothing else is planned.
        ring_of: The ring of a partition.
        options: Thresholds, bounds and partitions.
        hour: Of the day, for DAY_ROLLING.
        count: Buckets of a new partition.

    Raises:
        ConfigError: A file group that is no bucket of its ring, or bounds that exclude each other.
    """
    least = options.get(keys.BUCKETS_LEAST) or count
    most = options.get(keys.BUCKETS_MOST) or count
    if least > most:
        raise ConfigError(keys.BUCKETS_LEAST.key, least, f"at most {keys.BUCKETS_MOST.key}, {most}")
    by_partition: dict[str, list[FileSlice]] = {}
    for one in slices:
        by_partition.setdefault(one.partition_path, []).append(one)
    found: list[Resized] = []
    for partition in looked_at(sorted(by_partition), options, hour):
        ring = ring_of(partition)
        places = {f"{node.prefix}-0": place for place, node in enumerate(ring.nodes)}
        strange = [one.file_id for one in by_partition[partition] if one.file_id not in places]
        if strange:
            raise ConfigError(
                keys.BUCKET_ENGINE.key,
                "CONSISTENT_HASHING",
                f"the table's own engine: file group {strange[0]} in {partition!r} is no bucket of the hash ring",
            )
        buckets = sorted((_Bucket(places[one.file_id], one) for one in by_partition[partition]), key=lambda b: b.place)
        found += _of_partition(ring, buckets, options, most - len(ring.nodes), len(ring.nodes) - least)
    return found[: options.get(keys.CLUSTER_MOST_GROUPS)]


def _of_partition(ring: HashRing, buckets: Sequence[_Bucket], options: Options, more: int, fewer: int) -> Iterator[Resized]:
    whole = options.get(keys.MAX_FILE_SIZE)
    left: list[_Bucket] = []
    for bucket in buckets:
        large = bucket.slice.size > whole * options.get(keys.BUCKET_SPLIT)
        nodes = split_node(ring, bucket.place, (_new_id(), _new_id())) if large and more > 0 else ()
        if not nodes:
            left.append(bucket)
            continue
        more, fewer = more - 1, fewer + 1
        yield _resized(ring, [bucket], nodes)
    merged: set[int] = set()
    for run in _runs(ring, left, int(whole * options.get(keys.BUCKET_MERGE)), fewer):
        merged |= {bucket.place for bucket in run}
        yield _resized(ring, run, merge_nodes(ring, [bucket.place for bucket in run], _new_id()))
    if options.get(keys.CLUSTER_SORT):
        for bucket in left:
            if bucket.place not in merged:
                yield _resized(ring, [bucket], (RingNode(ring.nodes[bucket.place].value, _new_id(), REPLACE),))


def _runs(ring: HashRing, buckets: Sequence[_Bucket], limit: int, fewer: int) -> Iterator[list[_Bucket]]:
    """Small neighbours that become one bucket each, in their order; none is in two runs."""
    by_place = {bucket.place: bucket for bucket in buckets if bucket.slice.size <= limit}
    for first in sorted(by_place):
        if first not in by_place:
            continue
        run = [by_place.pop(first)]
        size = run[0].slice.size
        for backward in (True, False):
            while fewer > 0 and size <= limit:
                place = (run[0].place - 1 if backward else run[-1].place + 1) % len(ring.nodes)
                neighbour = by_place.pop(place, None)
                if neighbour is None:
                    break
                run.insert(0, neighbour) if backward else run.append(neighbour)
                size, fewer = size + neighbour.slice.size, fewer - 1
        if len(run) > 1:
            yield run


def _resized(ring: HashRing, buckets: Sequence[_Bucket], nodes: Sequence[RingNode]) -> Resized:
    change = RingChange(ring.partition, ring.sequence, tuple(nodes))
    return (tuple(bucket.slice for bucket in buckets), len(change.file_ids)), change


def _new_id() -> str:
    return str(machine().new_id())
