"""What histories from seed 1500 on choose besides.

Types of the ordering column and of the column of a secondary index, keys that a write has several times, a record index by
partition, and how writers lay out files.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping

from tests.interop.random_columns import ON_READ
from tests.interop.random_indexes import PARTITIONED
from tests.interop.random_kinds import DROPPED, HIVE
from tests.interop.random_order import ORDERS
from tests.interop.random_tables import FILLING, Kind

INDEXED = ("s", "i", "n")
"""Columns that both releases take into a secondary index."""
FEW_ROWS_A_FILE = {
    "hoodie.parquet.max.file.size": "20000",
    "hoodie.copyonwrite.record.size.estimate": "4000",
    "hoodie.parquet.small.file.limit": "15000",
}
LAYOUTS: Mapping[str, tuple[str, ...]] = {
    "hoodie.bulkinsert.sort.mode": ("NONE", "GLOBAL_SORT", "PARTITION_SORT"),
    "hoodie.datasource.write.row.writer.enable": ("false",),
    "hoodie.parquet.compression.codec": ("zstd", "snappy", "uncompressed"),
    "hoodie.logfile.data.block.max.size": ("600",),
    "hoodie.merge.use.record.positions": ("true",),
    "hoodie.metadata.record.index.min.filegroup.count": ("1", "3"),
    "hoodie.metadata.index.column.stats.file.group.count": ("1", "3"),
    "hoodie.metadata.index.bloom.filter.file.group.count": ("1", "2"),
    "hoodie.metadata.index.column.stats.column.list": ("s,num,ts",),
    "hoodie.metadata.log.compaction.enable": ("true",),
    "hoodie.metadata.log.compaction.blocks.threshold": ("2",),
    "hoodie.metadata.streaming.write.enabled": ("true", "false"),
}


def typed_kind(chance: random.Random, release: str, kind: Kind) -> Kind:
    """A kind with more choices."""
    shared, indexes = dict(kind.shared), kind.indexes
    # 1.2.0 compares decimals, and dates of base files, with what files store for them ("Fixed cannot be cast to BigDecimal").
    unfit = ("decimal", "long decimal", *(("date",) if kind.type == "COPY_ON_WRITE" else ()))
    orders = [name for name in ORDERS if release == "1.0.2" or name not in unfit]
    order = chance.choice(orders) if kind.ordering else "long"
    indexed = chance.choice([name for name in INDEXED if name in kind.data])
    for name, values in LAYOUTS.items():
        if chance.random() < 0.25:
            shared[name] = chance.choice(values)
    if release != "1.0.2" and kind.version != "9":
        # It fails to compact logs of metadata tables that 1.0.2 made ("Index 7 out of bounds for length 7").
        shared.pop("hoodie.metadata.log.compaction.enable", None)
    if chance.random() < 0.3 and not kind.has_rings:
        shared |= FEW_ROWS_A_FILE
    repeats = chance.random() < 0.4 and kind.by_event and kind.payload not in FILLING
    fit = (
        kind.version == "9"
        and kind.key
        and not kind.is_global
        and indexes != ("BUCKET",)
        and not DROPPED.keys() & shared.keys()
    )
    fit = fit and shared["hoodie.metadata.enable"] == "true" and "hoodie.populate.meta.fields" not in shared
    record = shared["hoodie.metadata.record.index.enable"] == "true"
    # Other partitions hudimeta refuses.
    fit = fit and kind.place in (("flag",), ("day",)) and not HIVE.keys() & shared.keys()
    if chance.random() < 0.8 and fit and not record:
        shared[PARTITIONED] = "true"
        indexes = (*indexes, "RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX")
    secondary = indexed if kind.secondary else ""
    return dataclasses.replace(
        kind, shared=shared, order=order, indexed=indexed, secondary=secondary, repeats=repeats, indexes=indexes
    )


def keyed_kind(chance: random.Random, kind: Kind) -> Kind:
    """A kind with more choices, of histories from seed 1600 on: types of keys and of partition columns."""
    big = chance.choice(tuple(ORDERS)) if kind.key else "long"
    # The path says a time in microseconds, which Apache Hudi does not read back.
    zone = chance.choice([name for name in ORDERS if name != "time"]) if "zone" in kind.place else "int"
    key = chance.choice((("big",), ("big", "k")))
    # Apache Hudi's generator of partitions by time takes one key column.
    fit = big != "long" and len(kind.key) == 1 and "ms" not in kind.place and chance.random() < 0.7
    shared = dict(kind.shared)
    if chance.random() < 0.6:
        shared.pop(ON_READ, None)  # of which Apache Hudi has most of its own faults
    return dataclasses.replace(kind, key=key if fit else kind.key, big=big, zone=zone, shared=shared)
