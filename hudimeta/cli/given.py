"""What every command takes: where the table is, its options, and how to answer."""

from __future__ import annotations

import errno
import functools
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from hudimeta.cli.exits import Exit, exit_of
from hudimeta.cli.output import Answer, Output, output_for
from hudimeta.errors import ConfigError, HudiError
from hudimeta.redaction import hidden

if TYPE_CHECKING:
    from hudimeta import Table

__all__ = ["command", "dry_run", "opened_options"]

_STORAGE = "hudimeta.storage."
_BROKEN_PIPE = 141
_NOT_WRITTEN = 74
"""EX_IOERR of sysexits.h."""

Command = Callable[..., tuple[Answer, Exit]]

dry_run = click.option("--dry-run", is_flag=True, help="Only tell what would be done.")


def command(group: click.Group, name: str) -> Callable[[Command], click.Command]:
    """Add a function to a group: it gets the opened table first, and gives its answer and exit code.

    Args:
        group: The group.
        name: Of the command.
    """

    def added(run: Command) -> click.Command:
        @functools.wraps(run)
        def called(path: str, option: Sequence[str], storage_option: Sequence[str], as_json: bool, **more: Any) -> None:
            with warnings.catch_warnings():
                warnings.showwarning = _print_warning
                sys.exit(_answered(run, path, (option, storage_option), output_for(as_json), more))

        return group.command(name)(_shared(called))

    return added


def _shared(run: Callable[..., None]) -> Callable[..., None]:
    """The arguments that all commands have, after their own."""
    for added in (
        click.option("--json", "as_json", is_flag=True, help="One JSON object in place of text."),
        click.option(
            "--storage-option",
            multiple=True,
            metavar="KEY=VALUE",
            help="Of the object store, as fsspec calls it; may be repeated. Never printed.",
        ),
        click.option("--option", multiple=True, metavar="KEY=VALUE", help="hoodie.… or hudimeta.…; may be repeated."),
        click.argument("path"),
    ):
        run = added(run)
    return run


def _answered(run: Command, path: str, given: tuple[Sequence[str], Sequence[str]], output: Output, more: dict[str, Any]) -> int:
    try:
        answer, code = run(_opened(path, *given), **more)
        return _written(lambda: output.show(answer), code)
    except HudiError as error:
        failed = error
    return _written(lambda: output.fail(failed), exit_of(failed))


def _written(show: Callable[[], None], code: int) -> int:
    """Show something; the code that is given, or another one where nobody can read it."""
    try:
        show()
        sys.stdout.flush()
        if sys.__stdout__ is None:
            raise OSError(errno.EBADF, "standard output is closed")
    except OSError as error:
        # What is left in the buffer would be tried again at the end of the process, and told with a trace.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return _BROKEN_PIPE
        print(f"the answer cannot be written: {error.strerror}.", file=sys.stderr)
        return _NOT_WRITTEN
    return code


def _opened(path: str, options: Sequence[str], storage_options: Sequence[str]) -> Table:
    from hudimeta import Table

    return Table(path, opened_options(options, storage_options))


def opened_options(options: Sequence[str], storage_options: Sequence[str] = (), what: str = "--option") -> dict[str, str]:
    """Options out of `KEY=VALUE` texts.

    Args:
        options: Of hudimeta.
        storage_options: Of the store, without their prefix.
        what: How errors call one of `options`.

    Raises:
        ConfigError: A text without `=`; it is not shown, because it may be a secret.
    """
    found = {}
    for prefix, texts, flag in (("", options, what), (_STORAGE, storage_options, "--storage-option")):
        for text in texts:
            key, is_one, value = text.partition("=")
            if not is_one or not key.strip():
                raise ConfigError(flag, "***", "KEY=VALUE")
            key = key.strip()
            found[key if key.startswith(prefix) else f"{prefix}{key}"] = value
    return found


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning for people: its text on standard error, wherever it comes from."""
    print(f"warning: {hidden(str(message))}", file=file or sys.stderr)
