"""What the log files of one file group say, in the order in which it counts.

Every block is an entry: records (an HFile), removed keys (a delete block), or the withdrawal of an earlier instant (a command
block, version 6 only). Two rules bend the order of the files: a withdrawal takes back the entries of its target that came
before it, and an entry made by a log compaction takes the place of the newest entry that it covers, which all disappear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.hfile import HFileReader
from hudimeta.metadata.group_files import instant_in
from hudimeta.metadata.payload import column_of

__all__ = ["LogEntry", "arrange", "read_entries"]


@dataclass(frozen=True)
class LogEntry:
    """One block.

    Attributes:
        instant: Requested time of its writer.
        covered: Instants that a log compaction merged into it.
        path: File, for errors.
        reader: The records; None for other blocks.
        deleted: Removed keys, string; None for others.
        withdraws: Instant that is taken back; None for other blocks.
        rows: The records in decoded form where they were not read from a log file at all; else None.
    """

    instant: str
    path: str
    covered: tuple[str, ...] = ()
    reader: HFileReader | None = None
    deleted: pa.Array | None = None
    withdraws: str | None = None
    rows: pa.Table | None = None


def read_entries(data: bytes, path: str, torn_tails: bool = False, size: int | None = None) -> list[LogEntry]:
    """Cut a log file into entries, in file order; empty ones are left out.

    Args:
        data: The whole file.
        path: For errors.
        torn_tails: Accept blocks that a dead writer left unfinished (version 6, where writers append to one another's files).
        size: Bytes that the file has as its commit or a listing says; None when it is not known.

    Raises:
        CorruptFileError: Damaged bytes.
        UnsupportedFeature: A block that metadata tables do not have.
    """
    # Not needed where the data table's own commits tell what the logs hold, so a process that lists files starts without it.
    from hudimeta.formats.log import BlockType, decode_delete_block, read_blocks

    if size and len(data) < size:
        raise CorruptFileError(path, len(data), f"a file of {size} bytes", f"its end after {len(data)}")
    scan = read_blocks(data, path, None if torn_tails else size)
    if scan.corrupt and not torn_tails:
        raise CorruptFileError(path, scan.corrupt[0].offset, "whole log blocks", scan.corrupt[0].reason)
    named = instant_in(path.rpartition("/")[2])
    for block in scan.blocks:
        if named is not None and block.instant < named:
            raise block.damaged(f"a block of an instant since {named}", f"one of {block.instant}")
    if not scan.blocks and not torn_tails:
        raise CorruptFileError(path, 0, "log blocks", "an empty file")
    entries = []
    for block in scan.blocks:
        if block.type is BlockType.HFILE_DATA:
            reader = HFileReader(block.content, path)
            entries.append(LogEntry(block.instant, path, block.compacted_instants, reader))
        elif block.type is BlockType.DELETE:
            keys = column_of(decode_delete_block(block), "record_key")
            if len(keys):
                entries.append(LogEntry(block.instant, path, block.compacted_instants, deleted=keys.cast(pa.string())))
        elif block.type is BlockType.COMMAND:
            entries.append(LogEntry(block.instant, path, withdraws=block.rollback_target))
        else:
            raise UnsupportedFeature(f"a log block of type {block.type.name} in the metadata table ({path})")
    return entries


def arrange(entries: Sequence[LogEntry], is_visible: Callable[[str], bool]) -> list[LogEntry]:
    """Entries that count, oldest first.

    Args:
        entries: Of one file group, in file order.
        is_visible: Which instants count.
    """
    by_instant: dict[str, list[LogEntry]] = {}
    for entry in entries:
        if entry.withdraws is not None:
            by_instant.pop(entry.withdraws, None)
        elif is_visible(entry.instant):
            by_instant.setdefault(entry.instant, []).append(entry)
    position = {instant: at for at, instant in enumerate(by_instant)}
    covers = {i: {c for e in found for c in e.covered if c != i} for i, found in by_instant.items()}
    gone = {covered for instants in covers.values() for covered in instants}

    def place(instant: str) -> int:
        known = [place(c) for c in covers.get(instant, ()) if c in position]
        return max(known, default=position[instant])

    kept = sorted((i for i in by_instant if i not in gone), key=lambda i: (place(i), position[i]))
    return [entry for instant in kept for entry in by_instant[instant]]
