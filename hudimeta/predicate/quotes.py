r"""Quotes inside of texts, as Spark 4 reads them: `'it''s'` is one text, `it's`.

sqlglot's Spark dialect takes it for two texts side by side, `it` and `s`, as Spark 3 did. So each such pair becomes a backslash
and a quote before the text is cut. Nothing else changes, and nothing moves: positions are those of the text as it was written.
"""

from __future__ import annotations

import re

__all__ = ["with_escaped_quotes"]

_PIECES = re.compile(
    r"""
      --(?:[^\n\\]|\\\n|\\(?!\n))*                          # comments, to the end of the next line after a backslash
    | /\*(?:/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/|[^*/]|\*(?!/)|/(?!\*))*\*/    # comments, with others inside of them
    | `(?:[^`]|``)*`                                      # names
    | (?<![A-Za-z0-9_])[rR](?:'[^']*'|"[^"]*")            # raw texts, in which nothing escapes a quote
    | (?P<single>'(?:[^'\\]|\\.|'')*')
    | (?P<double>"(?:[^"\\]|\\.|"")*")
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPED = {"single": re.compile(r"\\.|''", re.DOTALL), "double": re.compile(r'\\.|""', re.DOTALL)}


def with_escaped_quotes(text: str) -> str:
    r"""The same SQL with each doubled quote inside of a text written with a backslash; of the same length.

    >>> with_escaped_quotes("name = 'it''s'")
    "name = 'it\\'s'"
    """
    return _PIECES.sub(_escaped, text) if "''" in text or '""' in text else text


def _escaped(piece: re.Match[str]) -> str:
    kind = piece.lastgroup
    if kind is None:
        return piece[0]
    inside = _ESCAPED[kind].sub(lambda found: found[0] if found[0][0] == "\\" else "\\" + found[0][0], piece[0][1:-1])
    return piece[0][0] + inside + piece[0][-1]
