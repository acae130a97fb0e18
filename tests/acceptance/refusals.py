"""The rows of a table that gets bad input, and how its refusal is judged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import HudiError

Table = hudimeta.Table
SCHEMA = pa.schema(
    [("id", pa.int64()), ("part", pa.string()), ("n", pa.int32()), ("ts", pa.int64()), ("tags", pa.list_(pa.int32()))]
)
ROWS = pa.table(
    {"id": [1, 2, 3, 4], "part": ["a", "b", "a", "b"], "n": [1, 2, 3, 4], "ts": [1] * 4, "tags": [[1]] * 4}, schema=SCHEMA
)
WRITES = ["insert", "bulk_insert", "upsert", "insert_overwrite", "insert_overwrite_table"]
LAYOUT = {"key": "id", "partition_by": "part", "ordering": "ts"}


def contents(path: Path) -> dict[str, tuple[int, str]]:
    """Every file and folder below a path, with size and hash."""
    if not path.exists():
        return {}
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {
        str(f.relative_to(path)): (f.stat().st_size, hashlib.sha256(f.read_bytes()).hexdigest()) if f.is_file() else (-1, "")
        for f in files
    }


def refused(kind: type[HudiError], says: str, path: Path, action: Callable[[], Any]) -> HudiError:
    """Run an action that must fail, and judge its error: class, code in front, the fact, a next step; the disk is unchanged."""
    before = contents(path)
    with pytest.raises(kind) as caught:
        action()
    error = caught.value
    text = str(error)
    assert contents(path) == before, f"the disk has changed, although: {text}"
    assert text.startswith(f"HUDIMETA_{error.code}: {error.message}. ")
    assert error.hint, f"no next step: {text}"
    assert error.hint[0].isupper()
    assert error.hint[-1] in ".?)"
    assert re.search(says, text), f"{text!r} says nothing of {says!r}"
    return error
