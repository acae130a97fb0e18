"""How commands answer: text for people (rich on a terminal, plain where it is piped), or one JSON object for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hudimeta.errors import HudiError
from hudimeta.redaction import hidden

__all__ = ["Answer", "JsonOutput", "Output", "AnswerRows", "TextOutput", "output_for"]


_WIDE = 100_000
"""Columns of a terminal on which everything fits."""


@dataclass(frozen=True)
class AnswerRows:
    """A small table of an answer.

    Attributes:
        name: Key in JSON, heading in text.
        columns: Names, the same in both.
        values: Row by row.
        titled: Show the name above the rows.
    """

    name: str
    columns: Sequence[str]
    values: Sequence[Sequence[Any]]
    titled: bool = False

    def as_objects(self) -> list[dict[str, Any]]:
        """One mapping a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.values]


@dataclass(frozen=True)
class Answer:
    """What a command answers.

    Attributes:
        facts: Names and values, the same in text and JSON.
        tables: Rows.
        lines: For people in place of `facts`; None shows the facts.
        closing: One more line for people.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[AnswerRows] = ()
    lines: Sequence[str] | None = None
    closing: str = ""


class Output(Protocol):
    """Shows answers and errors."""

    def show(self, answer: Answer) -> None:
        """Show what a command answers."""

    def fail(self, error: HudiError) -> None:
        """Show why it did not."""


class JsonOutput:
    """One object on standard output, whatever happens; its keys never change their meaning."""

    def show(self, answer: Answer) -> None:
        """See `Output.show`."""
        print(json.dumps({**answer.facts, **{t.name: t.as_objects() for t in answer.tables}}, indent=2, default=_plain))

    def fail(self, error: HudiError) -> None:
        """See `Output.fail`."""
        print(json.dumps({"error": {"code": error.code, "message": error.message, "hint": error.hint}}, indent=2))


class TextOutput:
    """For people; errors go to standard error."""

    def show(self, answer: Answer) -> None:
        """See `Output.show`."""
        facts = [f"{name}: {_text(value)}" for name, value in answer.facts.items()]
        for line in facts if answer.lines is None else answer.lines:
            print(line)
        for table in answer.tables:
            self._rows(table)
        if answer.closing:
            print(answer.closing)

    def fail(self, error: HudiError) -> None:
        """See `Output.fail`."""
        print(f"{error.message}." + (f"\n{error.hint}" if error.hint else ""), file=sys.stderr)

    def _rows(self, table: AnswerRows) -> None:
        if sys.stdout.isatty() and self._rich(table):
            return
        if table.titled:
            print(f"\n{table.name}")
        cells = [list(table.columns), *([_text(value) for value in row] for row in table.values)]
        right = [_is_number([row[i] for row in table.values]) for i in range(len(table.columns))]
        widths = [max(len(row[i]) for row in cells) for i in range(len(table.columns))]
        for row in cells:
            shown = (cell.rjust(w) if to_right else cell.ljust(w) for cell, w, to_right in zip(row, widths, right, strict=True))
            print("  ".join(shown).rstrip())

    def _rich(self, table: AnswerRows) -> bool:
        """False where the terminal is too narrow: folded into it, no value could be read."""
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        shown = Table(title=table.name if table.titled else None, title_justify="left")
        for number, name in enumerate(table.columns):
            to_right = _is_number([row[number] for row in table.values])
            shown.add_column(name, justify="right" if to_right else "left", overflow="fold")
        for row in table.values:
            shown.add_row(*(escape(_text(value)) for value in row))
        console = Console()
        fits = console.measure(shown, options=console.options.update(max_width=_WIDE)).maximum <= console.width
        if fits:
            console.print(shown)
        return fits


def output_for(as_json: bool) -> Output:
    """The output that was asked for."""
    return JsonOutput() if as_json else TextOutput()


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else hidden(str(value)) or '""'


def _is_number(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in known)


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
