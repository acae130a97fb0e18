"""How the demo speaks: numbered chapters, the code that runs, what came out, and the time it took."""

from __future__ import annotations

import inspect
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

__all__ = ["Stage"]

T = TypeVar("T")


class Stage:
    """Where everything is printed.

    Attributes:
        console: Rich's.
        answers: What `check` was told, by statement.
    """

    def __init__(self) -> None:
        terminal = Console().is_terminal
        self.console = Console(highlight=False, width=None if terminal else 110)
        self.answers: dict[str, bool] = {}
        self._chapter = 0

    def chapter(self, title: str, text: str = "") -> None:
        """Begin a chapter."""
        self._chapter += 1
        self.console.print()
        self.console.print(Rule(f"[bold]{self._chapter}. {title}", align="left", style="cyan"))
        if text:
            self.console.print(Text(text, style="italic"))

    def run(self, what: str, step: Callable[..., T], *arguments: Any, show: bool = True) -> T:
        """Show the code of a step, run it, say how long it took, and return its result."""
        if show:
            self.console.print(Syntax(_body(step), "python", theme="ansi_dark", background_color="default", padding=(1, 2)))
        begin = time.perf_counter()
        with self.console.status(f"{what} …"):
            result = step(*arguments)
        self.console.print(f"  [green]✓[/] {what} [dim]{time.perf_counter() - begin:.1f} s[/]")
        return result

    def report(self, title: str, report: object) -> None:
        """What a read or a commit says about itself."""
        self.console.print(Panel(Text(str(report)), title=title, title_align="left", border_style="dim"))

    def rows(self, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A small table of results; numbers to the right."""
        table = Table(show_edge=False, pad_edge=True, header_style="bold")
        shown = [[_cell(value) for value in row] for row in rows]
        numeric = [all(cell.lstrip("-")[:1].isdigit() for cell in column) for column in zip(*shown, strict=True)]
        for name, right in zip(names, numeric or [False] * len(names), strict=True):
            table.add_column(name, justify="right" if right else "left")
        for row in shown:
            table.add_row(*row)
        self.console.print(table)

    def check(self, statement: str, holds: bool) -> None:
        """Something that must be so; printed with the others at the end."""
        self.answers[statement] = holds

    def verdict(self) -> bool:
        """Print what was checked; False when something is not so."""
        for statement, holds in self.answers.items():
            self.console.print(f"  {'[green]✓[/]' if holds else '[bold red]✗[/]'} {statement}")
        return all(self.answers.values())


def _body(step: Callable[..., object]) -> str:
    """The statements of a function as a reader would type them: without signature, docstring and `return`."""
    lines = inspect.getsource(step).splitlines()
    start = next(number for number, line in enumerate(lines) if line.rstrip().endswith(":")) + 1
    body = textwrap.dedent("\n".join(lines[start:])).splitlines()
    if body and body[0].startswith('"""'):
        body = body[1:]
    return "\n".join(line.removeprefix("return ") for line in body).strip()


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
