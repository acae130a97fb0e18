"""Tables whose columns nothing tells: no commit, and no schema in their properties."""

from __future__ import annotations

import os
from pathlib import Path

from hudimeta import Table
from hudimeta.table.properties_file import PROPERTIES_PATH, properties_text

__all__ = ["STATED", "without_columns"]

STATED = "hoodie.table.create.schema"


def without_columns(path: str | os.PathLike[str]) -> str:
    """Take the columns out of the properties of a table without rows; returns its path."""
    told = Table(path).properties.with_changes({STATED: None})
    (Path(path) / PROPERTIES_PATH).write_bytes(properties_text(told, 0))
    return os.fspath(path)
