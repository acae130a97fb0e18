"""Patterns of paths as Hadoop has them, folder by folder.

`*` and `?` stay within one name, `[ab]` and `[^a-c]` are sets, `{a,b}` are alternatives, and a backslash takes the meaning from
the next character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hudimeta.errors import ConfigError

__all__ = ["Glob", "has_glob", "literal_glob", "matches", "split_globs"]

_SPECIAL = re.compile(r"([\\*?\[\]{},])")
_WILD = re.compile(r"[*?\[{]")
_ALL_FILES = ("*", "*.parquet")
_HINT = "A backslash takes the meaning from a sign."


def has_glob(path: str) -> bool:
    """True where a path may mean several."""
    return _WILD.search(path) is not None


def literal_glob(path: str) -> str:
    """The pattern that only this path is."""
    return _SPECIAL.sub(r"\\\1", path)


def matches(pattern: str, name: str) -> bool:
    """True where a pattern of one folder's name means this name. Raises ConfigError as `Glob.of`."""
    return _expression(pattern, "path").fullmatch(name) is not None


@dataclass(frozen=True)
class Glob:
    """A pattern of a whole path.

    Attributes:
        words: The pattern of each folder's name, as it was given.
        expressions: The same as regular expressions.
    """

    words: tuple[str, ...]
    expressions: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, pattern: str, said: str = "path") -> Glob:
        """Read a pattern; slashes around it do not count.

        Args:
            pattern: Relative to the table.
            said: The argument or option that holds the pattern.

        Raises:
            ConfigError: A bracket that is not closed, or a set without letters or with a range from a later one to an earlier.
        """
        words = tuple(part for part in pattern.split("/") if part)
        return cls(words, tuple(_expression(word, said) for word in words))

    def names_path(self, path: str) -> bool:
        """True where it means this very path; slashes around that do not count."""
        there = [part for part in path.split("/") if part]
        return len(self.words) == len(there) and self._means(there)

    def names_partition(self, path: str) -> bool:
        """True where it means a partition, a folder around it, or all files in it.

        What goes deeper than the partition names files: there `*` and `*.parquet`, which mean all of them, are the only words.

        Args:
            path: Of the partition; "" in a table without partitions.
        """
        there = path.split("/") if path else []
        return all(word in _ALL_FILES for word in self.words[len(there) :]) and self._means(there)

    def _means(self, names: Sequence[str]) -> bool:
        return all(one.fullmatch(name) is not None for one, name in zip(self.expressions, names, strict=False))


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
def _expression(pattern: str, said: str) -> re.Pattern[str]:
    text = "".join(_translated(pattern, said))
    try:
        return re.compile(text, re.DOTALL)
    except re.error as error:  # only sets can be wrong by now
        raise ConfigError(said, pattern, "a pattern whose sets have letters and ranges such as [a-c]", _HINT) from error


def _translated(pattern: str, said: str) -> Iterator[str]:
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
                raise _unclosed(said, pattern, "]")
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
        raise _unclosed(said, pattern, "}")


def _set_of(letters: str) -> str:
    """A set in brackets as regular expressions have it; only `-` means something in it."""
    negated = letters[0] in "^!"
    plain = re.sub(r"([\\\[\]^&~|])", r"\\\1", letters[1:] if negated else letters)
    return f"[{'^' if negated else ''}{plain}]"


def _unclosed(said: str, pattern: str, sign: str) -> ConfigError:
    return ConfigError(said, pattern, f"a pattern that has its {sign}", _HINT)
