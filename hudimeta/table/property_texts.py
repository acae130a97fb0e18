"""Properties as texts, and the readings of a text: number, flag, listing, member of a closed set."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import TypeVar

from hudimeta.errors import ConfigError, TableError
from hudimeta.redaction import shown_options

__all__ = ["PropertyTexts"]

_E = TypeVar("_E", bound=enum.Enum)
_MOST_DIGITS = 18


class PropertyTexts(Mapping[str, str]):
    """A mapping of texts that never changes; errors name the key and what would have been accepted."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        lines = "".join(f"  {key}={value}\n" for key, value in sorted(shown_options(self._values).items()))
        return f"{type(self).__name__}(\n{lines})"

    def _required(self, key: str) -> str:
        text = self.get(key, "").strip()
        if not text:
            raise TableError(f"hoodie.properties lacks {key}", "Restore the file from a copy, or add the property.")
        return text

    def _number(self, key: str) -> int:
        text = self._required(key)
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise ConfigError(key, text, "a number")
        return int(text)

    def _flag(self, key: str, default: bool) -> bool:
        text = self.get(key, "").strip().lower()
        if text not in ("", "true", "false"):
            raise ConfigError(key, self.get(key), "true or false")
        return text == "true" if text else default

    @staticmethod
    def _listing(text: str | None) -> tuple[str, ...]:
        return tuple(part.strip() for part in (text or "").split(",") if part.strip())

    @staticmethod
    def _choice(kind: type[_E], key: str, text: str) -> _E:
        try:
            return kind(text.strip().upper())
        except ValueError:
            raise ConfigError(key, text, " or ".join(str(member.value) for member in kind)) from None
