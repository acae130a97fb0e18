"""Is the writer of a pending instant still alive?

On a local disk a writer holds the operating system's lock on its instant's `requested` file for as long as it works; the lock
ends with its process, so the next writer knows at once. Where there is no such lock, or where a write passes through many
processes (Spark's tasks), Hudi's heartbeat serves: an empty file `.hoodie/.heartbeat/<instant>` rewritten every minute, and a
writer whose file is older than two such intervals, or as many as options allow, is dead. How old it is, the store says where
this machine's clock may be wrong: by a clock that is fast, whoever is alive would be rolled back. A pending instant with
neither belongs to a writer that takes no care of others (Apache Hudi's default): as Apache Hudi does, it is taken for dead.

Apache Hudi knows of heartbeats alone. Its writers that share a table roll back whatever does not beat, so beside them ours beat
under the operating system's lock, too. And its other writers refuse to roll back what others outlasted, and so to write, unless
a heartbeat shows that several shared the table: whoever is published leaves one for each pending write that began before it.
Such a heartbeat is no empty file, and says nothing to us: we go by the lock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hudimeta.engine import machine
from hudimeta.errors import AlreadyExists, InstantExists, StorageError
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import Storage, join
from hudimeta.timeline import Timeline
from hudimeta.types import Action

__all__ = ["HEARTBEAT_FOLDER", "Heartbeat", "builds_an_index", "is_alive", "show_outlasted"]

CLOCK_PATH = ".hoodie/.aux/hudimeta/clock"
"""An empty file that is written anew to see how the store dates it. It stays: whoever dies in between leaves nothing else."""
HEARTBEAT_FOLDER = ".hoodie/.heartbeat"
INTERVAL_S = 60.0
TOLERATED_MISSES = 2
_FOR_OTHERS = b"See the lock on the requested file."
_ROLLED_BACK = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
"""What Apache Hudi rolls back when its writer is dead; plans of services wait."""


@dataclass(frozen=True)
class Heartbeat:
    """The heartbeat of one instant: a file that is rewritten while the write goes on.

    Attributes:
        storage: Rooted at the table.
        instant: Its requested time.
        for_others: It is for Apache Hudi's writers; ours go by the operating system's lock.
    """

    storage: Storage
    instant: str
    for_others: bool = False

    @property
    def path(self) -> str:
        """Its file."""
        return join(HEARTBEAT_FOLDER, self.instant)

    def beat(self) -> None:
        """Say once that the writer lives."""
        self.storage.put(self.path, _FOR_OTHERS if self.for_others else b"")

    def begin(self) -> None:
        """Say for the first time that the writer lives.

        Raises:
            InstantExists: Another writer says so of the same instant, which is its own.
        """
        try:
            self.storage.put_if_absent(self.path, b"")
        except AlreadyExists as error:
            raise InstantExists(self.instant) from error

    def stop(self) -> None:
        """Remove the file: the write is over."""
        self.storage.delete(self.path)

    @contextlib.contextmanager
    def beating(self, interval_s: float | None = None) -> Iterator[None]:
        """Beat now, and every `interval_s` seconds (60 for None) beside it until the with block ends; the file stays."""
        self.beat()
        with self.going_on(interval_s):
            yield

    @contextlib.contextmanager
    def going_on(self, interval_s: float | None = None) -> Iterator[None]:
        """See `beating`; the first beat was made."""

        def beat_again() -> None:
            # A beat that failed is made up for by the next one.
            with contextlib.suppress(StorageError):
                self.beat()

        with machine.machine().every(interval_s or INTERVAL_S, beat_again, f"hudimeta-heartbeat-{self.instant}"):
            yield


def is_alive(
    storage: Storage,
    instant: str,
    requested_path: str | None,
    now_ms: Callable[[], int] = machine.now_ms,
    patience_s: float = 0.0,
) -> bool:
    """True when somebody still works on a pending instant.

    Args:
        storage: Rooted at the table.
        instant: Its requested time.
        requested_path: Path of its requested file; None asks the heartbeat alone. To be called where nobody can begin or roll
            back the instant meanwhile (`TableLock.alone_here`): asking for the guard of a file makes the file.
        now_ms: The clock, epoch milliseconds.
        patience_s: A heartbeat counts for so long at least, and in any case for two minutes.
    """
    found = storage.stat(join(HEARTBEAT_FOLDER, instant))
    if found is not None and found.size:
        found = None  # for others
    if found is not None and _is_fresh(storage, found.modified_ms, now_ms(), patience_s):
        return True
    if requested_path is None or not storage.is_file(requested_path):
        return False
    guard = storage.guard(requested_path)
    if guard is None:
        return False
    with guard as free:
        return not free


def builds_an_index(storage: Storage, instant: str, patience_s: float = 0.0) -> bool:
    """True while Apache Hudi builds an index at an instant: its heartbeat lies in the metadata table. See `is_alive`."""
    return is_alive(storage.sub(METADATA_ROOT), instant, None, patience_s=patience_s)


def show_outlasted(storage: Storage, timeline: Timeline, instant: str) -> None:
    """Leave a heartbeat for each pending write that began before one which is about to be published, and has none.

    Args:
        storage: Rooted at the table.
        timeline: As listed under the table lock.
        instant: Of the write that is published.
    """
    pending = (i for i in timeline.pending if (i.pending_action or i.action) in _ROLLED_BACK)
    outlasted = [i.time for i in pending if i.time < instant]
    if outlasted:
        shown = {entry.name for entry in storage.list(HEARTBEAT_FOLDER)}
        for time in outlasted:
            if time not in shown:
                Heartbeat(storage, time, for_others=True).beat()


def _is_fresh(storage: Storage, modified_ms: int, now_ms: int, patience_s: float) -> bool:
    longest = max(INTERVAL_S * TOLERATED_MISSES, patience_s) * 1000
    if abs(now_ms - modified_ms) <= longest:
        return True
    try:
        now_ms = _now_of(storage) or now_ms
    except StorageError:
        return True  # nobody can tell, so it may live
    return now_ms - modified_ms <= longest


def _now_of(storage: Storage) -> int:
    """The present by the clock that dates a store's files: that of one which is written now; 0 where it dates none."""
    storage.put(CLOCK_PATH, b"")
    found = storage.stat(CLOCK_PATH)
    return 0 if found is None else found.modified_ms
