"""The catalog of a Connect session's server, asked by statements of Spark's: the client has no other way.

Spark shows nothing of what was stated about a table of a Python source but in SHOW TABLE EXTENDED, which prints the entry as
text. The options of an entry lie in one of its columns, which Spark sets only when it makes the entry: to change them, a second
entry is made and takes the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.errors import AnalysisException

from hudimeta.sql import TableName, quoted
from pyspark_hudimeta.plain.location import resolve
from pyspark_hudimeta.sql.catalog import SESSION_CATALOG, Entry, Known, entry_of
from pyspark_hudimeta.sql.registering import enter, literal, renamed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ConnectCatalog"]

_MISSING = ("42P01", "42704")
"""SQL states of Spark's errors of names: there is no such table, no such database."""
_FACT = re.compile(r"^(?P<name>[A-Z][A-Za-z ]+): (?P<value>.*)$", re.MULTILINE)
_PROPERTY = re.compile(r"(?:^|, )([^=,\s]+)=")


class ConnectCatalog:
    """The catalog of the server of a session.

    Args:
        spark: The session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def _parts(self, name: TableName) -> tuple[str, ...] | None:
        """The name without its catalog; None for one of another catalog."""
        if len(name.parts) == 3 and name.parts[0].lower() == SESSION_CATALOG:
            return name.parts[1:]
        return None if len(name.parts) > 2 or self._spark.catalog.currentCatalog() != SESSION_CATALOG else name.parts

    def known(self, name: TableName) -> Known:
        """See `Catalog`."""
        parts = self._parts(name)
        if parts is None:
            return Known.ELSEWHERE
        try:
            found = self._spark.catalog.getTable(TableName(parts).sql)
        except AnalysisException as error:
            if error.getSqlState() not in _MISSING:
                raise
            return Known.NOTHING
        if found.isTemporary:
            return Known.TEMPORARY
        return Known.VIEW if found.tableType == "VIEW" else Known.TABLE

    def entry(self, name: TableName) -> Entry | None:
        """See `Catalog`."""
        if self.known(name) is not Known.TABLE:
            return None
        facts = self._facts(name)
        if facts.get("Provider") != "hudimeta":
            return None
        schema = self._spark.table(name.sql).schema
        properties = dict(_properties(facts.get("Table Properties", "[]")))
        return entry_of(name, schema, properties, facts.get("Comment"), facts.get("Created Time", ""))

    def _facts(self, name: TableName) -> dict[str, str]:
        *above, table = self._parts(name) or ()
        inside = f" IN {quoted(above[0])}" if above else ""
        like = literal(re.sub(r"[*|.+?()\[\]{}^$\\]", ".", table))
        rows = self._spark.sql(f"SHOW TABLE EXTENDED{inside} LIKE {like}").collect()
        shown = next(row.information for row in rows if row.tableName.lower() == table.lower() and not row.isTemporary)
        return {found["name"]: found["value"] for found in _FACT.finditer(shown.partition("\nSchema: root\n")[0])}

    def current_database(self) -> str:
        """See `Catalog`."""
        return str(self._spark.catalog.currentDatabase())

    def has_database(self, database: str) -> bool:
        """See `Catalog`."""
        return bool(self._spark.catalog.databaseExists(quoted(database)))

    def default_location(self, name: TableName) -> str:
        """See `Catalog`."""
        *above, table = self._parts(name) or ()
        found: Any = self._spark.catalog.getDatabase(quoted(above[0] if above else self.current_database()))
        is_case_sensitive = str(self._spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
        return resolve(f"{found.locationUri.rstrip('/')}/{table if is_case_sensitive else table.lower()}")

    def keep_options(self, entry: Entry, options: Mapping[str, str]) -> None:
        """See `Catalog`."""
        parts = self._parts(entry.name) or ()
        mark = uuid4().hex[:8]
        entered, parked = (TableName((*parts[:-1], f"_hudimeta_{word}_{mark}")) for word in ("new", "old"))
        plain = self._spark.sql
        enter(plain, entered, entry, options)
        renamed(plain, TableName(parts), entered, parked)
        plain(f"DROP TABLE {parked.sql}")


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of `[a=1, b=2]`, which Spark prints in the order of their names: what is not in it is part of a value."""
    inner = text.strip()[1:-1]
    found: list[re.Match[str]] = []
    for one in _PROPERTY.finditer(inner):
        if not found or one[1] > found[-1][1]:
            found.append(one)
    for one, following in zip(found, [*found[1:], None], strict=True):
        yield one[1], inner[one.end() : following.start() if following is not None else len(inner)]
