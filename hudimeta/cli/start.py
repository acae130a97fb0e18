"""The console script `hudimeta`."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["main"]

_USAGE = 2


def main() -> None:
    """Run the command line; says what to install where its libraries are missing."""
    try:
        import click  # noqa: F401
    except ModuleNotFoundError:
        print('The command line needs click and rich. Run: pip install "hudimeta[cli]"', file=sys.stderr)
        sys.exit(_USAGE)
    from hudimeta.cli.root import root

    _prepare_streams()
    root(prog_name="hudimeta")


def _prepare_streams() -> None:
    """Let names that a terminal cannot show, and outputs that were closed, end no command."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - it lives as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
