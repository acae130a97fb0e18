"""The references to hudimeta tables in a query that Spark has analysed, each exchanged for a native scan of the same columns.

Spark's own analyser finds the tables, whatever way a query names them: `load()`, a table of the catalog, a temporary view, a
view of a view, a subquery. Its result has a leaf for each, of the Python source. A leaf is replaced by a plan that yields the
same attributes, so that nothing above it changes. A leaf that asks for what only the Python source does stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.types import StructType

from hudimeta.errors import HudiError
from pyspark_hudimeta.plain.given_paths import given_paths
from pyspark_hudimeta.plain.source import DefaultSource
from pyspark_hudimeta.plain.target import Target, read_target

if TYPE_CHECKING:
    from pyspark_hudimeta.native.jvm import Jvm

__all__ = ["Leaf", "exchanged"]

_LEAF = "DataSourceV2Relation"
_SHOWN = "RelationV2"
"""How such leaves begin in the text of a plan."""
_TABLE = "PythonTable"


@dataclass(frozen=True)
class Leaf:
    """One reference to a table.

    Attributes:
        target: Which table, with which options.
        pinned: The moment that the relation has stood at since it was made; None for the newest.
        schema: What the reference yields.
    """

    target: Target
    pinned: str | None
    schema: StructType


def exchanged(jvm: Jvm, plan: Any, replacement: Callable[[Leaf], Any | None]) -> Any | None:
    """An analysed plan with native scans.

    Args:
        jvm: Of the session.
        plan: Analysed.
        replacement: A Dataset with at least the leaf's columns, by name; None to leave the leaf as it is.

    Returns:
        The plan; None when nothing was exchanged.
    """
    if _SHOWN not in plan.toString():
        return None
    swap = _Swap(jvm, replacement)
    changed = plan.transformUpWithSubqueries(swap)
    if swap.error is not None:
        raise swap.error
    if not swap.count:
        return None
    changed.setAnalyzed()
    return changed


class _Swap:
    """A partial function from plans to plans, as Scala calls it."""

    def __init__(self, jvm: Jvm, replacement: Callable[[Leaf], Any | None]) -> None:
        self._jvm, self._replacement = jvm, replacement
        self.count = 0
        self.error: Exception | None = None

    def applyOrElse(self, node: Any, default: Any) -> Any:  # noqa: N802 - Scala's name
        if self.error is None and self._jvm.class_name(node) == _LEAF:
            try:
                return self.exchange(node)
            except Exception as error:  # the JVM would keep its text only
                self.error = error
        return node

    def exchange(self, node: Any) -> Any:
        """The node, or what replaces it."""
        leaf = _leaf(self._jvm, node)
        frame = None if leaf is None else self._replacement(leaf)
        if frame is None:
            return node
        self.count += 1
        return _yielding(self._jvm, frame.queryExecution().analyzed(), self._jvm.items(node.output()))

    class Java:
        implements: ClassVar[list[str]] = ["scala.PartialFunction"]


def _yielding(jvm: Jvm, plan: Any, wanted: list[Any]) -> Any:
    """A plan whose output is exactly the wanted attributes, taken from the plan's columns of the same names."""
    columns = {column.name().lower(): column for column in jvm.items(plan.output())}
    none = jvm.seq([])
    make = jvm.expressions.Alias
    renamed = []
    for attribute in wanted:
        name = attribute.name()
        kept = (attribute.exprId(), attribute.qualifier(), jvm.some(attribute.metadata()), none)
        renamed.append(make(columns[name.lower()], name, *kept))
    return jvm.view.org.apache.spark.sql.catalyst.plans.logical.Project(jvm.seq(renamed), plan)


def _leaf(jvm: Jvm, node: Any) -> Leaf | None:
    """What a leaf refers to; None when it is none of ours, or says nothing that can be understood."""
    table = node.table()
    if jvm.class_name(table) != _TABLE or table.name().lower() != DefaultSource.name():
        return None
    schema = StructType.fromJson(_json(node.schema().json()))
    options = jvm.texts(node.options().asCaseSensitiveMap())
    source = _source(jvm, table, node.options()) if given_paths(options) else None
    given = dict(source.options) if source is not None else options
    try:
        return Leaf(read_target(given, schema), source.pinned if source is not None else None, schema)
    except HudiError:
        return None  # the source says the same when Spark plans it


def _source(jvm: Jvm, table: Any, options: Any) -> DefaultSource:
    """Our data source as the relation holds it, pickled: it knows its moment."""
    from pyspark import cloudpickle

    field = table.getClass().getDeclaredField("ds")
    field.setAccessible(True)
    held = field.get(table)
    made = held.getOrCreateDataSourceInPython(table.name(), options, jvm.some(table.schema()))
    source = cloudpickle.loads(made.dataSource())
    assert isinstance(source, DefaultSource)
    return source


def _json(text: str) -> Any:
    import json

    return json.loads(text)
