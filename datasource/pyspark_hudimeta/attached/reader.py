"""`spark.read` of an attached session: it opens tables of ours by itself, and leaves everything else to Spark.

Asked for a source that is Python, Spark starts a Python worker to learn the columns, and the relation that it makes would be
exchanged at once for a native one. A `load` of a path needs none of that: the driver has the table open already. What cannot be
read natively, and what is wrong, takes Spark's own way, so that it is met and said there as in any session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.datasource import CaseInsensitiveDict

from pyspark_hudimeta.default_format import is_ours
from pyspark_hudimeta.plain.given_paths import given_paths, limited_to, places_of
from pyspark_hudimeta.plain.source import DefaultSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudimeta.table.places import Place

__all__ = ["AttachedReader"]


class AttachedReader(DataFrameReader):  # type: ignore[misc]  # Spark's own classes are not typed here
    """A reader that remembers what it is given.

    Args:
        spark: The session.
        opened: A native Dataset of the table that options name; None where Spark has to open it.
        attached: A DataFrame with native scans, from one that Spark made.
    """

    def __init__(
        self,
        spark: SparkSession,
        opened: Callable[[Mapping[str, str]], Any | None],
        attached: Callable[[DataFrame], DataFrame],
    ) -> None:
        super().__init__(spark)
        self._opened, self._attached = opened, attached
        self._source = ""
        self._declared: Any = None
        self._given: dict[str, str] = {}

    def format(self, source: str) -> AttachedReader:
        self._source = source
        super().format(source)
        return self

    def schema(self, schema: Any) -> AttachedReader:
        self._declared = schema
        super().schema(schema)
        return self

    def option(self, key: str, value: Any) -> AttachedReader:
        self._remember({key: value})
        super().option(key, value)
        return self

    def options(self, **options: Any) -> AttachedReader:
        self._remember(options)
        super().options(**options)
        return self

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        source = self._source if format is None else format
        if is_ours(self._spark, source):
            self._remember(options)
            given = self._asked(path)
            places = places_of(given)
            if places is not None and len(places) > 1:
                return self._united(places, given, schema)
            if given_paths(given) and schema is None and self._declared is None:
                found = self._opened(given)
                if found is not None:
                    return super()._df(found)
        return super().load(path, format, schema, **options)

    def _asked(self, path: Any) -> CaseInsensitiveDict:
        """The options as Spark hands them to the source: names in any case.

        Args:
            path: One, a list of them, or None.
        """
        if path is None:
            return CaseInsensitiveDict(self._given)
        named = {"path": path} if isinstance(path, str) else {"paths": json.dumps(list(path))}
        return CaseInsensitiveDict({**self._given, **named})

    def _united(self, places: Sequence[Place], given: Mapping[str, str], schema: Any) -> DataFrame:
        """The rows of several tables, their columns put together by name; what one has not is null there."""
        frames = []
        for place in places:
            reader = self._spark.read.format(DefaultSource.name()).options(**limited_to(place, given))
            declared = schema if schema is not None else self._declared
            frames.append((reader if declared is None else reader.schema(declared)).load(place.location))
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)

    def _remember(self, options: Mapping[str, Any]) -> None:
        from pyspark.sql.utils import to_str

        given = {key: to_str(value) for key, value in options.items()}
        self._given |= {key: value for key, value in given.items() if value is not None}

    def _df(self, jdf: Any) -> DataFrame:
        return self._attached(super()._df(jdf))
