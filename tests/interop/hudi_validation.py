"""Asks Apache Hudi's own Java reader of a metadata table, and compares its answers with storage, footers and rows.

Runs inside `hudi_jvm.py`. Nothing here trusts the metadata table: files come from walking the folders, statistics and bloom
filters from the footers, keys and their places from a scan that plans without metadata.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import struct
import urllib.parse
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq
from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession, functions

BLOOM_KEY = b"org.apache.hudi.bloomfilter"
ABSENT_KEYS = ("no such key", "")
EPOCH = datetime.date(1970, 1, 1)
VIEW_CALLS = (
    "getAllBaseFiles",
    "getAllFileGroups",
    "getAllFileSlices",
    "getLatestBaseFiles",
    "getLatestFileSlices",
    "getLatestUnCompactedFileSlices",
)
"""Of a file system view, each of one partition; the draft of RFC-15 times them."""


class MetadataReader:
    """Hudi's meta client and metadata reader of one table, through py4j.

    Args:
        spark: The session whose JVM holds Hudi.
        path: The table.
        switches: Options that name its indexes.
        local: Use Hudi's engine context without Spark.
        reuse: Let the reader keep its file readers open.
    """

    def __init__(
        self, spark: SparkSession, path: str, switches: dict[str, str], local: bool = False, reuse: bool = True
    ) -> None:
        self.path, self.java = path, spark._jvm
        hudi = self.java.org.apache.hudi
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        storage = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop)
        self.client = hudi.common.table.HoodieTableMetaClient.builder().setBasePath(path).setConf(storage).build()
        if local:
            self.context = hudi.common.engine.HoodieLocalEngineContext(storage)
        else:
            self.context = hudi.client.common.HoodieSparkEngineContext(spark.sparkContext._jsc)
        settings = self.java.java.util.Properties()
        for name, value in {"hoodie.metadata.enable": "true", **switches}.items():
            settings.setProperty(name, value)
        self.config = hudi.common.config.HoodieMetadataConfig.newBuilder().fromProperties(settings).build()
        backed = hudi.metadata.HoodieBackedTableMetadata
        self.metadata = backed(self.context, self.client.getStorage(), self.config, path, reuse)

    def count(self, what: str, partition: str = "") -> int:
        """How many there are by the metadata table.

        Args:
            what: `partitions`, `files` (of one partition), `slices` (newest ones with a base file, of the whole table), or one
                of `VIEW_CALLS`, of one partition.
            partition: Path.
        """
        if what == "partitions":
            return int(self.metadata.getAllPartitionPaths().size())
        if what == "files":
            return int(self.metadata.getAllFilesInPartition(self.storage_path(partition)).size())
        if what == "slices":
            with self._view() as view:
                view.loadAllPartitions()
                return int(view.getLatestBaseFiles().count())
        if what in VIEW_CALLS:
            with self._view() as view:
                return int(getattr(view, what)(partition).count())
        raise ValueError(f"cannot count {what}")

    @contextlib.contextmanager
    def _view(self) -> Iterator[Any]:
        """Hudi's file system view over this reader."""
        hudi = self.java.org.apache.hudi
        timeline = self.client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        view = hudi.common.table.view.HoodieTableFileSystemView(self.metadata, self.client, timeline)
        try:
            yield view
        finally:
            view.close()

    def storage_path(self, partition: str) -> Any:
        """A partition's folder as Hudi's path object."""
        path = self.java.org.apache.hudi.storage.StoragePath
        return path(self.path, partition) if partition else path(self.path)

    def partitions(self) -> list[str]:
        """Partition paths."""
        return sorted(str(name) for name in self.metadata.getAllPartitionPaths())

    def files(self, partition: str) -> dict[str, int]:
        """File name to size of one partition."""
        found = self.metadata.getAllFilesInPartition(self.storage_path(partition))
        return {entry.getPath().getName(): entry.getLength() for entry in found}

    def column_stats(self, files: list[tuple[str, str]], column: str) -> dict[tuple[str, str], Any]:
        """(partition, file name) to Hudi's statistics object of one column."""
        found = self.metadata.getColumnStats(self._pairs(files), column)
        return {(e.getKey().getLeft(), e.getKey().getRight()): e.getValue() for e in found.entrySet()}

    def bloom_filters(self, files: list[tuple[str, str]]) -> dict[tuple[str, str], Any]:
        """(partition, file name) to Hudi's bloom filter object."""
        found = self.metadata.getBloomFilters(self._pairs(files))
        return {(e.getKey().getLeft(), e.getKey().getRight()): e.getValue() for e in found.entrySet()}

    def partition_stats(self, column: str) -> dict[str, Any]:
        """Partition path to Hudi's statistics object of one column."""
        hudi = self.java.org.apache.hudi
        if self._asks_with_data:
            prefixes = self._data(self._list([hudi.metadata.ColumnStatsIndexPrefixRawKey(column)]))
        else:
            prefixes = self._list([hudi.common.util.hash.ColumnIndexID(column).asBase64EncodedString()])
        records = self.metadata.getRecordsByKeyPrefixes(prefixes, "partition_stats", True).collectAsList()
        found = [record.getData().getColumnStatMetadata().get() for record in records]
        return {statistics.getFileName(): statistics for statistics in found}

    def record_locations(self, keys: list[str]) -> dict[str, tuple[str, str]]:
        """Record key to (partition path, file id), for those that the record index knows."""
        located = {}
        for pair in self._located(self._list(keys)):
            value = pair.getValue()
            place = value if hasattr(value, "getFileId") else value.get(0)
            located[str(pair.getKey())] = (place.getPartitionPath(), place.getFileId())
        return located

    def count_located(self, keys: Any) -> int:
        """How many keys of a Java list the record index knows."""
        return int(self._located(keys).size())

    def keys_of_value(self, value: str, index: str) -> set[str]:
        """Record keys that a secondary index gives for one column value."""
        values = self._list([value])
        if self._asks_with_data:
            found = self.metadata.readSecondaryIndexLocationsWithKeys(self._data(values), index).collectAsList()
            return {str(pair.getKey()) for pair in found}
        return {str(key) for key in self.metadata.readSecondaryIndex(values, index).keySet()}

    def _located(self, keys: Any) -> Any:
        if self._asks_with_data:
            return self.metadata.readRecordIndexLocationsWithKeys(self._data(keys)).collectAsList()
        return self.metadata.readRecordIndex(keys).entrySet()

    @property
    def _asks_with_data(self) -> bool:
        """True from Hudi 1.1 on, whose metadata reader takes collections of its own and keys with a type."""
        return isinstance(self.java.org.apache.hudi.metadata.ColumnStatsIndexPrefixRawKey, JavaClass)

    def _data(self, values: Any) -> Any:
        return self.java.org.apache.hudi.common.data.HoodieListData.eager(values)

    def _list(self, values: Iterable[Any]) -> Any:
        made = self.java.java.util.ArrayList()
        for value in values:
            made.add(value)
        return made

    def _pairs(self, files: list[tuple[str, str]]) -> Any:
        pair = self.java.org.apache.hudi.common.util.collection.Pair
        return self._list(pair.of(partition, name) for partition, name in files)


@dataclass
class Findings:
    """Checks made, as name to number of things compared, and every difference in words."""

    compared: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def check(self, name: str, found: Any, expected: Any, what: str = "") -> None:
        """Count one comparison, and keep what differs."""
        self.compared[name] = self.compared.get(name, 0) + 1
        if found != expected:
            self.problems.append(f"{name} {what}: Hudi's reader says {found!r}, expected {expected!r}"[:600])


def validate(spark: SparkSession, path: str, switches: dict[str, str]) -> dict[str, Any]:
    """All checks that the table's metadata partitions allow. Returns `compared` and `problems`."""
    reader = MetadataReader(spark, path, switches)
    present = {str(name) for name in reader.client.getTableConfig().getMetadataPartitions()}
    findings = Findings()
    files = _walk(path, _unfinished(reader.client))
    _check_files(reader, findings, files)
    _check_rows(spark, path, findings)
    base_files = [(p, name) for p, names in files.items() for name in names if name.endswith(".parquet")]
    if "column_stats" in present:
        _check_column_stats(reader, findings, base_files)
    if "partition_stats" in present:
        _check_partition_stats(spark, reader, findings)
    if "bloom_filters" in present:
        _check_bloom_filters(reader, findings, base_files)
    if "record_index" in present:
        _check_record_index(spark, reader, findings)
    for index in sorted(name for name in present if name.startswith("secondary_index_")):
        _check_secondary_index(spark, reader, findings, index)
    return {"compared": findings.compared, "problems": findings.problems}


def _unfinished(client: Any) -> set[str]:
    """Requested times of instants that are pending: their files are in storage and rightly not in the metadata table."""
    pending = client.getActiveTimeline().filterInflightsAndRequested().getInstants()
    return {str(instant.requestedTime()) for instant in pending}


def _walk(path: str, unfinished: set[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if name != ".hoodie"]
        partition = "" if folder == path.rstrip("/") else os.path.relpath(folder, path)
        for name in names:
            inner = name.startswith(".hoodie_partition_metadata") or name.endswith(".crc")
            if not inner and not any(instant in name for instant in unfinished):
                found[partition][name] = os.path.getsize(os.path.join(folder, name))
    return found


def _check_files(reader: MetadataReader, findings: Findings, files: dict[str, dict[str, int]]) -> None:
    listed = reader.partitions()
    findings.check("partitions", sorted(set(files) - set(listed)), [], "that hold files and are not listed")
    for partition in sorted({*files, *listed}):
        expected = files.get(partition, {})
        found = reader.files(partition)
        findings.check("files", sorted(set(found.items()) - set(expected.items())), [], f"of {partition!r}, only in metadata")
        findings.check("files", sorted(set(expected.items()) - set(found.items())), [], f"of {partition!r}, only in storage")


def _check_rows(spark: SparkSession, path: str, findings: Findings) -> None:
    """The same rows whether planned from the metadata table or from a listing."""
    counted = {}
    for planned in ("true", "false"):
        frame = spark.read.format("hudi").option("hoodie.metadata.enable", planned).load(path)
        counted[planned] = frame.selectExpr("count(*) n", "coalesce(sum(hash(*)), 0) h").collect()[0].asDict()
    findings.check("rows", counted["true"], counted["false"], "with and without the metadata table")


def _check_column_stats(reader: MetadataReader, findings: Findings, base_files: list[tuple[str, str]]) -> None:
    for column in _indexed_columns(reader.path):
        stats = reader.column_stats(base_files, column)
        for partition, name in base_files:
            expected = _footer_statistics(os.path.join(reader.path, partition, name), column)
            if expected is None:
                continue
            found = stats.get((partition, name))
            what = f"{column} of {partition}/{name}"
            if found is None:
                findings.check("column_stats", None, expected, what)
                continue
            findings.check("column_stats", found.getValueCount(), expected["rows"], what + " valueCount")
            findings.check("column_stats", found.getNullCount(), expected["nulls"], what + " nullCount")
            for end, wrapped in (("min", found.getMinValue()), ("max", found.getMaxValue())):
                value = None if wrapped is None else _plain(wrapped.get("value"))
                if expected["single"] and isinstance(value, float):
                    (value,) = struct.unpack("f", struct.pack("f", value))  # py4j hands on the shortest text of a float
                if expected[end] is not None and isinstance(value, (str, int, float)):
                    findings.check("column_stats", value, expected[end], f"{what} {end}")


def _check_partition_stats(spark: SparkSession, reader: MetadataReader, findings: Findings) -> None:
    """Bounds of a partition enclose its rows; they may be wider. Of a file with NaN they are 0 to 0, which tells nothing."""
    frame = spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(reader.path)
    fields = reader.client.getTableConfig().getPartitionFields()
    folders = list(fields.get()) if fields.isPresent() else []  # columns that Spark may read from the folder's name instead
    columns = [c for c in _indexed_columns(reader.path) if c in frame.columns and not c.startswith("_hoodie_")]
    columns = [c for c in columns if c not in folders]
    wanted = [text for c in columns for text in (f"min(`{c}`)", f"max(`{c}`)", f"count_if(`{c}` is null)", f"count(`{c}`)")]
    # A table of virtual keys stores no partition paths: there the folder tells.
    folder = functions.regexp_extract(functions.input_file_name(), "^(.*)/", 1)
    by = functions.col("_hoodie_partition_path") if "_hoodie_partition_path" in frame.columns else folder
    grouped = frame.groupBy(by.alias("at")).agg(*(functions.expr(text) for text in wanted)).collect()
    for at, column in enumerate(columns):
        stats = reader.partition_stats(column)
        for place, *values in grouped:
            partition = _partition_of(reader.path, place) if by is folder else place
            low, high, nulls, present = values[at * 4 : at * 4 + 4]
            what, found = f"{column} of {partition}", stats.get(partition)
            if found is None:  # as of a partition that nobody wrote to since the column came, by Apache Hudi alone as well
                findings.check("partition_stats", present, 0, what + " has no statistics, values")
                continue
            findings.check("partition_stats", nulls == 0 or found.getNullCount() > 0, True, what + " knows of nulls")
            bounds = [None if b is None else _plain(b.get("value")) for b in (found.getMinValue(), found.getMaxValue())]
            findings.check("partition_stats", bounds == [None, None] and present > 0 and _plain(low) is not None, False, what)
            holds_nan = high != high  # Spark orders NaN above every number
            for expected, bound, side in ((_plain(low), bounds[0], 1), (_plain(high), bounds[1], -1)):
                if isinstance(bound, (str, int, float)) and type(bound) is type(expected) and not holds_nan:
                    enclosed = bound <= expected if side > 0 else bound >= expected
                    findings.check("partition_stats", enclosed, True, f"{what}: {bound!r} beside {expected!r}")


def _partition_of(path: str, folder: str) -> str:
    """The partition path of a folder that Spark names as a URL."""
    relative = os.path.relpath(urllib.parse.unquote(urllib.parse.urlsplit(folder).path), path)
    return "" if relative == "." else relative


def _indexed_columns(path: str) -> list[str]:
    with open(os.path.join(path, ".hoodie", ".index_defs", "index.json"), encoding="utf-8") as file:
        definitions = json.load(file)["indexDefinitions"]
    return list(definitions["column_stats"]["sourceFields"])


def _footer_statistics(path: str, column: str) -> dict[str, Any] | None:
    """Rows, nulls and bounds of a top-level column over all row groups; None for an empty file or an absent column."""
    footer = pq.ParquetFile(path).metadata
    places = [i for i in range(footer.num_columns) if footer.schema.column(i).path == column]
    if footer.num_rows == 0 or not places:
        return None
    chunks = [footer.row_group(group).column(places[0]).statistics for group in range(footer.num_row_groups)]
    if any(chunk is None or not chunk.has_null_count for chunk in chunks):
        return None
    bounded = [chunk for chunk in chunks if chunk.has_min_max]
    if any(end != end for chunk in bounded for end in (chunk.min, chunk.max)):
        bounded = []  # with a NaN inside, writers disagree about what a bound is
    return {
        "rows": footer.num_rows,
        "nulls": sum(chunk.null_count for chunk in chunks),
        "min": min((_plain(chunk.min) for chunk in bounded), default=None),
        "max": max((_plain(chunk.max) for chunk in bounded), default=None),
        "single": footer.schema.column(places[0]).physical_type == "FLOAT",
    }


def _plain(value: Any) -> Any:
    """A value as the wrappers of column statistics hold it: days, microseconds; None for what is not compared."""
    if isinstance(value, datetime.datetime):
        naive = value.replace(tzinfo=None)
        return (naive - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - EPOCH).days
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return value


def _check_bloom_filters(reader: MetadataReader, findings: Findings, base_files: list[tuple[str, str]]) -> None:
    filters = reader.bloom_filters(base_files)
    for partition, name in base_files:
        file = pq.ParquetFile(os.path.join(reader.path, partition, name))
        expected = (file.metadata.metadata or {}).get(BLOOM_KEY)
        found = filters.get((partition, name))
        what = f"of {partition}/{name}"
        if found is None or expected is None:
            findings.check("bloom_filters", found is not None, expected is not None, what + " exists")
            continue
        findings.check("bloom_filters", found.serializeToString() == expected.decode(), True, what + " equals the footer's")
        keys = file.read(columns=["_hoodie_record_key"]).column(0).to_pylist()
        missed = [key for key in keys[:200] if not found.mightContain(key)]
        findings.check("bloom_filters", missed, [], what + " misses")


def _live_rows(spark: SparkSession, path: str, extra: str = "null") -> list[Any]:
    frame = spark.read.format("hudi").option("hoodie.metadata.enable", "false").load(path)
    columns = ("_hoodie_record_key k", "_hoodie_partition_path p", "_hoodie_file_name f", f"cast({extra} as string) v")
    return list(frame.selectExpr(*columns).collect())


def _check_record_index(spark: SparkSession, reader: MetadataReader, findings: Findings) -> None:
    live = {row.k: (row.p, row.f.split("_")[0]) for row in _live_rows(spark, reader.path)}
    found = reader.record_locations([*live, *ABSENT_KEYS])
    for key in sorted(set(live) | set(found)):
        findings.check("record_index", found.get(key), live.get(key), f"key {key!r}")


def _check_secondary_index(spark: SparkSession, reader: MetadataReader, findings: Findings, index: str) -> None:
    with open(os.path.join(reader.path, ".hoodie", ".index_defs", "index.json"), encoding="utf-8") as file:
        column = json.load(file)["indexDefinitions"][index]["sourceFields"][0]
    keys: dict[str, set[str]] = defaultdict(set)
    for row in _live_rows(spark, reader.path, f"`{column}`"):
        if row.v:  # release 1.0.2 looks for entries that begin with a text, and all begin with none
            keys[row.v].add(row.k)
    for value, expected in keys.items():
        findings.check(index, sorted(reader.keys_of_value(value, index)), sorted(expected), f"value {value!r}")
