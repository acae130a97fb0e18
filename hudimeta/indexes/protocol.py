"""The seam between commits and indexes: what a commit tells an index, and what the index makes of it.

Three things happen to an index. It is *built*, over the files of a table or over none when the table is created; each commit
brings its *delta*; and a clean tells it which files are gone. All of it happens under the table lock. What an index must know
of a file's rows is gathered by whoever writes the file, and comes along as `WrittenFile.facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.config import Options
from hudimeta.engine import Engine
from hudimeta.formats.hfile import KeyValues
from hudimeta.formats.plain_arrays import array_of, scalar_of, single_array
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.metadata import MetadataTable, secondary_index
from hudimeta.metadata.delta import PartitionDelta
from hudimeta.metadata.group_files import file_group_ids
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.record import RecordLayout
from hudimeta.slices.slice_rows import SliceRows
from hudimeta.snapshot.file_slice import FileSlice, slices_of
from hudimeta.storage import Storage
from hudimeta.storage.at_once import waiting_engine
from hudimeta.table.file_names import parse_names
from hudimeta.table.properties import TableProperties
from hudimeta.table.slices import build_slices
from hudimeta.table.visibility import Visibility
from hudimeta.timeline import Timeline
from hudimeta.types import Instant

__all__ = ["BuiltIndex", "CleanChange", "CommitChange", "IndexDelta", "IndexMaintainer", "IndexSource", "Reach"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class CommitChange:
    """What a commit does to the table, as an index must know it.

    Attributes:
        storage: Rooted at the table.
        properties: Of the table.
        engine: Where work on many files runs.
        table: The metadata table before the commit, opened under the lock.
        layout: Of the records to write.
        instant: Of the commit.
        schema: Data columns of the table after it.
        written: Its new files.
        replaced: File ids that leave the table, by partition path.
        same_rows: True for a compaction or clustering: the table holds the same rows before and after.
        timezone: In which expression indexes look at moments; None when nobody knows.
        proven: Indexes that are proven complete before the commit.
        proof_limit: Of so many added keys it is asked whether the record index knows them already.
        statistics: Definition of column statistics as of the commit.
        added: Columns that the table gets with the commit, null in all older files.
        unbounded: Columns that older files hold under other names or in another order, so that their statistics bound none.
        storage_options: Open the source of a table that was bootstrapped.
        least_groups: File groups that a new partition of the table gets in a record index by partition.
    """

    storage: Storage
    properties: TableProperties
    engine: Engine
    table: MetadataTable
    layout: RecordLayout
    instant: str
    schema: pa.Schema
    written: Sequence[WrittenFile]
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)
    same_rows: bool = False
    timezone: str | None = "UTC"
    proven: frozenset[str] = frozenset()
    proof_limit: int = 0
    statistics: IndexDefinition | None = None
    added: frozenset[str] = frozenset()
    unbounded: frozenset[str] = frozenset()
    storage_options: Mapping[str, str] = field(default_factory=dict)
    least_groups: int = 1

    @property
    def timeline(self) -> Timeline:
        """The table's timeline, listed under the lock."""
        return self.table.data_timeline

    def missed(self, timeline: Timeline) -> list[Instant]:
        """What was completed since, as a later timeline shows it."""
        known = set(self.timeline.completed)
        return [instant for instant in timeline.completed if instant not in known]

    @property
    def moves_rows(self) -> bool:
        """True for a clustering: the rows of the file groups that leave the table are those of the new files."""
        return self.same_rows and any(self.replaced.values())

    @cached_property
    def replaced_slices(self) -> pa.Table:
        """The newest slices of the file groups that leave the table: columns of `table.slices.slices_schema()`."""
        import pyarrow.compute as pc

        partitions = sorted(path for path, ids in self.replaced.items() if ids)
        slices = build_slices(self.table.files(partitions), Visibility.of(self.timeline))
        own = pc.binary_join_element_wise(slices["partition_path"], slices["file_id"], scalar_of("\0"))
        gone = array_of([f"{path}\0{file_id}" for path, ids in self.replaced.items() for file_id in ids], pa.string())
        return slices.filter(pc.is_in(own, value_set=gone))

    @cached_property
    def replaced_rows(self) -> list[tuple[FileSlice, pa.Table]]:
        """Record keys and the columns of secondary indexes of the rows of each of these slices."""
        if not any(self.replaced.values()):
            return []
        definitions = self.table.index_definitions
        columns = [c for name in self.table.ready if name in definitions for c in _valued(definitions[name])]
        reader = SliceRows.at(self.storage, self.properties, self.schema, self.timeline, self.storage_options)
        found = list(slices_of(self.replaced_slices))
        return list(zip(found, self.engine.map(partial(reader.columns, names=columns), found), strict=True))


def _valued(definition: IndexDefinition) -> tuple[str, ...]:
    """The columns of a secondary index; () for other kinds."""
    return definition.source_fields if definition.name.startswith(secondary_index.PREFIX) else ()


@dataclass(frozen=True)
class CleanChange:
    """What a clean does.

    Attributes:
        table, layout: See `CommitChange`.
        removed: Names of the deleted files, by partition path.
        emptied: Partitions that have no file any more.
    """

    table: MetadataTable
    layout: RecordLayout
    removed: Mapping[str, Sequence[str]]
    emptied: Sequence[str]


@dataclass(frozen=True)
class IndexDelta:
    """What a commit or a clean changes in one index.

    Attributes:
        parts: The changes; none when nothing changes.
        complete: False when the index may lack a row from now on; a record or secondary index then loses its proof.
        note: Why, for the report.
    """

    parts: Sequence[PartitionDelta] = ()
    complete: bool = True
    note: str = ""


@dataclass(frozen=True)
class IndexSource:
    """The table that an index is built over.

    Attributes:
        storage, properties, engine, schema, layout: See `CommitChange`.
        options: Of whoever builds.
        timeline: Of the table, listed under the lock.
        listing: partition_path, name, size of the files of committed instants.
        definitions: Of all indexes, the one to build among them, by metadata partition.
        memory: What one index computed and another can use.
        kept: What earlier looks at the table made of its slices and files, to which this one adds; None keeps nothing.
        other: A look at the same file groups at another moment: entries that a file group has there as well are left out.
        groups: File groups that each partition has already in a record index by partition, by its spelling in their ids.
    """

    storage: Storage
    properties: TableProperties
    engine: Engine
    options: Options
    schema: pa.Schema
    layout: RecordLayout
    timeline: Timeline
    listing: pa.Table
    definitions: Mapping[str, IndexDefinition]
    memory: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, dict[Any, Any]] | None = None
    other: IndexSource | None = None
    groups: Mapping[str, int] = field(default_factory=dict)

    def of_each(self, what: str, task: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """What a task makes of each of some slices or files; of those that an earlier look met, what it made of them then.

        Args:
            what: Names the task and what it depends on beside the items.
            task: See `Engine.map`.
            items: Values that stay the same as long as their files do.
        """
        engine = waiting_engine(self.engine, self.storage, pc.max(self.listing["size"]).as_py() or 0)
        if self.kept is None:
            return engine.map(task, items)
        known = self.kept.setdefault(f"{what} of {self.schema}", {})
        fresh = [item for item in items if item not in known]
        known.update(zip(fresh, engine.map(task, fresh), strict=True))
        return [known[item] for item in items]

    @cached_property
    def slices(self) -> pa.Table:
        """The newest file slices: columns of `table.slices.slices_schema()`."""
        return build_slices(self.listing, Visibility.of(self.timeline))

    @cached_property
    def base_files(self) -> pa.Table:
        """The rows of `listing` that are base files, superseded ones too."""
        names = single_array(self.listing["name"]) if len(self.listing) else array_of([], pa.string())
        return self.listing.filter(array_of(~parse_names(names).is_log))

    @cached_property
    def with_logs(self) -> list[str]:
        """Partition paths that have log files."""
        names = single_array(self.listing["name"]) if len(self.listing) else array_of([], pa.string())
        paths: list[str] = self.listing["partition_path"].filter(array_of(parse_names(names).is_log)).unique().to_pylist()
        return paths

    def slice_rows(self, columns: Sequence[str]) -> list[tuple[FileSlice, pa.Table]]:
        """Record keys and some columns of the rows of each newest file slice, logs merged."""
        reader = SliceRows.at(self.storage, self.properties, self.schema, self.timeline, self.options.texts)
        found = list(slices_of(self.slices))
        rows = self.of_each(f"rows with {','.join(columns)}", partial(reader.columns, names=columns), found)
        return list(zip(found, rows, strict=True))

    def entries(self, columns: Sequence[str], made: Callable[[pa.Table], pa.Array]) -> list[tuple[FileSlice, pa.Array]]:
        """What an index of rows has of each newest file slice.

        Args:
            columns: Beside the record key.
            made: From these columns of a slice's rows to its entries, texts.
        """
        import pyarrow.compute as pc

        found = [(one, made(rows)) for one, rows in self.slice_rows(columns)]
        if self.other is None:
            return found
        known = {(one.partition_path, one.file_id): texts for one, texts in self.other.entries(columns, made)}
        none = array_of([], pa.string())
        others = [known.get((one.partition_path, one.file_id), none) for one, _ in found]
        pairs = zip(found, others, strict=True)
        return [(one, texts.filter(pc.invert(pc.is_in(texts, value_set=other)))) for (one, texts), other in pairs]


class Reach(Enum):
    """The least part of a table whose records can be made by themselves."""

    FILE_GROUP = auto()
    PARTITION = auto()
    TABLE = auto()


@dataclass(frozen=True)
class BuiltIndex:
    """An index over a table.

    Attributes:
        groups: How many file groups it has, for good.
        content: Records of the groups that have any, sorted by key; made one after the other, when they are asked for. Groups
            are told by their places among `file_ids`.
        complete: False where an index of keys cannot tell where all rows are, because keys are doubled.
        reach: Of how little of the table a record may tell; `TABLE` is always true. See `commit.index_ahead`.
        by_partition: How many file groups each partition of the table has, by its spelling in their ids, in the order of their
            places; None where the index is one over the whole table.
    """

    groups: int
    content: Iterable[tuple[int, KeyValues]] = ()
    complete: bool = True
    reach: Reach = Reach.TABLE
    by_partition: Mapping[str, int] | None = None

    def file_ids(self, partition: str) -> list[str]:
        """Of its file groups, in a metadata partition."""
        if self.by_partition is None:
            return file_group_ids(partition, self.groups)
        return [one for path, count in self.by_partition.items() for one in file_group_ids(partition, count, path)]


class IndexMaintainer(Protocol):
    """Keeps the indexes of one kind."""

    def keeps(self, partition: str) -> bool:
        """True for the metadata partitions of this kind."""

    def delta(self, partition: str, change: CommitChange) -> IndexDelta:
        """What a commit changes in an index.

        Raises:
            CommitConflict: The index cannot take this commit any more; a write with a new instant can do it.
        """

    def holds(self, partition: str, change: CommitChange, now: MetadataTable) -> bool:
        """Whether what a commit changes is right still at a later moment; if in doubt, it is made again.

        Args:
            partition: Of the index.
            change: The commit as it was when `delta` was asked.
            now: The metadata table; on the timeline of its table nothing but commits was completed since.
        """

    def cleaned(self, partition: str, change: CleanChange) -> IndexDelta:
        """What a clean changes in an index."""

    def build(self, partition: str, source: IndexSource) -> BuiltIndex:
        """The index over a table; one without files gives an empty index."""
