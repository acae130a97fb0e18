"""What a clustering does to a hash ring: buckets split in the middle of their stretch, or neighbours become one.

A plan says for each group of file slices which nodes of the ring change (`extraMetadata` of the group):

    clustering.group.partition     the partition
    clustering.group.child.node    JSON [{value, fileIdPrefix, tag}]: REPLACE a node, or add it; DELETE one
    clustering.group.sequence.no   seqNo of the ring that was planned with

The ring with these changes is written down at the clustering's instant, and counts once that is completed. The empty file
<instant>.commit beside it says so when the clustering is archived.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hudimeta.errors import CommitConflict, CorruptFileError
from hudimeta.formats.json_text import parse_json
from hudimeta.indexes.bucket.consistent_hashing import (
    COMMIT_SUFFIX,
    FOLDER,
    SUFFIX,
    HashRing,
    RingNode,
    encode_ring,
)
from hudimeta.indexes.bucket.hash_keys import HASH_MASK
from hudimeta.storage import Storage, join

__all__ = [
    "RingChange",
    "changed_ring",
    "decode_change",
    "encode_change",
    "mark_committed",
    "merge_nodes",
    "put_ring",
    "split_node",
]

REPLACE, DELETE = "REPLACE", "DELETE"
_PARTITION, _NODES, _SEQUENCE = (
    "clustering.group.partition",
    "clustering.group.child.node",
    "clustering.group.sequence.no",
)


@dataclass(frozen=True)
class RingChange:
    """How one group of a plan changes the ring of its partition.

    Attributes:
        partition: The partition.
        sequence: Of the ring that was planned with.
        nodes: Tagged REPLACE or DELETE.
    """

    partition: str
    sequence: int
    nodes: tuple[RingNode, ...]

    @property
    def file_ids(self) -> tuple[str, ...]:
        """Of the new buckets, in the order of the ring."""
        new = sorted((node for node in self.nodes if node.tag == REPLACE), key=lambda node: node.value)
        return tuple(f"{node.prefix}-0" for node in new)


def split_node(ring: HashRing, place: int, ids: Iterable[str]) -> tuple[RingNode, ...]:
    """Two nodes that take the place of one, which keeps its end; () where its stretch has no middle.

    Args:
        ring: The ring.
        place: Of the node.
        ids: Heads of new file ids.
    """
    before, end = ring.nodes[place - 1].value, ring.nodes[place].value
    middle = ((before + end + (0 if before < end else HASH_MASK + 1)) >> 1) & HASH_MASK
    if middle in (before, end):
        return ()
    first, second = ids
    return RingNode(middle, first, REPLACE), RingNode(end, second, REPLACE)


def merge_nodes(ring: HashRing, places: Sequence[int], new_id: str) -> tuple[RingNode, ...]:
    """Nodes by which neighbours become one bucket, which ends where the last of them does.

    Args:
        ring: The ring.
        places: Of neighbours, in their order on the ring.
        new_id: Head of the new file id.
    """
    gone = tuple(RingNode(ring.nodes[place].value, "", DELETE) for place in places[:-1])
    return (*gone, RingNode(ring.nodes[places[-1]].value, new_id, REPLACE))


def changed_ring(ring: HashRing, changes: Sequence[RingChange], instant: str) -> HashRing:
    """The ring after some changes.

    Raises:
        CommitConflict: They were planned with another ring.
    """
    nodes = {node.value: node for node in ring.nodes}
    for change in changes:
        if change.sequence != ring.sequence:
            what, did = f"the hash ring of partition {ring.partition!r}", "changed after the plan"
            hint = "Take the plan back with t.services.clustering.cancel(…), and plan again."
            raise CommitConflict("clustering", (), "another clustering", hint, what=what, did=did)
        for node in change.nodes:
            if node.tag == DELETE:
                nodes.pop(node.value, None)
            else:
                nodes[node.value] = RingNode(node.value, node.prefix)
    return replace(ring, instant=instant, sequence=ring.sequence + 1, nodes=tuple(nodes[value] for value in sorted(nodes)))


def encode_change(change: RingChange) -> dict[str, str]:
    """As the `extraMetadata` of a group."""
    nodes = [{"value": n.value, "fileIdPrefix": n.prefix or None, "tag": n.tag} for n in change.nodes]
    return {_PARTITION: change.partition, _NODES: json.dumps(nodes), _SEQUENCE: str(change.sequence)}


def decode_change(extra: Mapping[str, str], place: str = "") -> RingChange | None:
    """The inverse; None for a group that says nothing of buckets.

    Args:
        extra: `extraMetadata` of a group.
        place: Of the plan, for the error.

    Raises:
        CorruptFileError: It is not what it should be.
    """
    if _NODES not in extra:
        return None
    try:
        found = parse_json(extra[_NODES].encode())
        nodes = tuple(RingNode(int(n["value"]), str(n.get("fileIdPrefix") or ""), str(n["tag"])) for n in found)
        change = RingChange(extra[_PARTITION], int(extra[_SEQUENCE]), nodes)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(place, 0, "the nodes of a hash ring in a clustering plan", repr(error)) from error
    if any(node.tag not in (REPLACE, DELETE) or (node.tag == REPLACE and not node.prefix) for node in nodes):
        raise CorruptFileError(place, 0, "nodes tagged REPLACE, with a file id, or DELETE", extra[_NODES][:200])
    return change


def put_ring(storage: Storage, ring: HashRing) -> None:
    """Write a ring down at its instant; of a run that died the same file may be there."""
    storage.put(join(FOLDER, ring.partition, f"{ring.instant}{SUFFIX}"), encode_ring(ring))


def mark_committed(storage: Storage, partition: str, instant: str) -> None:
    """Say that the ring of an instant counts, for the time after which the timeline does not tell any more."""
    storage.put(join(FOLDER, partition, f"{instant}{COMMIT_SUFFIX}"), b"")
