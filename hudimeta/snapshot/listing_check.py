"""Comparing what the metadata table lists with what lies on storage: for validation, and for reads that want to be sure.

Only files of completed writes count, on both sides. Storage is listed whole, folder by folder.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudimeta.cached import cached_property
from hudimeta.config import HudiWarning
from hudimeta.errors import CorruptFileError, MetadataError, ValidationFailed
from hudimeta.metering import Metric, meter_of, timed

if TYPE_CHECKING:
    import pyarrow as pa

    from hudimeta.metadata import MetadataTable
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["ListingDifference", "ListingPair", "check_against_storage", "compare_with_metadata"]

SHOWN = 5


@dataclass(frozen=True)
class ListingDifference:
    """Files of which storage and the metadata table say different things: how many, and the first few."""

    what: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {self.count - len(self.examples):,} more" if self.count > len(self.examples) else ""
        return f"{self.what}: {'; '.join(self.examples)}{more}"


class ListingPair:
    """The two listings of a snapshot's table; each is read once.

    Args:
        snapshot: Of a table with a metadata table.
        metadata: Its metadata table where the snapshot itself does not use it.
    """

    def __init__(self, snapshot: Snapshot, metadata: MetadataTable | None = None) -> None:
        self._snapshot, self._metadata = snapshot, metadata or snapshot.metadata

    @cached_property
    def stored(self) -> pa.Table:
        """Files on storage, but for what other attempts at tasks have left: partition_path, name, size."""
        from hudimeta.table.discovery import committed_files, list_table
        from hudimeta.table.stated_sizes import without_other_attempts

        timeline = self._snapshot.timeline
        meter = meter_of(self._snapshot.storage)
        with timed(meter, Metric.VALIDATE_PARTITIONS_DURATION), timed(meter, Metric.VALIDATE_FILES_DURATION):
            return committed_files(without_other_attempts(list_table(self._snapshot.storage), timeline), timeline)

    @cached_property
    def listed(self) -> pa.Table:
        """Files in the metadata table: partition_path, name, size."""
        from hudimeta.table.discovery import committed_files

        assert self._metadata is not None
        return committed_files(self._metadata.files(), self._snapshot.timeline)

    def differences(self) -> Iterator[ListingDifference]:
        """What the two do not agree on."""
        import pyarrow.compute as pc

        there, here = _paths(self.stored), _paths(self.listed)
        gone = pc.invert(pc.is_in(here, value_set=there))
        found = [_difference("listed but not on storage", here, gone)]
        found.append(_difference("on storage but not listed", there, pc.invert(pc.is_in(there, value_set=here))))
        if not self._snapshot.logs_name_base:  # elsewhere log files grow
            sizes = self.stored["size"].combine_chunks().take(pc.index_in(here, value_set=there))
            other = pc.fill_null(pc.not_equal(sizes, self.listed["size"].combine_chunks()), False)
            found.append(_difference("listed with another size", here, other))
        for difference in itertools.chain.from_iterable(found):
            meter_of(self._snapshot.storage).add(Metric.VALIDATE_ERRORS_COUNT, difference.count)
            yield difference


def check_against_storage(snapshot: Snapshot) -> str:
    """Compare the listings of a read before anything is read.

    Returns:
        What to note in the read's report.

    Raises:
        ValidationFailed: They differ although nothing has happened to the table meanwhile.
    """
    if snapshot.metadata is None:
        return "storage was listed for this read, so there was nothing to validate"
    pair = ListingPair(snapshot)
    found = list(pair.differences())
    if not found:
        return f"validated: storage has the {len(pair.stored):,} files that the metadata table lists"
    now = snapshot.properties.load_timeline(snapshot.storage)
    if now.instants != snapshot.timeline.instants:
        return "not validated: the table changed while its folders were listed"
    raise ValidationFailed(f"the metadata table and storage: {'. '.join(map(str, found))}")


def compare_with_metadata(snapshot: Snapshot) -> str:
    """Compare the metadata table with storage, for a read that goes by storage; a difference is a warning.

    Returns:
        What to note in the read's report.
    """
    if not snapshot.properties.has_metadata_table:
        return "the table has no metadata table, so there was nothing to validate"
    from hudimeta.metadata import MetadataTable

    try:
        metadata = MetadataTable.open(snapshot.storage, snapshot.properties, snapshot.timeline)
        pair = ListingPair(snapshot, metadata)
        found = [str(difference) for difference in pair.differences()]
    except (MetadataError, CorruptFileError) as error:
        found = [error.message]
    if not found:
        return f"validated: the metadata table lists the {len(pair.stored):,} files that storage has"
    if snapshot.properties.load_timeline(snapshot.storage).instants != snapshot.timeline.instants:
        return "not validated: the table changed while its folders were listed"
    text = f"the metadata table is not what storage has, which was read: {'. '.join(found)}"
    warnings.warn(f"{text}. t.metadata.rebuild() repairs it", HudiWarning, stacklevel=2)
    return text


def _paths(listing: pa.Table) -> pa.Array:
    import pyarrow.compute as pc

    joined = pc.binary_join_element_wise(listing["partition_path"], listing["name"], "/")
    return joined.combine_chunks()


def _difference(what: str, paths: pa.Array, chosen: pa.Array) -> Iterator[ListingDifference]:
    import pyarrow.compute as pc

    count = pc.sum(chosen).as_py() or 0
    if count:
        yield ListingDifference(what, count, tuple(paths.filter(chosen).slice(0, SHOWN).to_pylist()))
