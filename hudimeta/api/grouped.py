"""Verbs of a table that belong together, as a small object: `table.services`, `table.repair`, …"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hudimeta.config import checked

if TYPE_CHECKING:
    from hudimeta.config import Options
    from hudimeta.engine import Engine
    from hudimeta.storage import Storage

__all__ = ["GroupedVerbs"]


class GroupedVerbs:
    """Has the table, and prints the names of its verbs.

    Args:
        changing: Tells that the table is about to change, and gives its storage and options.
        engine: Where tasks run; threads of this process when None.
    """

    def __init__(self, changing: Callable[[], tuple[Storage, Options]], engine: Engine | None = None) -> None:
        self._changing, self._engine = changing, engine

    def __init_subclass__(cls) -> None:
        checked(cls)

    def __repr__(self) -> str:
        own = [vars(kind) for kind in type(self).__mro__ if kind.__module__.startswith(__package__ or "")]
        return f"{type(self).__name__}({', '.join(name for names in own for name in names if not name.startswith('_'))})"
