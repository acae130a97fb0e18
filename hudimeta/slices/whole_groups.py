"""Updates that log only the columns that they set, in an incremental read.

The log files of a range do not hold the other columns of such a row. So the whole slice of its file group at the end of the
range is merged, with the rows of older commits; the read's predicate then keeps the rows of the range.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hudimeta.cached import cached_property
from hudimeta.config import OPTIONS, Options
from hudimeta.errors import FileRemoved
from hudimeta.slices.read_task import ReadTask, VisibleInstants
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, join

if TYPE_CHECKING:
    from hudimeta.storage import Storage

__all__ = ["WholeGroups"]


class WholeGroups:
    """Finds whole slices in place of those that the commits of a range made. Opens the table when it is first needed.

    Args:
        task: Of the read, with its range.
        storage: Rooted at the table.
    """

    def __init__(self, task: ReadTask, storage: Storage) -> None:
        self._task, self._storage = task, storage
        self._found: dict[str, dict[str, FileSlice]] = {}

    def of(self, file_slice: FileSlice) -> FileSlice:
        """The slice of a file group at the end of the range.

        Args:
            file_slice: What the commits of the range made of the group.

        Raises:
            FileRemoved: The group is gone.
            TableError: A cleaner has removed files of that moment.
        """
        partition = file_slice.partition_path
        if partition not in self._found:
            found = slices_of(self._snapshot.slices([partition]))
            self._found[partition] = {one.file_id: one for one in found}
        whole = self._found[partition].get(file_slice.file_id)
        if whole is None:
            raise FileRemoved(join(partition, file_slice.file_id), self._task.as_of or "")
        return whole

    @cached_property
    def task(self) -> ReadTask:
        """How they are read."""
        return replace(self._task, instants=VisibleInstants.of(self._snapshot.timeline), merged_range=None)

    @cached_property
    def _snapshot(self) -> Snapshot:
        options = Options(OPTIONS, {**self._task.merge_options, **self._task.storage_options})
        storage = self._storage if isinstance(self._storage, CountingStorage) else CountingStorage(self._storage)
        now = Snapshot.open(storage, options)
        assert self._task.merged_range is not None
        return now.at(self._task.as_of or "", unseen=self._task.merged_range.unseen)
