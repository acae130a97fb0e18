"""Parameters of statements whose parts are run one by one.

A `?` means the next value in the order of the whole text, which the parts do not have: so each gets a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hudimeta.sql.cursor import Unread, words_of

__all__ = ["named_parameters", "with_literals"]


def named_parameters(text: str, values: Sequence[Any]) -> tuple[str, Mapping[str, Any]] | None:
    """A statement with a name for each `?`, and the values by these names; None where they do not fit each other.

    Args:
        text: The statement.
        values: For each `?`, in order.
    """
    try:
        marks = [word for word in words_of(text) if word.kind == "mark" and word.text == "?"]
    except Unread:
        return None
    if len(marks) > len(values):
        return None
    names = [f"_hudimeta_{number}" for number in range(len(marks))]
    for mark, name in zip(reversed(marks), reversed(names), strict=True):
        text = f"{text[: mark.start]}:{name}{text[mark.end :]}"
    return text, dict(zip(names, values, strict=False))


def with_literals(text: str, literals: Mapping[str, str]) -> str:
    """A text with literals in the places of named parameters; all others stay.

    Args:
        text: A statement, or a part of one.
        literals: In SQL, by name.
    """
    try:
        words = words_of(text)
    except Unread:
        return text
    for mark, name in reversed(list(pairwise(words))):
        if (mark.kind, mark.text) == ("mark", ":") and name.kind == "word" and name.text in literals:
            text = f"{text[: mark.start]}{literals[name.text]}{text[name.end :]}"
    return text
