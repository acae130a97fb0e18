"""What every task of a routed write knows: plain data that the driver pickles, and the table as the write sees it.

The driver pins the timeline; whatever completes meanwhile is not seen by any task, and settled when the write is published.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.commit.coordinator import OpenWrite
from hudimeta.commit.markers import staging_folder
from hudimeta.commit.session import WriteSession
from hudimeta.commit.strays import refuse_when_over
from hudimeta.config import Options
from hudimeta.redaction import redacted
from hudimeta.storage import CountingStorage, Storage, join, open_storage
from hudimeta.timeline import Timeline
from hudimeta.write.batch import KeyedBatch
from hudimeta.write.default_values import DefaultValues
from hudimeta.write.table_files import TableFiles

__all__ = ["OpenedTable", "RoutedWrite", "forget_opened"]

_KEPT = 2
_opened: OrderedDict[tuple[str, str], OpenedTable] = OrderedDict()
"""Of the latest writes in this process: a worker runs many tasks, and the metadata table is read once for all of them."""


@dataclass(frozen=True)
class OpenedTable:
    """The table in a task: its storage, the write's session, and the table at the pinned moment."""

    storage: Storage
    session: WriteSession
    table: TableFiles


@redacted
@dataclass(frozen=True)
class RoutedWrite:
    """One attempt at a routed write.

    Attributes:
        location: The table.
        options: Of the write.
        open_write: The instant and what it knows.
        timeline: The table's when the write began.
        schema: Data columns after the write.
        defaults: What new rows get in columns that the rows came without; None for nothing.
    """

    location: str
    options: Options
    open_write: OpenWrite
    timeline: Timeline
    schema: pa.Schema
    defaults: DefaultValues | None = None

    def with_defaults(self, batch: KeyedBatch) -> KeyedBatch:
        """Rows that are new in the table, with what columns have by default that they came without."""
        return batch if self.defaults is None else self.defaults.given_to(batch)

    @property
    def instant(self) -> str:
        """Of the write."""
        return self.open_write.instant

    def opened(self) -> OpenedTable:
        """The table as this write sees it; the same object for all tasks of a process."""
        name = (self.location, self.instant)
        if name not in _opened:
            storage = CountingStorage(open_storage(self.location, self.options.texts))
            session = WriteSession(storage, self.options, in_task=True)
            _opened[name] = OpenedTable(storage, session, TableFiles.at(session, self.timeline))
            while len(_opened) > _KEPT:
                _opened.popitem(last=False)
        return _opened[name]

    def forget(self) -> None:
        """The write is over: let go of the table, if tasks of this process have opened it."""
        _opened.pop((self.location, self.instant), None)

    def request_mark(self) -> int:
        """Where this process's log of requests for the write stands now; 0 before its first task."""
        opened = _opened.get((self.location, self.instant))
        return 0 if opened is None else opened.session.request_mark()

    def refuse_when_over(self, storage: Storage, paths: Sequence[str], shared: Sequence[str] = ()) -> None:
        """See `hudimeta.commit.strays.refuse_when_over`."""
        refuse_when_over(storage, self.timeline.folder, self.open_write, paths, shared)

    def staged_path(self, kind: str, number: int, attempt: int) -> str:
        """Where an attempt at a task lays rows aside."""
        return join(staging_folder(self.instant), f"{kind}-{number}-{attempt}.arrow")


def forget_opened() -> None:
    """Let go of all tables that tasks of this process have opened; the next task opens its own again."""
    _opened.clear()
