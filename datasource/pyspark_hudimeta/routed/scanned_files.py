"""DataFrames that are nothing but the rows of Parquet files: recognised by Spark's own plan, so that tasks can read the files.

Spark's plan says which files its tasks would read, in which pieces and which order; that is what they get, without their rows
having gone through the JVM. Whatever else is in the plan, and whatever could be read otherwise than Spark does (see
`file_parts`), leaves the rows to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hudimeta.storage import absolute_location
from pyspark_hudimeta.native.jvm import Jvm
from pyspark_hudimeta.routed.file_parts import FilePart, FileRange, FileReading, look_at_all
from pyspark_hudimeta.routed.file_times import Calendars
from pyspark_hudimeta.spark_engine import SparkEngine
from pyspark_hudimeta.spark_version import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ScannedFiles", "scanned_files"]

WORTH_BYTES = 2 << 20
"""Of less Parquet it costs more to look at plans and footers than it costs to bring the rows."""
MOST_PIECES = 1_000
"""Of files: each takes some calls into the JVM to learn of."""
_FOOTERS_A_TASK = 128

_PACKAGE = "org.apache.spark.sql."
_SCAN, _PROJECT = "execution.FileSourceScanExec", "execution.ProjectExec"
_AROUND = frozenset({"execution.WholeStageCodegenExec", "execution.InputAdapter", "execution.ColumnarToRowExec"})
_PARQUET = "execution.datasources.parquet.ParquetFileFormat"
_INDEXES = frozenset({"execution.datasources.InMemoryFileIndex", "execution.datasources.CatalogFileIndex"})
_LOGICAL = frozenset({"catalyst.plans.logical.Project", "catalyst.plans.logical.SubqueryAlias", "catalyst.plans.logical.View"})
_RELATION = "execution.datasources.LogicalRelation"
_FILE_RELATION = "execution.datasources.HadoopFsRelation"
_COLUMN, _ALIAS = "catalyst.expressions.AttributeReference", "catalyst.expressions.Alias"
_GETTERS = {
    "boolean": "getBoolean",
    "byte": "getByte",
    "short": "getShort",
    "integer": "getInt",
    "long": "getLong",
    "date": "getInt",
    "string": "getUTF8String",
}
"""How values of partition columns are asked for, by their type."""
_REBASE, _REBASE_INT96 = "spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead"
_SHIFTED_INT96, _INT96_READ = "spark.sql.parquet.int96TimestampConversion", "spark.sql.parquet.int96AsTimestamp"
_LENIENT = {  # as an option of the reader, and of the session
    "ignorecorruptfiles": "spark.sql.files.ignoreCorruptFiles",
    "ignoremissingfiles": "spark.sql.files.ignoreMissingFiles",
}
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
_ENCRYPTION = "parquet.crypto.factory.class"


@dataclass(frozen=True)
class ScannedFiles:
    """Files whose rows a DataFrame has. Attributes: reading: How they are read. parts: One a task. files: How many."""

    reading: FileReading
    parts: Sequence[FilePart]
    files: int


class _LeftToSpark(Exception):
    """Why Spark must read."""


def scanned_files(spark: SparkSession, frame: DataFrame, schema: pa.Schema, given: Mapping[str, str]) -> ScannedFiles | str:
    """The files whose rows a DataFrame has.

    Args:
        spark: The session.
        frame: What is written.
        schema: Its columns in Arrow's types.
        given: Options, for the storage.

    Returns:
        The files; else why Spark must read them, empty where the DataFrame is not made of Parquet files or of very small ones.
    """
    if is_connect(spark):
        return ""
    try:
        jvm = Jvm(spark)
        relation = _relation_of(jvm, frame)
        if relation is None:
            return ""
        scan = _Scan.of(jvm, frame)
        return _found(spark, scan, schema, given)
    except _LeftToSpark as why:
        return str(why)
    except (Py4JError, PySparkException) as error:
        return f"its plan could not be understood ({type(error).__name__}: {_line(error)})"


def _found(spark: SparkSession, scan: _Scan, schema: pa.Schema, given: Mapping[str, str]) -> ScannedFiles | str:
    names = scan.names()
    if len(names) != len(schema):
        raise _LeftToSpark("the query has other columns than its plan")
    reading = FileReading(names, schema, frozenset(scan.partitioned), dict(given), scan.settings(spark))
    parts = scan.parts(set(names))
    if not parts or sum(span.length for part in parts for span in part) < WORTH_BYTES:
        return ""
    locations = list(dict.fromkeys(span.location for part in parts for span in part))
    portions = [locations[at : at + _FOOTERS_A_TASK] for at in range(0, len(locations), _FOOTERS_A_TASK)]
    looks = [one for found in SparkEngine(spark).map(look_at_all(reading), portions) for one in found]
    seen = {}
    for location, look in zip(locations, looks, strict=True):
        if isinstance(look, str):
            raise _LeftToSpark(f"{location} {look}")
        if look.size != scan.sizes[location]:
            raise _LeftToSpark(f"{location} was replaced since it was listed")
        seen[location] = look
    ranges = [[(span, seen[span.location]) for span in part] for part in parts]
    return ScannedFiles(reading, [FilePart(number, own) for number, own in enumerate(ranges)], len(locations))


def _kind(value: Any) -> str:
    """The class of one of Spark's objects, without the part that all names share."""
    return str(value.getClass().getName()).removeprefix(_PACKAGE)


def _relation_of(jvm: Jvm, frame: DataFrame) -> Any:
    """The only relation of a query, when it is one of Parquet files and not a very small one; else None.

    The analysed plan is there already, so that this costs next to nothing for what must be left to Spark anyway.

    Raises:
        _LeftToSpark: Something is done with the rows.
    """
    plan = frame._jdf.queryExecution().analyzed()
    relations = [_parquet_relation(leaf) for leaf in jvm.items(plan.collectLeaves())]
    if not relations or None in relations:
        return None
    if sum(int(relation.location().sizeInBytes()) for relation in relations) < WORTH_BYTES:
        return None
    while _kind(plan) != _RELATION:
        if _kind(plan) not in _LOGICAL:
            raise _LeftToSpark(f"the query has a step {plan.nodeName()}")
        plan = plan.children().apply(0)
    return relations[0]


def _parquet_relation(leaf: Any) -> Any:
    if _kind(leaf) != _RELATION:
        return None
    relation = leaf.relation()
    return relation if _kind(relation) == _FILE_RELATION and _kind(relation.fileFormat()) == _PARQUET else None


class _Scan:
    """The scan at the bottom of a physical plan, and what the steps above it do with its columns.

    Attributes: partitioned: Types of the partition columns, by name. sizes: Of the files, as Spark listed them.
    """

    def __init__(self, jvm: Jvm, scan: Any, projections: Sequence[Any]) -> None:
        self._jvm, self._scan, self._projections = jvm, scan, projections
        self._relation = scan.relation()
        self.partitioned = dict(_fields(self._relation.partitionSchema()))
        self.sizes: dict[str, int] = {}

    @classmethod
    def of(cls, jvm: Jvm, frame: DataFrame) -> _Scan:
        """The scan of a DataFrame. Raises _LeftToSpark: Its plan does anything else as well."""
        plan, projections = frame._jdf.queryExecution().executedPlan(), []
        while (kind := _kind(plan)) != _SCAN:
            if kind == _PROJECT:
                projections.append(plan)
            elif kind not in _AROUND:
                raise _LeftToSpark(f"the query has a step {plan.nodeName()}")
            plan = plan.children().apply(0)
        if not plan.dataFilters().isEmpty() or not plan.partitionFilters().isEmpty():
            raise _LeftToSpark("the query has a filter")
        if plan.bucketedScan():
            raise _LeftToSpark("the scan is one of buckets")
        if _kind(plan.relation().fileFormat()) != _PARQUET or _kind(plan.relation().location()) not in _INDEXES:
            raise _LeftToSpark(f"the files are those of a {plan.relation().location().getClass().getSimpleName()}")
        return cls(jvm, plan, projections)

    def names(self) -> list[str]:
        """The column of the files, or of their folders, behind each column of the DataFrame."""
        required = [name for name, _ in _fields(self._scan.requiredSchema())]
        output = self._jvm.items(self._scan.output())
        names = required + [str(column.name()) for column in output[len(required) :]]
        if names[: len(required)] != required or not set(names[len(required) :]) <= self.partitioned.keys():
            raise _LeftToSpark("the query asks for metadata of files")
        if set(required) & self.partitioned.keys() or any("." in name for name in required):
            raise _LeftToSpark("a column has a name of two meanings")
        if not self._projections:
            return names
        meant = {_id(column): name for column, name in zip(output, names, strict=True)}
        for projection in reversed(self._projections):
            shown = [(_id(one), meant.get(_id(_source_of(one)))) for one in self._jvm.items(projection.projectList())]
            meant = {number: name for number, name in shown if name is not None}
            names = [name for _, name in shown if name is not None]
            if len(names) != len(shown):
                raise _LeftToSpark("the query asks for metadata of files")
        return names

    def settings(self, spark: SparkSession) -> Calendars:
        """What session and reader say of dates and times.

        Raises:
            _LeftToSpark: The session or the reader asks for something that only Spark's own reader does.
        """
        options = {name.lower(): value for name, value in self._jvm.texts(self._jvm.java_map(self._relation.options())).items()}
        for option, key in _LENIENT.items():
            if options.get(option, str(spark.conf.get(key))).lower() != "false":
                raise _LeftToSpark(f"{key} is set")
        if str(spark.conf.get(_FIELD_IDS)).lower() != "false":
            raise _LeftToSpark(f"{_FIELD_IDS} is set")
        if _ENCRYPTION in options or spark.sparkContext._jsc.hadoopConfiguration().get(_ENCRYPTION):
            raise _LeftToSpark(f"{_ENCRYPTION} is set")
        dates = options.get("datetimerebasemode", str(spark.conf.get(_REBASE))).upper()
        int96 = options.get("int96rebasemode", str(spark.conf.get(_REBASE_INT96))).upper()
        shifted, read = (str(spark.conf.get(key)).lower() for key in (_SHIFTED_INT96, _INT96_READ))
        against = f"{_SHIFTED_INT96} is set" if shifted != "false" else f"{_INT96_READ} is not set" if read != "true" else ""
        return Calendars(dates == "CORRECTED", int96 == "CORRECTED", against)

    def parts(self, names: set[str]) -> list[list[FileRange]]:
        """What Spark's tasks would read.

        Args:
            names: The columns that are asked for.
        """
        rdd = self._scan.inputRDD()
        if _kind(rdd) != "execution.datasources.FileScanRDD":
            raise _LeftToSpark("the files are not read by Spark's own tasks")
        asked = [(at, name, kind) for at, (name, kind) in enumerate(self.partitioned.items()) if name in names]
        for _, name, kind in asked:
            if kind not in _GETTERS:
                raise _LeftToSpark(f"folders have values of type {kind} for {name}")
        pieces, parts = 0, []
        of_folder: dict[str, dict[str, Any]] = {}
        for partition in self._jvm.items(rdd.filePartitions()):
            files = partition.files()
            pieces += len(files)
            if pieces > MOST_PIECES:
                raise _LeftToSpark(f"there are more than {MOST_PIECES:,} files or pieces of files")
            parts.append([self._range(files[number], asked, of_folder) for number in range(len(files))])
        return parts

    def _range(self, file: Any, asked: Iterable[tuple[int, str, str]], of_folder: dict[str, dict[str, Any]]) -> FileRange:
        uri = str(file.filePath().urlEncoded())
        # The path of another scheme is the object's key: only files have URIs whose escapes storage undoes.
        location = absolute_location(uri if uri.startswith("file:") else unquote(uri))
        self.sizes[location] = int(file.fileSize())
        folder = location.rpartition("/")[0]
        if folder not in of_folder:
            row = file.partitionValues()
            of_folder[folder] = {name: _value(row, at, kind) for at, name, kind in asked}
        return FileRange(location, int(file.start()), int(file.length()), of_folder[folder])


def _value(row: Any, at: int, kind: str) -> Any:
    """A value of an InternalRow; dates as days."""
    if row.isNullAt(at):
        return None
    value = getattr(row, _GETTERS[kind])(at)
    return str(value.toString()) if kind == "string" else value


def _fields(schema: Any) -> Iterator[tuple[str, str]]:
    """Names and types of a StructType of Spark's."""
    import json

    for field in json.loads(schema.json())["fields"]:
        yield field["name"], field["type"] if isinstance(field["type"], str) else "nested"


def _id(column: Any) -> int:
    return int(column.exprId().id())


def _source_of(column: Any) -> Any:
    """The column behind an expression of a projection. Raises _LeftToSpark: It computes something."""
    found = column.child() if _kind(column) == _ALIAS else column
    if _kind(found) != _COLUMN:
        raise _LeftToSpark("the query computes columns")
    return found


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]
