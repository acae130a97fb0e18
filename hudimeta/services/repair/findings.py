"""What a repair found, and whether it was put right."""

from __future__ import annotations

from dataclasses import dataclass

from hudimeta.reports import Report

__all__ = ["Finding", "RepairReport"]

_MOST_SHOWN = 50


@dataclass(frozen=True, repr=False)
class Finding(Report):
    """One thing that is wrong.

    Attributes:
        path: Of the file, relative to the table.
        why: What is wrong with it.
        cure: What puts it right.
        size: Bytes that the cure frees.
    """

    path: str
    why: str
    cure: str
    size: int = 0

    def __str__(self) -> str:
        size = f" ({self.size:,} bytes)" if self.size else ""
        return f"{self.path}{size}: {self.why}; {self.cure}"


@dataclass(frozen=True, repr=False)
class RepairReport(Report):
    """What a repair found; prints as a list.

    Attributes:
        findings: What is wrong, sorted by path.
        done: True when it was put right; False of a dry run.
        notes: What was left as it is because nobody can tell whether it is wrong.
    """

    findings: tuple[Finding, ...]
    done: bool
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that the cures free."""
        return sum(one.size for one in self.findings)

    def __str__(self) -> str:
        if not self.findings:
            return "\n".join(["nothing to repair", *self.notes])
        size = f", {self.size:,} bytes" if self.size else ""
        head = f"{'repaired' if self.done else 'would repair'} {len(self.findings):,} files{size}"
        lines = [f"  {one}" for one in self.findings[:_MOST_SHOWN]]
        more = len(self.findings) - _MOST_SHOWN
        lines += [f"  and {more:,} more"] if more > 0 else []
        return "\n".join([head, *lines, *self.notes])
