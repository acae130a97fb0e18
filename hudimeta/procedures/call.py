"""One call of a procedure: its arguments, and the table that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hudimeta.cached import cached_property
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS, Options
from hudimeta.errors import ConfigError, TableError
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.timeline import range_bound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hudimeta.engine import Engine
    from hudimeta.storage import CountingStorage
    from hudimeta.table.properties import TableProperties
    from hudimeta.timeline import Timeline
    from hudimeta.types import Instant

__all__ = ["ProcedureCall"]

T = TypeVar("T")


@dataclass(frozen=True)
class ProcedureCall:
    """A call.

    Attributes:
        arguments: By the parameters' own names, all of them; None where nothing was given.
        storage: Rooted at the table.
        options: Of the table.
        engine: Where services run their tasks; threads of this process when None.
    """

    arguments: Mapping[str, Any]
    storage: CountingStorage
    options: Options
    engine: Engine | None = None

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @cached_property
    def snapshot(self) -> Snapshot:
        """The table when it was first looked at."""
        return Snapshot.open(self.storage, self.options).with_metadata()

    @property
    def timeline(self) -> Timeline:
        """The instants of then."""
        return self.snapshot.timeline

    @property
    def properties(self) -> TableProperties:
        """Of the table."""
        return self.snapshot.properties

    def session(self, more: Mapping[str, Any] | None = None) -> WriteSession:
        """The table opened for a change.

        Args:
            more: Options that the call's arguments stand for; None among them says nothing.
        """
        said = {key: value for key, value in (more or {}).items() if value is not None}
        options = OPTIONS.read(self.options.having(said).given) if said else self.options
        return WriteSession(self.storage, options, engine=self.engine)

    def listed_options(self, name: str = "options") -> dict[str, str]:
        """Options out of one text: `hoodie.a=1,hoodie.b=2`.

        Raises:
            ConfigError: A part without `=`.
        """
        found = {}
        for part in filter(None, (part.strip() for part in (self[name] or "").split(","))):
            key, is_one, value = part.partition("=")
            if not is_one:
                raise ConfigError(name, part, "options as key=value, separated by commas")
            found[key.strip()] = value.strip()
        return found

    def names(self, name: str) -> list[str]:
        """The parts of a text that are separated by commas."""
        return [part.strip() for part in (self[name] or "").split(",") if part.strip()]

    def bound(self, name: str) -> str:
        """One end of a range of instants, as these are compared with it; empty where the call names none.

        Raises:
            ConfigError: No time and no digits of one: that would be compared as a text, and give all instants or none.
        """
        given = (self[name] or "").strip()
        return range_bound(given, self.properties.zone, name) if given else ""

    def first(self, rows: Iterable[T], name: str = "limit") -> list[T]:
        """As many rows as the call's limit lets through."""
        import sys
        from itertools import islice

        limit = self[name]
        if limit is not None and limit < 0:
            raise ConfigError(name, limit, "a number of rows, 0 or more")
        return list(islice(rows, None if limit is None else min(limit, sys.maxsize)))

    def write_at(self, time: str | None, writes: Sequence[Instant] | None = None) -> Instant:
        """A completed write.

        Args:
            time: Its requested time; None for the newest.
            writes: Among these; the active timeline's when None.

        Raises:
            TableError: There is none.
        """
        found = [i for i in (self.timeline.writes if writes is None else writes) if time is None or i.time == time]
        if not found:
            what = f"no completed write at {time}" if time else "no completed write"
            raise TableError(f"{what} on the active timeline of the table", "CALL show_commits lists those that are there.")
        return found[-1]
