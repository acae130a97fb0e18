"""What a process needs to read file slices of a table: one small value that can be pickled and sent away."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.config import OPTIONS, Options
from hudimeta.config.options import DELETE_FIELD, DELETE_MARKER, LOG_KEYS, MERGE_MEMORY, MERGER, SPILL_FOLDER
from hudimeta.errors import FileRemoved, NotFound
from hudimeta.formats.plain_arrays import array_of
from hudimeta.redaction import redacted
from hudimeta.slices.merge_rules import KEY_COLUMN, MergeRules, PartialUpdateMode
from hudimeta.slices.projection import path_of, pruned, shown_field
from hudimeta.table.properties import TableProperties
from hudimeta.types import META_COLUMNS

if TYPE_CHECKING:
    from hudimeta.keys import PartitionLayout
    from hudimeta.predicate import ArrowPredicate, Bound
    from hudimeta.schema import SchemaHistory
    from hudimeta.slices.bounded_merge import MergeMemory
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.timeline import Timeline

__all__ = ["MERGE_OPTIONS", "MergedRange", "ReadTask", "VisibleInstants", "storage_options_of"]

MERGE_OPTIONS = (MERGER.key, DELETE_FIELD.key, DELETE_MARKER.key, MERGE_MEMORY.key, SPILL_FOLDER.key)
"""Options that merging goes by, in every process that reads."""


@dataclass(frozen=True)
class VisibleInstants:
    """Whose log blocks count.

    Attributes:
        completed: Requested times of the completed writes on the active timeline.
        first_active: See `table.slices.Visibility`: instants before it are archived, hence committed.
    """

    completed: frozenset[str]
    first_active: str | None

    @classmethod
    def of(cls, timeline: Timeline) -> VisibleInstants:
        """Those that a timeline knows as completed."""
        return cls(frozenset(timeline.completion_times), timeline.first_active_write)

    def __call__(self, instant: str) -> bool:
        """True when blocks of this instant are committed."""
        return instant in self.completed or (self.first_active is not None and instant < self.first_active)


@dataclass(frozen=True)
class MergedRange:
    """What an incremental read of a merge-on-read table merges: no row of an older commit takes part.

    Attributes:
        commits: Requested times of the commits of the range.
        unseen: Of those that were requested within it, and completed after it.
    """

    commits: frozenset[str]
    unseen: frozenset[str]

    def taking_part(self, rows: pa.Table) -> pa.Table:
        """Those rows of a base file that are merged with log files."""
        import pyarrow.compute as pc

        commits = array_of(sorted(self.commits), pa.string())
        return rows.filter(pc.is_in(rows.column(META_COLUMNS[0]), value_set=commits))


@redacted
@dataclass(frozen=True)
class ReadTask:
    """How rows of a table's file slices are read; the same for all slices of a scan.

    Attributes:
        location: The table.
        storage_options: Options that open its storage.
        properties: Texts of `hoodie.properties`.
        table_schema: All columns of the table.
        stored: Its data columns as the table's Avro schema types them.
        columns: What is returned, in this order; `a.b` is a field of a struct.
        predicate: Rows for which it is not true are dropped; None keeps all.
        beside: An expression that PyArrow evaluates beside the predicate; None without one.
        instants: Whose log blocks count.
        as_of: Blocks after this requested time do not; None for the latest.
        read_optimized: Base files only.
        history: How columns were called before, for tables that were altered; None for all others.
        batch_rows: Most rows of a batch.
        footers: Leave out row groups of base files that hold no match as the files' footers say.
        log_keys: Leave out log files that touch none of the keys that the predicate asks for, as the files' ends say.
        block_keys: Leave out log blocks of which later ones have all keys, as their footers and key columns say.
        merge_options: Options that merging goes by, by their names.
        skip_damage: Leave out file slices with a damaged file, and say so, instead of failing; for reads of users only.
        merged_range: Of a merge-on-read table, whose rows alone are merged; None for all.
        as_stored: Partition columns are what files hold, and what paths state only where that is null; for services, which
            write rows anew: an empty text stays one, and statistics stay true.
    """

    location: str
    properties: Mapping[str, str]
    table_schema: pa.Schema
    stored: pa.Schema
    columns: tuple[str, ...]
    predicate: Bound | None
    instants: VisibleInstants
    as_of: str | None = None
    read_optimized: bool = False
    history: SchemaHistory | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)
    batch_rows: int = 1 << 16
    footers: bool = True
    log_keys: bool = False
    block_keys: bool = False
    merge_options: Mapping[str, str] = field(default_factory=dict)
    beside: ArrowPredicate | None = None
    skip_damage: bool = False
    merged_range: MergedRange | None = None
    as_stored: bool = False

    @contextlib.contextmanager
    def telling_removals(self) -> Iterator[None]:
        """A file that is gone inside the with block raises FileRemoved, which says what is read, and what keeps files."""
        try:
            yield
        except FileRemoved:
            raise
        except NotFound as error:
            raise FileRemoved(error.path, self.as_of or max(self.instants.completed, default="")) from error

    @cached_property
    def output_schema(self) -> pa.Schema:
        """Schema of the rows that come out."""
        return pa.schema([shown_field(name, self.table_schema) for name in self.columns])

    @cached_property
    def needed(self) -> pa.Schema:
        """What is returned and what the predicate looks at, in the order of the table; structs with the fields that are needed.

        A struct stays whole where its fields had other names before, or where a null in it decides about merging.
        """
        paths = [path_of(name, self.table_schema) for name in self.columns]
        paths += [c.path for c in self.predicate.columns] if self.predicate else []
        paths += [(name,) for name in self.beside.columns] if self.beside else []
        if self.history is not None or self._fills:
            paths = [path[:1] for path in paths]
        return pruned(self.table_schema, paths)

    @cached_property
    def _fills(self) -> bool:
        """True when a row takes values from one that it replaces; rules that nobody here can follow matter to merges alone."""
        return TableProperties(dict(self.properties)).merge_settings.partial_update is not PartialUpdateMode.NONE

    @cached_property
    def virtual_keys(self) -> bool:
        """True when record keys are not stored but computed."""
        return self.properties.get("hoodie.populate.meta.fields", "true").strip().lower() == "false"

    @cached_property
    def rules(self) -> MergeRules:
        """How log records and base rows are merged."""
        return MergeRules.from_properties(self.properties, self.merge_options)

    @cached_property
    def merge_memory(self) -> MergeMemory:
        """How much of a slice's log is merged in memory."""
        from hudimeta.slices.bounded_merge import MergeMemory

        options = Options(OPTIONS, self.merge_options)
        return MergeMemory(options.get(MERGE_MEMORY), options.get(SPILL_FOLDER))

    @cached_property
    def merged(self) -> pa.Schema:
        """Columns that take part in a merge: the needed ones, the key, and what decides which version wins.

        A merger that the user brings is given all columns, since what it looks at is not known.
        """
        whole = set(self.rules.columns) | set(self.key_columns)
        if self.rules.merger is not None:
            whole |= set(self.table_schema.names)
        needed = {f.name: f for f in self.needed}
        columns = [f if f.name in whole else needed.get(f.name) for f in self.table_schema]
        columns = [self._as_merged(f) for f in columns if f is not None]
        if KEY_COLUMN not in self.table_schema.names:
            columns.insert(0, pa.field(KEY_COLUMN, pa.string()))
        return pa.schema(columns)

    def _as_merged(self, field: pa.Field) -> pa.Field:
        """Deletes state the time of an ordering field as a number in the unit in which the column is stored."""
        if field.name not in self.rules.ordering_fields or field.name not in self.stored.names:
            return field
        stored = self.stored.field(field.name).type
        return field.with_type(stored) if pa.types.is_timestamp(stored) else field

    @cached_property
    def key_columns(self) -> tuple[str, ...]:
        """Columns that virtual keys are computed from."""
        if not self.virtual_keys:
            return ()
        text = self.properties.get("hoodie.table.recordkey.fields", "")
        return tuple(dict.fromkeys(part.strip().split(".")[0] for part in text.split(",") if part.strip()))

    @cached_property
    def partition_layout(self) -> PartitionLayout:
        """What partition paths stand for."""
        from hudimeta.keys import PartitionLayout

        return PartitionLayout.from_properties(self.properties)


def task_at(snapshot: Snapshot, columns: tuple[str, ...], predicate: Bound | None = None) -> ReadTask:
    """How rows of a table are read at a moment.

    Args:
        snapshot: The table at that moment.
        columns: What is returned, in this order.
        predicate: Rows for which it is not true are dropped; None keeps all.
    """
    texts = snapshot.options.texts
    return ReadTask(
        location=snapshot.storage.root,
        properties=dict(snapshot.properties),
        table_schema=snapshot.schema.arrow,
        stored=snapshot.schema.stored,
        columns=columns,
        predicate=predicate,
        instants=VisibleInstants.of(snapshot.timeline),
        as_of=snapshot.as_of,
        history=snapshot.history,
        storage_options=storage_options_of(texts),
        footers=False,
        block_keys=snapshot.options.get(LOG_KEYS),
        merge_options={k: v for k, v in texts.items() if k in MERGE_OPTIONS},
    )


def storage_options_of(texts: Mapping[str, str]) -> dict[str, str]:
    """Of the texts of options those that open stores."""
    return {key: text for key, text in texts.items() if key.startswith("hudimeta.storage.")}
