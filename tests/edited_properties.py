"""Changing `hoodie.properties` by hand, as a person would who means it: without the seals of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

__all__ = ["edit_properties"]


def edit_properties(table: Path, change: Callable[[str], str]) -> None:
    """Put other text in place of a table's properties.

    Args:
        table: The table's folder. change: Makes the new text of the old one.
    """
    path = table / ".hoodie" / "hoodie.properties"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(change("".join(line for line in lines if not line.startswith("#hudimeta.seal="))))
