"""Thousands of `PartitionDirectory` objects, each with its constants, made by the JVM in one go.

From Python one such object takes a dozen round trips, which is seconds for a table of 5,000 partitions. So the constants go
over as one text of JSON, which Catalyst reads into rows, the files as one Seq, and where each directory ends in it as one array
of bytes. Method handles put together what makes one directory of its number; `Arrays.setAll` and `removeIf` run that for all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from hudimeta.cached import cached_property

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pyspark_hudimeta.native.jvm import Jvm

__all__ = ["MadeTogether"]

_EPOCH = date(1970, 1, 1)
_SPELLED = ("string", "long", "integer", "short", "byte", "boolean", "date")
"""Types whose texts Catalyst reads back as the same values."""
_ROW = "Lorg/apache/spark/sql/catalyst/InternalRow;"
_SEQ = "Lscala/collection/immutable/Seq;"
_ANY = "Ljava/lang/Object;"


class MadeTogether:
    """Makes and judges many directories.

    Args:
        jvm: Of the session.
    """

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._invoke = jvm.view.java.lang.invoke
        self._handles = self._invoke.MethodHandles
        self._lookup = self._handles.publicLookup()
        self._loader = jvm.session.getClass().getClassLoader()

    def directories(self, files: Any, counts: Sequence[int], constants: Any) -> Any:
        """A java.util.ArrayList of directories.

        Args:
            files: A Seq of all files, in order.
            counts: Of files in each directory.
            constants: A row a directory, see `constants`.
        """
        ends = np.cumsum(counts)
        row = self._handles.arrayElementGetter(self._class("[Ljava.lang.Object;")).bindTo(constants)
        cut = self._method("scala.collection.immutable.Seq", "slice", f"(II){_ANY}").bindTo(files)
        part = self._of_number(self._fed(cut, self._number(ends - counts), self._number(ends)))
        make = self._lookup.findConstructor(self._directory, self._type(f"({_ROW}{_SEQ})V")).asType(
            self._type(f"({_ANY}{_ANY}){_ANY}")
        )
        one = self._of_number(self._fed(make, row, part))
        found = self._jvm.gateway.new_array(self._jvm.view.java.lang.Object, len(counts))
        arrays = self._jvm.view.java.util.Arrays
        arrays.setAll(found, self._as("java.util.function.IntFunction", one))
        return self._jvm.view.java.util.ArrayList(arrays.asList(found))

    def constants(self, schema: StructType, rows: Sequence[Sequence[Any]]) -> Any | None:
        """An array of Catalyst's rows; None where a type has no text that it reads back.

        Args:
            schema: Of the rows.
            rows: Plain Python values; dates are days.
        """
        kinds = [column.dataType.typeName() for column in schema]
        if any(kind not in _SPELLED and any(row[n] is not None for row in rows) for n, kind in enumerate(kinds)):
            return None
        texts = self._jvm.view.java.util.ArrayList()
        texts.add(json.dumps([{f"c{n}": _text(value, kinds[n]) for n, value in enumerate(row)} for row in rows]))
        spelled = ", ".join(f"c{n}: string" for n in range(len(kinds)))
        wanted = ", ".join(f"c{n}: {column.dataType.simpleString()}" for n, column in enumerate(schema))
        read = f"cast(from_json(value, 'array<struct<{spelled}>>') as array<struct<{wanted}>>)"
        frame = self._jvm.session.createDataset(texts, self._jvm.view.org.apache.spark.sql.Encoders.STRING())
        frame = frame.selectExpr(self._jvm.array(self._jvm.view.java.lang.String, [read]))
        kind = frame.schema().fields()[0].dataType().elementType()
        return frame.queryExecution().executedPlan().executeCollect()[0].getArray(0).toObjectArray(kind)

    def remove(self, directories: Any, refusals: Iterable[Any]) -> None:
        """Remove directories.

        Args:
            directories: A java.util.ArrayList.
            refusals: Predicates of Catalyst's over constants; one that holds removes its directory.
        """
        values = self._lookup.findVirtual(self._directory, "values", self._type(f"(){_ROW}"))
        for test in refusals:
            judge = self._lookup.findVirtual(test.getClass(), "eval", self._type(f"({_ROW})Z")).bindTo(test)
            of_one = self._fed(judge, values).asType(self._type(f"({_ANY})Z"))
            directories.removeIf(self._as("java.util.function.Predicate", of_one))

    # Method handles

    @cached_property
    def _directory(self) -> Any:
        return self._class("org.apache.spark.sql.execution.datasources.PartitionDirectory")

    def _class(self, name: str) -> Any:
        return self._jvm.view.java.lang.Class.forName(name, True, self._loader)

    def _type(self, descriptor: str) -> Any:
        return self._invoke.MethodType.fromMethodDescriptorString(descriptor, self._loader)

    def _method(self, owner: str, name: str, descriptor: str) -> Any:
        return self._lookup.findVirtual(self._class(owner), name, self._type(descriptor))

    def _number(self, numbers: Any) -> Any:
        """A handle from a position to one of some numbers."""
        held = self._jvm.view.java.nio.ByteBuffer.wrap(np.asarray(numbers, ">i4").tobytes()).asIntBuffer()
        return self._method("java.nio.IntBuffer", "get", "(I)I").bindTo(held)

    def _fed(self, handle: Any, *sources: Any) -> Any:
        """A handle whose first arguments come from other handles."""
        return self._handles.filterArguments(handle, 0, self._jvm.array(self._invoke.MethodHandle, sources))

    def _of_number(self, handle: Any) -> Any:
        """A handle of two numbers as one of one number, which is both."""
        places = self._jvm.gateway.new_array(self._jvm.view.int, 2)
        places[0] = places[1] = 0
        return self._handles.permuteArguments(handle, self._type(f"(I){_ANY}"), places)

    def _as(self, interface: str, handle: Any) -> Any:
        return self._invoke.MethodHandleProxies.asInterfaceInstance(self._class(interface), handle)


def _text(value: Any, kind: str) -> str | None:
    """A value as Catalyst casts it from a text."""
    if value is None or isinstance(value, str):
        return value
    if kind == "date":
        return (_EPOCH + timedelta(days=value)).isoformat()
    return str(value).lower()
