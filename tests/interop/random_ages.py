"""Partitions of random tables that outlive their time, from seed 900 on: their first rows are some days old.

From seed 1000 on some tables look for them after every write, as `hoodie.partition.ttl.inline` says.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hudimeta
from hudimeta.engine.machine import ThisMachine
from hudimeta.snapshot.planned_groups import groups_in_plans
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.table.file_names import parse_log_file
from hudimeta.types import Operation
from tests.interop.random_tables import Kind

POLICIES = ("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME")
INLINE, POLICY = "hoodie.partition.ttl.inline", "hoodie.partition.ttl.management.strategy.type"
EXPIRY = {"hoodie.partition.ttl.strategy.days.retain": "1"}
DAY_MS = 86_400_000


class DaysAgo(ThisMachine):
    """This machine some days ago.

    Args:
        days: How many.
    """

    threads = False  # others would be on this machine today

    def __init__(self, days: int) -> None:
        self._less = days * DAY_MS

    def now_ms(self) -> int:
        return super().now_ms() - self._less


def expired(path: Path, policy: str, ours: bool) -> set[str]:
    """Partitions with rows whose time is over, by what lies in their folders.

    Apache Hudi goes by base files alone; to us a log file that was just written keeps its partition as well.
    """
    newest: dict[str, str] = {}
    for one in hudimeta.Table(path).file_slices().to_pylist():
        logs = [log for log in map(parse_log_file, one["log_files"]) if log is not None]
        times = [one["base_instant"], *(log.instant for log in logs if ours)]
        newest[one["partition_path"]] = max([newest.get(one["partition_path"], ""), *times])
    if policy == "KEEP_BY_CREATION_TIME":
        newest = {folder: _created(path / folder / PARTITION_METAFILE) for folder in newest}
    return {folder for folder, time in newest.items() if _is_over(time)}


def places_of(path: Path, kind: Kind) -> dict[tuple[object, ...], str]:
    """The folders of partitions that have rows."""
    rows = hudimeta.Table(path).scan().to_table().to_pylist()
    return {kind.place_of(row): str(row["_hoodie_partition_path"]) for row in rows}


def _is_over(time: str) -> bool:
    yesterday = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
    return time < yesterday.strftime("%Y%m%d%H%M%S000")


def _created(metafile: Path) -> str:
    lines = metafile.read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("commitTime="))


@dataclass(frozen=True)
class AfterWrite:
    """What a write shall be followed by, where partitions that have outlived their time are looked for after each.

    Attributes:
        path: Of the table.
        policy: How time is reckoned.
        known: Instants before the write.
        groups: File groups before it.
        over: Partitions whose time was over before it, to Apache Hudi and to us.
    """

    path: Path
    policy: str
    known: frozenset[str]
    groups: frozenset[str]
    over: tuple[frozenset[str], frozenset[str]]

    @classmethod
    def of(cls, path: Path, policy: str) -> AfterWrite:
        """Look before the write."""
        table = hudimeta.Table(path)
        known = frozenset(instant.time for instant in table.timeline.writes)
        groups = frozenset(table.file_slices()["file_id"].to_pylist())
        theirs, ours = (frozenset(expired(path, policy, ours)) for ours in (False, True))
        return cls(path, policy, known, groups, (theirs, ours))

    def checked(self) -> set[str]:
        """What went after the write; raises AssertionError unless it is what had to go."""
        timeline = hudimeta.Table(self.path).timeline
        new = [timeline.metadata(instant) for instant in timeline.writes if instant.time not in self.known]
        if not new:
            return set()  # rows that nobody found
        removals = [write for write in new[1:] if _removes(write)]
        taken = {folder for write in removals for folder, ids in write["partitionToReplaceFileIds"].items() if ids}
        due = self._due(new)
        assert taken == due, f"partitions that expired: {sorted(taken)}, and should have: {sorted(due)}"
        return taken

    def _due(self, new: list[dict[str, Any]]) -> set[str]:
        """Partitions that had to go: what was written to lives on, unless the time runs from when a partition was made.

        Where a planned service takes files of one, Apache Hudi leaves all of them to another time.
        """
        ours = any(name.startswith("hudimeta.") for name in new[0]["extraMetadata"] or ())
        over = self._over_after(new, ours)
        busy = {group.partition_path for group in groups_in_plans(hudimeta.Table(self.path).timeline)} & over
        return over - busy if ours or not busy else set()

    def _over_after(self, new: list[dict[str, Any]], ours: bool) -> set[str]:
        writes = (new[0], *(write for write in new[1:] if not _removes(write)))
        stats = [(folder, s) for write in writes for folder, stats in write["partitionToWriteStats"].items() for s in stats]
        over = self.over[ours] - {folder for folder, ids in new[0].get("partitionToReplaceFileIds", {}).items() if ids}
        if self.policy == "KEEP_BY_TIME":
            return over - {folder for folder, stat in stats if ours or self._renews(stat)}
        return over | {folder for folder, _ in stats if _is_over(_created(self.path / folder / PARTITION_METAFILE))}

    def _renews(self, stat: dict[str, Any]) -> bool:
        return ".log." not in stat["path"] or stat["fileId"] not in self.groups


def _removes(write: dict[str, Any]) -> bool:
    return bool(write["operationType"] == Operation.DELETE_PARTITION.value)
