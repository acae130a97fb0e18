"""Lists of files as Spark's file scans take them: `PartitionDirectory` objects, each some files and their constant columns."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from pyspark_hudimeta.native.made_together import MadeTogether
from pyspark_hudimeta.native.manifest import MANIFEST_FILES, file_uri, write_manifest
from pyspark_hudimeta.native.parquet_options import SPARKS_PARQUET

if TYPE_CHECKING:
    from pyspark_hudimeta.native.jvm import Jvm
    from pyspark_hudimeta.native.staging import Staging

__all__ = ["Directories", "is_constant", "satisfying"]

MANY = 200
"""From so many files on they go to the JVM as one manifest, in about 50 ms, and not one by one in half a millisecond each."""

_PATH = re.compile(r"path=(.*?); isDirectory=")
"""In Hadoop's text of a file's status."""

_SETTERS = {
    "long": "setLong",
    "integer": "setInt",
    "short": "setShort",
    "byte": "setByte",
    "boolean": "setBoolean",
    "date": "setInt",
}


def is_constant(kind: pa.DataType) -> bool:
    """Whether a list of files can state values of a type: Catalyst has moments, decimals and bytes in forms of its own."""
    types = pa.types
    plain = types.is_string(kind) or types.is_boolean(kind) or types.is_date32(kind) or types.is_float64(kind)
    return bool(plain or types.is_integer(kind))


class Directories:
    """Makes lists of files for one table.

    Args:
        jvm: Of the session.
        staging: Where manifests lie while they are read.
        schema: The constant columns, in Spark's types and as Spark's object.
    """

    def __init__(self, jvm: Jvm, staging: Staging, schema: Any, java_schema: Any) -> None:
        self._jvm, self._staging = jvm, staging
        self._schema, self._kinds = schema, [column.dataType.typeName() for column in schema]
        self._java_schema = java_schema

    def directories(self, listed: Sequence[tuple[pa.Table, Sequence[Any]]]) -> Any:
        """A java.util.ArrayList of directories.

        Args:
            listed: Files and values of each, see `directory`.
        """
        if len(listed) > 1 and sum(files.num_rows for files, _ in listed) >= MANY:
            together = self._together(pa.concat_tables([files for files, _ in listed]), listed)
            if together is not None:
                return together
        found = self._jvm.view.java.util.ArrayList()
        for files, values in listed:
            found.add(self.directory(files, values))
        return found

    def _together(self, everything: pa.Table, listed: Sequence[tuple[pa.Table, Sequence[Any]]]) -> Any | None:
        """The same in one piece; None where that is not possible."""
        make = MadeTogether(self._jvm)
        constants = make.constants(self._schema, [values for _, values in listed])
        if constants is None:
            return None
        whole = self._by_manifest(everything)
        if _names(whole) != [_last(uri) for uri in everything.column("uri").to_pylist()]:
            return None  # the JVM has another order
        return make.directories(whole, [files.num_rows for files, _ in listed], constants)

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
            frame = reader.format(SPARKS_PARQUET).load(file_uri(storage.root, folder))
            relation = frame.queryExecution().analyzed().relation()
            nothing = self._jvm.seq([])
            return relation.location().listFiles(nothing, nothing).head().files()
        finally:
            storage.delete_folder(folder)


def _names(files: Any) -> list[str]:
    """The names of files that Spark has listed, in its order. Asked one by one, thousands would take seconds."""
    return [path.rpartition("/")[2] for path in _PATH.findall(str(files.mkString("\n")))]


def _last(uri: str) -> str:
    """The name of a file."""
    return unquote(uri.rpartition("/")[2])


def satisfying(jvm: Jvm, directories: Any, schema: Any, filters: Sequence[Any]) -> Any:
    """A Seq of the directories whose constant columns satisfy Catalyst's filters, exactly.

    Args:
        jvm: Of the session.
        directories: A java.util.ArrayList, see `Directories`.
        schema: Of the constant columns, as Spark's object.
        filters: Expressions over constant columns alone.
    """
    if filters:
        MadeTogether(jvm).remove(directories, [_refusal(jvm, schema, expression) for expression in filters])
    return jvm.seq_of(directories)


def _refusal(jvm: Jvm, schema: Any, expression: Any) -> Any:
    """A predicate of rows with the schema: that an expression is not true."""
    asked = {column.name(): column for column in jvm.items(expression.references().toSeq())}
    every = jvm.items(jvm.view.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(schema))
    columns = getattr(jvm.expressions, "package$AttributeSeq")(jvm.seq([asked.get(c.name(), c) for c in every]))
    bound = jvm.expressions.BindReferences.bindReference(expression, columns, False)
    is_true = jvm.expressions.EqualNullSafe(bound, jvm.expressions.Literal.create(True, jvm.type("boolean")))
    test = jvm.expressions.Predicate.createInterpreted(jvm.expressions.Not(is_true))
    test.initialize(0)
    return test
