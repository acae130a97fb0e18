"""The examples of docs/indexes.md and docs/skipping.md run, and README.md's for Python without Spark; no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hudimeta

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def examples(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(example: str, page: str, folder: Path, names: dict[str, Any]) -> None:
    exec(compile(example.replace("/data/", f"{folder}/"), page, "exec"), names)


def test_an_index_is_made_asked_and_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example, _ = examples("docs/indexes.md")
    run(example, "docs/indexes.md", tmp_path, {})
    assert capsys.readouterr().out.startswith("expr_index_day built at ")
    assert "expr_index_day" not in hudimeta.Table(tmp_path / "trips").metadata.partitions()


def test_a_window_finds_a_row_of_another_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, example = examples("docs/indexes.md")
    run(example, "docs/indexes.md", tmp_path, {})
    assert "1 keys looked up, 1 keys found (3 days, 2 file slices in it)" in capsys.readouterr().out
    assert hudimeta.Table(tmp_path / "rides").scan().to_table().num_rows == 2


def test_a_report_tells_what_skipped_and_whether_the_metadata_is_true(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    for example in examples("docs/skipping.md"):
        run(example, "docs/skipping.md", tmp_path, names)
    assert names["scan"].report.decisions().num_rows == 4
    assert names["scan"].to_table()["id"].to_pylist() == ["ord-0002", "ord-0003"]
    assert names["report"].holds
    assert str(names["report"]) in capsys.readouterr().out


def test_the_readme_without_spark(tmp_path: Path) -> None:
    (example,) = (one for one in examples("README.md") if "import hudimeta\n" in one and "spark" not in one)
    names: dict[str, Any] = {}
    run(example, "README.md", tmp_path, names)
    assert names["t"].scan(where="fare > 60").to_table()["id"].to_pylist() == ["r1"]


def anchors(page: Path) -> set[str]:
    """What headings of a page are called in links, as GitHub spells them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
