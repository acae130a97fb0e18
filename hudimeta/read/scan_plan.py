"""What a scan will read: its files, and shares of them for several readers."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudimeta.config import checked
from hudimeta.indexes.scan_report import ScanReport
from hudimeta.read.split import Split, pack_slices
from hudimeta.reports import Report
from hudimeta.snapshot.file_slice import slices_of

__all__ = ["ScanPlan", "total"]

_SHOWN = 20


@dataclass(frozen=True, repr=False)
@checked
class ScanPlan(Report):
    """What a scan will read; prints as a list of files.

    Attributes:
        slices: Arrow table with the columns of `Table.file_slices()`, one row per file slice.
        report: What planning found and cost.
        split_bytes: Target size of a split.
        lost: What cleaning and archival took from a range of commits, in words.
    """

    slices: pa.Table
    report: ScanReport
    split_bytes: int
    lost: tuple[str, ...] = ()

    def splits(self, target_bytes: int | None = None, at_most: int | None = None) -> list[Split]:
        """The slices packed for several readers; see `split.pack_slices`."""
        return pack_slices(slices_of(self.slices), target_bytes or self.split_bytes, at_most)

    @property
    def files(self) -> list[str]:
        """Paths of all base and log files, relative to the table, in the order of reading."""
        return [path for s in slices_of(self.slices) for path in ((s.base_path,) if s.base_path else ()) + s.log_paths]

    def __str__(self) -> str:
        lines = [str(self.report), ""]
        for file_slice in slices_of(self.slices.slice(0, _SHOWN)):
            lines += [f"  {path}" for path in (file_slice.base_path, *file_slice.log_paths) if path]
        if self.slices.num_rows > _SHOWN:
            lines.append(f"  ... and {self.slices.num_rows - _SHOWN:,} more slices")
        return "\n".join(lines)


def total(column: pa.ChunkedArray, lengths: bool = False) -> int:
    """Sum of numbers, or of the numbers in lists, or of the lists' lengths."""
    import pyarrow.compute as pc

    if lengths:
        column = pc.list_value_length(column)
    elif pa.types.is_list(column.type):
        column = pc.list_flatten(column)
    return pc.sum(column).as_py() or 0
