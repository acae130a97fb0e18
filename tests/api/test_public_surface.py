"""What is public is written down: names and signatures change on purpose only."""

from __future__ import annotations

import difflib

import hudimeta
from tests.api.public_surface import PINNED, surface


def test_the_public_surface_is_the_one_that_is_written_down() -> None:
    pinned, found = PINNED.read_text(encoding="utf-8").splitlines(), surface().splitlines()
    changes = "\n".join(difflib.unified_diff(pinned, found, "tests/data/public_surface.txt", "the code", lineterm="", n=1))
    assert not changes, f"{changes}\nIf that is meant: python -m tests.api.public_surface, and a line in CHANGELOG.md"


def test_what_the_package_offers_to_whoever_types_is_public() -> None:
    offered = [name for name in dir(hudimeta) if not name.startswith("_")]
    assert offered == sorted(name for name in hudimeta.__all__ if not name.startswith("_"))
