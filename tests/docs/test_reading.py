"""Every example of docs/reading.md runs, in order, over a table like the one that it is about."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import hudimeta

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reading.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
FOR_SPARK = re.compile(r"\bspark\b")


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of the page, which its first example makes: merge-on-read, three months, some rows updated."""
    path = tmp_path_factory.mktemp("data") / "trips"
    run(EXAMPLES[0], path, {})
    return path


def run(example: str, trips: Path, names: dict[str, Any]) -> None:
    exec(compile(example.replace("/data/trips", str(trips)), "docs/reading.md", "exec"), names)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) > 8


def test_the_examples_without_spark(
    trips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"hudimeta": hudimeta}
    monkeypatch.syspath_prepend(str(tmp_path))
    for example in EXAMPLES[1:]:
        if example.startswith("# shop/"):
            module = tmp_path / example.split("\n")[0].removeprefix("# ")
            module.parent.mkdir()
            module.write_text(example)
        elif not FOR_SPARK.search(example):
            run(example, trips, names)
    sys.modules.pop("shop.merging", None)
    assert sorted(names["rows"]["id"].to_pylist()) == ["t12", "t15", "t18", "t21", "t24", "t27", "t9"]
    assert "by partition: month = '2026-01'" in capsys.readouterr().out


@pytest.mark.rotation(2)
@pytest.mark.spark
def test_the_examples_with_spark(trips: Path, spark: Any) -> None:
    names: dict[str, Any] = {"spark": spark}
    for example in EXAMPLES:
        if FOR_SPARK.search(example):
            run(example, trips, names)
    assert names["trips"].count() == names["planned"].to_df().count() == names["found"] == 7


def test_every_kind_of_index_is_in_the_table() -> None:
    from hudimeta.indexes.allowed import KINDS

    head = next(line for line in PAGE.splitlines() if line.startswith("| predicate |"))
    for kind in KINDS:
        assert kind.replace("expression_index", "expr_index_*").replace("secondary_index", "secondary_index_*") in head


def test_links_lead_somewhere() -> None:
    for name in re.findall(r"\]\(([a-z_/.]+)\)", PAGE):
        assert (Path(__file__).resolve().parents[2] / "docs" / name).exists(), name
