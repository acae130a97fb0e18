"""A writer of ours that dies: a process which upserts the rows of a Parquet file and ends itself with SIGKILL on the way.

    python dying_writer.py TABLE ROWS.parquet PATTERN

It dies before the first request that changes storage and whose text (`put_if_absent .hoodie/timeline/…`) matches PATTERN.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq

from hudimeta.api import verbs
from hudimeta.config import OPTIONS
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.types import Operation


class DieAt(FaultPlan):
    """Strikes at a request by its text."""

    def __init__(self, pattern: str) -> None:
        super().__init__(None, Fault.KILL)
        self.pattern = re.compile(pattern)

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        """See `FaultPlan.around`."""
        if self.pattern.match(name):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().around(name, act)


if __name__ == "__main__":
    table, rows, pattern = sys.argv[1:]
    storage = FaultyStorage(open_storage(table), DieAt(pattern))
    verbs.write(storage, OPTIONS.read({}), Operation.UPSERT, pq.read_table(rows))
    sys.exit("it did not die")
