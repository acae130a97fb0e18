"""Tables whose partition folders are named as writers of Apache Hudi name them by a timestamp."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa

from hudimeta import Table
from hudimeta.storage import open_storage
from hudimeta.table.properties import update

KIND = "hoodie.table.keygenerator.type"
T = "hoodie.keygen.timebased."
HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODE = "hoodie.datasource.write.partitionpath.urlencode"
SECONDS = "yyyy-MM-dd HH'%3A'mm'%3A'ss"
FRACTIONS = "yyyy-MM-dd HH:mm:ss.S"
EVENING = dt.datetime(2026, 1, 2, 3, 4, 5, 500_000, dt.timezone.utc)


def rows(value: str, *moments: dt.datetime | None) -> pa.Table:
    at = list(moments or (EVENING,))
    ids = [chr(ord("a") + place) for place in range(len(at))]
    return pa.table({"id": ids, "at": pa.array(at, pa.timestamp("us", "UTC")), "v": [value] * len(at)})


def table(
    path: Path,
    written: pa.Table,
    pattern: str = SECONDS,
    *,
    zone: str = "UTC",
    hive: bool = True,
    encode: bool = False,
    **more: str,
) -> Path:
    """A table in folders as SQL of Apache Hudi names them, or (with fractions, encoded) its `bulk_insert` of DataFrames."""
    options = {HIVE: str(hive).lower(), ENCODE: str(encode).lower(), **more}
    Table.create(path, written.schema, key="id", partition_by="at", options=options)
    insert_as_hudi(path, written, pattern, zone)
    return path


def insert_as_hudi(path: Path, written: pa.Table, pattern: str = SECONDS, zone: str = "UTC") -> None:
    """Rows in the folders of another writer, of which the table's properties say nothing."""
    storage, before = open_storage(str(path)), Table(path).properties
    clock = {T + "timestamp.type": "EPOCHMICROSECONDS", T + "output.dateformat": pattern, T + "output.timezone": zone}
    update(storage, {**clock, KIND: "TIMESTAMP"})
    Table(path).insert(written)
    update(storage, {**dict.fromkeys(clock), KIND: before[KIND]})
