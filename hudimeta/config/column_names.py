"""Names of columns in texts as Spark's SQL writes them: what stands between backticks is one name, dots and commas included."""

from __future__ import annotations

import re

__all__ = ["name_parts", "parse_column_names", "quoted_name"]

_QUOTED = r"`(?:[^`]|``)*`"
_ITEM = re.compile(rf"(?:{_QUOTED}|[^`,])*")
_PART = re.compile(rf"(?P<quoted>{_QUOTED})|(?P<plain>[^`.]+)")


def parse_column_names(text: str) -> tuple[str, ...]:
    """Names between commas as they are written; empty ones drop out. Raises ValueError for a backtick without its other one."""
    found, at = [], 0
    while at <= len(text):
        item = _ITEM.match(text, at)
        assert item is not None
        if text[item.end() : item.end() + 1] == "`":
            raise ValueError(text)
        found.append(item[0].strip())
        at = item.end() + 1
    return tuple(name for name in found if name)


def name_parts(name: str) -> tuple[str, ...] | None:
    """A written name cut at its dots, without backticks; None where these are not in pairs around whole parts."""
    parts, at = [], 0
    while True:
        part = _PART.match(name, at)
        if part is None:
            return None
        parts.append(part["plain"] if part["quoted"] is None else part["quoted"][1:-1].replace("``", "`"))
        if part.end() == len(name):
            return tuple(parts)
        if name[part.end()] != ".":
            return None
        at = part.end() + 1


def quoted_name(*parts: str) -> str:
    """How a column is written, or a field of it, whatever its name."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)
