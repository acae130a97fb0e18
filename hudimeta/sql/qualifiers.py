"""Columns named with their table's database, `db.t.id`, in statements that are run over other relations of the name `t`."""

from __future__ import annotations

from hudimeta.sql.cursor import Unread, Word, words_of
from hudimeta.sql.statement import TableName

__all__ = ["without_database"]


def without_database(text: str, name: TableName) -> str:
    """A statement in which columns of a table are named `t.id` where it says `db.t.id`; everything else stays as it is.

    Args:
        text: The statement.
        name: The table, by as many parts as the statement names it with.
    """
    if len(name.parts) < 2:
        return text
    try:
        words = words_of(text)
    except Unread:
        return text
    for at in reversed(range(len(words))):
        if (at == 0 or words[at - 1].text != ".") and _qualifies(words, at, name.parts):
            text = text[: words[at].start] + text[words[at + 2 * (len(name.parts) - 1)].start :]
    return text


def _qualifies(words: list[Word], at: int, parts: tuple[str, ...]) -> bool:
    """True where the parts stand one after another, with a point after each."""
    if at + 2 * len(parts) > len(words):
        return False
    names, points = words[at : at + 2 * len(parts) : 2], words[at + 1 : at + 2 * len(parts) : 2]
    alike = all(w.kind in ("word", "name") and w.text.lower() == p.lower() for w, p in zip(names, parts, strict=True))
    return alike and all(point.kind == "mark" and point.text == "." for point in points)
