"""From the texts of options to values: one parser a kind of option, each raising ValueError for what it does not allow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

__all__ = [
    "as_text",
    "bounded_parser",
    "choice_parser",
    "class_parser",
    "classes_parser",
    "parse_count",
    "parse_factor",
    "parse_flag",
    "parse_listing",
    "parse_local_path",
    "parse_number",
    "parse_share",
    "parse_whole",
]

_PACKAGE = "org.apache.hudi."
"""Of Hudi's own Java classes."""
_ENDLESS = "an endless number"
"""No option takes that."""
_WHOLE = re.compile("[+-]?[0-9]{1,19}")
_SCHEME = re.compile("[a-zA-Z][a-zA-Z0-9+.-]*:")


def as_text(value: object) -> str:
    """The text of an option's value, which may be a Python value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(as_text, value))
    try:
        return str(value)
    except ValueError:  # of an integer of some thousand digits, which Python refuses to write
        return _ENDLESS


def parse_flag(text: str) -> bool:
    """`true` or `false`, without case. Raises ValueError."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def parse_local_path(text: str) -> str:
    """A path of this machine, absolute; it may begin with `file:` or `~/`.

    Raises:
        ValueError: It is empty, has a NUL, or is a URI of something else: that would be a folder with an odd name.
    """
    if not text.strip() or "\0" in text:
        raise ValueError(text)
    if _SCHEME.match(text):
        parts = urlsplit(text)
        if parts.scheme not in ("file", "local") or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise ValueError(text)
        text = unquote(parts.path)
    return os.path.abspath(os.path.expanduser(text) if text == "~" or text.startswith("~/") else text)


def parse_whole(text: str) -> int:
    """A whole number of 64 bits, as Java reads one: Python would take `1_0` for ten. Raises ValueError."""
    written = text.strip()
    if not _WHOLE.fullmatch(written) or not -(1 << 63) <= int(written) < 1 << 63:
        raise ValueError(text)
    return int(written)


def parse_number(text: str) -> int:
    """A whole number, 0 or more. Raises ValueError."""
    value = parse_whole(text)
    if value < 0:
        raise ValueError(text)
    return value


def parse_count(text: str) -> int:
    """A whole number, 1 or more. Raises ValueError."""
    value = parse_number(text)
    if not value:
        raise ValueError(text)
    return value


def bounded_parser(least: int, most: int) -> Callable[[str], int]:
    """A parser of a whole number between two others, both included."""

    def parse(text: str) -> int:
        value = parse_whole(text)
        if not least <= value <= most:
            raise ValueError(text)
        return value

    return parse


def parse_share(text: str) -> float:
    """A number between 0 and 1, both excluded. Raises ValueError."""
    value = _fraction(text)
    if not 0 < value < 1:
        raise ValueError(text)
    return value


def parse_factor(text: str) -> float:
    """A finite number above 0. Raises ValueError."""
    value = _fraction(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


def _fraction(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text.strip())


def parse_listing(text: str) -> tuple[str, ...]:
    """Names between commas; empty ones drop out."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def choice_parser(names: tuple[str, ...]) -> Callable[[str], str]:
    """A parser of one of some names, compared without case, which gives the name as it is declared."""
    by_lower = {n.lower(): n for n in names}

    def parse(text: str) -> str:
        if text.strip().lower() not in by_lower:
            raise ValueError(text)
        return by_lower[text.strip().lower()]

    return parse


def class_parser(names: tuple[str, ...]) -> Callable[[str], str]:
    """A parser of one of Hudi's own Java classes, with or without its package, which gives the bare name."""

    def parse(text: str) -> str:
        package, _, name = text.strip().rpartition(".")
        if name not in names or not (package + ".").startswith(_PACKAGE if package else "."):
            raise ValueError(text)
        return name

    return parse


def classes_parser(names: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """The same of one or several, separated by commas."""
    parse = class_parser(names)
    return lambda text: tuple(parse(one) for one in text.split(","))
