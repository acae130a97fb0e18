"""File groups of the metadata table: which files hold a partition's newest slice, found with as few requests as can prove it.

Two ways lead to them.

*From commits* (version 8 and later): the write stats of the completed instants on the metadata timeline name every file of the
newest slices but the empty logs that initialised the groups. Groups without any record are thus unknown, which look-ups by
prefix and scans do not mind, but look-ups by key do: the group of a key depends on the number of groups.

*From a listing* of the partition's folder: everything, in one request. A partition that rests while others are written to has
its base files from long ago: then a listing takes its place beside which the many commits since would have to be read. So it
does where the file of a commit has lost its content.

A slice is a base file and the logs whose delta commit completed after the base file's instant; in tables of version 6, the logs
that bear the base file's instant. A file counts when its commit does, see `metadata_commits`.

A partition may begin again at any commit: whoever drops it deletes its folder, and whoever builds it anew does so at an instant
before all time, or before the table's last write (`ANEW_KEY`). Its completion says when that was. What commits name of its
files from before is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudimeta.cached import cached_property
from hudimeta.errors import MetadataOutOfSync
from hudimeta.metadata import files
from hudimeta.metadata.beginnings import INIT_BELOW
from hudimeta.metadata.group_files import (
    ANEW_KEY,
    FileGroup,
    GroupBaseFile,
    LogFile,
    base_name,
    file_group_id,
    file_stem,
    group_number,
    group_stem,
    instant_in,
    log_file,
)
from hudimeta.metadata.metadata_commits import MetadataCommits
from hudimeta.metadata.stated_files import decode_counts, decode_logs
from hudimeta.storage import Storage
from hudimeta.storage.at_once import is_nearby
from hudimeta.table.compaction_plan import decode_compaction_plan
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.timeline import Timeline
from hudimeta.types import Action, Instant

__all__ = ["GroupFinder"]

EMPTY_LOG_SIZE = 80
"""Bytes of the log that initialises a file group: one delete block without keys. No log with a record is so small."""

_MOST_UNREAD = 16
"""So many commits are read for one partition rather than listing it. By default ten come between two compactions."""

_LAYS_OUT = "0" * 17
"""The delta commit that lays a metadata table out. It is the first to be archived."""


class GroupFinder(MetadataCommits):
    """Finds the file groups of one metadata table as of the moment its timeline was listed.

    Args:
        storage: Rooted at the metadata table.
        timeline: Of the metadata table.
        data: Timeline of the data table.
        named: How many partitions the metadata table has.
        logs_name_base: True for tables of version 6, whose log files bear the instant of their base file.
    """

    def __init__(
        self, storage: Storage, timeline: Timeline, data: Timeline, named: int, *, logs_name_base: bool = False
    ) -> None:
        super().__init__(timeline, data, named)
        self.storage, self.logs_name_base = storage, logs_name_base
        self._listed: dict[str, tuple[FileGroup, ...]] = {}
        self._named: dict[str, tuple[FileGroup, ...]] = {}

    # From commits

    def found_ahead(self, partition: str) -> None:
        """Read the commits by which `named` finds a partition's base files; nothing where it has found them."""
        if partition not in self._listed and partition not in self._named:
            self._read_first_layout()
            self.newest_bases(partition)

    def _read_first_layout(self) -> None:
        """Before the first compaction many commits are read, of which most tell of one partition alone."""
        if not self.compactions and not is_nearby(self.storage):
            self.timeline.prefetch(self.initialisers)

    def newest_bases(self, partition: str) -> dict[str, GroupBaseFile]:
        """Base files by file id, from the newest commit that names any of the partition; the fewest requests."""
        if self.lost:
            return {group.file_id: group.base for group in self.listed(partition) if group.base is not None}
        for instant in self.makers_of(partition):
            found = self.bases_in(instant, partition)
            if found:
                return found
        return {}

    def makers_of(self, partition: str) -> tuple[Instant, ...]:
        """Commits that may have made base files of a partition: from the newest on, those of the first layout at last."""
        if partition == files.PARTITION and not self.may_be_laid_out_twice:
            # It begins anew only together with the whole metadata table.
            return tuple(i for i in self.makers if not self.begins_again(i))
        return self.makers

    def named(self, partition: str) -> tuple[FileGroup, ...]:
        """File groups that commits name, by file id: all that hold a record, unless older commits are archived.

        All that a LIST finds where more commits than `_MOST_UNREAD` would have to be read.
        """
        if partition in self._listed:
            return self._listed[partition]
        if self.lost:
            return self.listed(partition)
        self._read_first_layout()
        if self._may_have_begun_empty(partition):
            return self.listed(partition)
        if partition not in self._named:
            bases = self.newest_bases(partition)
            if bases and self._unread_since(_since(bases)) > _MOST_UNREAD:
                return self.listed(partition)
            logs = self._logs_since(partition, _since(bases))
            missing = self._without_base(bases, logs)
            for instant in self.makers_of(partition) if missing else ():
                older = self.bases_in(instant, partition)
                for file_id, base in older.items():
                    bases.setdefault(file_id, base)
                if older and instant not in self.compactions:
                    break
            if missing:
                logs = self._logs_since(partition, _since(bases))
            logs += self._logs_beside(partition, bases)
            if self.is_archived and any(file_id not in bases for file_id, _ in logs):
                return self.listed(partition)
            self._named[partition] = self._assemble(bases, logs)
        return self._named[partition]

    def _may_have_begun_empty(self, partition: str) -> bool:
        """True when commits cannot tell where a partition begins: one laid some partition out anew that had no record."""
        for instant in self.makers_of(partition):
            stats = self.timeline.metadata(instant)["partitionToWriteStats"]
            if stats.get(partition):
                return False
            if not stats and self.begins_again(instant):
                return True
        return False

    @property
    def is_archived(self) -> bool:
        """True when commits are missing that may have made base files."""
        return bool(self.timeline.writes) and self.timeline.writes[0].time != _LAYS_OUT

    def _without_base(self, bases: dict[str, GroupBaseFile], logs: Iterable[tuple[str, LogFile]]) -> bool:
        """True when older commits must be asked: a group has logs only, or the numbering has a gap."""
        if any(file_id not in bases for file_id, _ in logs):
            return True
        numbers = sorted(number for number in map(group_number, bases) if number is not None)
        return numbers != list(range(len(bases)))

    def bases_in(self, instant: Instant, partition: str) -> dict[str, GroupBaseFile]:
        found: dict[str, GroupBaseFile] = {}
        metadata = self.timeline.metadata(instant)
        anew = self.begins_again(instant) or ANEW_KEY in (metadata.get("extraMetadata") or {})
        gone = self.taken_out(partition)
        for stat in metadata["partitionToWriteStats"].get(partition, ()):
            base = base_name(stat["path"].rpartition("/")[2])
            if base and base[0] not in gone:
                since = instant.completed_at if anew else base[1]
                found[base[0]] = GroupBaseFile(stat["path"], stat["fileSizeInBytes"] or None, base[1], since)
        return found

    def _unread_since(self, base_instant: str) -> int:
        """How many files of commits `_logs_since` would have to read."""
        commits = [(i, self.data_instant(i.time)) for i in self._deltas_since(base_instant)]
        return sum(not (self.timeline.is_read(i) or (own is not None and self.data.is_read(own))) for i, own in commits)

    def _deltas_since(self, base_instant: str) -> list[Instant]:
        return [i for i in self.deltas if self.completion(i.time) >= base_instant]

    def _logs_since(self, partition: str, base_instant: str) -> list[tuple[str, LogFile]]:
        """Logs of all delta commits that completed at or after an instant, with their file ids."""
        commits = self._deltas_since(base_instant)
        self.prefetch_data(commits)
        own = {i.time: self._logs_of_data_commit(i.time) for i in commits}
        self.timeline.prefetch([i for i in commits if own[i.time] is None])
        logs: list[tuple[str, LogFile]] = []
        for instant in commits:
            known = own[instant.time]
            if known is not None:
                logs += [log for name in known.get(partition, ()) if (log := log_file(partition, name, None))]
            else:
                logs += self.logs_in(instant, partition)
        gone = self.taken_out(partition)
        return [log for log in logs if log[0] not in gone]

    def _logs_beside(self, partition: str, bases: Mapping[str, GroupBaseFile]) -> list[tuple[str, LogFile]]:
        """Logs that were written together with base files: what had changed since these were made."""
        times = {base.instant for base in bases.values()}
        return [log for i in self.initialisers if i.time in times for log in self.logs_in(i, partition)]

    def logs_in(self, instant: Instant, partition: str) -> list[tuple[str, LogFile]]:
        """Log files of a partition that one delta commit wrote, with their file ids; from its metadata."""
        found = []
        for stat in self.timeline.metadata(instant)["partitionToWriteStats"].get(partition, ()):
            folder, _, name = stat["path"].rpartition("/")
            log = log_file(folder, name, stat["fileSizeInBytes"] or None)
            if log:
                found.append(log)
        return found

    def _logs_of_data_commit(self, time: str) -> dict[str, list[str]] | None:
        instant = self.data_instant(time)
        return decode_logs(self.data.metadata(instant)) if instant else None

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many file groups metadata partitions have, as our newest commit says, unless one was made anew since."""
        newest = max(self.data.writes, key=lambda i: i.completed_at, default=None)
        if (
            newest is None
            or not newest.size
            or any(i.completed_at > newest.completed_at for i in (*self.initialisers, *self._indexings))
        ):
            return {}
        return decode_counts(self.data.metadata(newest))

    @property
    def _indexings(self) -> list[Instant]:
        """Actions that made, changed, judged or dropped indexes."""
        return [i for i in self.data.completed if i.action is Action.INDEXING]

    def count(self, partition: str) -> int:
        """How many file groups a partition has; see `numbered`."""
        stated = None if partition in self._listed else self.counts.get(partition)
        return len(self.listed(partition)) if stated is None else stated

    def numbered(self, partition: str) -> tuple[FileGroup, ...]:
        """All file groups of a partition, by file id; without a LIST where our newest commit says how many there are."""
        count = None if partition in self._listed else self.counts.get(partition)
        if count is None:
            return self.listed(partition)
        named = {group.file_id: group for group in self.named(partition)}
        ids = [file_group_id(partition, number) for number in range(count)]
        if named.keys() != set(ids):
            # A compaction names only groups that had logs: of one that no commit at hand names nothing says that it is empty.
            return self.listed(partition)
        return tuple(named[file_id] for file_id in ids)

    # From a listing

    def began_again(self, partition: str) -> bool:
        """Look again for the files of a partition, of which one is gone that commits name: one LIST, used from then on.

        Returns:
            True when the partition was dropped and built anew since that file was written, so that there are others now.
            False when it was not, or when its files were listed before: then a file is lost.
        """
        if partition in self._listed or partition not in self._named:
            return False
        there = {file.path for file in self.storage.list(partition)}
        begins = {time for path in there if (time := instant_in(path.rpartition("/")[2])) and time < INIT_BELOW}
        known = {**self.timeline.archived_completions(begins), **self.timeline.completion_times}
        began = max((known.get(time, "") for time in begins), default="")
        named = self._named[partition]
        gone = [f for group in named for f in (group.base, *group.logs) if f is not None and f.path not in there]
        if not gone or any(self.completion(file.instant) > began for file in gone):
            return False
        self.listed(partition)
        return True

    def is_listed(self, partition: str) -> bool:
        """True when its file groups were found by a LIST."""
        return partition in self._listed

    def listed(self, partition: str) -> tuple[FileGroup, ...]:
        """All file groups of a partition, by file id; one LIST, kept because their number stays at one moment.

        Raises:
            MetadataOutOfSync: The partition has no file group although the properties name it, or other ones than at the moment
                of the timeline: it was dropped and built anew since.
        """
        if partition not in self._listed:
            bases: dict[str, GroupBaseFile] = {}
            logs: list[tuple[str, LogFile]] = []
            known: set[str] = set()
            seen: set[str] = set()
            laid_out, gone = False, self.taken_out(partition)
            for file in self.storage.list(partition):
                # A record index that is kept by partition has no file group before the first row.
                laid_out = laid_out or file.name == PARTITION_METAFILE
                base, log = base_name(file.name), log_file(partition, file.name, file.size)
                if base and base[1] in self.compacting:
                    continue  # it may be the first file of a group that does not count yet
                if (base or log or ("",))[0] in gone:
                    continue
                if base:
                    file_id, instant = base
                    known.add(file_id)
                    seen.update({file_id} if self.is_visible(instant) else ())
                    older = bases.get(file_id)
                    if self.is_visible(instant) and (older is None or older.instant < instant):
                        bases[file_id] = GroupBaseFile(file.path, file.size, instant, instant)
                elif log:
                    known.add(log[0])
                    seen.update({log[0]} if self.is_visible(log[1].instant) else ())
                    if file.size > EMPTY_LOG_SIZE:
                        logs.append(log)
            if not known and not (laid_out and partition == "record_index"):
                raise MetadataOutOfSync(partition, "any file group")
            # Only a record index that is kept by partition gets groups later, when a partition of the table begins.
            later = () if self.logs_name_base else known - seen
            if any(group_stem(file_id) == file_stem(partition) for file_id in later):
                raise MetadataOutOfSync(partition, "the file groups that it had, since it was built anew")
            self._listed[partition] = self._assemble(bases, logs, known)
        return self._listed[partition]

    def _assemble(
        self, bases: dict[str, GroupBaseFile], logs: Iterable[tuple[str, LogFile]], known: Iterable[str] = ()
    ) -> tuple[FileGroup, ...]:
        of_group: dict[str, dict[str, LogFile]] = {file_id: {} for file_id in (*known, *bases)}
        for file_id, log in logs:
            base = bases.get(file_id)
            if base is None or self.in_slice(file_id, log, base):
                of_group.setdefault(file_id, {})[log.path] = log
        return tuple(
            FileGroup(file_id, bases.get(file_id), tuple(sorted(found.values(), key=lambda log: log.order)))
            for file_id, found in sorted(of_group.items())
        )

    def in_slice(self, file_id: str, log: LogFile, base: GroupBaseFile) -> bool:
        """True when a log file lies on top of a base file, False when it belongs to an older slice or does not count."""
        if self.logs_name_base:
            return log.instant >= base.instant
        if not self.is_visible(log.instant):
            return False
        if log.instant >= base.instant or log.instant in self.timeline.completion_times:
            return self.is_above(log.instant, base.since)
        return self._late(file_id, log, base)

    def is_above(self, instant: str, since: str) -> bool:
        """True when a visible delta commit completed at or after the time since when logs lie on top of a base file.

        An archived one is believed to have: of those, only files that `in_slice` let pass are ever asked.
        """
        if not self.is_visible(instant):
            return False
        return self.timeline.completion_times.get(instant, since) >= since or instant >= since

    def _late(self, file_id: str, log: LogFile, base: GroupBaseFile) -> bool:
        """Of an archived delta commit requested before a base file: did it complete after it?

        The archive would tell, for many requests. The plan of the compaction that made the base file tells as well: what it
        names is in the base file, and what was requested before the previous base file is in that one.
        """
        instant = self.timeline.get(base.instant)
        plan = self.timeline.plan(instant) if instant is not None and instant.action is Action.COMMIT else {}
        for planned in decode_compaction_plan(plan):
            if planned.file_id == file_id:
                return log.path.rpartition("/")[2] not in planned.log_files and log.instant >= planned.base_instant
        return self.completion(log.instant) >= base.instant


def _since(bases: Mapping[str, GroupBaseFile]) -> str:
    """From when on there may be logs on top of some base files."""
    return min((base.since for base in bases.values()), default="")
