"""Changing what a table says of itself by hand, as a person would who means it: without the seals that would show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hudimeta.formats.avro.commit_metadata import decode_commit_metadata, encode_commit_metadata
from hudimeta.table.remembered import REMEMBERED_KEY

__all__ = ["edit_properties", "forget_properties"]


def edit_properties(table: Path, change: Callable[[str], str]) -> None:
    """Put other text in place of a table's properties.

    Args:
        table: The table's folder.
        change: Makes the new text of the old one.
    """
    path = table / ".hoodie" / "hoodie.properties"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(change("".join(line for line in lines if not line.startswith("#hudimeta.seal="))))


def forget_properties(table: Path) -> None:
    """Let the commits of a table remember nothing of its properties, as those of Apache Hudi do."""
    for path in (table / ".hoodie" / "timeline").glob("*_*.*commit"):
        commit = decode_commit_metadata(path.read_bytes(), path.name)
        commit["extraMetadata"] = {key: value for key, value in commit["extraMetadata"].items() if key != REMEMBERED_KEY}
        path.write_bytes(encode_commit_metadata(commit, replace=path.suffix == ".replacecommit"))
