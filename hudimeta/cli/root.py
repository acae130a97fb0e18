"""The root of the command line. Groups are imported when they are asked for: `hudimeta --help` loads click and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

import hudimeta

__all__ = ["root"]

_HOMES: Mapping[str, tuple[str, str]] = {
    "advise": ("hudimeta.cli.tables", "Which index or order of rows would make reads cheaper."),
    "call": ("hudimeta.cli.tables", "Run a procedure of Hudi's SQL."),
    "history": ("hudimeta.cli.tables", "What happened to a table, the newest first."),
    "maintain": ("hudimeta.cli.tables", "Run the services that are due."),
    "metadata": ("hudimeta.cli.metadata", "The metadata table: make, check, list, count and time it."),
    "show": ("hudimeta.cli.tables", "What a table is."),
}
"""Module and short help of each command; in the module it is an attribute of its name."""


class _Later(click.Group):
    """A group whose commands are imported when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _HOMES:
            return None
        found: click.Command = getattr(import_module(_HOMES[cmd_name][0]), cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _HOMES[name][1]) for name in sorted(_HOMES)])


@click.group(cls=_Later, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(hudimeta.__version__, prog_name="hudimeta")
def root() -> None:
    """Apache Hudi tables on the command line; no Spark, no Java.

    Exit codes: 0 done, 1 a check found something, 2 usage, 3 refused, 5 damaged.
    """
