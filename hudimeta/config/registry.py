"""How options are declared, read and checked.

An option keeps Hudi's name (`hoodie.*`) where Hudi has one; ours alone are `hudimeta.*`. Keys are compared in lower case,
because Spark lower-cases them. An unknown `hoodie.*` key is reported once and ignored, as Hudi does with options of other
engines; one that is nearly a known key, and any unknown `hudimeta.*` key, is a typing error and refused. Keys without either
prefix are the affair of others (Spark hands over all options of a query), unless they are nearly one of ours.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hudimeta.errors import ConfigError, UnsupportedFeature

__all__ = ["OPTIONS", "HudiWarning", "Option", "Options", "Registry"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_NEAR = 0.93
"""Similarity from which an unknown `hoodie.*` key counts as a mistyped known one: one or two letters in a long key."""
_SHORTEST = 8
"""Keys without a prefix are compared from this length on: in a short word one letter makes another word."""


class HudiWarning(UserWarning):
    """Something worth knowing that did not stop the work."""


@dataclass(frozen=True, slots=True)
class Option(Generic[T_co]):
    """One declared option.

    Attributes:
        key: Its name. parse: From text to the typed value, raising ValueError for bad text. default: When it is not given.
        allowed: For error texts and the documentation. doc: One or two sentences.
        aliases: Older names of the same option, also accepted.
        refused: Set where we know the option but do not do it: for a value that parses to something other than the default
            the write or read is refused, with this advice, because ignoring it would change results.
    """

    key: str
    parse: Callable[[str], T_co]
    default: T_co
    allowed: str
    doc: str
    aliases: tuple[str, ...] = ()
    refused: str | None = None


class Registry:
    """All declared options."""

    def __init__(self) -> None:
        self._by_key: dict[str, Option[Any]] = {}
        self._prefixes: dict[str, str] = {}
        self._order: list[Option[Any]] = []

    def __iter__(self) -> Iterator[Option[Any]]:
        return iter(self._order)

    def add(self, option: Option[T]) -> Option[T]:
        """Declare an option; its key and aliases must be new."""
        for key in (option.key, *option.aliases):
            if key in self._by_key:
                raise ValueError(f"option {key} is declared twice")
            self._by_key[key] = option
        self._order.append(option)
        return option

    def text(self, key: str, default: str | None, doc: str, **more: Any) -> Option[str | None]:
        """Declare a text option; None means not set."""
        return self.add(Option(key, str, default, "text", doc, **more))

    def flag(self, key: str, default: bool, doc: str, **more: Any) -> Option[bool]:
        """Declare a true/false option."""
        return self.add(Option(key, _parse_flag, default, "true or false", doc, **more))

    def number(self, key: str, default: int, doc: str, **more: Any) -> Option[int]:
        """Declare a whole-number option, 0 or more."""
        return self.add(Option(key, _parse_number, default, "a whole number, 0 or more", doc, **more))

    def count(self, key: str, default: int, doc: str, **more: Any) -> Option[int]:
        """Declare a whole-number option, 1 or more."""
        return self.add(Option(key, _parse_count, default, "a whole number, 1 or more", doc, **more))

    def share(self, key: str, default: float, doc: str, **more: Any) -> Option[float]:
        """Declare a number between 0 and 1, both excluded."""
        return self.add(Option(key, _parse_share, default, "a number between 0 and 1", doc, **more))

    def factor(self, key: str, default: float, doc: str, **more: Any) -> Option[float]:
        """Declare a number above 0."""
        return self.add(Option(key, _parse_factor, default, "a number above 0", doc, **more))

    def choice(self, key: str, default: str | None, choices: Iterable[str], doc: str, **more: Any) -> Option[str | None]:
        """Declare an option with a closed set of values, compared without case and returned as declared."""
        names = tuple(choices)
        return self.add(Option(key, _choice_parser(names), default, ", ".join(names), doc, **more))

    def listing(self, key: str, doc: str, **more: Any) -> Option[tuple[str, ...]]:
        """Declare a comma-separated list of names; empty when not set."""
        return self.add(Option(key, _parse_listing, (), "names separated by commas", doc, **more))

    def ignore(self, prefix: str, why: str) -> None:
        """Declare that keys with this prefix are known and need nothing from us (tuning of other engines)."""
        self._prefixes[prefix] = why

    def find(self, key: str) -> Option[Any] | None:
        """The option of a key or alias, compared without case."""
        return self._by_key.get(key.lower())

    def is_ignored(self, key: str) -> bool:
        """True for keys declared with `ignore`."""
        return any(key.lower().startswith(p) for p in self._prefixes)

    def nearest(self, key: str, cutoff: float = 0.6) -> str | None:
        """The known key most like this one."""
        return _nearest(key, self._by_key, cutoff)

    def check(self, given: Mapping[str, str]) -> None:
        """Judge the keys of options that a user gave.

        Raises:
            ConfigError: An unknown `hudimeta.*` key, or another key that is nearly a known one.
        """
        bare = [k for k in self._by_key if not k.startswith(("hoodie.", "hudimeta.")) and len(k) >= _SHORTEST]
        for key in given:
            if self.find(key) is not None or self.is_ignored(key):
                continue
            if key.lower().startswith("hudimeta."):
                near = self.nearest(key)
                raise ConfigError(
                    key,
                    given[key],
                    "a known option",
                    f"Did you mean {near}?" if near else "See docs/options.md for all options.",
                )
            ours = key.lower().startswith("hoodie.")
            near = self.nearest(key, _NEAR) if ours else _nearest(key, bare, _NEAR)
            if near is not None:
                raise ConfigError(key, given[key], "a known option", f"Did you mean {near}?")
            if ours:
                _warn_once(key)

    def read(self, given: Mapping[str, str] | None) -> Options:
        """Check keys and values of what a user gave; see `check` and `Options.get` for what may be raised."""
        options = Options(self, dict(given or {}))
        self.check(options.given)
        for key in options.given:
            option = self.find(key)
            if option is not None:
                options.get(option)
        return options


class Options:
    """What a user gave, read through the registry.

    Attributes:
        given: The raw texts, keys in lower case.
    """

    def __init__(self, registry: Registry, given: Mapping[str, object]) -> None:
        self.registry = registry
        self.given: dict[str, str] = {k.lower(): _as_text(v) for k, v in given.items() if v is not None}

    def __repr__(self) -> str:
        return f"Options({self.given!r})"

    def _raw(self, option: Option[Any]) -> str | None:
        for key in (option.key, *option.aliases):
            if key in self.given:
                return self.given[key]
        return None

    def is_set(self, option: Option[Any]) -> bool:
        """True when the user gave it, under any of its names."""
        return self._raw(option) is not None

    def get(self, option: Option[T]) -> T:
        """The typed value.

        Raises:
            ConfigError: The text is not allowed, or two names of the option have different values.
            UnsupportedFeature: The option is one that we know and do not do.
        """
        found = {k: self.given[k] for k in (option.key, *option.aliases) if k in self.given}
        if not found:
            return option.default
        if len(set(found.values())) > 1:
            raise ConfigError(option.key, found, "one value", f"Give only {option.key}.")
        key, text = next(iter(found.items()))
        try:
            value = option.parse(text)
        except ValueError as error:
            raise ConfigError(key, text, option.allowed) from error
        if option.refused is not None and value != option.default:
            raise UnsupportedFeature(f"option {key}={text}", option.refused)
        return value

    def having(self, more: Mapping[str, object]) -> Options:
        """These options with `more` on top."""
        return Options(self.registry, {**self.given, **{k.lower(): v for k, v in more.items()}})


def _nearest(key: str, known: Iterable[str], cutoff: float) -> str | None:
    close = difflib.get_close_matches(key.lower(), list(known), n=1, cutoff=cutoff)
    return close[0] if close else None


_warned: set[str] = set()


def _warn_once(key: str) -> None:
    if key not in _warned:
        _warned.add(key)
        warnings.warn(f"hudimeta does not know the option {key} and ignores it", HudiWarning, stacklevel=4)


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(v) for v in value)
    return str(value)


def _parse_flag(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def _parse_number(text: str) -> int:
    value = int(text.strip())
    if value < 0:
        raise ValueError(text)
    return value


def _parse_count(text: str) -> int:
    value = _parse_number(text)
    if not value:
        raise ValueError(text)
    return value


def _parse_share(text: str) -> float:
    value = float(text.strip())
    if not 0 < value < 1:
        raise ValueError(text)
    return value


def _parse_factor(text: str) -> float:
    value = float(text.strip())
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


def _parse_listing(text: str) -> tuple[str, ...]:
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _choice_parser(names: tuple[str, ...]) -> Callable[[str], str]:
    by_lower = {n.lower(): n for n in names}

    def parse(text: str) -> str:
        if text.strip().lower() not in by_lower:
            raise ValueError(text)
        return by_lower[text.strip().lower()]

    return parse


OPTIONS = Registry()
"""Every option of hudimeta: each module of this package that has some adds them when it is imported."""
