"""`advise`: what would make the reads of a table cheaper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hudimeta.config import checked

if TYPE_CHECKING:
    from hudimeta.config import Options
    from hudimeta.engine import Engine
    from hudimeta.services.advice import Advice
    from hudimeta.storage import Storage

__all__ = ["Advising"]


@checked
class Advising:
    """Gives `TableServices` its verb `advise`."""

    _changing: Callable[[], tuple[Storage, Options]]
    _engine: Engine | None

    def advise(self, *, apply: bool = False, unused_days: int = 30) -> Advice:
        """Which index, or which order of rows, would have saved the reads so far how many bytes, and at what cost.

        Reads are noted while `hudimeta.learn` is on. The noted predicates are planned against the table as it is now, and each
        candidate is judged on file slices drawn at random, of which the columns of these predicates are read.

        >>> print(table.advise())                                              # doctest: +SKIP

        Args:
            apply: Build what is recommended, and cluster where that is; rows do not change.
            unused_days: Name the indexes that left nothing out for so many days.

        Raises:
            ConfigError: Days below 0.
        """
        from hudimeta.commit.session import WriteSession
        from hudimeta.errors import ConfigError
        from hudimeta.services.advice import advise

        if unused_days < 0:
            raise ConfigError("unused_days", unused_days, "a number of days, 0 or more")
        storage, options = self._changing()
        return advise(WriteSession(storage, options, engine=self._engine), apply=apply, unused_days=unused_days)
