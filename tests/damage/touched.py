"""Which files a question looks at: over a damage elsewhere its answer is the same, and need not be asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from hudimeta.storage import LocalStorage

__all__ = ["Touched", "tracing"]


@dataclass
class Touched:
    """What was looked at, by paths relative to a table.

    Attributes:
        read: Files of which bytes were read.
        measured: Files whose size was asked for, and folders that were listed.
    """

    read: set[str] = field(default_factory=set)
    measured: set[str] = field(default_factory=set)

    def meets(self, change: Mapping[str, bytes], before: Mapping[str, bytes]) -> bool:
        """Whether anything of it is other bytes, or has another size."""
        for path, content in change.items():
            folder = path.rpartition("/")[0]
            if path in self.read:
                return True
            if len(content) != len(before[path]) and (path in self.measured or folder in self.measured):
                return True
        return False


@contextmanager
def tracing(place: Path) -> Iterator[Touched]:
    """Note what is looked at in a folder of this machine for the length of a with block, by whatever thread."""
    touched = Touched()
    kept = {"read": touched.read, "read_range": touched.read, "open_input": touched.read}
    kept |= {"stat": touched.measured, "list": touched.measured}
    with ExitStack() as stack:
        for name, where in kept.items():
            stack.enter_context(mock.patch.object(LocalStorage, name, _noting(getattr(LocalStorage, name), place, where)))
        yield touched


def _noting(method: Callable[..., Any], place: Path, where: set[str]) -> Callable[..., Any]:
    def noting(self: LocalStorage, path: str, *more: Any) -> Any:
        target = Path(self.root) / path
        if target.is_relative_to(place):
            where.add("" if target == place else target.relative_to(place).as_posix())
        return method(self, path, *more)

    return noting
