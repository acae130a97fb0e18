"""Where the changes of a commit are to be found: one entry for each file group that the commit wrote or replaced.

Commit metadata names the files. A writer that rewrites a base file lays a change file (`*.cdc`) beside it; everything else is
inferred: a new file group holds inserts, an emptied or replaced one had what is deleted now, and log files say what they change
when they are laid over the slice that they were written on. Compaction, log compaction and clustering change no row.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hudimeta.errors import RangeLost
from hudimeta.read.chosen_partitions import chosen_partitions
from hudimeta.snapshot.cleaned import newest_removed
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.table.file_names import is_base_file, parse_base_file, parse_log_file
from hudimeta.table.properties import CdcMode
from hudimeta.types import COPYING_OPERATIONS, Action, Instant

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["ChangeSource", "GroupChange", "known_changes", "plan_changes"]

_NO_COMMIT = (None, "", "null")
"""What write stats say of the previous commit of a new file group."""

_Stat = Mapping[str, Any]


class ChangeSource(enum.Enum):
    """Where the changes of a file group stand."""

    CHANGE_FILE = "change file"
    NEW_ROWS = "new base file"
    REMOVED_ROWS = "rows that are gone"
    REWRITTEN = "two base files"
    LOG_FILES = "log files"


@dataclass(frozen=True, slots=True)
class GroupChange(FileSlice):
    """What one commit did to one file group. Its own files are those that the commit wrote.

    Attributes:
        source: Where the changes stand.
        instant: Requested time of the commit.
        completed: Its completion time.
        before: The group's files before the commit, as far as they are needed; None for a new group.
        change_files: Names of the commit's change files.
        change_sizes: Their bytes, 0 when unknown.
    """

    source: ChangeSource = ChangeSource.NEW_ROWS
    instant: str = ""
    completed: str = ""
    before: FileSlice | None = None
    change_files: tuple[str, ...] = ()
    change_sizes: tuple[int, ...] = ()

    @property
    def read_paths(self) -> tuple[str, ...]:
        """Paths of all files that reading may open, relative to the table."""
        folder = f"{self.partition_path}/" if self.partition_path else ""
        parts = (self,) if self.before is None else (self, self.before)
        paths = [path for part in parts for path in ((part.base_path,) if part.base_path else ()) + part.log_paths]
        return (*(folder + name for name in self.change_files), *paths)

    def needed_paths(self, mode: CdcMode) -> tuple[str, ...]:
        """Those of them without which the changes are not known: full images in change files need no base file."""
        if self.source is not ChangeSource.CHANGE_FILE:
            return self.read_paths
        before = None if mode is not CdcMode.OP_KEY_ONLY else self.before
        base = None if mode is CdcMode.DATA_BEFORE_AFTER else self.base_file
        return replace(self, before=before, base_file=base).read_paths


def plan_changes(snapshot: Snapshot, instants: Iterable[Instant]) -> list[GroupChange]:
    """The changes of some commits, in the order in which the commits completed; what a commit replaces goes first.

    Reads the commits' metadata, and lists the partitions in which a slice from before a commit must be found.

    Args:
        snapshot: The table of now.
        instants: Completed writes on the active timeline.

    Raises:
        RangeLost: Files that a commit started from, or replaced, are cleaned.
    """
    commits = _planned(snapshot, instants)
    files = _listed(snapshot, {partition for commit in commits for partition in commit.to_list()})
    return [change for commit in commits for change in commit.changes(files)]


def known_changes(snapshot: Snapshot, instants: Iterable[Instant]) -> tuple[list[GroupChange], tuple[Instant, ...]]:
    """The changes of those commits of which no clean has taken a file that tells them, and the other commits.

    Args:
        snapshot: The table of now. Where something was cleaned since the first of the commits, their partitions are listed.
        instants: Completed writes on the active timeline.
    """
    ordered = list(instants)
    if not _cleaned_since(snapshot, ordered):
        return plan_changes(snapshot, ordered), ()
    commits = _planned(snapshot, ordered)
    files = _listed(snapshot, {partition for commit in commits for partition in commit.partitions})
    known: list[tuple[Instant, list[GroupChange]]] = []
    for commit in commits:
        try:
            known.append((commit.instant, list(commit.changes(files))))
        except RangeLost:
            continue
    mode = snapshot.properties.cdc_mode
    needed = {commit: {p for change in changes for p in change.needed_paths(mode)} for commit, changes in known}
    missing = _missing(files, set().union(*needed.values()))
    whole = {commit: changes for commit, changes in known if missing.isdisjoint(needed[commit])}
    return (
        [change for changes in whole.values() for change in changes],
        tuple(commit.instant for commit in commits if commit.instant not in whole),
    )


def _planned(snapshot: Snapshot, instants: Iterable[Instant]) -> list[_CommitPlan]:
    ordered = sorted(instants, key=lambda i: i.completion_order)
    snapshot.timeline.prefetch(ordered)
    chosen = chosen_partitions(snapshot)
    return [_CommitPlan(snapshot, instant, None if chosen is None else frozenset(chosen)) for instant in ordered]


def _listed(snapshot: Snapshot, partitions: set[str]) -> pa.Table | None:
    return snapshot.listing.files(sorted(partitions)) if partitions else None


def _cleaned_since(snapshot: Snapshot, instants: Iterable[Instant]) -> bool:
    """Whether a clean was requested after the first of some commits. Archived cleans are older than the active ones."""
    newest = max((i.time for i in snapshot.timeline.completed if i.action is Action.CLEAN), default="")
    return any(instant.time < newest for instant in instants)


def _missing(files: pa.Table | None, paths: set[str]) -> set[str]:
    """Those of some paths that a listing does not have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if files is None or not paths:
        return paths
    folders = files.column("partition_path")
    prefixes = pc.if_else(pc.equal(folders, ""), "", pc.binary_join_element_wise(folders, "", "/"))
    wanted = pa.array(sorted(paths), pa.string())
    here = pc.is_in(wanted, value_set=pc.binary_join_element_wise(prefixes, files.column("name"), "").combine_chunks())
    missing: list[str] = wanted.filter(pc.invert(here)).to_pylist()
    return set(missing)


class _CommitPlan:
    """Plans one commit."""

    def __init__(self, snapshot: Snapshot, instant: Instant, chosen: frozenset[str] | None) -> None:
        self._snapshot, self.instant = snapshot, instant
        metadata = snapshot.timeline.metadata(instant)
        changes_rows = metadata["operationType"] not in COPYING_OPERATIONS

        def read(partition: str) -> bool:
            return changes_rows and (chosen is None or partition in chosen)

        self._replaced = {p: ids for p, ids in metadata["partitionToReplaceFileIds"].items() if ids and read(p)}
        self._stats: dict[tuple[str, str], list[_Stat]] = {}
        for partition, stats in metadata["partitionToWriteStats"].items():
            for stat in stats if read(partition) else ():
                self._stats.setdefault((partition, stat["fileId"]), []).append(stat)

    @property
    def partitions(self) -> set[str]:
        """Those whose rows the commit changed."""
        return {*self._replaced, *(partition for partition, _ in self._stats)}

    def to_list(self) -> set[str]:
        """Partitions whose files must be known."""
        stats = ((partition, stat) for (partition, _), stats in self._stats.items() for stat in stats)
        return {*self._replaced, *(partition for partition, stat in stats if _is_log(stat) or self._lacks_base(stat))}

    def changes(self, files: pa.Table | None) -> Iterator[GroupChange]:
        """One entry for each file group; `files` are those of the partitions in `to_list`, and maybe of others."""
        earlier = self._slices_before(files) if files is not None and self.to_list() else {}
        yield from self._of_replaced(earlier)
        for (partition, file_id), stats in self._stats.items():
            for stat in stats:
                if is_base_file(_name(stat["path"] or "")):
                    yield self._written_base(partition, file_id, stat, files)
            logs = {_name(stat["path"]): stat["fileSizeInBytes"] or 0 for stat in stats if _is_log(stat)}
            if logs:
                own = {"log_files": tuple(logs), "log_sizes": tuple(logs.values())}
                before = earlier.get((partition, file_id))
                yield self._change(ChangeSource.LOG_FILES, partition, file_id, **own, before=before)

    def _of_replaced(self, earlier: Mapping[tuple[str, str], FileSlice]) -> Iterator[GroupChange]:
        removed = self._removed() if self._replaced else {}
        for partition, ids in self._replaced.items():
            for file_id in ids:
                group = partition, file_id
                before = earlier.get(group)
                if before is None or removed.get(group, "") > max(_instants(before)):
                    raise self._cleaned(f"the file group {file_id} in partition {partition!r}, which it replaced")
                yield self._change(ChangeSource.REMOVED_ROWS, partition, file_id, before=before)

    def _removed(self) -> Mapping[tuple[str, str], str]:
        """The newest file from before the commit that cleans took of each file group: a savepoint may have kept older ones."""
        timeline, completed = self._snapshot.timeline, self.instant.completed_at
        later = frozenset(i.time for i in timeline.writes if i.completed_at >= completed)
        return newest_removed(self._snapshot, completed, later | timeline.rolled_back)

    def _slices_before(self, files: pa.Table) -> dict[tuple[str, str], FileSlice]:
        """Slices of the listed partitions as they were just before the commit.

        Write stats name the slice that log files were appended to, but not with every index and not by every writer.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        from hudimeta.table.slices import build_slices

        visibility = self._snapshot.visibility
        completed = {t: c for t, c in visibility.completed.items() if c < self.instant.completed_at}
        # A savepointed commit is older than what counts as the first one that is not archived, and not archived itself.
        first = min(visibility.first_active or self.instant.time, self.instant.time)
        visibility = replace(visibility, completed=completed, first_active=first, as_of=None, replaced=None)
        mine = pc.is_in(files.column("partition_path"), value_set=pa.array(sorted(self.to_list()), pa.string()))
        slices = slices_of(build_slices(files.filter(mine), visibility))
        return {(s.partition_path, s.file_id): s for s in slices}

    def _change(self, source: ChangeSource, partition: str, file_id: str, **files: Any) -> GroupChange:
        own = {"base_file": None, "base_size": 0, **files}
        time = self.instant.time
        return GroupChange(partition, file_id, time, **own, source=source, instant=time, completed=self.instant.completed_at)

    def _written_base(self, partition: str, file_id: str, stat: _Stat, files: pa.Table | None) -> GroupChange:
        own = {"base_file": _name(stat["path"]), "base_size": stat["fileSizeInBytes"] or 0}
        sizes = {_name(path): size or 0 for path, size in sorted((stat["cdcStats"] or {}).items())}
        change_files = tuple(sizes)
        if not change_files and stat["prevCommit"] in _NO_COMMIT:
            return self._change(ChangeSource.NEW_ROWS, partition, file_id, **own)
        before = self._base_before(partition, file_id, stat, files)
        if change_files:
            source = ChangeSource.CHANGE_FILE
            own |= {"change_files": change_files, "change_sizes": tuple(sizes.values())}
            return self._change(source, partition, file_id, **own, before=before)
        if not stat["numWrites"] and stat["numDeletes"]:
            return self._change(ChangeSource.REMOVED_ROWS, partition, file_id, before=before)
        return self._change(ChangeSource.REWRITTEN, partition, file_id, **own, before=before)

    def _base_before(self, partition: str, file_id: str, stat: _Stat, files: pa.Table | None) -> FileSlice | None:
        """The base file that the commit rewrote; None where nothing needs it."""
        name, instant = stat["prevBaseFile"], stat["prevCommit"]
        if self._lacks_base(stat) and files is not None:
            import pyarrow.compute as pc

            listed = files.filter(pc.equal(files.column("partition_path"), partition)).column("name")
            near = listed.filter(pc.starts_with(listed, file_id)).to_pylist()
            parsed = ((n, parse_base_file(n)) for n in near)
            name = next((n for n, p in parsed if p is not None and (p.file_id, p.instant) == (file_id, instant)), None)
            if name is None:
                raise self._cleaned(f"the base file of {instant} of file group {file_id}, which it rewrote")
        return FileSlice(partition, file_id, instant, name, 0) if name else None

    def _lacks_base(self, stat: _Stat) -> bool:
        """True where the base file before is needed and the write stat does not name it. Full images need none."""
        if not is_base_file(_name(stat["path"] or "")) or stat["prevCommit"] in _NO_COMMIT or stat["prevBaseFile"]:
            return False
        return not (stat["cdcStats"] and self._snapshot.properties.cdc_mode is CdcMode.DATA_BEFORE_AFTER)

    def _cleaned(self, what: str) -> RangeLost:
        return RangeLost(
            f"the changes of commit {self.instant.time} cannot be known: cleaning has removed {what}",
            "Begin the range after this commit.",
        )


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _instants(found: FileSlice) -> Iterator[str]:
    """Of all files of a slice."""
    yield found.base_instant
    yield from (file.instant for file in map(parse_log_file, found.log_files) if file is not None)


def _is_log(stat: _Stat) -> bool:
    return parse_log_file(_name(stat["path"] or "")) is not None
