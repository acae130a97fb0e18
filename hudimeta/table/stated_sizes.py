"""Holding a listing of storage against what commits say of their files: before anybody takes it for the truth.

A metadata table that is built from a listing states sizes from then on. It must not state those of files that were cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hudimeta.errors import CorruptFileError
from hudimeta.storage import join

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.timeline import Timeline

__all__ = ["files_of_write", "listed_as_stated"]


def listed_as_stated(listing: pa.Table, timeline: Timeline) -> pa.Table:
    """A listing with the sizes that the commits of the active timeline state, where storage has at least as many bytes.

    Args:
        listing: partition_path, name, size.
        timeline: Of the table; the metadata of all its writes is read.

    Raises:
        CorruptFileError: A file is shorter than its commit says, or it is a base file and longer.
    """
    import pyarrow as pa

    stated: dict[tuple[str, str], list[int]] = {}
    timeline.prefetch(timeline.writes)
    for instant in timeline.writes:
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


def files_of_write(metadata: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Partition, name and size of each file that a write made."""
    for partition, stats in (metadata.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            named = [(stat.get("path") or "", stat.get("fileSizeInBytes") or 0), *(stat.get("cdcStats") or {}).items()]
            yield from ((partition, path.rpartition("/")[2], size) for path, size in named if path and size)
