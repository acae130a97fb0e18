"""What users, logs and error texts get to see of locations and options: everything but secrets.

Options carry keys of object stores, and locations can: `s3://key:secret@bucket/t`, `https://account/t?sig=…`. Whatever shows
either goes through here. Errors do it by themselves; a class that holds options or a location is decorated with `redacted`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

__all__ = ["HIDDEN", "hidden", "is_secret", "redacted", "shown_options", "without_user"]

HIDDEN = "***"

_SECRET = re.compile(
    r"secret|token|passw|credential|signature|connection.?string|(?:\A|[._-])(?:sas|sig|pwd)(?:[._-]|\Z)", re.I
)
_KEY = re.compile(r"(?:access|account|api|private|shared|encryption|sse|customer)[._-]?key|aws.*key", re.I)
_STORE = re.compile(r"\A(?:spark\.hadoop\.)?(?:hudimeta\.storage|fs)\.(?:.*[._-])?key(?:[._-]|\Z)", re.I)
"""Elsewhere a key is one of rows."""

_USER = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{0,50}://)(?:[^/\s'\"@]{0,4096}@)+"
    r"|(?P<odd>[A-Za-z][A-Za-z0-9+.\-]{0,50}://)[^/\s'\":@]{1,4096}:[^\s'\"@]{0,4096}@"
)
"""A secret may hold slashes itself, as those of Amazon do. Without limits of length, long texts would take minutes."""
_QUERY = re.compile(r"([?&;][^=&;\s'\"]{0,100}(?:sig|token|secret|passw|key|credential)[^=&;\s'\"]{0,100}=)[^&;\s'\"]+", re.I)
_ENTRY = re.compile(
    r"(?P<head>(?P<q>['\"])(?P<name>[^'\"\s]{1,200})(?P=q)(?:: ?|, | has the value ))"
    r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
)
_ASSIGNED = re.compile(r"(?P<head>(?P<name>[A-Za-z][\w.\-]{0,200})=)(?P<value>[^\s,;&'\")\]}]+)")

T = TypeVar("T")


def is_secret(name: str) -> bool:
    """Whether an option's value must not be shown, by its name."""
    return any(pattern.search(name) is not None for pattern in (_SECRET, _KEY, _STORE))


def hidden(text: str) -> str:
    """A text without the secrets in its URIs, and in the options that it prints as Python or as `name=value`."""
    text = _USER.sub(lambda m: f"{m['scheme'] or m['odd']}{HIDDEN}@", text)
    text = _QUERY.sub(rf"\1{HIDDEN}", text)
    text = _ENTRY.sub(lambda m: f"{m['head']}'{HIDDEN}'" if is_secret(m["name"]) else m[0], text)
    return _ASSIGNED.sub(lambda m: f"{m['head']}{HIDDEN}" if is_secret(m["name"]) else m[0], text)


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Options for the eye: values of secret names as `***`, URIs without their user part."""
    return {name: HIDDEN if is_secret(name) else hidden(value) for name, value in options.items()}


def without_user(uri: str) -> str:
    """A URI as files may name it, which others read: without user part."""
    return _USER.sub(lambda m: m["scheme"] or m["odd"], uri)


def redacted(cls: type[T]) -> type[T]:
    """A class decorator, above `dataclass`: the class prints itself without secrets."""
    plain = cls.__repr__

    def __repr__(self: T) -> str:  # noqa: N807
        return hidden(plain(self))

    cls.__repr__ = __repr__  # type: ignore[assignment, method-assign]
    return cls
