"""Consistent hashing: the buckets of a partition are stretches of a ring of hashes, written down in the table.

    .hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta
        JSON {version, partitionPath, instant, numBuckets, seqNo, nodes [{value, fileIdPrefix, tag}]}

A node stands for the hashes above the node before it up to its own `value`; hashes above the last one belong to the first. The
node's file group is `<fileIdPrefix>-0`. The first file of a partition has the instant 00000000000000; a clustering that splits
or merges buckets writes another, which counts once that clustering is completed.

Whoever deletes or overwrites a partition takes out the file groups that its ring names, and nobody sees what is written to
these any more. So buckets get new file groups then: in a ring at the instant of that write or, where it wrote none (Apache Hudi
does not), in one that the next write puts there. Ids follow from those of before: whoever makes such a ring makes the same.

What takes a write back removes its rings. Apache Hudi leaves them, marked as committed: the next write here removes them.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.errors import AlreadyExists, ConfigError, CorruptFileError, UnsupportedFeature
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.seal import sealed_json, verify_json
from hudimeta.indexes.bucket.hash_keys import HASH_MASK, ring_hashes
from hudimeta.indexes.bucket.taken_out import taken_out
from hudimeta.storage import Storage, join
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.table.key_file import KeyFile
from hudimeta.timeline import Timeline

__all__ = ["HashRing", "HashRings", "RingNode", "decode_ring", "encode_ring", "first_ring", "forget_rings", "renewed_ring"]

FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
SUFFIX = ".hashing_meta"
COMMIT_SUFFIX = ".commit"
INIT_INSTANT = "00000000000000"
MOST_NODES = 1 << 20
_NORMAL = "NORMAL"


@dataclass(frozen=True, slots=True)
class RingNode:
    """One bucket: the last hash that belongs to it, and the head of its file id."""

    value: int
    prefix: str
    tag: str = _NORMAL


@dataclass(frozen=True)
class HashRing:
    """The buckets of one partition, nodes ascending by value."""

    partition: str
    instant: str
    sequence: int
    nodes: tuple[RingNode, ...]

    def numbers(self, hashes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Position of the node of each hash."""
        ends = np.array([node.value for node in self.nodes], dtype=np.int64)
        return np.searchsorted(ends, hashes, side="left") % len(ends)


def decode_ring(data: bytes, path: str = "") -> HashRing:
    """Read a `hashing_meta` file.

    Raises:
        CorruptFileError: Not the JSON that it should be.
        UnsupportedFeature: Buckets that are just being split or merged.
    """
    verify_json(data, path)
    try:
        found = parse_json(data)
        nodes = [RingNode(int(n["value"]), str(n["fileIdPrefix"]), str(n.get("tag") or _NORMAL)) for n in found["nodes"]]
        ring = HashRing(
            found["partitionPath"], found["instant"], int(found["seqNo"]), tuple(sorted(nodes, key=lambda n: n.value))
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(path, 0, "JSON with the nodes of a hash ring", repr(error)) from error
    if not 0 < len(nodes) <= MOST_NODES or len({n.value for n in nodes}) < len(nodes):
        raise CorruptFileError(path, 0, f"1 to {MOST_NODES} nodes of different values", len(nodes))
    if any(node.tag != _NORMAL for node in nodes):
        raise UnsupportedFeature("writing while buckets are being split or merged", "Finish the clustering with Apache Hudi.")
    return ring


def encode_ring(ring: HashRing) -> bytes:
    """The inverse of `decode_ring`, sealed."""
    nodes = [{"value": n.value, "fileIdPrefix": n.prefix, "tag": n.tag} for n in ring.nodes]
    head = {"version": 0, "partitionPath": ring.partition, "instant": ring.instant}
    text = json.dumps({**head, "numBuckets": len(nodes), "seqNo": ring.sequence, "nodes": nodes}, indent=2)
    return sealed_json(text.encode(), f"{ring.instant}{SUFFIX}")


def first_ring(partition: str, count: int) -> HashRing:
    """The ring that a partition begins with: equal stretches, ids made of the partition's name and their borders.

    So Hudi makes them too, and two writers that begin a partition at once make the same.
    """
    step = (HASH_MASK + count - 1) // count
    ends = [min(step * (i + 1), HASH_MASK) for i in range(count)]
    starts = [0, *ends[:-1]]
    nodes = [RingNode(end, _named(partition, start, end)) for start, end in zip(starts, ends, strict=True)]
    return HashRing(partition, INIT_INSTANT, 0, tuple(nodes))


def renewed_ring(ring: HashRing, gone: Collection[str], instant: str) -> HashRing:
    """The ring with new file groups for some buckets.

    Args:
        ring: The ring.
        gone: File groups that were taken out.
        instant: What took them out.
    """
    sequence = ring.sequence + 1
    nodes = [
        replace(n, prefix=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{n.prefix} {sequence}"))) if f"{n.prefix}-0" in gone else n
        for n in ring.nodes
    ]
    return replace(ring, instant=instant, sequence=sequence, nodes=tuple(nodes))


def _named(partition: str, start: int, end: int) -> str:
    """Java's `UUID.nameUUIDFromBytes`: the MD5 of the bytes with the marks of version 3."""
    name = start.to_bytes(8, "big") + end.to_bytes(8, "big") + partition.encode()
    return str(uuid.UUID(bytes=hashlib.md5(name, usedforsecurity=False).digest(), version=3))


def forget_rings(storage: Storage, instants: Iterable[str]) -> None:
    """Remove the rings that instants wrote down which are taken back, in whatever partition."""
    names = {f"{instant}{suffix}" for instant in instants for suffix in (SUFFIX, COMMIT_SUFFIX)}
    folders = [FOLDER] if names else []
    while folders:
        folder = folders.pop()
        for entry in storage.list(folder):
            path = join(folder, entry.name)
            if entry.is_folder:
                folders.append(path)
            elif entry.name in names:
                storage.delete(path)


class HashRings:
    """The rings of a table's partitions: `Buckets` for consistent hashing.

    Args:
        storage: Rooted at the table.
        timeline: Of the table.
        count: Buckets of a new partition.
        fields: Hashed key fields.
    """

    title = "bucket index, consistent hashing"
    logs_first = True

    def __init__(self, storage: Storage, timeline: Timeline, count: int, fields: Sequence[str]) -> None:
        self._storage, self._timeline, self._count, self._fields = storage, timeline, count, tuple(fields)
        self._rings: dict[str, HashRing] = {}

    def numbers(self, partition: str, keys: pa.StringArray) -> np.ndarray[Any, Any]:
        """See `Buckets`."""
        return self.ring(partition).numbers(ring_hashes(keys, self._fields))

    def place(self, partition: str, files: Sequence[KeyFile]) -> Mapping[int, KeyFile]:
        """See `Buckets`."""
        numbers = {f"{node.prefix}-0": number for number, node in enumerate(self.ring(partition).nodes)}
        for file in files:
            if file.file_id not in numbers:
                raise ConfigError(
                    "hoodie.index.type",
                    "BUCKET",
                    f"the table's own index: file group {file.file_id} in {partition!r} is no bucket of the hash ring",
                    "If Apache Hudi overwrote the partition, which names its new file groups nowhere, overwrite it once more "
                    "with its rows (insert_overwrite). Else leave out hoodie.index.bucket.engine.",
                )
        return {numbers[file.file_id]: file for file in files}

    def new_file_id(self, partition: str, number: int, *, again: bool = False) -> str:
        """See `Buckets`: an overwrite begins the buckets of the ring that it writes down."""
        ring = self.overwritten(partition) if again else self.ring(partition)
        return f"{ring.nodes[number].prefix}-0"

    def overwritten(self, partition: str, instant: str = "") -> HashRing:
        """The ring of a partition after an overwrite: every bucket has a new file group.

        Args:
            partition: Its path.
            instant: Of the overwrite.
        """
        ring = self.ring(partition)
        return renewed_ring(ring, [f"{node.prefix}-0" for node in ring.nodes], instant)

    def ring(self, partition: str) -> HashRing:
        """The ring of a partition; written down first where there is none yet."""
        if partition not in self._rings:
            self._rings[partition] = self._seen(self._load(partition) or self._begin(partition))
        return self._rings[partition]

    def _load(self, partition: str) -> HashRing | None:
        names = [entry.name for entry in self._storage.list(join(FOLDER, partition)) if not entry.is_folder]
        rings = sorted(name for name in names if name.endswith(SUFFIX))
        marked = {name.partition(".")[0] for name in names if name.endswith(COMMIT_SUFFIX)} | {INIT_INSTANT}
        # A ring that came since this timeline was listed names file groups that came since then, too.
        committed = {time for time in marked if time == INIT_INSTANT or self._timeline.is_committed(time)}
        committed -= self._taken_back(marked)
        committed |= {instant.time for instant in self._timeline.writes}
        counting = [name for name in rings if name.partition(".")[0] in committed]
        if not counting:
            return None
        newest = counting[-1].partition(".")[0]
        if newest not in marked:  # the timeline tells it only until the clustering is archived
            self._storage.put(join(FOLDER, partition, f"{newest}{COMMIT_SUFFIX}"), b"")
        path = join(FOLDER, partition, counting[-1])
        ring = self._written(path, first_ring(partition, self._count) if newest == INIT_INSTANT else None)
        if ring.partition != partition:
            raise CorruptFileError(path, 0, f"the hash ring of partition {partition!r}", f"that of {ring.partition!r}")
        return ring

    def _taken_back(self, marked: set[str]) -> set[str]:
        """Those that are no writes any more; their rings are removed, which a rollback or restore of Apache Hudi leaves."""
        gone = {time for time in marked if time != INIT_INSTANT and self._timeline.get(time) is None}
        gone = gone & self._timeline.rolled_back if gone else gone
        if gone:  # in all partitions, while the timeline tells it
            forget_rings(self._storage, self._timeline.rolled_back - {instant.time for instant in self._timeline})
        return gone

    def _begin(self, partition: str) -> HashRing:
        return self._put_first(first_ring(partition, self._count))

    def _seen(self, ring: HashRing) -> HashRing:
        """The ring, renewed where file groups that it names were taken out: what is written to these nobody sees."""
        ids = [f"{node.prefix}-0" for node in ring.nodes]
        named = {one: self._gone[ring.partition, one] for one in ids if (ring.partition, one) in self._gone}
        return self._put_first(renewed_ring(ring, named, max(named.values()))) if named else ring

    @cached_property
    def _gone(self) -> Mapping[tuple[str, str], str]:
        return taken_out(self._timeline)

    def _put_first(self, ring: HashRing) -> HashRing:
        """Write a ring down; if another writer was first, its ring counts."""
        path = join(FOLDER, ring.partition, f"{ring.instant}{SUFFIX}")
        try:
            self._storage.put_if_absent(path, encode_ring(ring))
        except AlreadyExists:
            return self._written(path, ring)
        return ring

    def _written(self, path: str, known: HashRing | None) -> HashRing:
        """The ring in a file. Where Apache Hudi was killed before it wrote it, what all would write is put there.

        Args:
            path: Of the file.
            known: What that is, if the number of buckets is right; None where only the file tells.
        """
        data = self._storage.read(path)
        if data or known is None or not self._has(known):
            return decode_ring(data, path)
        self._storage.put(path, encode_ring(known))
        return known

    def _has(self, ring: HashRing) -> bool:
        """Whether all file groups on storage are buckets of a ring of their partition."""
        names = [entry.name for entry in self._storage.list(ring.partition) if not entry.is_folder]
        found = {file.file_id for name in names if (file := parse_base_file(name) or parse_log_file(name)) is not None}
        return found <= {f"{node.prefix}-0" for node in ring.nodes}
