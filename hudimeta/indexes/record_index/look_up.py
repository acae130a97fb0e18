"""The record index: the metadata table says in which file group each key lives; no data file is opened.

It knows keys in every partition (global), or each partition has one of its own (partitioned). What it says must agree with the
table: a location whose file group is gone means that somebody wrote without keeping it, and then nothing it says is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import MetadataOutOfSync
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of, single_array
from hudimeta.indexes.tagging import IndexKind, Tagging
from hudimeta.table.key_file import FilesOf, KeyFile

__all__ = ["LocationSource", "RecordIndexLookUp"]

LocationSource = Callable[[pa.Array], pa.Table]
"""Locations of record keys (each once): record_key, partition_path, file_id; keys that are not there have no row."""


class RecordIndexLookUp:
    """Asks the metadata table.

    Args:
        locate: Looks keys up.
        files_of: The table's files.
        partitioned: Each partition has an index of its own, so that keys are looked for in their own partition.
        unproven: Why nothing proves that the index lacks no row; "" for one that is proven complete.
    """

    kind = IndexKind.RECORD_INDEX

    def __init__(self, locate: LocationSource, files_of: FilesOf, *, partitioned: bool = False, unproven: str = "") -> None:
        self.is_global = not partitioned
        self._locate, self._files_of, self._unproven = locate, files_of, unproven

    def tag(self, keys: pa.StringArray, partitions: pa.StringArray) -> Tagging:
        """See `Index`.

        Raises:
            MetadataOutOfSync: The index names a file group that the table does not have.
        """
        found = self._locate(keys.unique())
        row, at = self._matches(found, keys, partitions)
        places = found.select(["partition_path", "file_id"]).take(array_of(at))
        asked = sorted(set(pc.unique(places["partition_path"]).to_pylist()))
        # Files of the batch's own partitions are listed in any case, for placing new rows: the same look-up serves both.
        files = self._files_of(sorted({*asked, *partitions.unique().to_pylist()}))
        numbers, held = _numbered(places, files)
        order = np.argsort(row, kind="stable")
        title = self.kind.title if self.is_global else f"partitioned {self.kind.title}"
        return Tagging(row[order], numbers[order], held, asked=len(keys), title=title, note=self._unproven)

    def _matches(
        self, found: pa.Table, keys: pa.StringArray, partitions: pa.StringArray
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Pairs of (row of the batch, row of `found`) that belong together."""
        if self.is_global:
            wanted, have = keys, pc.cast(found["record_key"], pa.string())
        else:
            wanted = pc.binary_join_element_wise(partitions, keys, scalar_of("\0"))
            have = pc.binary_join_element_wise(found["partition_path"], found["record_key"], scalar_of("\0"))
        at = numpy_of(fill_null(pc.index_in(wanted, value_set=have), -1))
        row = np.flatnonzero(at >= 0)
        return row, at[row].astype(np.int64)


def _numbered(places: pa.Table, files: Mapping[str, Sequence[KeyFile]]) -> tuple[np.ndarray[Any, Any], list[KeyFile]]:
    """The file slice of each place, as a number into the second result."""
    names = single_array(
        pc.binary_join_element_wise(
            places["partition_path"].cast(pa.string()), places["file_id"].cast(pa.string()), scalar_of("\0")
        )
    )
    coded = names.dictionary_encode()
    pairs = [(partition, file_id) for name in coded.dictionary.to_pylist() for partition, _, file_id in [name.partition("\0")]]
    known = {(p, f.file_id): f for p in {partition for partition, _ in pairs} for f in files.get(p, ())}
    held = []
    for partition, file_id in pairs:
        slice_of = known.get((partition, file_id))
        if slice_of is None:
            raise MetadataOutOfSync("files", f"file group {file_id} of {partition!r}, in which the record index has a key")
        held.append(slice_of)
    return numpy_of(coded.indices).astype(np.int64), held
