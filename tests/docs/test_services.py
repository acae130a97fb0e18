"""Every example of docs/services.md runs, in order, and its table names what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.api.services import TableServices
from hudimeta.config import OPTIONS
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

PAGE = (Path(__file__).resolve().parents[2] / "docs/services.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        exec(compile(example.replace("/data/", f"{tmp_path}/"), "docs/services.md", "exec"), names)
    said = capsys.readouterr().out
    assert re.search(r"^compaction +\d+ log files in 2 file slices", said, re.MULTILINE)
    wanted = ("by ann, 'before the new prices'", "1 instants, 2 rows", "is taken back", "ROLLBACK at", "KEEP_BY_TIME, 30 days")
    for text in wanted:
        assert text in said, text
    for name in ("rides", "fares"):
        check_all(open_storage(tmp_path / name))


def test_every_verb_and_option_of_the_page_exists() -> None:
    for verb in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", verb):
            assert hasattr(hudimeta.Table, name) or hasattr(TableServices, name), name
    for key in set(re.findall(r"`((?:hoodie|hudimeta)\.[a-z._]+[a-z])(?:=[a-zA-Z_]+)?`", PAGE)):
        assert OPTIONS.find(key) is not None, key
