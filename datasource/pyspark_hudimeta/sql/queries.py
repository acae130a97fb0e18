"""Queries of what Spark's own relations cannot say of a Python source: a moment, a folder, meta columns.

`t TIMESTAMP AS OF …`, hudimeta.`/folder`, and tables of ours in a query that names `_hoodie_` columns are exchanged, in the
text, for temporary views over reads of the same table; names of tables in calls of table functions for their folders.
Everything else of the text stays.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from hudimeta.config.options import AS_OF, COLUMNS, PATH
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.sql import (
    BETWEEN_WORDS,
    Reference,
    TableName,
    function_tables,
    name_of,
    quoted,
    references,
    with_literals,
    without_database,
)
from hudimeta.types import META_COLUMNS
from pyspark_hudimeta.native.jvm import FILE_METADATA
from pyspark_hudimeta.sql.catalog import Known
from pyspark_hudimeta.sql.moments import instant_named
from pyspark_hudimeta.sql.registering import literals
from pyspark_hudimeta.sql.session import Entry, SqlSession, literal
from pyspark_hudimeta.sql.traces import without_trace
from pyspark_hudimeta.table_functions import FUNCTIONS, OF_ROWS, TABLE_PARAMETERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["exchanged_query", "may_exchange"]

_S = BETWEEN_WORDS
_CALLED = rf"\b(?:{'|'.join(FUNCTIONS)}){_S}*\("
_FILES = re.compile(rf"\b{FILE_METADATA}\b", re.IGNORECASE)
_MAY = re.compile(rf"\bas{_S}+of\b|\bhudimeta{_S}*\.{_S}*[`\w]|_hoodie_|{_CALLED}|{_FILES.pattern}", re.IGNORECASE)
_FUNCTION = re.compile(_CALLED, re.IGNORECASE)
_META = re.compile("|".join(META_COLUMNS), re.IGNORECASE)
_MISSED = re.compile(rf"UNRESOLVED_COLUMN[^`]*`{FILE_METADATA}`", re.IGNORECASE)
_VIEW = re.compile(
    rf"{_S}*create{_S}+(?:or{_S}+replace{_S}+)?(?P<brief>(?:global{_S}+)?temp(?:orary)?{_S}+)?view\b"
    rf"|(?P<cached>{_S}*cache{_S}+(?:lazy{_S}+)?table\b)",
    re.IGNORECASE,
)
_NUMBER = count()


def may_exchange(text: str) -> bool:
    """True for a text that may be one of these; it costs microseconds."""
    return _MAY.search(text) is not None


def exchanged_query(session: SqlSession, text: str) -> DataFrame | None:
    """What a statement returns that reads a table at a moment, by its folder or with its meta columns; None for any other.

    Raises:
        HudiError: No such moment, or no table in that folder.
        AnalysisException, of Spark: Whatever else is wrong with the statement.
    """
    exchange = _Exchange(session, text)
    with exchange.brief:
        changed = exchange.text()
        calls = _FUNCTION.search(text) is not None
        if changed == text and not calls and not exchange.without_files:
            return None
        with without_trace(), exchange.telling_of_files():
            if exchange.frames:
                found = session.plain(exchange.with_frames(changed), session.parameters, **session.frames, **exchange.frames)
            elif changed != text:
                found = session.query(changed)
            else:
                found = session.plain(text, session.parameters, **session.frames)
            if (calls or exchange.without_files) and session.jvm is None:
                _ = found.schema  # through Connect nothing is analysed before
        return found


def _refuse_folder(session: SqlSession, name: TableName) -> None:
    """Refuse hudimeta.`name`, of which Spark says that it could not be queried at all."""
    first, *others = name.parts
    if first.lower() == "hudimeta" and len(others) == 1 and not session.catalog.has_database(first):
        hint = f"Write the folder with a slash, such as hudimeta.`./{name.table}`; tables of the catalog go by their own names."
        raise ConfigError("FROM", name.sql, "the folder of a table, as in hudimeta.`/data/trips`", hint)


def _in_order(entry: Entry, names: Sequence[str], *, with_meta: bool) -> list[str]:
    """The columns of a read in the order of an entry, which has those of the partition last.

    What the entry does not know, such as a column that was dropped since, stands where it stood.
    """
    meta = [name for name in names if name in META_COLUMNS]
    own = [name for name in names if name not in META_COLUMNS]
    shown = [name for name in entry.columns.names if name in own]
    for before, name in zip([None, *own], own, strict=False):
        if name not in shown:
            shown.insert(0 if before is None else shown.index(before) + 1, name)
    return [*(meta if with_meta else ()), *shown]


class _Exchange:
    """One statement, and the views that stand for its tables."""

    def __init__(self, session: SqlSession, text: str) -> None:
        self._session, self._text = session, text
        self.brief = ExitStack()
        """Drops views that the statement alone needs: it is analysed when Spark returns."""
        self._with_meta, self._with_files = _META.search(text) is not None, _FILES.search(text) is not None
        self.without_files: list[str] = []
        """Tables of which Spark does not know from which files rows come, though the statement may ask for that."""
        view = _VIEW.match(text)
        self._lasts = view is not None
        self._is_permanent = view is not None and view["brief"] is None and view["cached"] is None
        self._moments: dict[str, str] = {}
        self.frames: dict[str, DataFrame] = {}
        """What stands for tables through Connect, where a query is analysed again whenever it runs: a view would be gone."""

    def with_frames(self, text: str) -> str:
        """A text in which `{name}` stands for each of `frames`."""
        if not self._session.frames:  # else it is written so already
            text = text.replace("{", "{{").replace("}", "}}")
        return re.sub(rf"\b({'|'.join(self.frames)})\b", r"{\1}", text)

    def text(self) -> str:
        """The statement with views in the place of tables."""
        text = self._located_functions()
        qualified = []
        for one in reversed(references(text)):
            entry = self._session.entry(one.name)
            if entry is None:
                _refuse_folder(self._session, one.name)
                continue
            direct = one.name.is_folder
            if one.moment is None and not direct and not (self._with_meta or self._shows_files(entry)):
                self._seen(entry, "")
                continue
            moment = self._instant(entry, one)
            shown = self._stated(entry, moment, direct) if self._is_permanent else self._viewed(entry, moment)
            if shown is None:
                continue
            alias = "" if one.has_alias or direct else f" AS {quoted(one.name.table)}"
            text = f"{text[: one.start]}{shown}{text[one.end : one.alias_at]}{alias}{text[one.alias_at :]}"
            qualified.append(one.name)
        for name in qualified:
            text = without_database(text, name)
        return text

    def _located_functions(self) -> str:
        """The statement with folders in the place of names in calls of table functions, which run where no catalog is."""
        text = self._text
        if self._session.parameters and _FUNCTION.search(text):
            text = with_literals(text, literals(self._session.parameters))
        of_rows = function_tables(text, OF_ROWS)
        for named, start, end in reversed(function_tables(text, TABLE_PARAMETERS)):
            entry = self._session.entry_named(named) if "/" not in named else None
            if entry is not None:
                text = f"{text[:start]}{literal(entry.location)}{text[end:]}"
            elif (named, start, end) in of_rows and (other := self._other(named)) is not None:
                text = f"{text[:start]}TABLE({other.sql}){text[end:]}"
        return text

    def _other(self, named: str) -> TableName | None:
        """A view, or a table of another format, whose rows a function may take; None where there is none of the name."""
        name = name_of(named) if "/" not in named else None
        known = self._session.catalog.known(name) if name is not None and not name.is_folder else Known.NOTHING
        return name if known is not Known.NOTHING else None

    def _instant(self, entry: Entry, one: Reference) -> str | None:
        if one.moment is None:
            return None
        return instant_named(self._session, entry, one.moment, by_version=one.by_version)

    def _viewed(self, entry: Entry, moment: str | None) -> str:
        """A temporary view over a read, by its quoted name."""
        options = {key: value for key, value in entry.options.items() if key not in (AS_OF.key, COLUMNS.key)}
        options |= {AS_OF.key: moment} if moment is not None else {}
        frame = self._session.spark.read.format("hudimeta").options(**options).load(entry.location)
        shown = _in_order(entry, frame.columns, with_meta=self._with_meta)
        if self._lasts:
            options |= {COLUMNS.key: ",".join(map(quoted, shown)), PATH.key: entry.location}
            stated = ", ".join(f"{literal(key)} {literal(value)}" for key, value in sorted(options.items()))
            name = f"_hudimeta_read_{zlib.crc32(stated.encode())}"
            self._session.plain(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING hudimeta OPTIONS ({stated})")
            return name
        if self._with_files and self._has_files(entry, frame):
            shown.append(FILE_METADATA)
        frame = frame.select(*map(quoted, shown))
        name = f"_hudimeta_query_{next(_NUMBER)}"
        if self._session.jvm is None:
            self.frames[name] = frame
            return name
        frame.createOrReplaceTempView(name)
        self.brief.callback(self._session.spark.catalog.dropTempView, name)
        return name

    # Files of rows

    def _shows_files(self, entry: Entry) -> bool:
        """Whether a table is to be seen with `_metadata`."""
        return self._with_files and self._has_files(entry, self._session.spark.read.format("hudimeta").load(entry.location))

    def _has_files(self, entry: Entry, frame: DataFrame) -> bool:
        own = FILE_METADATA in frame.columns
        found = (
            not own and not self._lasts and self._session.jvm is not None and self._session.jvm.has_file_metadata(frame._jdf)
        )
        if not found and not own:
            self.without_files.append(entry.name.sql)
        return found

    @contextmanager
    def telling_of_files(self) -> Iterator[None]:
        """Say why there is no `_metadata`, where Spark misses it inside the with block."""
        try:
            yield
        except AnalysisException as error:
            if not self.without_files or not _MISSED.search(str(error)):
                raise
            hint = (
                "The column _hoodie_file_name says where a row lies. Queries of attached sessions know _metadata, and no views "
                "do, where Spark reads the table's own files, and no rows that are merged with those of log files."
            )
            raise UnsupportedFeature(f"{FILE_METADATA} of {', '.join(self.without_files)}", hint) from error

    def _stated(self, entry: Entry, moment: str | None, direct: bool) -> str | None:
        """The table with its moment as an option, as the text of a permanent view keeps it; None where Spark shall say it."""
        if direct:
            hint = "CREATE TABLE … USING hudimeta LOCATION gives the folder a name; a temporary view may name a folder."
            raise UnsupportedFeature("a folder in a view of the catalog", hint)
        if moment is None and META_COLUMNS[0] not in entry.columns.names:
            hint = (
                "A temporary view can show them, and so does a table that is registered with 'hudimeta.meta.columns' = 'true'."
            )
            raise UnsupportedFeature("a view of the catalog over meta columns", hint)
        if moment is None:
            return None
        self._seen(entry, moment)
        return f"{entry.name.sql} WITH ({literal(AS_OF.key)} = {literal(moment)})"

    def _seen(self, entry: Entry, moment: str) -> None:
        if self._is_permanent and self._moments.setdefault(entry.location, moment) != moment:
            hint = "Spark would take one of them for both. A temporary view, or two views, can do it."
            raise UnsupportedFeature("a view of the catalog with two moments of one table", hint)
