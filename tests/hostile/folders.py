"""How a sound table becomes hostile: each function changes the table at a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudimeta.table.properties_file import PROPERTIES_PATH
from tests.hostile.rewriting import change_container
from tests.hostile.trial import PARTS

Spoil = Callable[[Path], None]
"""Changes the table at a path; `victim` and `x` lie beside it."""

LATE = "20990101000000000"
DEAD = "20990101000000001"


class Folders(dict[str, Spoil]):
    """What makes a folder hostile, by its name."""

    def add(self, name: str) -> Callable[[Spoil], Spoil]:
        """Decorates the function that a name stands for."""

        def add(spoil: Spoil) -> Spoil:
            assert name not in self
            self[name] = spoil
            return spoil

        return add


def timeline(table: Path) -> Path:
    """The folder of its instants."""
    return table / ".hoodie" / "timeline"


def set_properties(table: Path, **values: str) -> None:
    """Change properties as somebody else may leave them, without our seal; `__` in a name stands for a dot."""
    path = table / PROPERTIES_PATH
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    given = {key.replace("__", "."): value for key, value in values.items()}
    kept = [line for line in lines if line.partition("=")[0] not in given]
    path.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in given.items()), ""]))


def dead_write(table: Path) -> Path:
    """A write that died, whose markers are still to come."""
    for state in ("requested", "inflight"):
        (timeline(table) / f"{DEAD}.deltacommit.{state}").write_bytes(b"")
    folder = table / ".hoodie" / ".temp" / DEAD
    folder.mkdir(parents=True)
    return folder


def newest(table: Path, ending: str = ".deltacommit") -> Path:
    """The file of its newest instant of a kind."""
    return max(p for p in timeline(table).iterdir() if p.name.endswith(ending))


def rewrite_commit(table: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record of the newest commit."""
    change_container(newest(table), change)


def data_file(table: Path, ending: str) -> Path:
    """A base file or a log file of the first partition."""
    return next(p for p in sorted((table / PARTS[0]).iterdir()) if p.name.endswith(ending) or ending in p.name)
