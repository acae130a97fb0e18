"""Tables of tests lie in memory where there is a file system for it: every write is synced, and a disk would only cost time."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")
LEAST_BYTES = 2 << 30
"""Several times what a run needs: tables of tests that passed are deleted at once."""
ROOT = "PYTEST_DEBUG_TEMPROOT"


def in_memory() -> bool:
    """True where memory can be written to as files and has room."""
    return os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= LEAST_BYTES


def keep_tables_in_memory() -> None:
    """Unless somebody said where: `--basetemp`, or pytest's own variable."""
    if ROOT not in os.environ and in_memory():
        os.environ[ROOT] = str(MEMORY)
