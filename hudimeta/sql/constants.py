"""Expressions that are the same for every row, as far as their words tell."""

from __future__ import annotations

from hudimeta.sql.cursor import Unread, Word, words_of

__all__ = ["is_constant"]

_CONSTANTS = ("NULL", "TRUE", "FALSE", "AND", "OR", "NOT", "AS")
_BEFORE_TEXT = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "INTERVAL", "X", "R")
"""What says of a text in quotes what it is."""


def is_constant(text: str) -> bool:
    """True of an expression of texts, numbers, parameters, calls and casts, which names no column and holds no query.

    Args:
        text: In SQL. Of one that cannot be cut into words it is False.
    """
    try:
        words = words_of(text)
    except Unread:
        return False
    nothing = Word("", "mark", 0, 0)
    around = zip([nothing, *words], words, [*words[1:], nothing], strict=False)
    return all(_is_part(before, word, after) for before, word, after in around)


def _is_part(before: Word, word: Word, after: Word) -> bool:
    if word.kind in ("string", "mark"):
        return word.text not in ("{", "?")
    if word.kind == "word" and (word.text[0].isdigit() or word.upper in _CONSTANTS):
        return True
    is_kind = before.upper == "AS" or (word.upper in _BEFORE_TEXT and after.kind == "string")
    return word.kind == "word" and (before.text in (":", "::") or after.text == "(" or is_kind)  # `1L` is cut to 1::L
