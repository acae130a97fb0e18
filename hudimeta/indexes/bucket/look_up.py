"""The bucket index: the hash of a key says which file group of its partition it lives in; nothing is looked up.

    file id    <bucket number, 8 digits> <the last 28 characters of a UUID> "-0", such as 00000003-f8f0-4cea-999c-5f822e1792a5-0
               <bucket number, 8 digits> "-0000-0000-0000-000000000000-0"    where writers do not block each other

An overwrite or a delete of a partition takes file groups out for good. Writers that do not block each other then begin a bucket
with an id that they all make of its old one and of the instant that took it out.

Each partition has one file group for each bucket that ever held a key. The number of buckets stands nowhere in what Apache Hudi
writes, it is an option that every writer must give alike; unless the table has rules for it (`partition_rules`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.engine.machine import machine
from hudimeta.errors import ConfigError
from hudimeta.indexes.bucket.hash_keys import list_hashes
from hudimeta.indexes.bucket.partition_rules import PartitionRules
from hudimeta.indexes.bucket.taken_out import taken_out
from hudimeta.indexes.tagging import IndexKind, NewGroups, Tagging
from hudimeta.table.key_file import FilesOf, KeyFile
from hudimeta.table.positions import positions_by_number, positions_by_text
from hudimeta.timeline import Timeline

__all__ = ["BucketLookUp", "Buckets", "SimpleBuckets", "bucket_of_file_id", "looks_bucketed"]

_COMPARED = 1_000
"""Keys that are compared with their bucket: by twice the table's number half of them lie where they should."""
_DIGITS = 8
_FIXED = "-0000-0000-0000-000000000000-0"


class Buckets(Protocol):
    """How one partition is cut into buckets.

    Attributes:
        title: For reports.
        logs_first: In a merge-on-read table a bucket begins with a log file, not with a base file.
    """

    title: str
    logs_first: bool

    def numbers(self, partition: str, keys: pa.StringArray) -> np.ndarray[Any, Any]:
        """The bucket of each key: int64."""
        ...

    def place(self, partition: str, files: Sequence[KeyFile]) -> Mapping[int, KeyFile]:
        """The file group of each bucket that has one.

        Raises:
            ConfigError: File groups that are no buckets of this kind.
        """
        ...

    def new_file_id(self, partition: str, number: int, *, again: bool = False) -> str:
        """Id of a bucket's file group; `again` when an overwrite takes the old one out."""
        ...


class BucketLookUp:
    """Sends keys to buckets.

    Args:
        files_of: The table's files.
        buckets: How partitions are cut.
    """

    kind = IndexKind.BUCKET
    is_global = False

    def __init__(self, files_of: FilesOf, buckets: Buckets) -> None:
        self._files_of, self._buckets = files_of, buckets

    def tag(self, keys: pa.StringArray, partitions: pa.StringArray) -> Tagging:
        """See `Index`: every row belongs to a file group, be its key there or not."""
        shares = positions_by_text(partitions)
        files = self._files_of(list(shares))
        held: list[KeyFile] = []
        file = np.full(len(keys), -1, dtype=np.int64)
        new_groups = _NewGroupsBuilder(self._buckets, len(keys))
        for partition, rows in shares.items():
            there = self._buckets.place(partition, files.get(partition, ()))
            for number, at in positions_by_number(self._buckets.numbers(partition, keys.take(pa.array(rows)))):
                if number in there:
                    file[rows[at]] = len(held)
                    held.append(there[number])
                else:
                    new_groups.add(partition, number, rows[at])
        row = np.flatnonzero(file >= 0)
        return Tagging(
            row, file[row], held, asked=len(keys), title=self._buckets.title, exact=False, new_groups=new_groups.built()
        )

    def new_groups(self, keys: pa.StringArray, partitions: pa.StringArray) -> NewGroups:
        """See `PlacingIndex`."""
        new_groups = _NewGroupsBuilder(self._buckets, len(keys), again=True)
        for partition, rows in positions_by_text(partitions).items():
            for number, at in positions_by_number(self._buckets.numbers(partition, keys.take(pa.array(rows)))):
                new_groups.add(partition, number, rows[at])
        return new_groups.built()


class _NewGroupsBuilder:
    """Collects new file groups."""

    def __init__(self, buckets: Buckets, rows: int, *, again: bool = False) -> None:
        self._buckets, self._again = buckets, again
        self._number = np.full(rows, -1, dtype=np.int64)
        self._partitions: list[str] = []
        self._file_ids: list[str] = []

    def add(self, partition: str, number: int, rows: np.ndarray[Any, Any]) -> None:
        self._number[rows] = len(self._file_ids)
        self._partitions.append(partition)
        self._file_ids.append(self._buckets.new_file_id(partition, number, again=self._again))

    def built(self) -> NewGroups:
        row = np.flatnonzero(self._number >= 0)
        as_logs = self._buckets.logs_first and not self._again
        return NewGroups(row, self._number[row], self._partitions, self._file_ids, as_logs)


class SimpleBuckets:
    """A fixed number of buckets in each partition.

    Args:
        rules: How many.
        fields: Key fields that are hashed.
        timeline: Of a table whose writers do not block each other: every writer begins a bucket with the same file id, and with
            a log file, since two may begin it at once.
        stored_keys: Reads the keys of a file slice, of a table that does not say how many buckets it has: another number than
            its own would double rows without a word. None where it says so.
    """

    def __init__(
        self,
        rules: PartitionRules,
        fields: Sequence[str],
        timeline: Timeline | None = None,
        stored_keys: Callable[[KeyFile], pa.StringArray] | None = None,
    ) -> None:
        self.logs_first, self._timeline, self._stored_keys = timeline is not None, timeline, stored_keys
        by = f", by rules {rules.expressions}" if rules.expressions else ""
        self.title = f"bucket index, {rules.default} buckets a partition{by}"
        self._rules, self._fields = rules, tuple(fields)
        self._begun: dict[tuple[str, int], str] = {}

    def numbers(self, partition: str, keys: pa.StringArray) -> np.ndarray[Any, Any]:
        """See `Buckets`."""
        return list_hashes(keys, self._fields) % self._rules.count_of(partition)

    def place(self, partition: str, files: Sequence[KeyFile]) -> Mapping[int, KeyFile]:
        """See `Buckets`."""
        found: dict[int, KeyFile] = {}
        count = self._rules.count_of(partition)
        for file in files:
            number = bucket_of_file_id(file.file_id)
            if number is None or number >= count or number in found:
                why = "is no bucket's" if number is None else f"is of bucket {number}"
                why += ", as another is" if number in found else ""
                rules = self._rules.expressions
                raise ConfigError(
                    "hoodie.bucket.index.partition.expressions" if rules else "hoodie.bucket.index.num.buckets",
                    rules or count,
                    f"what the table was written with: file group {file.file_id} in {partition!r} {why}",
                    "Give the number of buckets of the table's other writers, or its real index as hoodie.index.type.",
                )
            found[number] = file
        if self._stored_keys is not None and found:
            self._compare(partition, found, self._stored_keys)
        return found

    def _compare(self, partition: str, there: Mapping[int, KeyFile], read: Callable[[KeyFile], pa.StringArray]) -> None:
        """See that keys of one slice, the smallest with a base file, lie in their bucket; once for all partitions."""
        number, file = min(there.items(), key=lambda one: (not one[1].name, one[1].size + sum(one[1].log_sizes)))
        keys = read(replace(file, logs=(), log_sizes=()) if file.name else file).slice(0, _COMPARED)
        if not len(keys):
            return
        self._stored_keys = None
        elsewhere = np.flatnonzero(self.numbers(partition, keys) != number)
        if len(elsewhere):
            key = keys[int(elsewhere[0])].as_py()
            raise ConfigError(
                "hoodie.bucket.index.num.buckets",
                self._rules.count_of(partition),
                f"what the table was written with: its key {key!r} is in bucket {number} of {partition!r}",
                "Give the number of buckets of the table's other writers, and their hoodie.bucket.index.hash.field.",
            )

    def new_file_id(self, partition: str, number: int, *, again: bool = False) -> str:
        """See `Buckets`: the same id for a bucket whenever it is asked for, since a write may come in portions."""
        if self._timeline is not None and not again:
            return self._same_for_all(partition, f"{number:0{_DIGITS}d}{_FIXED}")
        if (partition, number) not in self._begun:
            self._begun[partition, number] = f"{number:0{_DIGITS}d}{str(machine().new_id())[_DIGITS:]}-0"
        return self._begun[partition, number]

    def _same_for_all(self, partition: str, file_id: str) -> str:
        while (partition, file_id) in self._gone:
            made = uuid.uuid5(uuid.NAMESPACE_OID, f"{file_id} {self._gone[partition, file_id]}")
            file_id = f"{file_id[:_DIGITS]}{str(made)[_DIGITS:]}-0"
        return file_id

    @cached_property
    def _gone(self) -> Mapping[tuple[str, str], str]:
        return {} if self._timeline is None else taken_out(self._timeline)


def bucket_of_file_id(file_id: str) -> int | None:
    """The bucket number in a file id, None where there is none."""
    head = file_id[:_DIGITS]
    return int(head) if head.isascii() and head.isdigit() and file_id[_DIGITS : _DIGITS + 1] == "-" else None


def looks_bucketed(file_ids: Sequence[str]) -> bool:
    """True when all file ids look like those of buckets: no UUID by chance begins with four zeros and four digits, twice."""
    numbers = [bucket_of_file_id(file_id) for file_id in file_ids]
    return len(numbers) > 1 and all(number is not None and number < 10_000 for number in numbers)
