"""Table services of Apache Hudi, through its write client."""

from __future__ import annotations

from typing import Any

import hudi_validation
from hudi_session import WRITE_DEFAULTS, index_options, table_properties
from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession


class Services:
    """Runs services.

    Args:
        spark: With Apache Hudi.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def run(self, path: str, name: str, options: dict[str, str], instant: str | None) -> dict[str, Any]:
        """One service; returns the instant, or None when there was nothing to do."""
        client = self._client(path, options)
        none = self.spark._jvm.org.apache.hudi.common.util.Option.empty()
        try:
            if name == "clean":
                done = client.clean()
                return {"instant": None if done is None else done.getStartCleanTime()}
            if name == "compact":
                planned = client.scheduleCompaction(none)
                if not planned.isPresent():
                    return {"instant": None}
                return self._compact(client, planned.get())
            if name == "run_compaction":
                return self._compact(client, str(instant))
            if name == "cluster":
                planned = client.scheduleClustering(none)
                if not planned.isPresent():
                    return {"instant": None}
                client.cluster(planned.get(), True)
                return {"instant": planned.get()}
            if name == "archive":
                client.archive()
                return {"instant": None}
            if name == "rollback":
                return {"instant": instant, "done": client.rollback(instant)}
            if name == "rollback_failed":
                return {"done": client.rollbackFailedWrites()}
            if name == "savepoint":
                client.savepoint(instant, "interop", "")
                return {"instant": instant}
            if name == "restore":
                client.restoreToSavepoint(instant)
                return {"instant": instant}
            if name in ("plan_clustering", "plan_compaction", "plan_log_compaction"):
                schedule = {
                    "plan_clustering": client.scheduleClustering,
                    "plan_compaction": client.scheduleCompaction,
                    "plan_log_compaction": client.scheduleLogCompaction,
                }[name]
                planned = schedule(none)
                return {"instant": planned.get() if planned.isPresent() else None}
            if name == "plan_clean":
                planned = client.scheduleTableService(none, self.spark._jvm.org.apache.hudi.common.model.TableServiceType.CLEAN)
                return {"instant": planned.get() if planned.isPresent() else None}
            if name == "plan_index":
                kinds = self.spark._jvm.java.util.ArrayList()
                kinds.add(self.spark._jvm.org.apache.hudi.metadata.MetadataPartitionType.valueOf(str(instant)))
                planned = client.scheduleIndexing(kinds, self.spark._jvm.java.util.ArrayList())
                return {"instant": planned.get() if planned.isPresent() else None}
            if name == "run_index":
                client.index(instant)
                return {"instant": instant}
            if name == "run_log_compaction":
                client.logCompact(instant, True)
                return {"instant": instant}
            if name == "run_clustering":
                client.cluster(instant, True)
                return {"instant": instant}
            raise ValueError(f"no service named {name}")
        finally:
            client.close()

    def _compact(self, client: Any, instant: str) -> dict[str, Any]:
        if self._has_own_schema:
            client.compact(instant, True)  # or nobody would complete it
        else:
            client.compact(instant)
        return {"instant": instant}

    @property
    def _has_own_schema(self) -> bool:
        """True from Hudi 1.2 on, which no longer hands out Avro's schemas and completes no compaction unasked."""
        return isinstance(self.spark._jvm.org.apache.hudi.common.schema.HoodieSchema, JavaClass)

    def _client(self, path: str, options: dict[str, str]) -> Any:
        java = self.spark._jvm
        own = table_properties(path)
        settings = java.java.util.Properties()
        for name, value in {**WRITE_DEFAULTS, **index_options(path), **options}.items():
            settings.setProperty(name, value)
        reader = hudi_validation.MetadataReader(self.spark, path, {})
        resolver = java.org.apache.hudi.common.table.TableSchemaResolver(reader.client)
        if self._has_own_schema:
            schema = resolver.getTableSchema(False).toAvroSchema()
        else:
            schema = resolver.getTableAvroSchema(False)
        config = (
            java.org.apache.hudi.config.HoodieWriteConfig.newBuilder()
            .withPath(path)
            .forTable(own.get("hoodie.table.name", "table"))
            .withSchema(schema.toString())
            .withProperties(settings)
            .build()
        )
        return java.org.apache.hudi.client.SparkRDDWriteClient(reader.context, config)
