"""What Python imports first in processes of Spark's tests: daemons have all modules before they fork workers.

Each scan and each write asks a worker that was forked for it. Every one of them would import the engine anew for half a second,
in all a third of the time that Spark's tests take. The session of `test_installed.py` does without this, as those of users do.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

DAEMON = ["-m", "pyspark.daemon"]
MODULES = (
    "pyarrow.parquet",
    "pyspark.sql.pandas.types",
    "pyspark.worker",
    "pyspark_hudimeta.plain.reader",
    "pyspark_hudimeta.plain.streams",
    "pyspark_hudimeta.plain.writer",
    "pyspark_hudimeta.table_functions",
)

if sys.orig_argv[1:3] == DAEMON:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy would start threads, and a process with threads forks badly
    for name in MODULES:
        import_module(name)
    gc.collect()
    gc.freeze()  # modules are never garbage
