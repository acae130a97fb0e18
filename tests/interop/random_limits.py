"""What nobody does to a random table, and what a release of Apache Hudi cannot do to tables that it alone wrote either."""

from __future__ import annotations

from tests.interop.random_columns import ON_READ
from tests.interop.random_indexes import PARTITION_STATS, PARTITIONED
from tests.interop.random_tables import FILLING, Kind

KEYLESS = {
    "upsert": "carried",
    "late": "carried",
    "marked": "insert",
    "merge": "insert",
    "merge some": "carried",
    "merge delete": "insert",
    "delete": "delete where",
    "new column": "update",
    "wider column": "update",
}
"""What becomes of steps that look keys up, where there are none."""


def nobody_can(kind: Kind, release: str, step: str) -> bool:
    """Whether a step makes no sense, or both refuse it.

    hudimeta refuses to overwrite buckets of a ring; Apache Hudi overwrites them, and its next upserts of them are lost. Its SQL
    does not find partitions of a custom key generator in tables of version 6, which it alone writes.
    Both refuse version 9 to tables of keys that it spells otherwise. Its readers of 1.0.2 fail on statistics of partitions from
    before a column got a wider type, on tables that it alone wrote as well. 1.2.0 cannot clean partitions that went by versions
    of files while a savepoint holds them ("For empty cleans, earliest instant to retain can never be null"). hudimeta builds no
    record index by partition anew, as after a restore or in another version.
    """
    virtual = "hoodie.populate.meta.fields" in kind.shared
    not_cleaned = release != "1.0.2" and kind.cleans_by_versions
    return (
        (step.startswith(("compact", "log_compact")) and kind.type == "COPY_ON_WRITE")
        or (step == "log_compaction" and kind.version == "6")
        or (step.startswith("cluster") and kind.indexes == ("BUCKET",) and not kind.has_rings)
        or (step.startswith("insert_overwrite") and kind.has_rings)
        or (step == "version" and kind.version == "8" and release == "1.0.2")
        or (step == "version" and len(kind.ordering) > 1)
        or (step == "version" and kind.version == "8" and kind.spells_keys_anew)
        or (step == "bulk_insert" and kind.indexes == ("BUCKET",))
        or (step != "version" and kind.version == "6" and hudi_cannot(kind, release, step))
        or (step == "merge some" and kind.version == "6")
        or (step in ("update", "delete where", "merge") and kind.version == "6" and ":" in "".join(kind.place))
        or (step == "marked" and not kind.marker)
        or (step in ("restore", "version") and PARTITIONED in kind.shared)
        or (step == "wider column" and release == "1.0.2" and kind.shared.get(PARTITION_STATS) == "true")
        or (step in ("delete_partition", "ttl") and (not kind.place or virtual or not_cleaned))
    )


def hudi_reads_dropped(kind: Kind, release: str) -> bool:
    """Whether the release reads logs from before a column was dropped.

    1.2.0 does not where `PartialUpdateAvroPayload` fills rows ("Index 10 out of bounds for length 8").
    """
    return release == "1.0.2" or kind.payload != "PartialUpdateAvroPayload"


def hudi_cannot(kind: Kind, release: str, step: str) -> bool:
    """Whether the release fails at a step on tables that it alone wrote, too.

    For a record index 1.0.2 reads new log blocks by the schema of before, and it takes no statistics of nulls that an
    UPDATE logs. Both refuse to replace file groups beside a secondary index, and 1.0.2 fails to delete partitions beside
    an index of an expression. A compaction of the metadata table makes a rollback fail, whose plan stays and makes the
    next writes fail. SQL statements of 1.2.0 take several ordering fields for one, those of 1.0.2 want stored keys, and
    all take a number that names a partition by time for text, which UPDATE stores in the schema of the table, so that no
    write follows it. In tables of version 9 a MERGE stores nulls that a payload fills. Where the later write wins, 1.0.2 reads
    no table of which it has logged some columns ("Partial merging logic is not implemented"). A bulk insert of 1.2.0 leaves its
    rows out of a secondary index, so that its own readers do not find them; with GLOBAL_BLOOM its `MERGE` fails to move rows
    (`ArrayIndexOutOfBoundsException`); its ALTER takes several ordering fields for one. Both want a `MERGE` to set the key
    where rows are logged whole, as they are where a global index moves rows; 1.2.0 also fails to move them in copy-on-write
    tables ("Failed to parse record into provided schema").
    Both fail to expire and delete partitions and to alter columns beside an index of an expression ("Positive number of
    partitions required": no file was written). A clustering of 1.0.2 finds nothing in columns that were renamed after a file
    was written.
    Where some columns of rows are logged, all look for a column that marks deletes at its place among all, and lose rows; where
    columns have a history they refuse to log some, and could not read it. A second DELETE of 1.0.2 in a file slice of version 6
    leaves its keys in the record index. What both write to buckets of a ring after they deleted the partition is lost. 1.2.0
    cannot restore where its new metadata table is compacted at once ("Unable to find completion time"), and plans no log
    compaction beside files of change images (`NullPointerException` in `HoodieCDCDataBlock`). A clean of both writes what it
    deletes of an index of an expression among the statistics of columns, and no write follows it ("mismatched partition path").
    """
    if step == "clean" and kind.expression:
        return True
    if step == "log_compaction" and release != "1.0.2" and "hoodie.table.cdc.enabled" in kind.shared:
        return True
    if step in ("delete_partition", "ttl") and kind.has_rings:
        return True
    virtual = "hoodie.populate.meta.fields" in kind.shared
    timed = "ms" in kind.place_columns
    if step in ("update", "delete where", "merge", "merge some", "ttl") and (len(kind.ordering) > 1 or virtual or timed):
        return True
    if step in ("merge", "merge some") and kind.version == "9" and kind.payload in FILLING:
        return True
    index = {"wider column": "record.index", "update": "index.column.stats", "merge some": "index.column.stats"}.get(step)
    old = release == "1.0.2" and kind.type == "MERGE_ON_READ"
    if step == "delete where" and old and kind.version == "6" and "RECORD_INDEX" in kind.indexes:
        return True
    if index and old and kind.shared[f"hoodie.metadata.{index}.enable"] == "true":
        return True
    partial = kind.shared.get("hoodie.spark.sql.merge.into.partial.updates") == "true"
    if step in ("merge some", "update") and old and partial and (not kind.by_event or kind.payload):
        return True
    unfit = kind.marker or ON_READ in kind.shared
    if unfit and partial and kind.type == "MERGE_ON_READ" and step in ("merge some", *(("update",) if old else ())):
        return True
    moves = kind.is_global and kind.shared.get("hoodie.simple.index.update.partition.path") == "true"
    if release != "1.0.2" and (
        (step == "bulk_insert" and kind.secondary)
        or (step == "merge" and kind.type == "MERGE_ON_READ" and moves)
        or (step == "alter" and len(kind.ordering) > 1)
    ):
        return True
    logged = kind.type == "MERGE_ON_READ"
    if step == "merge some" and ((moves and (logged or release != "1.0.2")) or (logged and not partial)):
        return True
    if (step in ("ttl", "alter", "delete_partition") and kind.expression) or (
        step in ("cluster", "clustering") and release == "1.0.2" and ON_READ in kind.shared
    ):
        return True
    if step == "rollback" or (step == "restore" and release != "1.0.2"):
        return kind.shared["hoodie.metadata.compact.max.delta.commits"] != "10"
    replaces = step in ("insert_overwrite", "insert_overwrite_table", "delete_partition", "ttl", "cluster", "clustering")
    return replaces and (bool(kind.secondary) or (kind.expression and release == "1.0.2"))
