"""The fewest properties of a table, and a wait that must not happen."""

from __future__ import annotations

import pytest

from hudimeta.formats.properties import table_checksum

MINIMAL = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "8",
    "hoodie.timeline.layout.version": "2",
    "hoodie.table.checksum": str(table_checksum("", "t")),
}


def no_waiting(seconds: float) -> None:
    """In place of a sleep."""
    pytest.fail(f"waited {seconds} s although the file is sound")
