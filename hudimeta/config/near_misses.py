"""Which option somebody meant who gave a name that is none.

Three kinds of slips are found: another spelling of a known name (`as-of-instant`, `hoodie_table_name`, `hudi.table.name`), one
or two letters in a long name, and words that other formats, Hudi's SQL or the API have for the same thing (`timestampAsOf`,
`primaryKey`, `filter`). Everything else is the affair of others: Spark hands over all options of a query.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from functools import lru_cache

__all__ = ["SQL_WORDS", "nearest", "question", "right_name"]

_NEAR = 0.93
"""Similarity from which an unknown key counts as a mistyped known one: one or two letters in a long key."""
_NEAR_WORD, _SHORTEST_WORD = 0.9, 8
"""The same for words without a prefix; in a short word one letter makes another word."""

_OWN = ("hoodie.", "hudimeta.")
_OF_SPARK = "option"
"""CREATE TABLE hands over each option twice, once with this in front."""

_RECORD_KEY = "hoodie.datasource.write.recordkey.field"
_ORDERING = "hoodie.datasource.write.precombine.field"
_TABLE_TYPE = "hoodie.datasource.write.table.type"
_PAYLOAD = "hoodie.datasource.write.payload.class"
_MERGE_MODE = "hoodie.record.merge.mode"

SQL_WORDS = {
    "primarykey": _RECORD_KEY,
    "precombinefield": _ORDERING,
    "orderingfields": _ORDERING,
    "type": _TABLE_TYPE,
    "payloadclass": _PAYLOAD,
    "recordmergemode": _MERGE_MODE,
}
"""Apache Hudi's short names of table properties, in lower case: legal in OPTIONS and TBLPROPERTIES, and only there."""

_MEANT = {
    "as.of.instant": "timestampasof versionasof asof asoftimestamp asoftime asofversion asofdate instant instanttime "
    "timetravel snapshotid",
    "hudimeta.filter": "filter filters where predicate predicates pathglobfilter modifiedbefore modifiedafter",
    "hudimeta.columns": "columns select selectedcolumns projection",
    _RECORD_KEY: "recordkey recordkeys recordkeyfield recordkeyfields primarykeys primarykey key keys keyfield keyfields "
    "uniquekey",
    _ORDERING: "precombine precombinekey precombinefields precombinefield orderingfield orderingfields ordering orderingcolumn "
    "orderingcolumns",
    "hoodie.datasource.write.partitionpath.field": "partitionby partitionpath partitionpathfield partitionfield "
    "partitionfields partitionkey partitionkeys partitioncolumns",
    "hoodie.datasource.write.operation": "operation writeoperation",
    _TABLE_TYPE: "tabletype",
    "hoodie.table.name": "tablename",
    _PAYLOAD: "payloadclass payload",
    _MERGE_MODE: "mergemode recordmergemode",
    "hoodie.datasource.query.type": "querytype",
    "hoodie.datasource.read.begin.instanttime": "begin begininstant begininstanttime begintime starttime startinstant "
    "startinstanttime startingversion startingtimestamp startversion starttimestamp startsnapshotid",
    "hoodie.datasource.read.end.instanttime": "end endinstant endinstanttime endtime endingversion endingtimestamp endversion "
    "endtimestamp endsnapshotid",
    "hoodie.datasource.streaming.startoffset": "startoffset startoffsets startingoffset startingoffsets",
    "hoodie.datasource.query.incremental.format": "readchangefeed readchangedata",
    "hoodie.datasource.overwrite.mode": "replacewhere overwritemode dynamicpartitionoverwrite",
    "hoodie.parquet.max.file.size": "maxrecordsperfile targetfilesizebytes",
    "hoodie.parquet.compression.codec": "compression codec",
}
_OF_STREAMS = {"hoodie.datasource.read.begin.instanttime": "hoodie.datasource.streaming.startoffset"}
"""Options that streams refuse, and what says the same of a stream: nobody knows yet whether the options are one's."""

_BY_WORD = {word: key for key, words in _MEANT.items() for word in words.split()}
"""Words without capitals and marks, and the option that whoever gives them means. Those of other formats are among them:
ignored, they would change what is read or replaced."""


def right_name(key: str, known: Collection[str]) -> str | None:
    """The option that an unknown key is a slip for; None where it seems to be somebody else's.

    Args:
        key: As given.
        known: All names, in lower case.
    """
    return _right_name(key.lower(), frozenset(known))


@lru_cache(maxsize=512)
def _right_name(key: str, known: frozenset[str]) -> str | None:
    plain = _plain(key)
    by_plain = _plain_names(known)
    if plain in by_plain:
        return by_plain[plain]
    if plain in _BY_WORD:
        return _BY_WORD[plain]
    if key.startswith("hoodie."):
        return nearest(key, known, _NEAR)
    first, _, rest = key.partition(".")
    if rest and first != _OF_SPARK:
        for candidate in (f"hoodie.{key}", f"hoodie.{rest}", f"hudimeta.{rest}", rest):
            if candidate.startswith(_OWN) and candidate in known:
                return candidate
    if len(plain) < _SHORTEST_WORD:
        return None
    words = _BY_WORD | {word: name for word, name in by_plain.items() if not name.startswith(_OWN)}
    near = nearest(plain, words, _NEAR_WORD)
    return words[near] if near is not None else None


def question(near: str) -> str:
    """What to ask whoever gave a name that is none: did they mean this one?

    Args:
        near: The option that the name seems to stand for.
    """
    of_streams = _OF_STREAMS.get(near)
    return f"Did you mean {near}?" + (f" Of a stream it is {of_streams}." if of_streams else "")


def nearest(key: str, known: Collection[str], cutoff: float = 0.6) -> str | None:
    """The known name most like a key; None where none is at least as like as `cutoff`."""
    close = difflib.get_close_matches(key, known, n=1, cutoff=cutoff)
    return close[0] if close else None


@lru_cache(maxsize=4)
def _plain_names(known: frozenset[str]) -> dict[str, str]:
    return {_plain(name): name for name in sorted(known)}


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())
