"""What the attached door did for each scan of a query."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from hudimeta.reports import Report

if TYPE_CHECKING:
    from hudimeta.indexes.scan_report import ScanReport

__all__ = ["AttachedScan", "ScanLog"]

KEPT = 256
"""Reports that an attached session remembers."""


@dataclass(frozen=True, repr=False)
class AttachedScan(Report):
    """How one scan of one query was planned.

    Attributes:
        table: Its location.
        report: What planning found: files in all and kept, what left out the others, why no more could be left out. None when
            the scan was left to the Python source, which plans by itself.
        filters: What Catalyst handed over, as SQL.
        not_understood: Those of `filters`, or parts of them, that could skip nothing; Spark applies all of them to the rows, in
            any case.
        native_files: Base files that Spark reads as they are.
        replaced_rows: Rows of them that log files replace or delete.
        merged_slices, merged_rows: Slices with log files, and the rows that stand in their logs now: Python merged them, once
            for as long as the files are the same, and Spark reads them beside the base files.
        converted_slices: Slices that Spark's reader cannot bring to the table's columns, which Python read and wrote anew.
        why_python: Why the Python source reads the scan instead of Spark's own reader; "" when it does not.
    """

    table: str
    report: ScanReport | None = None
    filters: tuple[str, ...] = ()
    not_understood: tuple[str, ...] = ()
    native_files: int = 0
    replaced_rows: int = 0
    merged_slices: int = 0
    merged_rows: int = 0
    converted_slices: int = 0
    why_python: str = ""

    @property
    def files(self) -> int:
        """Base and log files of the partitions that were looked up."""
        return self.report.files if self.report is not None else 0

    @property
    def files_kept(self) -> int:
        """Base and log files that are read."""
        return self.report.files_kept if self.report is not None else 0

    def __str__(self) -> str:
        if self.report is None:
            return f"table       {self.table}\nread by     the Python source: {self.why_python}"
        lines = [str(self.report), f"read by     Spark's own reader: {self.native_files:,} base files"]
        if self.merged_slices:
            lines.append(
                f"merged      {self.merged_slices:,} slices with log files: {self.merged_rows:,} rows, "
                f"in place of {self.replaced_rows:,} of the base files"
            )
        if self.converted_slices:
            lines.append(
                f"converted   {self.converted_slices:,} slices whose columns Spark's reader cannot bring to the table's"
            )
        lines += [f"not used    {text}" for text in self.not_understood]
        return "\n".join(lines)


class ScanLog:
    """The latest reports of a session; safe for several threads."""

    def __init__(self) -> None:
        self._reports: deque[AttachedScan] = deque(maxlen=KEPT)
        self._lock = Lock()

    def add(self, report: AttachedScan) -> None:
        """Remember one more."""
        with self._lock:
            self._reports.append(report)

    def latest(self) -> tuple[AttachedScan, ...]:
        """All that are remembered, oldest first."""
        with self._lock:
            return tuple(self._reports)
