"""The driver's Python of `python -m pyspark_hudimeta submit`: runs a script whose sessions are attached."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

from pyspark_hudimeta.sessions.every_session import attach_every_session

__all__ = ["main"]


def main(arguments: Sequence[str]) -> None:
    """Run a script as Python does.

    Args:
        arguments: Its path, then its own arguments.
    """
    attach_every_session()
    sys.argv = list(arguments)
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
