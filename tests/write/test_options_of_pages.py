"""Options of writes as Apache Hudi's pages set them: the rows that come of two writes, or the reason why they are refused.

The rows are those that the pages tell of.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.api.plain_write import PlainWrite
from hudimeta.config import HudiWarning, option
from hudimeta.errors import HudiError
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

SCHEMA = pa.schema([(name, pa.int64() if name == "ts" else pa.string()) for name in ("uuid", "ts", "name", "price")])
KEYS = {"hoodie.datasource.write.recordkey.field": "uuid", "hoodie.datasource.write.precombine.field": "ts"}
_MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
_OCC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
_HIVE = {"hoodie.write.lock.provider": "HiveMetastoreBasedLockProvider"}
_ALONE = {"hoodie.write.concurrency.mode": "single_writer", "hoodie.cleaner.policy.failed.writes": "EAGER"}
_LOCKS = "org.apache.hudi.client.transaction.lock"
_PAYLOADS = "org.apache.hudi.common.model"
_PLANS = "org.apache.hudi.table.action.compact.strategy"
_CLUSTERING = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}

OLDER, LATE, BOTH = ("1", 2, "a", None), ("1", 1, None, "p"), ("1", 2, "a", "p")
"""The row that is there, the one that comes late, and what a partial update makes of the two."""


@dataclass(frozen=True)
class Given:
    """Options of one example.

    Attributes:
        page: On which they stand.
        options: Beside key and ordering field.
        rows: What is there after OLDER and then LATE are written.
        refused: Part of the error, where hudimeta refuses them.
        told: Part of the warning, where hudimeta does otherwise.
    """

    page: str
    options: dict[str, str] = field(default_factory=dict)
    rows: tuple[Any, ...] = OLDER
    refused: str = ""
    told: str = ""


def _payload(name: str, rows: tuple[Any, ...], refused: str = "") -> list[Given]:
    options = {"hoodie.datasource.write.payload.class": f"{_PAYLOADS}.{name}"}
    return [Given("record_merger", options | kind, rows, refused) for kind in ({}, _MOR)]


def _compaction(**options: str) -> dict[str, str]:
    every = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    return _MOR | every | {f"hoodie.{name.replace('_', '.')}": value for name, value in options.items()}


def _planned_by(name: str) -> dict[str, str]:
    return _compaction(compaction_strategy=f"{_PLANS}.{name}CompactionStrategy")


def _indexed(kind: str, **options: str) -> dict[str, str]:
    return {"hoodie.index.type": kind} | {f"hoodie.{name.replace('_', '.')}": value for name, value in options.items()}


_DAYS = {
    "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS",
    "hoodie.clustering.plan.strategy.daybased.lookback.partitions": "2",
    "hoodie.clustering.plan.strategy.daybased.skipfromlatest.partitions": "0",
}
_SIZES = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clustering.plan.strategy.target.file.max.bytes": "1073741824",
    "hoodie.clustering.plan.strategy.small.file.limit": "629145600",
    "hoodie.clustering.plan.strategy.sort.columns": "name,price",
}
_FILTERS = {"hoodie.metadata.index.bloom.filter.enable": "true"}
_LATE_FAILURES = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
PAGES = [
    *_payload("OverwriteWithLatestAvroPayload", LATE),
    *_payload("DefaultHoodieRecordPayload", OLDER),
    *_payload("EventTimeAvroPayload", OLDER),
    *_payload("OverwriteNonDefaultsWithLatestAvroPayload", ("1", 1, "a", "p")),
    *_payload("PartialUpdateAvroPayload", BOTH),
    *_payload("debezium.MySqlDebeziumAvroPayload", OLDER, "hoodie.record.merge.mode"),
    Given("record_merger", {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}, LATE),
    Given("record_merger", {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"}),
    Given("record_merger", {"hoodie.write.record.merge.custom.implementation.classes": "com.example.Merger"}, refused="Merger"),
    Given("clustering", _CLUSTERING | _SIZES),
    Given("clustering", _CLUSTERING | _DAYS),
    Given("clustering", _CLUSTERING | {"hoodie.clustering.plan.partition.filter.mode": "DAY_ROLLING"}),
    Given("clustering", {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "4"}),
    Given("clustering", {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}),
    Given("compaction", _compaction(compact_inline_trigger_strategy="NUM_COMMITS")),
    Given("compaction", _compaction(compact_inline_trigger_strategy="NUM_COMMITS_AFTER_LAST_REQUEST")),
    Given("compaction", _compaction(compact_inline_trigger_strategy="TIME_ELAPSED", compact_inline_max_delta_seconds="60")),
    Given("compaction", _compaction(compact_inline_trigger_strategy="NUM_OR_TIME", compact_inline_max_delta_seconds="60")),
    Given(
        "compaction", _compaction(compaction_strategy=f"{_PLANS}.LogFileSizeBasedCompactionStrategy", compaction_target_io="9")
    ),
    Given("compaction", _planned_by("LogFileNumBased")),
    Given("compaction", _planned_by("BoundedIO")),
    Given("compaction", _planned_by("DayBased")),
    Given("compaction", _planned_by("UnBounded")),
    Given("compaction", _planned_by("PartitionRegexBased")),
    Given("concurrency_control", _OCC | _LATE_FAILURES | {"hoodie.write.lock.provider": f"{_LOCKS}.InProcessLockProvider"}),
    Given("concurrency_control", _OCC | {"hoodie.write.lock.provider": f"{_LOCKS}.FileSystemBasedLockProvider"}),
    Given("concurrency_control", _OCC | {"hoodie.write.lock.provider": f"{_LOCKS}.StorageBasedLockProvider"}),
    Given("concurrency_control", _OCC | {"hoodie.write.lock.zookeeper.url": "zookeeper"}, refused="hoodie.write.lock.provider"),
    Given(
        "concurrency_control", {"hoodie.write.lock.provider": "HiveMetastoreBasedLockProvider"}, refused="no metastore is asked"
    ),
    Given("concurrency_control", {"hoodie.write.lock.wait_time_ms": "1000", "hoodie.write.lock.num_retries": "3"}),
    Given(
        "concurrency_control",
        {"hoodie.write.concurrency.mode": "single_writer", "hoodie.cleaner.policy.failed.writes": "EAGER"},
    ),
    Given("concurrency_control", _OCC | {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}),
    Given("indexes", _indexed("BLOOM", bloom_index_prune_by_ranges="false", bloom_index_use_metadata="true")),
    Given("indexes", _indexed("GLOBAL_BLOOM", bloom_index_update_partition_path="true")),
    Given("indexes", _indexed("GLOBAL_SIMPLE", simple_index_update_partition_path="true")),
    Given("indexes", _indexed("RECORD_INDEX", metadata_record_index_enable="true")),
    Given("indexes", _indexed("BUCKET", index_bucket_engine="SIMPLE", bucket_index_num_buckets="4")),
    Given("indexes", _MOR | _indexed("BUCKET", index_bucket_engine="CONSISTENT_HASHING", bucket_index_num_buckets="4")),
    Given("indexes", _indexed("BUCKET", bucket_index_partition_expressions="a.*,4")),
    Given("indexes", _indexed("HBASE"), refused="allowed is"),
    Given("indexes", {"hoodie.index.class": "com.example.Index"}, refused="hoodie.index.type"),
    Given("indexes", _FILTERS | {"hoodie.metadata.index.bloom.filter.column.list": "name"}, refused="create_index"),
    Given("metadata_indexing", _FILTERS),
    Given("metadata_indexing", {"hoodie.metadata.record.index.enable": "true"}),
    Given(
        "metadata_indexing",
        {
            "hoodie.metadata.index.partition.stats.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.index.column.stats.column.list": "name,price",
        },
    ),
    Given(
        "metadata_indexing",
        {"hoodie.metadata.index.async": "true", "hoodie.metadata.index.column.stats.enable": "true"},
        told="mode='async'",
    ),
    Given("metadata", {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}),
    Given("ttl", {"hoodie.partition.ttl.inline": "true", "hoodie.partition.ttl.strategy.days.retain": "30"}),
    Given("ttl", {"hoodie.partition.ttl.strategy.class": "com.example.Strategy"}, refused="ttl.management.strategy.type"),
]


def _write(path: Path, row: tuple[Any, ...], options: dict[str, str]) -> None:
    rows = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True))], SCHEMA)
    write = PlainWrite.begin(str(path), {"hoodie.table.name": "t", **KEYS, **options}, SCHEMA, overwrite=False)
    write.commit([write.write(rows.to_batches(), 0, 0)])


@pytest.mark.rotation(3)
@pytest.mark.parametrize(
    "given", PAGES, ids=lambda given: f"{given.page}-{list(given.options.values())[-1].rpartition('.')[2]}"
)
def test_the_options_of_the_pages_do_what_the_pages_say(tmp_path: Path, given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    monkeypatch.setattr(option, "_warned", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error", HudiWarning)
        if given.refused:
            with pytest.raises(HudiError, match=given.refused):
                _write(path, OLDER, given.options)
            return
        with pytest.warns(HudiWarning, match=given.told) if given.told else nullcontext():
            _write(path, OLDER, given.options)
        _write(path, LATE, given.options)
    found = Table(path).scan(columns=SCHEMA.names).to_table().to_pylist()
    assert [tuple(row.values()) for row in found] == [given.rows]
    check_all(open_storage(path))
