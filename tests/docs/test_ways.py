"""The ways through the house that the architecture page tells: how many modules a predicate and a batch pass through."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.api.plain_write import PlainWrite

ROOT = Path(hudimeta.__file__).parent
PAGE = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
SCHEMA = pa.schema([("id", pa.string()), ("month", pa.string()), ("fare", pa.float64()), ("ts", pa.int64())])


def rows(count: int, ts: int) -> pa.Table:
    numbers = range(count)
    return pa.table([[f"k{n}" for n in numbers], ["jan"] * count, [float(n) for n in numbers], [ts] * count], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> hudimeta.Table:
    made = hudimeta.Table.create(str(tmp_path / "t"), SCHEMA, key="id", partition_by=["month"], ordering=["ts"])
    made.insert(rows(50, 1))
    return hudimeta.Table(made.path)


@contextmanager
def followed(*goals: str) -> Iterator[dict[str, list[str]]]:
    """For each goal, `module:function`, the modules that called one another on the first way to it, the goal's at the end."""
    ways: dict[str, list[str]] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        goal = f"{_module(frame)}:{frame.f_code.co_name}"
        if event == "call" and goal in goals and goal not in ways:
            ways[goal] = _callers(frame)

    before: Callable[..., Any] | None = sys.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield ways
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]


def _module(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""


def _callers(frame: FrameType | None) -> list[str]:
    """Outermost first; a module that calls itself stands once."""
    found: list[str] = []
    while frame is not None:
        module = _module(frame)
        if module and module != (found[-1] if found else ""):
            found.append(module)
        frame = frame.f_back
    return found[::-1]


def told(title: str) -> set[str]:
    """The modules of the engine that one way of the page names."""
    (paragraph,) = [text for text in PAGE.split("\n\n") if text.startswith(title)]
    return {name for name in re.findall(r"`([a-z_/]+\.py)`", paragraph) if (ROOT / name).exists()}


def test_a_predicate_reaches_row_groups_through_seven_modules_at_most(table: hudimeta.Table) -> None:
    goals = ("predicate/bind.py:bind", "indexes/skipping.py:indexes_of", "slices/row_groups.py:judged_rows")
    with followed(*goals) as ways:
        assert table.scan(where="fare > 40").to_table().num_rows == 9
    assert set(ways) == set(goals)
    opened = ways[goals[2]]
    passed = {"api/table.py", "read/planner.py", *opened}
    assert len(passed) <= 7, passed
    assert len(opened) == len(set(opened)), "the way comes back to a module"
    assert passed <= told("A predicate from")


def test_a_batch_reaches_file_and_metadata_table_through_fourteen_modules_at_most(table: hudimeta.Table) -> None:
    write = PlainWrite.begin(table.path, {"hoodie.table.name": "t"}, SCHEMA, overwrite=False)
    message = write.write(rows(60, 2).to_batches(), 0, 0)
    to_file, to_metadata = "formats/parquet/writer.py:write_base_file", "metadata/writer.py:write_logs"
    with followed(to_file, to_metadata) as ways:
        write.commit([message])
    way = [name for name in ways[to_metadata] if not name.startswith("engine/")]
    passed = {name for found in ways.values() for name in found if not name.startswith("engine/")}
    spark = {"plain/source.py", "plain/writer.py"}
    assert len(passed | spark) <= 14, passed
    assert passed <= told("A batch from")
    assert {name for name in way if way.count(name) > 1} <= {"api/plain_write.py"}, "the way comes back to another module"
