"""What a benchmark is: a case with sides and goals, and what measuring a side yields."""

from __future__ import annotations

import importlib
import pkgutil
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.job import Job

OURS, RUST, SPARK = "hudimeta", "hudi-rs", "Spark"
PLAIN, ATTACHED, ROUTED = "plain door", "attached", "routed"
"""We again, through Spark: its Python data source alone, a session after `pyspark_hudimeta.attach`, writes by its executors."""

FLOOR = "ready batches"
"""A Python data source that decodes nothing: no plain door can read faster than Spark takes rows from one."""

HANDED_OVER = "rows to Python"
"""Tasks of Spark's that take in the same rows and drop them: no routed write can be faster than the rows come."""

ROUTED_ONE = "routed, 1 core"
"""The same with one executor thread instead of two, to show what the second brings."""

APACHE_10, APACHE_12 = "Hudi 1.0.2", "Hudi 1.2.0"
APACHE = (APACHE_10, APACHE_12)
"""Of Apache Hudi, the last version that writes table version 8 by itself, and the newest; `make bench` fetches the jars."""

OWN_TABLES = tuple(f"{version} own" for version in APACHE)
"""The same, each reading a table of the same rows that it wrote itself, as its users do, where the others read ours."""

GZIP = f"{APACHE_12} gzip"
"""The same with its own default codec, where the other sides are told to take ours."""

KEPT, KEPT_START = "kept plans", "kept plans, new process"
"""We again, with `hudimeta.plan.cache`."""

MINE = frozenset({OURS, KEPT, KEPT_START, PLAIN, ATTACHED, ROUTED, ROUTED_ONE})
NEEDS_JVM = frozenset({*APACHE, *OWN_TABLES, GZIP, SPARK, FLOOR, HANDED_OVER, ROUTED, ROUTED_ONE})
"""Rivals that a smoke run leaves out."""


@dataclass(frozen=True)
class Settings:
    """What one run was asked for.

    Attributes:
        scale: 1.0 is the size that the goals speak of.
        data: Folder for generated tables, kept between runs.
        rounds: Calls of each side; the first is cold, the others warm. 0 leaves it to the case.
    """

    scale: float
    data: Path
    rounds: int = 0

    def scaled(self, number: int, least: int = 1) -> int:
        """A count at this run's scale."""
        return max(least, round(number * self.scale))


@dataclass(frozen=True)
class Call:
    """What one call took, children included.

    Attributes:
        wall, cpu: Seconds.
        read: Bytes that were read from files, None where nobody counts them.
        written: Bytes of files that were written.
        unmapped: Files that other calls map into memory were read, so that their bytes count; its time is not like theirs.
    """

    wall: float
    cpu: float
    read: float | None = None
    written: float | None = None
    unmapped: bool = False


@dataclass
class Measured:
    """One side of one case.

    Attributes:
        calls: What each call took, the cold one first.
        rss: Peak resident bytes of the side's largest process.
        facts: What the side answered; equal names must have equal values on all sides.
        notes: Numbers for the reader, not compared.
        error: Why there is nothing; "absent: …" when it is not installed.
    """

    calls: list[Call] = field(default_factory=list)
    rss: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def cold(self) -> Call:
        """The first call."""
        return self.calls[0]

    @property
    def warm(self) -> Call:
        """Medians of the later calls; the only call where there is one."""
        later = self.calls[1:] or self.calls
        alike = [call for call in later if not call.unmapped] or later
        return Call(
            wall=statistics.median(call.wall for call in alike),
            cpu=statistics.median(call.cpu for call in alike),
            read=_median_known(call.read for call in later),
            written=_median_known(call.written for call in later),
        )

    def value(self, metric: str) -> float:
        """`cold.wall`, `cold.cpu`, `warm.wall`, `warm.cpu` in seconds, or `rss` in bytes."""
        if metric == "rss":
            return float(self.rss)
        when, what = metric.split(".")
        return float(getattr(getattr(self, when), what))

    def to_json(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Measured:
        """The inverse of `to_json`."""
        return cls(**{**values, "calls": [Call(**call) for call in values["calls"]]})


def _median_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


@dataclass(frozen=True)
class Goal:
    """Something to reach; `met` says yes, no, or None where a side is missing.

    Attributes:
        binding: It depends on no machine and no load, so that missing it fails the run.
        ratio: What is to be reached, where that is a ratio; None where a side is missing.
    """

    text: str
    met: Callable[[Mapping[str, Measured]], bool | None]
    only_at_full_scale: bool = False
    binding: bool = False
    ratio: Callable[[Mapping[str, Measured]], float | None] = lambda sides: None


def at_most(metric: str, limit: float, text: str, side: str = OURS) -> Goal:
    """The `metric` of a side of ours is at most `limit`; says nothing at other scales, nor where the side was left out."""

    def met(sides: Mapping[str, Measured]) -> bool | None:
        return None if side not in sides or sides[side].error else sides[side].value(metric) <= limit

    return Goal(text, met, only_at_full_scale=True)


def times_faster(
    rival: str, factor: float, metric: str = "warm.cpu", side: str = OURS, only_at_full_scale: bool = False
) -> Goal:
    """The rival's `metric` is at least `factor` times that of a side of ours."""

    def values(sides: Mapping[str, Measured]) -> tuple[float, float] | None:
        mine, other = sides.get(side), sides.get(rival)
        if mine is None or other is None or mine.error or other.error:
            return None
        return other.value(metric), mine.value(metric)

    def met(sides: Mapping[str, Measured]) -> bool | None:
        found = values(sides)
        return None if found is None else found[0] >= factor * found[1]

    def ratio(sides: Mapping[str, Measured]) -> float | None:
        found = values(sides)
        return found[0] / found[1] if found is not None and found[1] > 0 else None

    who = "" if side == OURS else f"{side} "
    return Goal(f"{who}>= {factor:g}x {rival} ({metric})", met, only_at_full_scale, ratio=ratio)


def faster_than_apache(
    factor: float, metric: str = "warm.cpu", side: str = OURS, rivals: tuple[str, ...] = APACHE
) -> tuple[Goal, ...]:
    """The same against each version of Apache Hudi; `rivals` may say on which files."""
    return tuple(times_faster(version, factor, metric, side) for version in rivals)


def counted(note: str, limit: float, text: str = "") -> Goal:
    """One of our notes, a count that every machine gives alike, is at most `limit`, at any scale."""

    def met(sides: Mapping[str, Measured]) -> bool | None:
        return None if sides[OURS].error else float(sides[OURS].notes[note]) <= limit

    return Goal(text or f"{note} <= {limit:g}", met, binding=True)


def rate_at_least(note: str, minimum: float, text: str) -> Goal:
    """One of our notes is at least `minimum`; says nothing at other scales, where fixed costs count."""

    def met(sides: Mapping[str, Measured]) -> bool | None:
        return None if sides[OURS].error else float(sides[OURS].notes[note]) >= minimum

    return Goal(text, met, only_at_full_scale=True)


@dataclass(frozen=True)
class Case:
    """One row of the table of ratios.

    Attributes:
        name: `P3-286k`; a run selects cases by the beginning of their names.
        title: What is measured.
        sides: What runs, by name, ours first. Each gets a `Job`.
        goals: To reach.
        rounds: Calls of each side.
        prepare: Makes the data, before any side, outside all measuring.
        not_in_smoke: Sides that a smoke run leaves out, beside the rivals that need Java.
        patience_s: A side that takes longer is ended.
    """

    name: str
    title: str
    sides: Mapping[str, Callable[[Job], None]]
    goals: tuple[Goal, ...] = ()
    rounds: int = 6
    prepare: Callable[[Settings], object] | None = None
    not_in_smoke: tuple[str, ...] = ()
    patience_s: int = 1800

    @property
    def claim(self) -> str:
        """`P3` of `P3-286k`."""
        return self.name.partition("-")[0]


Side = Callable[["Job"], None]


def versions_of_apache(run: Side, names: tuple[str, ...] = APACHE) -> dict[str, Side]:
    """One side for each version of Apache Hudi; `rivals.apache_hudi` takes the version from the name of the side."""
    return dict.fromkeys(names, run)


def apache_of(side: str) -> str:
    """Which of `APACHE` a side runs; the first for sides that only need its Spark."""
    return next((version for version in APACHE if side.startswith(version)), APACHE_10)


def all_cases() -> list[Case]:
    """The cases of every claim module, in order."""
    import benchmarks

    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[:1] == "p" and m.name[1:3].isdigit())
    return [case for name in names for case in importlib.import_module(f"benchmarks.{name}").CASES]


def select(cases: Iterable[Case], wanted: Iterable[str]) -> list[Case]:
    """Cases whose name is one of `wanted`, or begins with one and a dash; all where `wanted` is empty. Raises LookupError."""
    chosen, found = list(wanted), list(cases)
    if not chosen:
        return found
    for name in chosen:
        if not any(_matches(case, name) for case in found):
            raise LookupError(f"no benchmark named {name}; there are {', '.join(case.name for case in found)}")
    return [case for case in found if any(_matches(case, name) for name in chosen)]


def in_turn(cases: Iterable[Case], parts: int, turn: int) -> list[Case]:
    """The cases of every so many claims: each turn takes others, and cases of one claim, which share data, stay together.

    Args:
        cases: All of them.
        parts: Turns until each claim was taken.
        turn: The number of this one.
    """
    found = list(cases)
    claims = list(dict.fromkeys(case.claim for case in found))
    taken = set(claims[turn % parts :: parts])
    return [case for case in found if case.claim in taken]


def _matches(case: Case, name: str) -> bool:
    return case.name.lower() == name.lower() or case.name.lower().startswith(name.lower() + "-")
