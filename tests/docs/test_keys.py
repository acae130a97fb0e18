"""Every example of docs/keys.md runs, in order, and gives what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.indexes.tagging import IndexKind
from hudimeta.table.key_generator import KeyGeneratorType

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "keys.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        exec(compile(example.replace("/data/", f"{tmp_path}/"), "docs/keys.md", "exec"), names)
    assert len(EXAMPLES) == 3
    rides = hudimeta.Table(tmp_path / "rides").scan().to_table()
    assert rides["_hoodie_partition_path"].to_pylist() == ["no/2026-03"]
    assert "1 keys found; 1 rows move to another partition" in capsys.readouterr().out
    assert sorted(hudimeta.Table(tmp_path / "events").scan().to_table()["n"].to_pylist()) == [2, 3, 4, 5]


def test_every_index_and_key_generator_has_a_line() -> None:
    for kind in IndexKind:
        assert f"`{kind.value}`" in PAGE, kind
    for generator in KeyGeneratorType:
        if generator.value not in ("GLOBAL_DELETE", "HOODIE_TABLE_METADATA", "USER_PROVIDED"):
            assert f"`{generator.value}`" in PAGE, generator


def test_options_that_the_page_names_exist() -> None:
    from hudimeta.config import OPTIONS

    for name in re.findall(r"`((?:hoodie|hudimeta)\.[a-z_.]+[a-z])", PAGE):
        assert OPTIONS.find(name) is not None or name.startswith("hoodie.keygen.timebased"), name
