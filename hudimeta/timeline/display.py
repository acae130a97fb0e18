"""A timeline as text: a heading and one line per instant, the middle of long ones left out."""

from __future__ import annotations

from collections.abc import Sequence

from hudimeta.types import Action, Instant, State

__all__ = ["timeline_text"]

HEAD_ROWS = 5
TAIL_ROWS = 20

_COLUMNS = ("requested", "completed", "action", "state", "bytes")


def timeline_text(title: str, instants: Sequence[Instant]) -> str:
    """The instants as a table, oldest first."""
    pending = sum(not instant.is_completed for instant in instants)
    lines = [f"{title}: {len(instants) - pending} completed, {pending} pending"]
    if not instants:
        return lines[0]
    left_out = max(0, len(instants) - HEAD_ROWS - TAIL_ROWS)
    if left_out <= 1:
        shown, left_out = list(instants), 0
    else:
        shown = [*instants[:HEAD_ROWS], *instants[-TAIL_ROWS:]]
    rows = [_COLUMNS, *(_row(instant) for instant in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    text = [_line(row, widths) for row in rows]
    if left_out:
        text.insert(1 + HEAD_ROWS, f"... {left_out} more ...")
    return "\n".join(lines + ["  " + line for line in text])


def _row(instant: Instant) -> tuple[str, str, str, str, str]:
    pending_word: Action | None = instant.pending_action
    action = instant.action.value + (f" ({pending_word.value})" if pending_word else "")
    size = str(instant.size) if instant.size >= 0 else ""
    return instant.time, instant.completion or "-", action, State(instant.state).name.lower(), size


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
    return "  ".join([*padded, row[-1].rjust(widths[-1])]).rstrip()
