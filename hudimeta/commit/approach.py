"""The way to the table lock: what a write makes ready before it takes it, on the newest moment of the table.

A write that waits for the lock beside many others finds that what it made ready is out of date when its turn comes, and would
make it again while everybody waits. So a small write first waits to be the next one (`TableLock.next_here`), looks once more at
what was completed, and makes ready then: under the lock it meets at most what its predecessor publishes meanwhile. A large one
makes ready beside the others, as its preparation might keep them from the lock for long.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from hudimeta.commit.locks.protocol import TableLock
from hudimeta.commit.metadata_commit import MetadataCommit
from hudimeta.commit.prepared_delta import PreparedDelta
from hudimeta.commit.publication import OpenWrite, Publication
from hudimeta.storage import Storage, in_one_go
from hudimeta.storage.at_once import ahead
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import Timeline

__all__ = ["Approach", "Ready"]

_SMALL_ROWS, _SMALL_FILES = 20_000, 64
"""A write of at most so many rows and files is made ready in some hundredths of a second."""
_OUT_OF_LINE = "waited {:.1f} s in vain to be the next of this machine at the table lock, and went on to it out of line"


@dataclass(frozen=True)
class Ready:
    """A write before the lock.

    Attributes:
        publication: What it makes visible, settled with what was completed on `timeline`.
        prepared: What the metadata table gets; None where all of it is made under the lock.
        timeline: The timeline on which it was made ready; None for the one on which the write began.
    """

    publication: Publication
    prepared: PreparedDelta | None = None
    timeline: Timeline | None = None


@dataclass(frozen=True)
class Approach:
    """See the module.

    Attributes:
        storage: Rooted at the table.
        properties: Of the table.
        lock: The table's lock.
        metadata: Brings the metadata table along; None for a table that has none.
        notes: Gets a line for the write's report where it went on without its turn.
    """

    storage: Storage
    properties: TableProperties
    lock: TableLock
    metadata: MetadataCommit | None
    notes: list[str]

    @contextlib.contextmanager
    def next_with(
        self, write: OpenWrite, publication: Publication, *, again: bool
    ) -> Iterator[tuple[Ready, contextlib.ExitStack]]:
        """Come to the lock; inside the with block it is to be taken.

        Args:
            write: What is published.
            publication: What it makes visible.
            again: It was let go once, because others had come in between.

        Yields:
            The write, and what is to be closed once the lock is taken: then another one may come up.

        Raises:
            Unsettled: Commits came that are to be looked at first.
            CommitConflict: The write does not fit on top of them.
        """
        with in_one_go(self.storage), contextlib.ExitStack() as made, contextlib.ExitStack() as place:
            looked = ahead(self.lock.look_ahead, self.storage)
            if _is_small(publication):
                in_vain = place.enter_context(self.lock.next_here())
                if in_vain:
                    self.notes.append(_OUT_OF_LINE.format(in_vain))
                others = again or _others(write, publication)
                ready = self._on_top_of_all(write, publication) if others else self._as_begun(write, publication)
            else:
                ready = self._as_begun(write, publication)
            if ready.prepared is not None:
                made.callback(ready.prepared.close)
            looked()
            yield ready, place

    def _as_begun(self, write: OpenWrite, publication: Publication) -> Ready:
        return Ready(publication, self._prepared(write, publication, None))

    def _on_top_of_all(self, write: OpenWrite, publication: Publication) -> Ready:
        """One listing of the timeline, and one of the metadata table's where something was completed."""
        timeline = self.properties.load_timeline(self.storage)
        if publication.known is not None:
            timeline.following(publication.known.data_timeline)
        if publication.settling is not None:
            publication = publication.settling.under_lock(timeline)
        return Ready(publication, self._prepared(write, publication, timeline), timeline)

    def _prepared(self, write: OpenWrite, publication: Publication, timeline: Timeline | None) -> PreparedDelta | None:
        if self.metadata is None or publication.known is None or publication.apart is not None:
            return None
        return self.metadata.prepare(
            write.instant,
            publication.files,
            publication.schema,
            publication.known,
            publication.replaced,
            write.runs_a_plan,
            publication.renamed,
            timeline,
        )


def _is_small(publication: Publication) -> bool:
    files = publication.files
    rows = sum(file.inserted + file.updated + file.deleted for file in files)
    return len(files) <= _SMALL_FILES and rows <= _SMALL_ROWS and publication.apart is None


def _others(write: OpenWrite, publication: Publication) -> bool:
    """Whether other writers were at work when this one began."""
    if publication.known is None:
        return False
    return any(i.time != write.instant for i in publication.known.data_timeline.pending_writes)
