"""Tables that a query reads: where they are named in its text, and as of which moment.

Read are the words FROM, JOIN and the commas between relations, at each depth of parentheses; what they name may be a table, a
view or a common table expression. Whoever asks knows the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hudimeta.sql.cursor import Cursor, Unread
from hudimeta.sql.statement import TableName

__all__ = ["Reference", "function_tables", "identifier_calls", "moment", "references"]

_MOMENTS = ("TIMESTAMP", "SYSTEM_TIME", "VERSION", "SYSTEM_VERSION")
_ENDS_FROM = (
    "SELECT",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "SORT",
    "CLUSTER",
    "DISTRIBUTE",
    "LIMIT",
    "OFFSET",
    "UNION",
    "EXCEPT",
    "MINUS",
    "INTERSECT",
    "WINDOW",
    "QUALIFY",
    "LATERAL",
    "WHEN",
    "SET",
)
_NO_ALIAS = (
    *_ENDS_FROM,
    *("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "ON", "USING", "FOR", "WITH"),
    *("TABLESAMPLE", "PIVOT", "UNPIVOT", "VALUES", "TIMESTAMP", "VERSION", "INSERT", "MATCH_RECOGNIZE"),
)
"""What may follow a table and is no name for it."""


_NO_TABLE = ("SELECT", "LATERAL")
"""What may follow FROM, JOIN and a comma between relations and is no table; any other word is the name of one."""


@dataclass(frozen=True)
class Reference:
    """A table that a query reads.

    Attributes:
        start, end: Its place in the text, with its moment and without its alias.
        alias_at: Where an alias stands, or would: after TABLESAMPLE.
        moment: The expression after AS OF; None without.
        by_version: It was VERSION AS OF.
        has_alias: The query gives it another name.
    """

    name: TableName
    start: int
    end: int
    alias_at: int
    moment: str | None
    by_version: bool
    has_alias: bool


@dataclass
class _Depth:
    """Between two parentheses: has a SELECT been read, are we among relations, does one come next."""

    selects: bool = False
    among: bool = False
    next_is_one: bool = False


def references(text: str) -> list[Reference]:
    """The tables that a text reads, in its order; names of common table expressions are left out. Empty for unreadable text."""
    try:
        cursor = Cursor(text)
        found = list(_read(cursor))
        named = _common(Cursor(text))
    except Unread:
        return []
    return [one for one in found if len(one.name.parts) > 1 or one.name.table.lower() not in named]


def function_tables(text: str, functions: Mapping[str, Mapping[str, int]]) -> list[tuple[str, int, int]]:
    """What calls of table functions name as their table: the text, and the place of the literal. Empty for unreadable text.

    Args:
        text: The query.
        functions: By their lower-case names the parameters that name tables, with their places among the arguments.
    """
    found: list[tuple[str, int, int]] = []
    try:
        cursor = Cursor(text)
        while not cursor.done:
            word = cursor.next()
            if word.kind != "string" and word.text.lower() in functions and cursor.peek() == "(":
                found += _table_arguments(cursor.inside(), functions[word.text.lower()])
    except Unread:
        return []
    return found


def identifier_calls(text: str) -> list[tuple[str, int, int]]:
    """The argument of each `IDENTIFIER(…)` of a statement, and the place of the call. Empty for unreadable text."""
    found = []
    try:
        cursor = Cursor(text)
        while not cursor.done:
            word = cursor.next()
            if word.upper == "IDENTIFIER" and cursor.peek() == "(":
                argument = cursor.inside().rest()
                found.append((argument, word.start, cursor.words[cursor.at - 1].end))
    except Unread:
        return []
    return found


def _table_arguments(inside: Cursor, places: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """The texts among the arguments of a call that name tables."""
    number = 0
    while not inside.done:
        named = inside.peek().lower() if inside.peek(1) == "=>" else ""
        inside.at += 2 if named else 0
        word = inside.next()
        alone = inside.done or inside.peek() == ","
        if word.kind == "string" and alone and (named in places if named else number in places.values()):
            yield word.text, word.start, word.end
        if not inside.done and inside.peek() != ",":
            inside.until(",")
        inside.accept(",")
        number += 1


def moment(cursor: Cursor) -> tuple[str, bool] | None:
    """The expression of [FOR] TIMESTAMP|VERSION AS OF and whether it is a version, where that comes next."""
    ahead = 1 if cursor.peek() == "FOR" else 0
    word = cursor.peek(ahead)
    if word not in _MOMENTS or (cursor.peek(ahead + 1), cursor.peek(ahead + 2)) != ("AS", "OF"):
        return None
    cursor.at += ahead + 3
    begin = cursor.at
    _operand(cursor)
    while cursor.peek() in ("+", "-", "||", "::"):
        cursor.next()
        _operand(cursor)
    return cursor.between(begin, cursor.at), "VERSION" in word


def _operand(cursor: Cursor) -> None:
    """Step over a constant, a parameter, a call or what stands in parentheses."""
    if cursor.peek() == "(":
        cursor.inside()
        return None
    word = cursor.next()
    if word.text in ("-", ":"):
        return _operand(cursor)
    if word.kind == "word" and word.upper in ("DATE", "TIMESTAMP", "INTERVAL", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
        cursor.next()
        if word.upper == "INTERVAL" and not cursor.done and cursor.peek() not in (*_NO_ALIAS, ")", ","):
            cursor.next()  # its unit
        return None
    while cursor.accept("."):
        cursor.next()
    if word.kind == "word" and cursor.peek() == "(":
        cursor.inside()
    return None


def _read(cursor: Cursor) -> list[Reference]:
    found: list[Reference] = []
    depths = [_Depth()]
    first = True
    while not cursor.done:
        here, word = depths[-1], cursor.peek()
        if word == "(":
            depths.append(_Depth(among=here.next_is_one, next_is_one=here.next_is_one))
            here.next_is_one, first = False, True
            cursor.at += 1
            continue
        if word == ")":
            if len(depths) == 1:
                cursor.fail()
            depths.pop()
        elif word in ("FROM", "JOIN") and (here.selects or first or word == "JOIN"):
            here.among = here.next_is_one = True
        elif word == "," and here.among:
            here.next_is_one = True
        elif word in _ENDS_FROM and not (here.next_is_one and word not in _NO_TABLE):
            here.selects = here.selects or word == "SELECT"
            here.among = here.next_is_one = False
        elif here.next_is_one and cursor.words[cursor.at].kind in ("word", "name"):
            here.next_is_one = False
            one = _reference(cursor)
            found += [one] if one is not None else []
            first = False
            continue
        first = False
        cursor.at += 1
    return found


def _reference(cursor: Cursor) -> Reference | None:
    begin = cursor.at
    name = TableName(cursor.dotted())
    if cursor.peek() == "(":
        return None  # a table function, or VALUES
    when = moment(cursor)
    start, end = cursor.words[begin].start, cursor.words[cursor.at - 1].end
    _sample(cursor)
    here = cursor.words[cursor.at] if not cursor.done else None
    named = here is not None and (here.kind == "name" or (here.kind == "word" and here.upper not in _NO_ALIAS))
    expression, by_version = when if when is not None else (None, False)
    return Reference(name, start, end, cursor.words[cursor.at - 1].end, expression, by_version, named)


def _sample(cursor: Cursor) -> None:
    """Step over TABLESAMPLE (…) [REPEATABLE (…)], where that comes next."""
    for word in ("TABLESAMPLE", "REPEATABLE"):
        if cursor.peek() == word and cursor.peek(1) == "(":
            cursor.next()
            cursor.inside()


def _common(cursor: Cursor) -> set[str]:
    """Lower-case names of common table expressions: `name [(columns)] AS (`."""
    found = set()
    words = cursor.words
    for at, word in enumerate(words):
        if word.upper == "AS" and at and at + 1 < len(words) and words[at + 1].upper == "(":
            before = at - 1
            while before > 0 and words[before].upper == ")":
                before = max((n for n in range(before) if words[n].upper == "("), default=0) - 1
            found.add(words[max(before, 0)].text.lower())
    return found
