"""Partitions without a sound metafile: without it nobody finds their files by listing folders.

The metafile says which write made the partition: the earliest of those whose files are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hudimeta.commit.session import WriteSession
from hudimeta.errors import CorruptFileError
from hudimeta.formats.properties import decode_properties
from hudimeta.keys.partition_metafile import partition_metafile
from hudimeta.services.repair.findings import Finding, RepairReport
from hudimeta.storage import FileInfo, Storage, join
from hudimeta.table.discovery import PARTITION_METAFILE, folders_with_files
from hudimeta.table.file_names import parse_base_file, parse_log_file
from hudimeta.timeline import Timeline

__all__ = ["repair_metafiles"]


def repair_metafiles(session: WriteSession, *, dry_run: bool) -> RepairReport:
    """Write the metafiles that partitions with committed files lack, and those that cannot be read.

    Args:
        session: The table.
        dry_run: Only look.
    """
    folders = folders_with_files(session.storage)
    timeline = session.properties.load_timeline(session.storage)
    found = list(_missing(session.storage, timeline, folders))
    for folder, instant, _ in () if dry_run else found:
        depth = folder.count("/") + 1 if folder else 0
        session.storage.put(join(folder, PARTITION_METAFILE), partition_metafile(instant, depth))
    cure = "written with the earliest write whose files are there"
    findings = [Finding(join(folder, PARTITION_METAFILE), why, cure) for folder, _, why in found]
    return RepairReport(tuple(findings), not dry_run)


def _missing(
    storage: Storage, timeline: Timeline, folders: Sequence[tuple[str, list[FileInfo]]]
) -> Iterator[tuple[str, str, str]]:
    """Partition path, earliest committed instant of its files, and what is wrong with its metafile."""
    for folder, files in folders:
        marks = [file.name for file in files if file.name.startswith(PARTITION_METAFILE)]
        times = [time for file in files if (time := _instant_of(file.name)) is not None and timeline.is_committed(time)]
        if not times:
            continue
        if not marks:
            yield folder, min(times), "the partition has no metafile"
        elif marks == [PARTITION_METAFILE] and not _is_sound(storage, join(folder, PARTITION_METAFILE)):
            yield folder, min(times), "the partition's metafile does not say which write made it"


def _instant_of(name: str) -> str | None:
    parsed = parse_base_file(name) or parse_log_file(name)
    return None if parsed is None else parsed.instant


def _is_sound(storage: Storage, path: str) -> bool:
    try:
        found = decode_properties(storage.read(path), path)
    except CorruptFileError:
        return False
    return bool(found.get("commitTime")) and found.get("partitionDepth", "").isdigit()
