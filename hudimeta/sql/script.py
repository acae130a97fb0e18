"""Several statements in one text: between semicolons, and in BEGIN … END."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hudimeta.sql.cursor import FIRST_WORD, Cursor

__all__ = ["Script", "script", "split"]

_PIECE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|;|[^'\"`;/-]+|.", re.DOTALL)
_OF_FLOW = ("DECLARE", "IF", "CASE", "WHILE", "REPEAT", "LOOP", "FOR", "BEGIN", "LEAVE", "ITERATE", "SIGNAL", "END")
_LABEL = re.compile(r"\w+\s*:(?![:\w])")


@dataclass(frozen=True)
class Script:
    """BEGIN … END around statements that run one after another. texts: Theirs."""

    texts: tuple[str, ...]


def split(text: str) -> Iterator[str]:
    """The statements between semicolons, without those that stand in texts, names and comments; BEGIN … END is one."""
    begin = 0
    for piece in _PIECE.finditer(text):
        first = FIRST_WORD.match(text, begin)
        if piece.group() == ";" and (first is None or first[1].upper() != "BEGIN"):
            yield from _told(text[begin : piece.start()])
            begin = piece.end()
    yield from _told(text[begin:])


def _told(text: str) -> Iterator[str]:
    bare = "".join(p.group() for p in _PIECE.finditer(text) if not p.group().startswith(("--", "/*")))
    if bare.strip():
        yield text.strip()


def script(cursor: Cursor) -> Script:
    """BEGIN statement; … END, without variables, conditions and loops."""
    cursor.expect("BEGIN")
    if cursor.words[-1].upper != "END":
        cursor.fail()
    inside = cursor.text[cursor.words[0].end : cursor.words[-1].start]
    texts = tuple(split(inside))
    for text in texts:
        first = FIRST_WORD.match(text)
        if (first is not None and first[1].upper() in _OF_FLOW) or _LABEL.match(text):
            cursor.fail()
    if not texts:
        cursor.fail()
    return Script(texts)
