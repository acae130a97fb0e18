"""Patterns of paths as Hadoop has them, folder by folder.

`*` and `?` stay within one name, `[ab]` and `[^a-c]` are sets, `{a,b}` are alternatives, and a backslash takes the meaning from
the next character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from hudimeta.errors import ConfigError

__all__ = ["has_glob", "literal_glob", "matches", "names_partition", "names_path", "split_globs"]

_SPECIAL = re.compile(r"([\\*?\[\]{},])")
_WILD = re.compile(r"[*?\[{]")
_ALL_FILES = ("*", "*.parquet")


def has_glob(path: str) -> bool:
    """True where a path may mean several."""
    return _WILD.search(path) is not None


def literal_glob(path: str) -> str:
    """The pattern that only this path is."""
    return _SPECIAL.sub(r"\\\1", path)


def matches(pattern: str, name: str) -> bool:
    """True where a pattern of one folder's name means this name. Raises ConfigError: It has a bracket that is not closed."""
    return _expression(pattern).fullmatch(name) is not None


def names_path(pattern: str, path: str) -> bool:
    """True where a pattern means this very path; slashes around either do not count. Raises ConfigError as `matches`."""
    wanted, there = ([part for part in text.split("/") if part] for text in (pattern, path))
    return len(wanted) == len(there) and all(map(matches, wanted, there))


def names_partition(pattern: str, path: str) -> bool:
    """True where a pattern means a partition, a folder around it, or all files in it.

    What goes deeper than the partition names files: there `*` and `*.parquet`, which mean all of them, are the only words.

    Args:
        pattern: Relative to the table.
        path: Of the partition; "" in a table without partitions.

    Raises:
        ConfigError: A bracket that is not closed.
    """
    wanted, there = [part for part in pattern.split("/") if part], path.split("/") if path else []
    if any(part not in _ALL_FILES for part in wanted[len(there) :]):
        return False
    return all(matches(part, name) for part, name in zip(wanted, there, strict=False))


def split_globs(text: str) -> list[str]:
    """The patterns of a list; commas separate them, but those in braces and behind a backslash."""
    found, part, depth, escaped = [], "", 0, False
    for letter in text:
        if letter == "," and not depth and not escaped:
            found.append(part)
            part = ""
            continue
        depth += 0 if escaped else (letter == "{") - (letter == "}")
        escaped = letter == "\\" and not escaped
        part += letter
    return [one.strip() for one in (*found, part)]


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(_translated(pattern)), re.DOTALL)


def _translated(pattern: str) -> Iterator[str]:
    """A pattern as parts of a regular expression."""
    at, depth = 0, 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "\\" and at < len(pattern):
            yield re.escape(pattern[at])
            at += 1
        elif letter == "[":
            end = pattern.find("]", at + 1)
            if end < 0:
                raise _unclosed(pattern, "]")
            yield _set_of(pattern[at:end])
            at = end + 1
        elif letter == "{":
            depth += 1
            yield "(?:"
        elif letter == "}" and depth:
            depth -= 1
            yield ")"
        elif letter == "," and depth:
            yield "|"
        else:
            yield {"*": ".*", "?": "."}.get(letter) or re.escape(letter)
    if depth:
        raise _unclosed(pattern, "}")


def _set_of(letters: str) -> str:
    """A set in brackets as regular expressions have it; only `-` means something in it."""
    negated = letters[0] in "^!"
    plain = re.sub(r"([\\\[\]^&~|])", r"\\\1", letters[1:] if negated else letters)
    return f"[{'^' if negated else ''}{plain}]"


def _unclosed(pattern: str, sign: str) -> ConfigError:
    return ConfigError("path", pattern, f"a pattern that has its {sign}", "A backslash takes the meaning from a sign.")
