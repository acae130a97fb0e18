"""The examples of docs/streams.md run, and the options that the page names exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hudimeta
from hudimeta.config import OPTIONS

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "streams.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples_run(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"spark": spark}
    try:
        for example in EXAMPLES:
            exec(compile(example.replace("/data/", f"{tmp_path}/"), "docs/streams.md", "exec"), names)
    finally:
        spark.catalog.dropTempView("seen")
    assert "['r2', 'r3']" in capsys.readouterr().out
    assert sorted(hudimeta.Table(tmp_path / "bern").scan().to_table()["id"].to_pylist()) == ["r1", "r3"]


def test_what_the_page_names_exists() -> None:
    for option in re.findall(r"^\| `((?:hoodie\.|max)[A-Za-z.]+)`", PAGE, re.MULTILINE):
        assert OPTIONS.find(option) is not None or OPTIONS.find_not_done(option) is not None, option
