"""What advice is: which indexes and orders would have saved reads how many bytes, and at what cost."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from hudimeta.reports import Report

__all__ = ["Advice", "Measure", "Recommendation", "UnusedIndex"]


class Measure(enum.Enum):
    """What can be done for reads."""

    COLUMN_STATS = "column_stats"
    EXPRESSION_INDEX = "expression_index"
    RECORD_INDEX = "record_index"
    SECONDARY_INDEX = "secondary_index"
    CLUSTERING = "clustering"


@dataclass(frozen=True, repr=False)
class Recommendation(Report):
    """One thing to build, or a layout of the files.

    Attributes:
        measure: What it is.
        columns: That it is over, in the order of sorting for a clustering.
        expression: Of an expression index, as SQL.
        index: The metadata partition; "" for a clustering.
        layout: Of a clustering: `linear`, `zorder` or `hilbert`.
        first: What must be there before, and is built along: metadata partitions, or `column_stats(a, b)`.
        queries: Noted reads that it helps.
        bytes_before: What the noted reads had to read, as the table is now, with all that is recommended before this.
        bytes_saved: How much of it they would not have.
        build_reads, build_writes: Bytes that building it reads and writes, about.
        upkeep: Bytes that each commit writes for it, about. A clustering is not kept: so much a commit is out of order.
    """

    measure: Measure
    columns: tuple[str, ...]
    expression: str = ""
    index: str = ""
    layout: str = ""
    first: tuple[str, ...] = ()
    queries: int = 0
    bytes_before: int = 0
    bytes_saved: int = 0
    build_reads: int = 0
    build_writes: int = 0
    upkeep: int = 0

    @property
    def pays_after(self) -> int:
        """After so many such reads it has saved as many bytes as building it takes."""
        each = self.bytes_saved / self.queries if self.queries else 0.0
        return -(-(self.build_reads + self.build_writes) // max(1, int(each)))

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        if self.measure is Measure.CLUSTERING:
            return f"clustering by {', '.join(self.columns)} ({self.layout})"
        on = self.expression or ", ".join(self.columns)
        return f"{self.measure.value.replace('_', ' ')} of {on}"

    def __str__(self) -> str:
        share = self.bytes_saved / self.bytes_before if self.bytes_before else 0.0
        kept = "out of order a commit" if self.measure is Measure.CLUSTERING else "a commit"
        text = (
            f"{self.name}: saves {self.bytes_saved:,} of {self.bytes_before:,} bytes ({share:.0%}) in {self.queries:,} reads; "
            f"building reads {self.build_reads:,} and writes {self.build_writes:,} bytes, {self.upkeep:,} {kept}; "
            f"pays after {self.pays_after:,} such reads"
        )
        return text + (f"; builds {', '.join(self.first)} first" if self.first else "")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain |= {"measure": self.measure.value, "columns": list(self.columns), "first": list(self.first)}
        return {"name": self.name, **plain, "pays_after": self.pays_after}


@dataclass(frozen=True, slots=True)
class UnusedIndex:
    """An index that left nothing out of a noted read for a long time.

    Attributes:
        index: Metadata partition.
        days: Since when; of one that never did, since noting began.
        ever: It did once.
        note: What it may be good for all the same.
    """

    index: str
    days: int
    ever: bool
    note: str = ""

    def __str__(self) -> str:
        how = f"left nothing out for {self.days:,} days" if self.ever else f"left nothing out in {self.days:,} days of notes"
        return f"{self.index}: {how}" + (f"; {self.note}" if self.note else "")


@dataclass(frozen=True, repr=False)
class Advice(Report):
    """What would make the noted reads of a table cheaper.

    Attributes:
        table: Its location.
        since_ms: Since when reads are noted, in epoch milliseconds; 0 where none is.
        queries: How many are.
        bytes_read: What they would have to read now.
        recommended: What is worth building, the best first; each saves what it says on top of those before it.
        considered: What else was looked at, with what it would save by itself.
        unused: Indexes that may be dropped.
        notes: What could not be known.
        applied: What was built, with `apply`.
    """

    table: str
    since_ms: int = 0
    queries: int = 0
    bytes_read: int = 0
    recommended: tuple[Recommendation, ...] = ()
    considered: tuple[Recommendation, ...] = ()
    unused: tuple[UnusedIndex, ...] = ()
    notes: tuple[str, ...] = ()
    applied: tuple[str, ...] = field(default=())

    @property
    def bytes_saved(self) -> int:
        """What all recommendations save together."""
        return sum(one.bytes_saved for one in self.recommended)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        lists: Mapping[str, list[Any]] = {
            "recommended": [one.to_dict() for one in self.recommended],
            "considered": [one.to_dict() for one in self.considered],
            "unused": [{"index": u.index, "days": u.days, "ever": u.ever, "note": u.note} for u in self.unused],
            "notes": list(self.notes),
            "applied": list(self.applied),
        }
        figures = {"queries": self.queries, "bytes_read": self.bytes_read, "bytes_saved": self.bytes_saved}
        return {"table": self.table, "since": self._since, **figures, **lists}

    @property
    def _since(self) -> str | None:
        return datetime.fromtimestamp(self.since_ms / 1000, timezone.utc).isoformat() if self.since_ms else None

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("table", self.table)]
        since = f" since {self._since[:16]} UTC" if self._since else ""
        lines.append(("noted", f"{self.queries:,} reads with a predicate{since}, {self.bytes_read:,} bytes to read"))
        lines += [("build", str(one)) for one in self.recommended] or [("build", "nothing")]
        lines += [("considered", str(one)) for one in self.considered]
        lines += [("unused", str(one)) for one in self.unused]
        lines += [("note", note) for note in self.notes]
        return lines + [("built", done) for done in self.applied]

    def __str__(self) -> str:
        return "\n".join(f"{name:<11} {text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        from html import escape

        left = "style='text-align:left'"
        rows = (f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(text)}</td></tr>" for name, text in self._lines())
        return f"<table>{''.join(rows)}</table>"
