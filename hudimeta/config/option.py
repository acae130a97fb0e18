"""What is declared of one option: how it is read, or that it is not done, or ignored with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

from hudimeta.errors import UnsupportedFeature

__all__ = ["HudiWarning", "Ignored", "NotDone", "Option", "warn_once"]

T_co = TypeVar("T_co", covariant=True)


class HudiWarning(UserWarning):
    """Something worth knowing that did not stop the work."""


@dataclass(frozen=True, slots=True)
class Option(Generic[T_co]):
    """One declared option.

    Attributes:
        key: Its name.
        parse: From text to the typed value, raising ValueError for bad text.
        default: When it is not given.
        allowed: For error texts and the documentation.
        doc: One or two sentences.
        aliases: Older names of the same option, also accepted.
    """

    key: str
    parse: Callable[[str], T_co]
    default: T_co
    allowed: str
    doc: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotDone:
    """An option of Apache Hudi that changes rows, layout or side effects, and that hudimeta does not do.

    Attributes:
        key: Its name; with a dot at its end all names that begin so.
        fits: Values, in lower case, that ask for nothing else than what hudimeta does; `*` stands for any text.
        hint: What to do instead.
        aliases: Other names of the same option.
    """

    key: str
    fits: tuple[str, ...]
    hint: str
    aliases: tuple[str, ...] = ()

    def is_fine(self, text: str) -> bool:
        """True where a value fits; an empty one asks for nothing, and a list of Java classes fits when each of them does."""
        return _fits(text, self.fits)

    def check(self, key: str, text: str) -> None:
        """Raise UnsupportedFeature unless the value fits."""
        if not self.is_fine(text):
            raise UnsupportedFeature(f"option {key}={text}", self.hint)


@dataclass(frozen=True, slots=True)
class Ignored:
    """An option of Apache Hudi that asks for what hudimeta does otherwise: a warning says so.

    Attributes:
        key: Its name.
        fits: Values that ask for nothing else than what hudimeta does; see `NotDone`.
        instead: What is done.
        aliases: Other names of the same option.
    """

    key: str
    fits: tuple[str, ...]
    instead: str
    aliases: tuple[str, ...] = ()

    def tell(self, key: str, text: str) -> None:
        """Warn, once in a process, where a value does not fit."""
        if not _fits(text, self.fits):
            warn_once(f"{key}={text}", f"hudimeta ignores the option {key}={text}: {self.instead}")


def _fits(text: str, fits: tuple[str, ...]) -> bool:
    asked = text.strip().lower()
    return not asked or all(any(fnmatchcase(part.strip(), fit) for fit in fits) for part in asked.split(","))


_warned: set[str] = set()


def warn_once(what: str, text: str) -> None:
    """Warn of something, once in a process.

    Args:
        what: What is warned of once.
        text: What is said.
    """
    if what not in _warned:
        _warned.add(what)
        warnings.warn(text, HudiWarning, stacklevel=4)
