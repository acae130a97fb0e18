"""What reads of a table have filtered by, as a value: counted by shape, with some predicates of each shape as they were.

The shape of a predicate is what it compares and how, without constants: `rider = 'ada'` and `rider = 'eve'` are two reads of
one shape. Notes of several processes merge in any order to the same counts. They are few whatever is read: the shapes that were
seen last, and of each the newest predicates.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudimeta.predicate import Bound, Expr

__all__ = ["Filter", "FilterShape", "NotedShape", "QueryNotes", "PredicateSample", "filters_of", "sample_of"]

MOST_SHAPES = 64
MOST_SAMPLES = 8
_LONGEST_SAMPLE = 4_096
"""Characters of a predicate; longer ones are counted, and not kept."""
_MOST_CONSTANTS = 256
_VERSION = 1


class FilterShape(enum.Enum):
    """How a part of a predicate compares."""

    EQUALITY = "equality"
    RANGE = "range"
    EXPRESSION = "expression"
    OTHER = "other"


@dataclass(frozen=True, slots=True, order=True)
class Filter:
    """One part of a predicate.

    Attributes:
        on: The column or expression that is compared; several columns with commas where it is neither.
        shape: One of `FilterShape`, as text.
    """

    on: str
    shape: str

    def __str__(self) -> str:
        return f"{self.shape} of {self.on}"


@dataclass(frozen=True, slots=True)
class PredicateSample:
    """A predicate as SQL, and the zone of its texts."""

    predicate: str
    timezone: str = "UTC"


@dataclass(frozen=True)
class NotedShape:
    """Reads of one shape.

    Attributes:
        filters: The parts of their predicates.
        queries: How many reads.
        bytes_seen: Of the files of the partitions that they looked up, summed over them.
        bytes_kept: Of the files that they had to read, likewise.
        first_ms, last_ms: When, in epoch milliseconds.
        samples: Some of their predicates, the newest last.
    """

    filters: tuple[Filter, ...]
    queries: int = 0
    bytes_seen: int = 0
    bytes_kept: int = 0
    first_ms: int = 0
    last_ms: int = 0
    samples: tuple[PredicateSample, ...] = ()

    def __str__(self) -> str:
        return " and ".join(map(str, self.filters))

    def merged(self, other: NotedShape) -> NotedShape:
        """Both together; of samples those of the later one go first."""
        older, newer = sorted((self, other), key=lambda one: one.last_ms)
        samples = dict.fromkeys((*reversed(newer.samples), *reversed(older.samples)))
        return NotedShape(
            self.filters,
            self.queries + other.queries,
            self.bytes_seen + other.bytes_seen,
            self.bytes_kept + other.bytes_kept,
            min(self.first_ms, other.first_ms),
            newer.last_ms,
            tuple(reversed(list(samples)[:MOST_SAMPLES])),
        )


@dataclass(frozen=True)
class QueryNotes:
    """What is noted of the reads of a table.

    Attributes:
        since_ms: Since when, in epoch milliseconds; 0 where nothing is.
        shapes: By their filters.
        used_ms: By the knowledge that left out anything, such as the name of an index, when it last did.
    """

    since_ms: int = 0
    shapes: Mapping[tuple[Filter, ...], NotedShape] = field(default_factory=dict)
    used_ms: Mapping[str, int] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """How many reads are noted."""
        return sum(shape.queries for shape in self.shapes.values())

    @classmethod
    def of(cls, shape: NotedShape, used: Iterable[str] = ()) -> QueryNotes:
        """Of one read."""
        return cls(shape.first_ms, {shape.filters: shape}, dict.fromkeys(used, shape.last_ms))

    def merged(self, other: QueryNotes) -> QueryNotes:
        """Both together, without the shapes that were seen longest ago where there are too many."""
        shapes = dict(self.shapes)
        for filters, shape in other.shapes.items():
            known = shapes.get(filters)
            shapes[filters] = shape if known is None else known.merged(shape)
        if len(shapes) > MOST_SHAPES:
            newest = sorted(shapes.values(), key=lambda shape: (shape.last_ms, shape.filters))[-MOST_SHAPES:]
            shapes = {shape.filters: shape for shape in newest}
        used = {
            name: max(self.used_ms.get(name, 0), other.used_ms.get(name, 0)) for name in sorted({*self.used_ms, *other.used_ms})
        }
        begun = [notes.since_ms for notes in (self, other) if notes.since_ms]
        return replace(self, since_ms=min(begun, default=0), shapes=shapes, used_ms=used)

    def encode(self) -> bytes:
        """As JSON."""
        shapes = [
            {
                "filters": [[one.on, one.shape] for one in shape.filters],
                "queries": shape.queries,
                "bytesSeen": shape.bytes_seen,
                "bytesKept": shape.bytes_kept,
                "first": shape.first_ms,
                "last": shape.last_ms,
                "samples": [[one.predicate, one.timezone] for one in shape.samples],
            }
            for shape in self.shapes.values()
        ]
        plain = {"version": _VERSION, "since": self.since_ms, "shapes": shapes, "used": dict(self.used_ms)}
        return json.dumps(plain, indent=1).encode()

    @classmethod
    def decode(cls, content: bytes) -> QueryNotes | None:
        """What `encode` made; None for anything else, which is then begun anew."""
        try:
            plain = json.loads(content)
            if plain["version"] != _VERSION:
                return None
            shapes = [
                NotedShape(
                    tuple(Filter(str(on), str(shape)) for on, shape in one["filters"]),
                    int(one["queries"]),
                    int(one["bytesSeen"]),
                    int(one["bytesKept"]),
                    int(one["first"]),
                    int(one["last"]),
                    tuple(PredicateSample(str(predicate), str(zone)) for predicate, zone in one["samples"]),
                )
                for one in plain["shapes"]
            ]
            used = {str(name): int(at) for name, at in plain["used"].items()}
            return cls(int(plain["since"]), {shape.filters: shape for shape in shapes}, used)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


def filters_of(bound: Bound) -> tuple[Filter, ...]:
    """The parts of a predicate without their constants, sorted, each once."""
    return tuple(sorted({_filter(part) for part in bound.conjuncts}))


def _filter(part: Expr) -> Filter:
    from hudimeta.predicate import to_sql
    from hudimeta.predicate.tree import Column, Compare, CompareOp, InSet, Literal, walk

    child, shape = part, FilterShape.OTHER
    if isinstance(part, InSet):
        child, shape = part.child, FilterShape.EQUALITY
    elif isinstance(part, Compare) and isinstance(part.right, Literal):
        same = part.op in (CompareOp.EQ, CompareOp.NULL_SAFE_EQ)
        ranged = part.op in (CompareOp.LT, CompareOp.LE, CompareOp.GT, CompareOp.GE)
        child = part.left
        shape = FilterShape.EQUALITY if same else FilterShape.RANGE if ranged else FilterShape.OTHER
    if isinstance(child, Column):
        return Filter(child.name, shape.value)
    if shape is not FilterShape.OTHER:
        return Filter(to_sql(child), FilterShape.EXPRESSION.value)
    names = dict.fromkeys(node.name for node in walk(part) if isinstance(node, Column))
    return Filter(", ".join(names), FilterShape.OTHER.value)


def sample_of(bound: Bound) -> tuple[PredicateSample, ...]:
    """The predicate as it is, if it is short."""
    from hudimeta.predicate.tree import InSet, walk

    if any(isinstance(node, InSet) and len(node.values) > _MOST_CONSTANTS for node in walk(bound.expr)):
        return ()
    text = str(bound)
    return (PredicateSample(text, bound.timezone),) if len(text) <= _LONGEST_SAMPLE else ()
