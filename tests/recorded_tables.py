"""Tables written by Apache Hudi, with the answers that Apache Hudi gave over them.

`RICH` is part of the project (`tests/data`). `CONFORMANCE` and the checker are not: `SHARED` is the folder `shared` next to the
repository (HUDIMETA_SHARED names another one), and what needs it is skipped with a printed reason where it is absent.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tarfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SHARED = Path(os.environ.get("HUDIMETA_SHARED") or Path(__file__).resolve().parents[2] / "shared")

BOOTSTRAP_ROOT = Path("/tmp/hudi_bootstrap")
"""Tables bootstrapped in place name their source files by this absolute path, so the sources are unpacked there."""


@dataclass(frozen=True)
class TableSet:
    """A folder of packed tables.

    Attributes:
        archives: Folder with NAME.zip or NAME.tar.xz.
        answers: Folder with NAME.json.
    """

    archives: Path
    answers: Path

    def names(self) -> list[str]:
        """Every table that has both an archive and answers; empty where the set is absent."""
        if not self.answers.is_dir():
            return []
        return sorted(p.stem for p in self.answers.glob("*.json") if self.archive(p.stem) is not None)

    def archive(self, name: str) -> Path | None:
        """The packed table; None when there is none of that name."""
        found = (self.archives / f"{name}{end}" for end in (".zip", ".tar.xz"))
        return next((path for path in found if path.is_file()), None)

    def answer(self, name: str) -> dict[str, Any]:
        """What is known of the table: queries with their rows, schema, file slices."""
        return _answer(self.answers / f"{name}.json")

    def unpack(self, name: str, to: Path) -> Path:
        """Unpack the table below `to` and return its base path."""
        archive = self.archive(name)
        if archive is None:
            raise LookupError(f"no table named {name} in {self.archives}")
        _extract(archive, to)
        source = self.archive(f"{name}_source")
        if source is not None:
            BOOTSTRAP_ROOT.mkdir(parents=True, exist_ok=True)
            _extract(source, BOOTSTRAP_ROOT)
        tops = [entry for entry in to.iterdir() if entry.is_dir() and not entry.name.startswith("__")]
        if len(tops) != 1:
            raise LookupError(f"{archive} holds {len(tops)} tables, not one")
        return tops[0]


CONFORMANCE = TableSet(SHARED / "conformance" / "zips", SHARED / "conformance" / "expected")
_OWN = Path(__file__).resolve().parent / "data" / "tables"
RICH = TableSet(archives=_OWN, answers=_OWN)


@cache
def checker() -> ModuleType:
    """The program that judges a reader's answers (`check.py` of the recorded tables), as a module."""
    path = SHARED / "interop" / "check.py"
    if not path.is_file():
        pytest.skip(f"the checker of answers is not at {path}")
    spec = importlib.util.spec_from_file_location("recorded_tables_check", path)
    if spec is None or spec.loader is None:
        raise LookupError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _answer(path: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return answer


def _extract(archive: Path, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(to)
        return
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extractall(to, filter="data")
        else:
            packed.extractall(to)
