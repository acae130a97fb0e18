"""The two writers of random tables: the same acts by hudimeta and by Apache Hudi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hudimeta
from hudimeta.engine.machine import running_on
from tests.interop.apache_hudi import ROW_BY_ROW, ApacheHudi
from tests.interop.random_ages import EXPIRY, DaysAgo
from tests.interop.random_columns import ON_READ, ColumnChange
from tests.interop.random_indexes import EXPRESSION, LOCK, PARTITION_STATS, SECONDARY, IndexChange
from tests.interop.random_tables import Kind

CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "3"}
OF_POLICIES = ("hoodie.clean.fileversions", "hoodie.clean.hours")
ARCHIVE = {**CLEAN, "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}
ONCE = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.clustering.async.max.commits": "1"}
MERGE = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
OF_PLANS = {"compaction": ONCE, "clustering": ONCE, "log_compaction": {**ONCE, **MERGE}}
RUN = "org.apache.hudi.client.clustering."
RINGS = {
    "hoodie.clustering.plan.strategy.class": RUN + "plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": RUN + "run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
}
"""How Apache Hudi splits and merges buckets, which hudimeta does unasked."""
SERVICE_OPTIONS = {"clean": CLEAN, "archive": ARCHIVE, "compact": ONCE, "cluster": ONCE}
# 1.2.0 takes a rename for a drop, which it has to be allowed.
ALTERS = {
    "hoodie.avro.schema.validate": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}


def service_options(kind: Kind, service: str) -> dict[str, str]:
    """Of one service; a table that has a rule of cleaning keeps it."""
    own = {name: value for name, value in kind.shared.items() if name.startswith(("hoodie.clean.policy", *OF_POLICIES))}
    return {**SERVICE_OPTIONS.get(service, {}), **(own if "hoodie.clean.policy" in own else {})}


@dataclass(frozen=True)
class Ours:
    """hudimeta without Spark; it opens the table anew at every turn."""

    path: Path
    kind: Kind

    def create(self, schema: pa.Schema) -> None:
        """An empty table."""
        options = {**self.kind.shared, "hoodie.write.table.version": self.kind.version}
        with running_on(DaysAgo(6 if self.kind.aged else 0)):
            hudimeta.Table.create(
                self.path,
                schema,
                list(self.kind.key),
                list(self.kind.place),
                ordering=list(self.kind.ordering),
                type=self.kind.type,
                options=options,
                name="random",
            )

    def table(self, more: Mapping[str, str] | None = None) -> hudimeta.Table:
        """The table of this moment."""
        return hudimeta.Table(self.path, {**self.kind.shared, **(more or {})})

    def add_indexes(self) -> None:
        """Indexes that creation does not make."""
        if self.kind.secondary:
            self.table().metadata.create_index("by_s", "secondary_index", self.kind.secondary)
        if self.kind.expression:
            self.table().metadata.create_index("up", "column_stats", "s", expression="upper")

    def write(self, operation: str, rows: pa.Table, index: str) -> None:
        """One of Hudi's operations, or a merge of all columns."""
        table = self.table({"hoodie.index.type": index})
        if operation == "merge":
            on = {name: name for name in dict.fromkeys((*self.kind.key, *self._places()))}
            table.merge(rows, on).when_matched_update().when_not_matched_insert().execute()
            return
        first = self.kind.aged and not table.timeline.writes
        with running_on(DaysAgo(5)) if first else nullcontext():
            getattr(table, operation)(rows)

    def merge_delete(self, rows: pa.Table, index: str) -> None:
        """A merge that deletes rows with even numbers, and writes the others."""
        on = {name: name for name in dict.fromkeys((*self.kind.key, *self._places()))}
        merge = self.table({"hoodie.index.type": index}).merge(rows, on)
        merge = merge.when_matched_delete(condition="source.num % 2 = 0").when_matched_update()
        merge.when_not_matched_insert().execute()

    def merge_some(self, columns: Sequence[str], rows: pa.Table, index: str) -> None:
        """A merge that sets some columns of rows that are there."""
        on = {name: name for name in self.kind.key}
        table = self.table({"hoodie.index.type": index})
        table.merge(rows, on).when_matched_update({name: f"source.{name}" for name in columns}).execute()

    def change_index(self, change: IndexChange) -> None:
        """Make or drop an index."""
        metadata = self.table().metadata
        if not change.made:
            if change.name == "column_stats" and "partition_stats" in metadata.ready:
                metadata.drop_index("partition_stats")
            self.table().metadata.drop_index(change.name)
        elif change.name == SECONDARY:
            metadata.create_index(SECONDARY, "secondary_index", change.kind.secondary)
        elif change.name == EXPRESSION:
            metadata.create_index(EXPRESSION, "column_stats", "s", expression="upper")
        else:
            metadata.create_index(type=change.name)
            if change.name == "column_stats" and change.kind.shared[PARTITION_STATS] == "true" and self.kind.place:
                self.table().metadata.create_index(type="partition_stats")

    def _places(self) -> tuple[str, ...]:
        return () if self.kind.is_global else self.kind.place_columns

    def update(self, values: Mapping[str, Any], where: str, index: str) -> None:
        """Constants into columns."""
        said = {name: "null" if value is None else f"'{value}'" for name, value in values.items()}
        self.table({"hoodie.index.type": index}).update(said, where)

    def delete_where(self, where: str, index: str) -> None:
        """Rows of which a predicate is true."""
        self.table({"hoodie.index.type": index}).delete(where=where)

    def delete_partition(self, folder: str) -> None:
        """A partition, by its path."""
        self.table().delete_partition(folder)

    def plan(self, service: str, more: Mapping[str, str]) -> str | None:
        """Leave a compaction or clustering on the timeline; its instant."""
        planned: str | None = self._verbs(service, more).schedule()
        return planned

    def execute(self, service: str, instant: str) -> None:
        """Run what was planned."""
        self._verbs(service, {}).execute(instant)

    def _verbs(self, service: str, more: Mapping[str, str]) -> Any:
        return getattr(self.table({**OF_PLANS[service], **more}).services, service)

    def alter(self, change: ColumnChange, index: str) -> None:
        """Change columns."""
        self.table({"hoodie.index.type": index}).alter(**change.ours)

    def expire(self, policy: str, index: str) -> None:
        """Take out the partitions whose time is over."""
        more = {"hoodie.partition.ttl.management.strategy.type": policy, "hoodie.index.type": index}
        self.table({**EXPIRY, **more}).expire_partitions()

    def change_version(self, version: int) -> None:
        """Upgrade or downgrade."""
        services = self.table().services
        if version > self.table().version:
            services.upgrade(version)
        else:
            services.downgrade(version)

    def serve(self, service: str, instant: str | None) -> None:
        """A table service; `instant` is what savepoints, restores and rollbacks are of."""
        table = self.table(service_options(self.kind, service))
        if instant is None:
            getattr(table, service)()
        else:
            getattr(table, service)(instant)


@dataclass(frozen=True)
class Theirs:
    """Apache Hudi, told of indexes at every turn."""

    path: Path
    kind: Kind
    hudi: ApacheHudi
    more: Mapping[str, str] = field(default_factory=dict)

    def options(self, index: str) -> dict[str, str]:
        """Of writers."""
        more = {}
        if self.kind.secondary:
            more["hoodie.metadata.index.secondary.enable"] = "true"
        return {**self.kind.options(), "hoodie.index.type": index, **more, **self.more}

    def write(self, operation: str, rows: pa.Table, index: str) -> None:
        """One of Hudi's operations, or a MERGE of all columns."""
        if operation not in ("merge", "merge delete"):
            # Columns are known by their names; a writer may bring them in any order.
            names = [*reversed(rows.column_names)] if rows.num_rows % 2 else rows.column_names
            self.hudi.write(self.path, rows.select(names), self.options(index), operation=operation)
            return
        file = self.hudi.home / "source.parquet"
        pq.write_table(rows, file)
        on = " AND ".join(f"t.{name} = s.{name}" for name in self.kind.key)
        self._sql(
            f"MERGE INTO {{table}} t USING (SELECT * FROM parquet.`{file}`) s ON {on} "
            # Apache Hudi updates where it can, whichever clause stands first.
            + ("WHEN MATCHED AND s.num % 2 = 0 THEN DELETE " if operation == "merge delete" else "")
            + ("WHEN MATCHED AND s.num % 2 = 1 " if operation == "merge delete" else "WHEN MATCHED ")
            + "THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            index,
        )

    def merge_delete(self, rows: pa.Table, index: str) -> None:
        """A MERGE that deletes rows with even numbers, and writes the others."""
        self.write("merge delete", rows, index)

    def merge_some(self, columns: Sequence[str], rows: pa.Table, index: str) -> None:
        """A MERGE that sets some columns of rows that are there."""
        file = self.hudi.home / "source.parquet"
        pq.write_table(rows, file)
        on = " AND ".join(f"t.{name} = s.{name}" for name in self.kind.key)
        said = ", ".join(f"t.{name} = s.{name}" for name in columns)
        self._sql(
            f"MERGE INTO {{table}} t USING (SELECT * FROM parquet.`{file}`) s ON {on} WHEN MATCHED THEN UPDATE SET {said}",
            index,
        )

    def change_index(self, change: IndexChange) -> None:
        """Make or drop an index by SQL."""
        self._sql(change.statement, self.kind.indexes[0], LOCK)

    def update(self, values: Mapping[str, Any], where: str, index: str) -> None:
        """UPDATE."""
        said = ", ".join(f"{name} = " + ("null" if value is None else f"'{value}'") for name, value in values.items())
        self._sql(f"UPDATE {{table}} SET {said} WHERE {where}", index)

    def delete_where(self, where: str, index: str) -> None:
        """DELETE."""
        self._sql(f"DELETE FROM {{table}} WHERE {where}", index)

    def alter(self, change: ColumnChange, index: str) -> None:
        """ALTER TABLE, by the table's own name, or decimals get other names than its files have, which Apache Hudi refuses."""
        more = ALTERS if "RENAME" in change.statement or "DROP" in change.statement else {}
        self._sql(change.statement, index, more, name="random")

    def expire(self, policy: str, index: str) -> None:
        """Take out the partitions whose time is over."""
        self._sql(f"CALL run_ttl(table => '{{table}}', ttl_policy => '{policy}', retain_days => 1)", index)

    def _sql(self, statement: str, index: str, more: Mapping[str, str] | None = None, name: str | None = None) -> None:
        """A statement on a table that the catalog knows for its time only."""
        named = ("hoodie.table.", "hoodie.datasource.", "hoodie.record.merge", "hoodie.populate", "hoodie.logfile")
        options = {name: value for name, value in self.options(index).items() if not name.startswith(named)}
        options |= {**(ROW_BY_ROW if ON_READ in self.kind.shared else {}), **(more or {})}
        name = name or f"random_{self.path.name}"
        self.hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{self.path}'")
        try:
            self.hudi.sql(statement.format(table=name), options)
        finally:
            self.hudi.sql(f"DROP TABLE IF EXISTS {name}")

    def delete_partition(self, folder: str) -> None:
        """A partition, by its path."""
        schema = hudimeta.Table(self.path).schema
        own = [name for name in schema.names if not name.startswith("_hoodie_")]
        some = hudimeta.Table(self.path).scan(columns=own, limit=1).to_table()
        more = {"hoodie.datasource.write.partitions.to.delete": folder}
        self.hudi.write(self.path, some, {**self.options(self.kind.indexes[0]), **more}, operation="delete_partition")

    def serve(self, service: str, instant: str | None) -> None:
        """A table service; `instant` is what savepoints, restores and rollbacks are of."""
        self.hudi.service(self.path, service, self._options(service_options(self.kind, service)), instant)

    def plan(self, service: str, more: Mapping[str, str]) -> str | None:
        """Leave a compaction or clustering on the timeline; its instant."""
        return self.hudi.service(self.path, f"plan_{service}", self._options({**OF_PLANS[service], **more}))

    def execute(self, service: str, instant: str) -> None:
        """Run what was planned."""
        self.hudi.service(self.path, f"run_{service}", self._options(OF_PLANS[service]), instant)

    def _options(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**self.options(self.kind.indexes[0]), **(RINGS if self.kind.has_rings else {}), **more}
