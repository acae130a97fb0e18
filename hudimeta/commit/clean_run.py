"""Running a clean that is planned: files go, then the metadata table and the timeline say so.

Each step can be repeated, so that whoever meets the plan of a process that died finishes it: a writer, `recover`, or the next
clean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from hudimeta.commit.locks.protocol import TableLock
from hudimeta.commit.metadata_commit import MetadataCommit
from hudimeta.commit.planned_runs import begin, running
from hudimeta.commit.removal import delete_in_tasks
from hudimeta.config import HudiWarning
from hudimeta.engine import Engine, LocalEngine
from hudimeta.errors import CommitError, CorruptFileError, HudiError
from hudimeta.metadata import MetadataTable
from hudimeta.snapshot.opened_ahead import properties_and_timeline
from hudimeta.storage import Storage, join
from hudimeta.table.discovery import list_table
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.table.properties import TableProperties
from hudimeta.timeline import InstantGenerator, Timeline, TimelineWriter
from hudimeta.timeline.clean_record import CleanPlan, decode_plan, encode_metadata
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, Instant, State

__all__ = ["CleanRunner", "refuse_other_files"]


@dataclass(frozen=True)
class CleanRunner:
    """Runs the planned cleans of one table.

    Attributes:
        storage: Rooted at the table.
        properties: Of the table.
        lock: The table's lock.
        times: Makes instants.
        metadata: Brings the metadata table along; None for a table that has none.
        patience_s: See `is_alive`.
    """

    storage: Storage
    properties: TableProperties
    lock: TableLock
    times: InstantGenerator
    metadata: MetadataCommit | None
    patience_s: float = 0.0

    def run(self, instant: str, engine: Engine | None = None) -> tuple[CleanPlan, int]:
        """Run the clean that is planned at an instant; returns its plan, and how many files were there and are gone.

        Args:
            instant: Of the plan.
            engine: Where files are deleted; None for this process.

        Raises:
            CommitError: There is no such plan, or another process is running it or has just completed it.
        """
        begun = running(self.storage, self.properties, self.lock, instant, Action.CLEAN, self.patience_s)
        with begun as (timeline, found):
            return self._run(timeline, found, engine or LocalEngine())

    def finish(self, dead: Iterable[Instant]) -> None:
        """Finish cleans that died. One that cannot be finished keeps nobody from writing."""
        for instant in dead:
            try:
                self.run(instant.time)
            except CommitError:  # another process came to it first: it has finished it, or is about to
                continue
            except HudiError as error:
                warnings.warn(f"clean {instant.time} is left unfinished: {error}", HudiWarning, stacklevel=2)

    def run_new(
        self, planned: Callable[[Timeline], tuple[str, bool] | None], engine: Engine | None = None
    ) -> tuple[str, CleanPlan, int] | None:
        """Plan a clean and run it before anybody can take it for one that died and finish it.

        Args:
            planned: Called under the lock; the instant of a plan that is on the timeline now, and whether it was put there just
                now; None for nothing to do.
            engine: Where files are deleted; None for this process.

        Returns:
            The instant, its plan, and how many files were there and are gone.

        Raises:
            CommitError: Another process is running what is planned.
        """
        with self.lock.held():
            found = planned(self.properties.load_timeline(self.storage))
            if found is None:
                return None
            instant, fresh = found
            begun = begin(self.storage, self.properties, instant, Action.CLEAN, self.patience_s, just_planned=fresh)
        with begun as (timeline, pending):
            return (instant, *self._run(timeline, pending, engine or LocalEngine()))

    def _run(self, timeline: Timeline, found: Instant, engine: Engine) -> tuple[CleanPlan, int]:
        time = found.time
        the_plan = decode_plan(timeline.plan(found))
        refuse_other_files(the_plan, time, join(timeline.folder, pending_name(time, Action.CLEAN, State.REQUESTED)))
        if the_plan.sources:
            what = f"{len(the_plan.sources):,} files that a bootstrap describes, such as {the_plan.sources[0]}"
            why = "hudimeta deletes nothing outside of the table"
            warnings.warn(f"clean {time} leaves {what}: {why}, and no slice needs them any more", HudiWarning, stacklevel=4)
        writer = TimelineWriter(self.storage, timeline.folder)
        if found.state is State.REQUESTED:
            writer.create_inflight(time, Action.CLEAN)
        paths = [join(partition, name) for partition, names in the_plan.files.items() for name in names]
        deleted = delete_in_tasks(self.storage, paths, engine)
        with self.lock.held():
            properties, timeline = properties_and_timeline(self.storage)
            now = timeline.get(time, Action.CLEAN)
            if now is None or now.is_completed:
                raise CommitError(f"clean {time} is not pending any more", "Another writer completed it.")
            the_plan = replace(the_plan, emptied=self._still_empty(timeline, the_plan, time))
            stated = self._record(properties, timeline, time, the_plan)
            completion = self.times.next(timeline.last_time, time)
            writer.complete(time, Action.CLEAN, completion, encode_metadata(time, the_plan, deleted, stated))
        return the_plan, deleted

    def _record(self, properties: TableProperties, timeline: Timeline, time: str, the_plan: CleanPlan) -> dict[str, str]:
        """Take the files out of the metadata table, see `MetadataCommit.clean`; repeating it changes nothing."""
        if self.metadata is None or not properties.has_metadata_table:
            return {}
        self.metadata.properties = properties
        return self.metadata.clean(timeline, time, the_plan)

    def _still_empty(self, timeline: Timeline, the_plan: CleanPlan, time: str) -> tuple[str, ...]:
        """Which of the partitions that the plan empties have no file now, so that the table may forget them.

        A write may have come to one of them since the plan was made, or may still come. The metadata table merges its records
        in the order of instants, so that a write which began before the clean would be undone by it: then the names stay.
        """
        if not the_plan.emptied or any(i.time < time for i in timeline.pending_writes):
            return ()
        gone = {(partition, name) for partition, names in the_plan.files.items() for name in names}
        left = {partition for partition, name in self._listed(timeline, the_plan.emptied) if (partition, name) not in gone}
        return tuple(partition for partition in the_plan.emptied if partition not in left)

    def _listed(self, timeline: Timeline, partitions: tuple[str, ...]) -> list[tuple[str, str]]:
        """Partition path and name of the files of some partitions, as the metadata table knows them."""
        if self.properties.has_metadata_table:
            table = MetadataTable.open(self.storage, self.properties, timeline)
            files = table.files(sorted(set(partitions) & set(table.partitions().to_pylist())))
        else:
            files = list_table(self.storage)
        return list(zip(files["partition_path"].to_pylist(), files["name"].to_pylist(), strict=True))


def refuse_other_files(the_plan: CleanPlan, time: str, path: str) -> None:
    """A clean deletes data files that are older than its plan, and nothing else, whatever the plan names."""
    for partition, names in the_plan.files.items():
        for name in names:
            parsed = parse_base_file(name) or parse_log_file(name)
            if parsed is None or parsed.instant >= time or partition.partition("/")[0] == ".hoodie":
                hint = "Nothing was deleted. Remove the plan's files, and the next clean plans anew."
                raise CorruptFileError(path, 0, f"names of data files from before {time}", join(partition, name), hint)
