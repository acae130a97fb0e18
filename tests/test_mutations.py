"""What `make mutants` changes: every sort of place, one at a time, and nothing that is no program."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

SOURCE = '''"""Not <this> text."""

LIMIT: int = 3
__all__ = ["f"]


def f(n: int | None, text: str = "é") -> bool:
    """Says 1 < 2."""
    if n is None or n < 0:
        raise ValueError(f"{n + 1} is wrong")
    note(text)
    return not text or n + 1 in (5,)
'''


@pytest.fixture(scope="module")
def tool() -> Any:
    """`tools/mutations.py`, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("tools_mutations", ROOT / "tools" / "mutations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    del sys.modules[spec.name]
    return module


@pytest.fixture(scope="module")
def changes(tool: Any) -> list[Any]:
    """The mutations of `SOURCE`."""
    return list(tool.mutations(SOURCE))


def test_each_sort_of_place_is_changed(changes: list[Any]) -> None:
    assert [(c.line, c.before, c.after) for c in changes] == [
        (9, "n is None or n < 0", "n is None and n < 0"),
        (9, "n is None", "n is not None"),
        (9, "n < 0", "n <= 0"),
        (9, "n < 0", "n >= 0"),
        (9, "0", "1"),
        (11, "note(text)", "pass"),
        (12, "return not text or n + 1 in (5,)", "return None"),
        (12, "not text or n + 1 in (5,)", "not text and n + 1 in (5,)"),
        (12, "not text", "text"),
        (12, "n + 1 in (5,)", "n + 1 not in (5,)"),
        (12, "n + 1", "n - 1"),
        (12, "1", "2"),
        (12, "5", "6"),
    ]


def test_all_else_stays(changes: list[Any]) -> None:
    for change in changes:
        compile(change.source, "changed", "exec")
        before, after = SOURCE.splitlines(), change.source.splitlines()
        assert [n for n, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b] == [change.line]


def test_every_change_that_is_called_equal_can_still_be_made(tool: Any) -> None:
    known = tool.equal_mutants()
    assert known
    for equal in known:
        source = (ROOT / equal.path).read_text(encoding="utf-8")
        assert any(equal.is_about(equal.path, change) for change in tool.mutations(source)), equal
        assert equal.why
