"""Which blocks of a file slice's log files count, and in which order.

The order is Hudi's: files by requested instant, version, write token and suffix; blocks as they stand in the files, gathered by
their instant in order of first appearance. A rollback block takes back what its target has written before it. A block of a log
compaction stands for the blocks that it was made of and takes the place of the newest of them, because its own instant may be
later than that of a log which it does not cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hudimeta.formats.log import BlockType, CorruptSpan, LogBlock, LogScan
from hudimeta.table.file_names import LogFileName

__all__ = ["SliceBlocks", "SliceLog", "file_order", "scan_slice_logs"]


@dataclass(frozen=True, slots=True)
class SliceLog:
    """One log file of a slice, cut into blocks.

    Attributes:
        name: What its file name says.
        scan: What `read_blocks` found in it.
    """

    name: LogFileName
    scan: LogScan


@dataclass(frozen=True, slots=True)
class SliceBlocks:
    """The blocks that a reader merges, and an account of the others.

    Attributes:
        blocks: Data and delete blocks, oldest first.
        corrupt: Spans that are no blocks, in the order of the files.
        invisible: Blocks of instants that the reader must not see.
        rolled_back: Blocks that a rollback block took back.
        superseded: Blocks that a log compaction has merged into another.
    """

    blocks: list[LogBlock]
    corrupt: list[CorruptSpan]
    invisible: int = 0
    rolled_back: int = 0
    superseded: int = 0


def scan_slice_logs(logs: Iterable[SliceLog], *, visible: Callable[[str], bool], as_of: str | None = None) -> SliceBlocks:
    """Choose and order the blocks of one file slice.

    Args:
        logs: The slice's log files in any order; files of change images are passed over.
        visible: Says of an instant's requested time whether its blocks may be seen: completed, and in the range of an
            incremental read. It is asked for every block, because in a table of version 6, and in files that an upgraded
            table keeps from then, one file holds the blocks of several instants, finished or not.
        as_of: Blocks with a later INSTANT_TIME are left out; None leaves none out.

    Raises:
        CorruptFileError: A block without an instant, or a command block that does not add up.
        UnsupportedFeature: A command other than rollback.
    """
    ordered = sorted((log for log in logs if not log.name.is_cdc), key=lambda log: file_order(log.name))
    corrupt = [span for log in ordered for span in log.scan.corrupt]
    by_instant: dict[str, list[LogBlock]] = {}
    invisible = rolled_back = 0
    for block in (block for log in ordered for block in log.scan.blocks):
        target = block.rollback_target
        if target is not None:
            rolled_back += len(by_instant.pop(target, ()))
        elif block.type is BlockType.CDC_DATA:
            continue
        elif (as_of is not None and block.instant > as_of) or not visible(block.instant):
            invisible += 1
        else:
            by_instant.setdefault(block.instant, []).append(block)
    total = sum(map(len, by_instant.values()))
    blocks = [block for instant in _replace_compacted(by_instant) for block in by_instant[instant]]
    return SliceBlocks(blocks, corrupt, invisible, rolled_back, total - len(blocks))


def file_order(name: LogFileName) -> tuple[str, int, str, bool]:
    """Sorts log files as readers take them; Hudi compares write tokens as text."""
    return name.instant, name.version, name.write_token, name.is_cdc


def _replace_compacted(by_instant: dict[str, list[LogBlock]]) -> list[str]:
    """The instants to merge, oldest first: those that log compactions have merged are gone, the compactions in their place."""
    stands_for: dict[str, str] = {}
    originals: dict[str, set[str]] = {}
    for instant in reversed(by_instant):
        merged = {time for block in by_instant[instant] for time in block.compacted_instants} - {instant}
        # A log compaction may itself have been compacted: its originals then belong to the later one.
        final = stands_for.get(instant, instant)
        originals[instant] = merged
        for time in merged:
            stands_for.setdefault(time, final)
    order: dict[str, None] = {}
    for instant in reversed(by_instant):
        # What was merged is as old as its originals, whenever that was; where they are gone, nothing else tells.
        if not any(time in by_instant for time in originals[instant]):
            order.setdefault(stands_for.get(instant, instant))
    return list(reversed(order))
