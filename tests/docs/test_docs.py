"""The guides tell the truth: the list of packages is complete, the option page is up to date, named files exist."""

from __future__ import annotations

import importlib
import re
import runpy
from pathlib import Path

import hudimeta

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def _packages() -> set[str]:
    found = {f"hudimeta.{p.parent.name}" for p in (ROOT / "hudimeta").glob("*/__init__.py")}
    found |= {f"hudimeta.{p.stem}" for p in (ROOT / "hudimeta").glob("*.py") if not p.stem.startswith("__")}
    return found | {p.parent.name for p in (ROOT / "datasource").glob("*/__init__.py")}


def test_the_architecture_page_lists_every_package_and_no_other() -> None:
    listed = set(re.findall(r"^\|[^|]*\| `([a-z_.]+)` \|", ARCHITECTURE, re.MULTILINE))
    assert listed == _packages()


def test_faces_named_by_the_architecture_page_are_faces() -> None:
    for package, faces in re.findall(r"^\|[^|]*\| `hudimeta\.([a-z_]+)` \|[^|]*\|([^|]+)\|$", ARCHITECTURE, re.MULTILINE):
        named = importlib.import_module(f"hudimeta.{package}").__all__
        assert not {*re.findall(r"`(\w+)`", faces)} - {*named}, package


def test_modules_named_by_the_architecture_page_exist() -> None:
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", ARCHITECTURE))
    assert named
    missing = [name for name in named if not ((ROOT / name).exists() or (ROOT / "hudimeta" / name).exists())]
    assert not missing


def test_the_option_page_is_what_the_registry_says() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "option_docs.py"))["text"]()
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == made, "run: python tools/option_docs.py"


def test_the_page_of_statements_is_what_the_tests_run() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "sql_docs.py"))["text"]()
    assert (ROOT / "docs" / "sql.md").read_text(encoding="utf-8") == made, "run: python tools/sql_docs.py"


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == hudimeta.__version__
