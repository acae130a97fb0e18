"""Partitions of random tables that outlive their time, from seed 900 on: their first rows are some days old."""

from __future__ import annotations

import datetime
from pathlib import Path

import hudimeta
from hudimeta.engine.machine import ThisMachine
from hudimeta.table.discovery import PARTITION_METAFILE
from hudimeta.table.file_names import parse_log_file

POLICIES = ("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME")
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
    yesterday = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)).strftime("%Y%m%d%H%M%S000")
    newest: dict[str, str] = {}
    for one in hudimeta.Table(path).file_slices().to_pylist():
        logs = [log for log in map(parse_log_file, one["log_files"]) if log is not None]
        times = [one["base_instant"], *(log.instant for log in logs if ours)]
        newest[one["partition_path"]] = max([newest.get(one["partition_path"], ""), *times])
    if policy == "KEEP_BY_CREATION_TIME":
        newest = {folder: _created(path / folder / PARTITION_METAFILE) for folder in newest}
    return {folder for folder, time in newest.items() if time < yesterday}


def _created(metafile: Path) -> str:
    lines = metafile.read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("commitTime="))
