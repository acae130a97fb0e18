"""Every example of docs/writing.md runs, in order, and says what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.config import OPTIONS
from hudimeta.indexes.tagging import IndexKind
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "writing.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        exec(compile(example.replace("/data/", f"{tmp_path}/"), "docs/writing.md", "exec"), names)
    table = hudimeta.Table(tmp_path / "trips")
    assert (names["report"].inserted, names["report"].deleted) == (1, 1)
    assert table.schema.names[5:] == ["id", "month", "ts", "price", "tip"]
    assert "ALTER_SCHEMA" in capsys.readouterr().out
    for name in ("trips", "log"):
        check_all(open_storage(tmp_path / name))


def test_every_operation_and_index_is_on_the_page() -> None:
    named = {
        "merge",
        "update",
        "delete",
        "upsert",
        "insert",
        "bulk_insert",
        "insert_overwrite",
        "insert_overwrite_table",
        "delete_partition",
        "alter",
    }
    for name in named:
        assert f"`{name}" in PAGE, name
        assert hasattr(hudimeta.Table, name)
    for kind in IndexKind:
        assert f"`{kind.value}`" in PAGE, kind


def test_every_option_of_the_page_exists() -> None:
    for key in set(re.findall(r"`((?:hoodie|hudimeta)\.[a-z._]+)(?:=[a-zA-Z_]+)?`", PAGE)):
        assert OPTIONS.find(key) is not None, key


def test_links_lead_somewhere() -> None:
    for name in re.findall(r"\]\(([a-z_/.]+)\)", PAGE):
        assert (DOCS / name).exists(), name
