"""Where the manifests of scans lie: where Spark's driver reads them.

A classic session's driver runs on this machine, and its manifests lie in a temporary folder that goes with this process. The
server of a Connect session may be anywhere, and what it can read for certain is the table's storage: there the manifests lie
in `.hoodie/.aux/hudimeta/scans`, which no reader of Hudi looks at, and those older than a week are deleted by the next scan. A
Connect session asks for a manifest again when it has forgotten a DataFrame's plan, so they must not go sooner.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING

from hudimeta.storage import Storage, join, open_storage
from hudimeta.timeline import Clock, SystemClock
from pyspark_hudimeta.native.manifest import write_manifest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KEPT_MS", "SHARED_FOLDER", "private_folder", "shared_folder"]

SHARED_FOLDER = ".hoodie/.aux/hudimeta/scans"
KEPT_MS = 7 * 24 * 3600 * 1000
"""How long a manifest on the table's storage is kept, in milliseconds."""

_NAME = re.compile(r"(\d{13})-[0-9a-f]{32}")
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")


def private_folder(table: str, files: pa.Table) -> str:
    """Write a manifest where only this machine reads it.

    Args:
        table: The table's name, which Spark shows with the folder.
        files: Columns of `manifest.MANIFEST_FILES`.

    Returns:
        The folder for `spark.read.parquet`.
    """
    name = f"{_ODD.sub('_', table)}-{uuid.uuid4().hex}"
    write_manifest(open_storage(_scratch()), name, files)
    return f"file://{_scratch()}/{name}"


@lru_cache(maxsize=1)
def _scratch() -> str:
    folder = tempfile.mkdtemp(prefix="hudimeta-scans-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def shared_folder(storage: Storage, files: pa.Table, clock: Clock | None = None) -> str:
    """Write a manifest on the table's storage, and delete old ones.

    Args:
        storage: Rooted at the table.
        files: Columns of `manifest.MANIFEST_FILES`.
        clock: Tells the age.

    Returns:
        The folder for `spark.read.parquet`.
    """
    now = (clock or SystemClock()).now_ms()
    for info in storage.list(SHARED_FOLDER):
        made = _NAME.fullmatch(info.name)
        if made and int(made[1]) < now - KEPT_MS:
            storage.delete_folder(info.path)
    folder = join(SHARED_FOLDER, f"{now:013d}-{uuid.uuid4().hex}")
    write_manifest(storage, folder, files)
    root = storage.root
    return f"{'file://' if root.startswith('/') else ''}{root.rstrip('/')}/{folder}"
