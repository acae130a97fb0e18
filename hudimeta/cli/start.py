"""The console script `hudimeta`."""

from __future__ import annotations

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

    root(prog_name="hudimeta")


if __name__ == "__main__":
    main()
