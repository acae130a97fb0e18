"""Holding a listing of storage against what commits say of their files: before anybody takes it for the truth.

A metadata table that is built from a listing states sizes from then on. It must not state those of files that were cut, and it
must not make the table forget those that are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hudimeta.errors import CorruptFileError
from hudimeta.formats.plain_arrays import booleans, integers, scalar_of, single_array, texts
from hudimeta.storage import join

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.timeline import Timeline
    from hudimeta.types import Instant

__all__ = ["files_of_write", "listed_as_stated", "lost_files", "refuse_lost_files", "without_other_attempts"]


def without_other_attempts(listing: pa.Table, timeline: Timeline) -> pa.Table:
    """A listing without base files that stand beside the one which a commit names, of its instant and file group.

    An attempt at a task that was begun again has left them, whole or torn; of archived commits nobody knows which they are.

    Args:
        listing: partition_path, name, size.
        timeline: Of the table; of its writes that are asked for the metadata is read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from hudimeta.table.file_names import parse_names

    names, folders = single_array(listing["name"]), single_array(listing["partition_path"].cast(pa.string()))
    parsed, slash = parse_names(names), texts(["/"])[0]
    base = booleans(parsed.valid & ~parsed.is_log)
    slices = pc.binary_join_element_wise(folders, parsed.file_ids, integers(parsed.instants).cast(pa.string()), slash)
    counted = slices.filter(base).value_counts()
    several = counted.field("values").filter(pc.greater(counted.field("counts"), scalar_of(1)))
    if not len(several):
        return listing
    among = pc.and_(base, pc.is_in(slices, value_set=several))
    paths = pc.binary_join_element_wise(folders, names, slash)
    found: dict[str, set[str]] = {}
    for one, path in zip(slices.filter(among).to_pylist(), paths.filter(among).to_pylist(), strict=True):
        found.setdefault(one, set()).add(path)
    left = [path for some in found.values() for path in some - (_named(some, timeline) or some)]
    kept: pa.Table = listing.filter(pc.invert(pc.is_in(paths, value_set=texts(left))))
    return kept


def _named(paths: set[str], timeline: Timeline) -> set[str]:
    """Those of some base files of one instant that its commit names; none where it is not active."""
    from hudimeta.table.file_names import parse_base_file

    file = parse_base_file(min(paths).rpartition("/")[2])
    write = next((i for i in timeline.writes if file is not None and i.time == file.instant), None)
    named = () if write is None or write in timeline.empty_writes else files_of_write(timeline.metadata(write))
    return {f"{partition}/{name}" for partition, name, _ in named} & paths


def _telling(timeline: Timeline) -> list[Instant]:
    """The writes of a timeline that tell what they wrote, read at once: all but those whose file has lost its content."""
    telling = [instant for instant in timeline.writes if instant not in timeline.empty_writes]
    timeline.prefetch(telling)
    return telling


def listed_as_stated(listing: pa.Table, timeline: Timeline) -> pa.Table:
    """A listing with the sizes that the commits of the active timeline state, where storage has at least as many bytes.

    Without what other attempts at tasks have left.

    Args:
        listing: partition_path, name, size.
        timeline: Of the table; the metadata of all its writes is read.

    Raises:
        CorruptFileError: A file is shorter than its commit says, or it is a base file and longer.
    """
    import pyarrow as pa

    listing = without_other_attempts(listing, timeline)
    stated: dict[tuple[str, str], list[int]] = {}
    for instant in _telling(timeline):
        for partition, name, size in files_of_write(timeline.metadata(instant)):
            stated.setdefault((partition, name), []).append(size)
    sizes = []
    for partition, name, size in zip(*(listing[c].to_pylist() for c in ("partition_path", "name", "size")), strict=True):
        known = stated.get((partition, name), [])
        least = max(known, default=0)
        if size < least or (known and size > least and not name.startswith(".")):
            raise CorruptFileError(join(partition, name), min(size, least), f"a file of {least} bytes", f"{size} bytes")
        # Several commits that name one log file have appended to it, and what they state may be their own share.
        sizes.append(least if len(known) == 1 and least else size)
    return listing.set_column(listing.schema.get_field_index("size"), "size", pa.array(sizes, pa.int64()))


def lost_files(listing: pa.Table, timeline: Timeline) -> list[str]:
    """Paths of the files that belong to the newest file slices, as commits of the active timeline state, and are not listed.

    Cleaning takes files of older slices and of replaced file groups only.

    Args:
        listing: partition_path, name, size.
        timeline: Of the table, listed before storage was; the metadata of all its writes is read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from hudimeta.table.slices import build_slices
    from hudimeta.table.visibility import Visibility

    stated = {(p, name): size for i in _telling(timeline) for p, name, size in files_of_write(timeline.metadata(i))}
    there = pc.binary_join_element_wise(listing["partition_path"].cast(pa.string()), listing["name"], "/")
    asked = pa.array([f"{partition}/{name}" for partition, name in stated], pa.string())
    is_there = pc.is_in(asked, value_set=there).to_pylist()
    missing = [(*path, size) for (path, size), found in zip(stated.items(), is_there, strict=True) if not found]
    if not missing:
        return []
    columns = listing.select(["partition_path", "name", "size"]).schema
    rows = [pa.array(list(column), kind) for column, kind in zip(zip(*missing, strict=True), columns.types, strict=True)]
    every = pa.concat_tables([listing.select(columns.names), pa.table(rows, schema=columns)]).sort_by("partition_path")
    needed = {
        (row["partition_path"], name)
        for row in build_slices(every, Visibility.of(timeline)).to_pylist()
        for name in (row["base_file"], *row["log_files"])
    }
    return sorted(join(partition, name) for partition, name, _ in missing if (partition, name) in needed)


def refuse_lost_files(listing: pa.Table, timeline: Timeline) -> None:
    """Make sure that storage has what the newest file slices are made of; see `lost_files`.

    Raises:
        CorruptFileError: A file is gone.
    """
    for path in (lost := lost_files(listing, timeline)):
        more = f", and {len(lost) - 1:,} more" if len(lost) > 1 else ""
        hint = "Restore the file from a copy, or go on without its rows: t.metadata.rebuild() leaves lost files out."
        raise CorruptFileError(path, 0, f"the file that a commit names{more}", "none", hint)


def files_of_write(metadata: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Partition, name and size of each file that a write made."""
    for partition, stats in (metadata.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            named = [(stat.get("path") or "", stat.get("fileSizeInBytes") or 0), *(stat.get("cdcStats") or {}).items()]
            yield from ((partition, path.rpartition("/")[2], size) for path, size in named if path and size)
