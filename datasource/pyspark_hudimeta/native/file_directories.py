"""Lists of files as Spark's file scans take them: `PartitionDirectory` objects, each some files and their constant columns."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from pyspark_hudimeta.native.manifest import MANIFEST_FILES, file_uri, write_manifest

if TYPE_CHECKING:
    from pyspark_hudimeta.native.jvm import Jvm
    from pyspark_hudimeta.native.staging import Staging

__all__ = ["Directories", "satisfying"]

MANY = 200
"""From so many files on they go to the JVM as one manifest, in about 50 ms, and not one by one in half a millisecond each."""

_SETTERS = {
    "long": "setLong",
    "integer": "setInt",
    "short": "setShort",
    "byte": "setByte",
    "boolean": "setBoolean",
    "date": "setInt",
}


class Directories:
    """Makes lists of files for one table.

    Args:
        jvm: Of the session.
        staging: Where manifests lie while they are read.
        schema: The constant columns, in Spark's types and as Spark's object.
    """

    def __init__(self, jvm: Jvm, staging: Staging, schema: Any, java_schema: Any) -> None:
        self._jvm, self._staging = jvm, staging
        self._kinds = [column.dataType.typeName() for column in schema]
        self._java_schema = java_schema

    def directories(self, listed: Sequence[tuple[pa.Table, Sequence[Any]]]) -> Iterator[Any]:
        """Several directories; many files go to the JVM together. Args: listed: Files and values of each, see `directory`."""
        together = sum(files.num_rows for files, _ in listed)
        if len(listed) < 2 or together < MANY:
            yield from (self.directory(files, values) for files, values in listed)
            return
        whole = self._by_manifest(pa.concat_tables([files for files, _ in listed]))
        start = 0
        for files, values in listed:
            part = whole.slice(start, start + files.num_rows)
            start += files.num_rows
            ends = ((part.head(), 0), (part.last(), files.num_rows - 1))
            if whole.size() != together or any(_name(status) != _last(files, at) for status, at in ends):
                yield self.directory(files, values)  # the JVM has them in another order
            else:
                yield self._jvm.datasources.PartitionDirectory(self._row(values), part)

    def directory(self, files: pa.Table, values: Sequence[Any]) -> Any:
        """One directory.

        Args:
            files: Columns of `manifest.MANIFEST_FILES`.
            values: Of the constant columns, as plain Python values.
        """
        make = self._jvm.datasources.PartitionDirectory
        if files.num_rows < MANY:
            columns = (files.column(name).to_pylist() for name in MANIFEST_FILES.names)
            return make.apply(self._row(values), self._jvm.file_statuses(zip(*columns, strict=True)))
        return make(self._row(values), self._by_manifest(files))

    def _row(self, values: Sequence[Any]) -> Any:
        """An InternalRow."""
        row = self._jvm.expressions.SpecificInternalRow(self._java_schema)
        for number, (value, kind) in enumerate(zip(values, self._kinds, strict=True)):
            if value is None:
                row.setNullAt(number)
            elif kind in _SETTERS:
                getattr(row, _SETTERS[kind])(number, value)
            else:
                row.update(number, self._jvm.text(value) if isinstance(value, str) else value)
        return row

    def _by_manifest(self, files: pa.Table) -> Any:
        """A Seq of files with Spark's status of each."""
        storage, folder = self._staging.storage(), f"manifest-{uuid.uuid4()}"
        write_manifest(storage, folder, files)
        try:
            reader = self._jvm.session.read().option("recursiveFileLookup", "true").schema("any int")
            frame = reader.parquet(self._jvm.array(self._jvm.view.java.lang.String, [file_uri(storage.root, folder)]))
            relation = frame.queryExecution().analyzed().relation()
            nothing = self._jvm.seq([])
            return relation.location().listFiles(nothing, nothing).head().files()
        finally:
            storage.delete_folder(folder)


def _name(status: Any) -> str:
    """The name of a file that Spark has listed."""
    return str(status.getPath().getName())


def _last(files: pa.Table, number: int) -> str:
    """The name of one of some files."""
    return unquote(files.column("uri")[number].as_py().rpartition("/")[2])


def satisfying(jvm: Jvm, directories: Iterable[Any], schema: Any, filters: Sequence[Any]) -> Iterator[Any]:
    """The directories whose constant columns satisfy Catalyst's filters, exactly.

    Args:
        jvm: Of the session.
        directories: As `Directories` makes them.
        schema: Of the constant columns, as Spark's object.
        filters: Expressions over constant columns alone.
    """
    tests = [_test(jvm, schema, expression) for expression in filters]
    return (found for found in directories if all(test.eval(found.values()) for test in tests))


def _test(jvm: Jvm, schema: Any, expression: Any) -> Any:
    """An expression as a predicate of rows with the schema."""
    asked = {column.name(): column for column in jvm.items(expression.references().toSeq())}
    every = jvm.items(jvm.view.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(schema))
    columns = getattr(jvm.expressions, "package$AttributeSeq")(jvm.seq([asked.get(c.name(), c) for c in every]))
    bound = jvm.expressions.BindReferences.bindReference(expression, columns, False)
    test = jvm.expressions.Predicate.createInterpreted(bound)
    test.initialize(0)
    return test
