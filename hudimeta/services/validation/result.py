"""What validation found: one result a check, and the whole, which prints well."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudimeta.errors import ValidationFailed
from hudimeta.metadata.completeness import knows_whole_table
from hudimeta.reports import Report

__all__ = ["CheckResult", "Difference", "Outcome", "ValidationReport"]

SHOWN = 5
"""Examples that are kept of each difference."""


class Outcome(enum.Enum):
    """What can be said about something that was checked."""

    HOLDS = "holds"
    DIFFERS = "differs"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Difference:
    """One way in which an index contradicts the table.

    Attributes:
        what: In words.
        count: How often.
        examples: The first few.
    """

    what: str
    count: int
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, what: str, wrong: Iterable[object], count: int | None = None) -> list[Difference]:
        """One difference for a list of wrong things, none for an empty list."""
        found = [str(one) for one in wrong]
        total = len(found) if count is None else count
        return [cls(what, total, tuple(found[:SHOWN]))] if total else []

    def __str__(self) -> str:
        more = f" and {self.count - len(self.examples):,} more" if self.count > len(self.examples) else ""
        return f"{self.what}: {self.count:,}" + (f" ({'; '.join(self.examples)}{more})" if self.examples else "")


@dataclass(frozen=True)
class CheckResult:
    """What one check found.

    Attributes:
        name: Metadata partition, or what else was checked.
        compared: How many things were compared.
        unit: What they are.
        differences: What contradicts the table.
        notes: What is no contradiction but worth knowing, such as files without statistics.
        unknown: Why the check could not be made, or not in full; "" when it was.
        seconds: What it took.
    """

    name: str
    compared: int = 0
    unit: str = "files"
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: str = ""
    seconds: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """A difference is one whatever else is unknown."""
        if self.differences:
            return Outcome.DIFFERS
        return Outcome.CANNOT_TELL if self.unknown else Outcome.HOLDS

    def lines(self) -> list[str]:
        """For people: one line, and one for each thing to say."""
        head = f"  {self.outcome.value:<12} {self.name}: {self.compared:,} {self.unit} compared, {self.seconds:.2f} s"
        rest = [*map(str, self.differences), *self.notes, *([self.unknown] if self.unknown else [])]
        return [head, *(f"{'':15}{line}" for line in rest)]


@dataclass(frozen=True, repr=False)
class ValidationReport(Report):
    """What validation of a metadata table found.

    Attributes:
        table: Where it is.
        instant: Newest write that was looked at, None without any.
        checks: One result for each thing that was compared.
        moved: Instants that began or ended while the validation ran: differences may be theirs.
        recorded: Indexes that the timeline now calls proven.
    """

    table: str
    instant: str | None
    checks: tuple[CheckResult, ...]
    moved: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """HOLDS when every check held. DIFFERS when one differs and the table stood still. CANNOT_TELL otherwise."""
        outcomes = {check.outcome for check in self.checks}
        if Outcome.DIFFERS in outcomes:
            return Outcome.CANNOT_TELL if self.moved else Outcome.DIFFERS
        return Outcome.CANNOT_TELL if Outcome.CANNOT_TELL in outcomes else Outcome.HOLDS

    @property
    def holds(self) -> bool:
        """True when everything that could be wrong was looked at and nothing was."""
        return self.outcome is Outcome.HOLDS

    @property
    def differences(self) -> dict[str, Sequence[Difference]]:
        """What differs, by check."""
        return {check.name: check.differences for check in self.checks if check.differences}

    def check(self, name: str) -> CheckResult:
        """The result of one check; KeyError for one that was not made."""
        for found in self.checks:
            if found.name == name:
                return found
        raise KeyError(name)

    @property
    def proven(self) -> tuple[str, ...]:
        """Indexes of the whole table that were found complete: what a commit may call proven."""
        keyed = [c for c in self.checks if knows_whole_table(c.name)]
        return () if self.moved else tuple(c.name for c in keyed if c.outcome is Outcome.HOLDS)

    def raise_if_differs(self) -> None:
        """Raise unless the outcome is HOLDS or CANNOT_TELL.

        Raises:
            ValidationFailed: With this report.
        """
        if self.outcome is Outcome.DIFFERS:
            raise ValidationFailed(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "table": self.table,
            "instant": self.instant,
            "outcome": self.outcome.value,
            "moved": list(self.moved),
            "recorded": list(self.recorded),
            "checks": [
                {
                    "name": check.name,
                    "outcome": check.outcome.value,
                    "compared": check.compared,
                    "unit": check.unit,
                    "differences": [
                        {"what": d.what, "count": d.count, "examples": list(d.examples)} for d in check.differences
                    ],
                    "notes": list(check.notes),
                    "unknown": check.unknown,
                    "seconds": round(check.seconds, 6),
                }
                for check in self.checks
            ],
        }

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        lines = [f"metadata of {self.table} at {self.instant or 'no instant'}: {self.outcome.value}"]
        for check in self.checks:
            lines += check.lines()
        if self.moved:
            lines.append(f"  the table moved meanwhile ({', '.join(self.moved[:SHOWN])}): validate again when it is quiet")
        if self.recorded:
            lines.append(f"  recorded as proven: {', '.join(self.recorded)}")
        return "\n".join(lines)


@dataclass
class Findings:
    """Collects what a check has to say."""

    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    compared: int = 0

    def wrong(self, what: str, found: Iterable[object], count: int | None = None) -> None:
        """Add a difference if there is anything wrong."""
        self.differences += Difference.of(what, found, count)

    def result(self, name: str, unit: str = "files") -> CheckResult:
        """As a result, without the time."""
        notes, unknown = tuple(dict.fromkeys(self.notes)), "; ".join(dict.fromkeys(self.unknown))
        return CheckResult(name, self.compared, unit, tuple(self.differences), notes, unknown)
