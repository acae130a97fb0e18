"""Indexes that come and go in random histories from seed 800 on: which can, and what a table is with or without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from tests.interop.random_ages import INLINE
from tests.interop.random_columns import ON_READ
from tests.interop.random_tables import CUSTOM, Kind

SWITCHES = {
    "column_stats": "hoodie.metadata.index.column.stats.enable",
    "bloom_filters": "hoodie.metadata.index.bloom.filter.enable",
    "record_index": "hoodie.metadata.record.index.enable",
}
"""What Apache Hudi makes at its next write, or drops then."""
PARTITION_STATS = "hoodie.metadata.index.partition.stats.enable"
PARTITIONED = "hoodie.metadata.record.level.index.enable"
SECONDARY, EXPRESSION = "by_s", "up"
LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
"""Without it Apache Hudi makes no index by SQL."""


@dataclass(frozen=True)
class IndexChange:
    """An index that is made or dropped.

    Attributes:
        name: Of the index.
        made: False where it is dropped.
        kind: What the table is then.
    """

    name: str
    made: bool
    kind: Kind

    @property
    def by_switch(self) -> bool:
        """Whether Apache Hudi goes by an option, instead of a statement."""
        return self.name in SWITCHES

    @property
    def statement(self) -> str:
        """Apache Hudi's."""
        if not self.made:
            return f"DROP INDEX {'secondary_index' if self.name == SECONDARY else 'expr_index'}_{self.name} ON {{table}}"
        if self.name == SECONDARY:
            return f"CREATE INDEX {self.name} ON {{table}} ({self.kind.secondary})"
        return f"CREATE INDEX {self.name} ON {{table}} USING column_stats(s) OPTIONS (expr = 'upper')"

    def __str__(self) -> str:
        return f"{self.name} {'made' if self.made else 'dropped'}"


def index_changes(kind: Kind, release: str) -> list[IndexChange]:
    """What can come or go."""
    return list(_changes(kind, release))


def _changes(kind: Kind, release: str) -> Iterator[IndexChange]:
    shared = kind.shared
    if shared["hoodie.metadata.enable"] == "false" or "hoodie.populate.meta.fields" in shared:
        return
    new = kind.version != "6"
    has_record = shared[SWITCHES["record_index"]] == "true"
    if _may_have_stats(kind, release):
        yield _switched(kind, "column_stats")
    yield _switched(kind, "bloom_filters")
    if not kind.secondary and PARTITIONED not in shared and kind.indexes != ("BUCKET",) and kind.key:
        yield _switched(kind, "record_index")
    if INLINE in shared:
        return  # beside the others partitions cannot expire
    if new and has_record:
        yield IndexChange(
            SECONDARY, not kind.secondary, dataclasses.replace(kind, secondary="" if kind.secondary else kind.indexed)
        )
    if new:
        yield IndexChange(EXPRESSION, not kind.expression, dataclasses.replace(kind, expression=not kind.expression))


def hudi_fails_beside(change: IndexChange, release: str) -> bool:
    """Whether no write of the release follows: 1.2.0 takes values of an expression from other places than a custom payload has
    left them in (`ArrayIndexOutOfBoundsException`), in tables of its own too.
    """
    kind = change.kind
    custom = kind.type == "MERGE_ON_READ" and kind.payload in CUSTOM and release != "1.0.2"
    return change.name == EXPRESSION and change.made and custom


def hudi_cannot_say(change: IndexChange, release: str) -> bool:
    """Whether the release does not take the statement.

    Where they go by a history of columns, both make no index, on their own tables either ("SubqueryAlias cannot be cast to
    class ResolvedTable"). SQL of 1.2.0 takes several ordering fields for one. Told that the rows are in buckets, 1.0.2 wants
    their columns from an option of writes, and has none.
    """
    several = len(change.kind.ordering) > 1 and release != "1.0.2"
    wrong = several or ON_READ in change.kind.shared or (change.kind.indexes == ("BUCKET",) and release == "1.0.2")
    return not change.by_switch and change.made and wrong


def _switched(kind: Kind, name: str) -> IndexChange:
    made = kind.shared[SWITCHES[name]] == "false"
    shared = {**kind.shared, SWITCHES[name]: str(made).lower()}
    indexes = kind.indexes
    if name == "column_stats":
        shared[PARTITION_STATS] = str(made and kind.version != "6").lower()
    elif name == "record_index":
        others = tuple(index for index in indexes if index != "RECORD_INDEX")
        indexes = (*others, "RECORD_INDEX") if made and kind.is_global else others
    return IndexChange(name, made, dataclasses.replace(kind, shared=shared, indexes=indexes))


def _may_have_stats(kind: Kind, release: str) -> bool:
    """Release 1.0.2 fails on statistics of some columns, see `random_kinds.py`."""
    return release != "1.0.2" or kind.type == "COPY_ON_WRITE" or not {"st", "d"} & set(kind.data)
