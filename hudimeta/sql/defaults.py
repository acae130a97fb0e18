"""DEFAULT: in the declaration of columns, and in the place of a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hudimeta.sql.columns import skip_type
from hudimeta.sql.cursor import Cursor, Unread, Word, words_of

__all__ = ["has_query", "is_default", "with_defaults", "without_defaults"]

_WORD = "DEFAULT"
_AFTER = ("NOT", "COMMENT", ",")
"""What may follow a default value in a declaration, beside the end of it."""
_ENDS = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "UNION", "EXCEPT", "INTERSECT")


def is_default(value: str) -> bool:
    """True of the word that stands for a column's default value."""
    return value.strip().upper() == _WORD


def has_query(value: str) -> bool:
    """True of an expression with a query in it; one that cannot be read has none."""
    try:
        return any(word.upper == "SELECT" for word in words_of(value))
    except Unread:
        return False


def without_defaults(columns: str) -> tuple[str, dict[str, str]]:
    """A list of declared columns without their default values, and these by column.

    Args:
        columns: Its text.
    """
    if _WORD not in columns.upper():
        return columns, {}
    try:
        found = {name: (text, cut) for name, text, cut in _declared(Cursor(columns))}
    except Unread:
        return columns, {}
    for begin, end in sorted((cut for _, cut in found.values()), reverse=True):
        columns = columns[:begin] + columns[end:]
    return columns, {name: text for name, (text, _) in found.items()}


def _declared(cursor: Cursor) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Each column with a default value: its name, the value, and the place of the clause."""
    while not cursor.done:
        name = cursor.identifier()
        skip_type(cursor, _WORD, ",")
        if cursor.peek() == _WORD:
            begin = cursor.words[cursor.at].start
            cursor.expect(_WORD)
            value = cursor.until(*_AFTER)
            yield name, value, (begin, cursor.words[cursor.at - 1].end)
        while not cursor.done and not cursor.accept(","):
            cursor.next()


def with_defaults(query: str, values: Sequence[str]) -> str:
    """A query whose rows go into a table, with values in the places where it says DEFAULT.

    That is a value of VALUES, or of the outermost SELECT, by itself.

    Args:
        query: Its text.
        values: In SQL, of the columns that the query's go into, in order.
    """
    if _WORD not in query.upper():
        return query
    try:
        words = words_of(query)
        found = list(_said(words))
    except Unread:
        return query
    for at, column in reversed(found):
        if column < len(values):
            query = f"{query[: words[at].start]}({values[column]}){query[words[at].end :]}"
    return query


def _said(words: list[Word]) -> Iterator[tuple[int, int]]:
    """The numbers of the words DEFAULT that stand for a value, each with the number of its column."""
    depth, column, lists = 0, 0, -1
    """The depth at which values stand side by side; -1 where none do."""
    for at, word in enumerate(words):
        before = words[at - 1].upper if at else ""
        after = words[at + 1].upper if at + 1 < len(words) else ""
        if word.upper == "(":
            depth += 1
            if before in ("VALUES", ",") and lists == 1:
                column = 0
        elif word.upper == ")":
            depth -= 1
        elif depth == 0 and word.upper in ("VALUES", "SELECT"):
            lists, column = (1 if word.upper == "VALUES" else 0), 0
        elif depth == 0 and (word.upper in _ENDS or (word.upper == "*" and before in ("SELECT", ",", "."))):
            lists = -1  # a star stands for any number of columns
        elif word.upper == "," and depth == lists:
            column += 1
        elif word.upper == _WORD and depth == lists and before in ("(", ",", "SELECT") and after in (")", ",", "", *_ENDS):
            yield at, column
