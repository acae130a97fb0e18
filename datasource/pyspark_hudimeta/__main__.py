"""`python -m pyspark_hudimeta`."""

from __future__ import annotations

import sys

from pyspark_hudimeta.sessions.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
