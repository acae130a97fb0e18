"""How options are declared, read and checked.

An option keeps Hudi's name (`hoodie.*`) where Hudi has one; ours alone are `hudimeta.*`. Keys are compared in lower case,
because Spark lower-cases them. Every option of Apache Hudi is known: done here, passed over because it changes nothing that a
user sees, ignored with a warning that says what is done instead, or not done and then refused. An unknown `hoodie.*` key is
reported once and ignored, as Hudi does with options of other engines; a slip of a known key (see `near_misses`), and any
unknown `hudimeta.*` key, is refused. Other keys are the affair of others: Spark hands over all options of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from hudimeta.config.machine import NOTHING, machine_options
from hudimeta.config.near_misses import nearest, question, right_name
from hudimeta.config.option import HudiWarning, Ignored, NotDone, Option, warn_once
from hudimeta.config.texts import (
    as_text,
    bounded_parser,
    choice_parser,
    class_parser,
    classes_parser,
    parse_count,
    parse_factor,
    parse_flag,
    parse_listing,
    parse_local_path,
    parse_number,
    parse_share,
)
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.redaction import shown_options
from hudimeta.types import is_text

__all__ = ["OPTIONS", "HudiWarning", "Ignored", "NotDone", "Option", "Options", "OptionRegistry"]

T = TypeVar("T")
_STANDS_IN_FILE = "It stands in the machine's hudi-defaults.conf (/etc/hudi/conf or HUDI_CONF_DIR)."


class OptionRegistry:
    """All declared options.

    Args:
        usual: Gives what stands for options that a user does not give, before their defaults; None for nothing.
    """

    def __init__(self, usual: Callable[[], Mapping[str, str]] | None = None) -> None:
        self._usual = usual
        self._judged: Mapping[str, str] = NOTHING
        self._by_key: dict[str, Option[Any]] = {}
        self._not_done: dict[str, NotDone] = {}
        self._families: list[NotDone] = []
        self._ignored: dict[str, Ignored] = {}
        self._passed: set[str] = set()
        self._prefixes: set[str] = set()
        self._order: list[Option[Any]] = []
        self._known: set[str] = set()
        self._names: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[Option[Any]]:
        return iter(self._order)

    @property
    def not_done(self) -> tuple[NotDone, ...]:
        """What was declared with `refuse`, each once."""
        return tuple(dict.fromkeys(self._not_done.values()))

    @property
    def ignored(self) -> tuple[Ignored, ...]:
        """What was declared with `ignore`, each once."""
        return tuple(dict.fromkeys(self._ignored.values()))

    @property
    def names(self) -> frozenset[str]:
        """Every known name in lower case, done or not."""
        if len(self._names) != len(self._known):
            self._names = frozenset(self._known)
        return self._names

    def add(self, option: Option[T]) -> Option[T]:
        """Declare an option; its key and aliases must be new."""
        for key in (option.key, *option.aliases):
            self._claim(key)
            self._by_key[key] = option
        self._order.append(option)
        return option

    def refuse(self, option: NotDone) -> None:
        """Declare an option that is not done; its key and aliases must be new."""
        for key in (option.key, *option.aliases):
            self._claim(key)
            self._not_done[key] = option
        if option.key.endswith("."):
            self._families.append(option)

    def ignore(self, option: Ignored) -> None:
        """Declare an option that is ignored with a warning; its key and aliases must be new."""
        for key in (option.key, *option.aliases):
            self._claim(key)
            self._ignored[key] = option

    def pass_over(self, key: str) -> None:
        """Declare a key, which must be new, that needs nothing from us."""
        self._claim(key)
        self._passed.add(key.lower())

    def pass_over_prefix(self, prefix: str) -> None:
        """Declare that unknown keys with this prefix need nothing from us."""
        self._prefixes.add(prefix)

    def _claim(self, key: str) -> None:
        if key in self._known:
            raise ValueError(f"option {key} is declared twice")
        self._known.add(key)

    def text(self, key: str, default: str | None, doc: str, **more: Any) -> Option[str | None]:
        """Declare a text option; None means not set."""
        return self.add(Option(key, str, default, "text", doc, **more))

    def local_path(self, key: str, doc: str, **more: Any) -> Option[str | None]:
        """Declare an option that names a file or folder of this machine; None means not set."""
        parse: Callable[[str], str | None] = parse_local_path
        return self.add(Option(key, parse, None, "a path of this machine", doc, **more))

    def flag(self, key: str, default: bool, doc: str, **more: Any) -> Option[bool]:
        """Declare a true/false option."""
        return self.add(Option(key, parse_flag, default, "true or false", doc, **more))

    def number(self, key: str, default: int, doc: str, **more: Any) -> Option[int]:
        """Declare a whole-number option, 0 or more."""
        return self.add(Option(key, parse_number, default, "a whole number, 0 or more", doc, **more))

    def count(self, key: str, default: int, doc: str, **more: Any) -> Option[int]:
        """Declare a whole-number option, 1 or more."""
        return self.add(Option(key, parse_count, default, "a whole number, 1 or more", doc, **more))

    def bounded(self, key: str, default: int, least: int, most: int, doc: str, **more: Any) -> Option[int]:
        """Declare a whole-number option between two numbers, both included."""
        return self.add(
            Option(key, bounded_parser(least, most), default, f"a whole number from {least} to {most:,}", doc, **more)
        )

    def share(self, key: str, default: float, doc: str, **more: Any) -> Option[float]:
        """Declare a number between 0 and 1, both excluded."""
        return self.add(Option(key, parse_share, default, "a number between 0 and 1", doc, **more))

    def factor(self, key: str, default: float, doc: str, **more: Any) -> Option[float]:
        """Declare a number above 0."""
        return self.add(Option(key, parse_factor, default, "a number above 0", doc, **more))

    def choice(self, key: str, default: str | None, choices: Iterable[str], doc: str, **more: Any) -> Option[str | None]:
        """Declare an option with a closed set of values, compared without case and returned as declared."""
        names = tuple(choices)
        return self.add(Option(key, choice_parser(names), default, ", ".join(names), doc, **more))

    def java_class(self, key: str, default: str, names: Iterable[str], doc: str, **more: Any) -> Option[str]:
        """Declare an option that names one of Hudi's own Java classes, with or without its package; the value is without."""
        known = tuple(names)
        return self.add(Option(key, class_parser(known), default, ", ".join(known), doc, **more))

    def java_classes(self, key: str, default: str, names: Iterable[str], doc: str, **more: Any) -> Option[tuple[str, ...]]:
        """Declare an option that names one of them, or several separated by commas."""
        known = tuple(names)
        return self.add(Option(key, classes_parser(known), (default,), ", ".join(known), doc, **more))

    def listing(self, key: str, doc: str, **more: Any) -> Option[tuple[str, ...]]:
        """Declare a comma-separated list of names; empty when not set."""
        return self.add(Option(key, parse_listing, (), "names separated by commas", doc, **more))

    def find(self, key: str) -> Option[Any] | None:
        """The option of a key or alias, compared without case."""
        return self._by_key.get(key.lower())

    def find_not_done(self, key: str) -> NotDone | None:
        """The option of a key or alias that is not done, compared without case."""
        lower = key.lower()
        return self._not_done.get(lower) or next((option for option in self._families if lower.startswith(option.key)), None)

    def is_passed_over(self, key: str) -> bool:
        """True for keys declared with `pass_over` and `pass_over_prefix`."""
        return key.lower() in self._passed or key.lower().startswith(tuple(self._prefixes))

    def check(self, given: Mapping[str, str]) -> None:
        """Judge the keys of options that a user gave, and the values of those that are not done.

        Raises:
            ConfigError: An unknown `hudimeta.*` key, or another key that is a slip of a known one.
            UnsupportedFeature: An option that is not done, with a value that would change something.
        """
        for key, text in given.items():
            not_done, ignored = self.find_not_done(key), self._ignored.get(key.lower())
            if not_done is not None:
                not_done.check(key, text)
            elif ignored is not None:
                ignored.tell(key, text)
            elif self.find(key) is None and not self.is_passed_over(key):
                self._judge_unknown(key, text)

    def _judge_unknown(self, key: str, text: str) -> None:
        if key.lower().startswith("hudimeta."):
            near = nearest(key.lower(), self.names)
            hint = f"Did you mean {near}?" if near else "See docs/options.md for all options."
            raise ConfigError(key, text, "a known option", hint, is_option=True)
        near = None if key.startswith("_") else right_name(key, self.names)  # entries of the commit's metadata begin so
        if near is not None:
            raise ConfigError(key, text, "a known option", question(near), is_option=True)
        if key.lower().startswith("hoodie."):
            warn_once(key, f"hudimeta does not know the option {key} and ignores it")

    def read(self, given: Mapping[str, str] | Options | None) -> Options:
        """Check keys and values of what a user gave; see `check` and `Options.get` for what may be raised.

        What was read in another process stays as it was read there.
        """
        if isinstance(given, Options):
            return given
        if given is not None and not (isinstance(given, Mapping) and all(isinstance(key, str) for key in given)):
            raise ConfigError("options", given, "a dictionary", 'Give names and values: {"hoodie.table.name": "trips"}.')
        options = Options(self, dict(given or {}), self._usual_options())
        self.check({key: as_text(value) for key, value in (given or {}).items() if value is not None})
        self._parse(options)
        return options

    def _usual_options(self) -> Mapping[str, str]:
        """What the machine gives, judged like a user's options, but once. What it says to others is refused here too."""
        usual = NOTHING if self._usual is None else self._usual()
        if usual is not self._judged:
            try:
                self.check(usual)
                self._parse(Options(self, usual))
            except ConfigError as error:
                raise ConfigError(error.key, error.value, error.allowed, f"{error.hint} {_STANDS_IN_FILE}") from error
            except UnsupportedFeature as error:
                raise UnsupportedFeature(error.feature, f"{error.hint} {_STANDS_IN_FILE}") from error
            self._judged = usual
        return usual

    def _parse(self, options: Options) -> None:
        for key in options.given:
            option = self.find(key)
            if option is not None:
                options.get(option)


class Options:
    """What a user gave, read through the registry. Pickled options of `OPTIONS` are the same in the process that gets them.

    Attributes:
        given: The raw texts, keys in lower case.
        usual: What the machine says where the user says nothing; keys in lower case.
    """

    def __init__(self, registry: OptionRegistry, given: Mapping[str, object], usual: Mapping[str, str] = NOTHING) -> None:
        self.registry = registry
        self.given = _in_lower_case(given)
        self.usual = usual

    def __reduce__(self) -> tuple[Callable[..., Options], tuple[dict[str, str], dict[str, str]]]:
        return _unpickled, (self.given, dict(self.usual))

    @property
    def texts(self) -> dict[str, str]:
        """What the user and the machine say, the user's word first; keys in lower case."""
        return {**self.usual, **self.given}

    def stated(self) -> Options:
        """Only what the user gave: what must agree with the table. A machine speaks of new tables."""
        return Options(self.registry, self.given)

    def __repr__(self) -> str:
        return f"Options({shown_options(self.given)!r})"

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
        """
        names = (option.key, *option.aliases)
        found = {k: self.given[k] for k in names if k in self.given} or {k: self.usual[k] for k in names if k in self.usual}
        if not found:
            return option.default
        values = [_parsed(option, key, text) for key, text in found.items()]
        if any(value != values[0] for value in values):
            raise ConfigError(option.key, found, "one value", f"Give only {option.key}.", is_option=True)
        return values[0]

    def having(self, more: Mapping[str, object]) -> Options:
        """These options with `more` on top, which takes the place of what other names of the same options said."""
        named = (self.registry.find(key) for key in more)
        gone = {name for option in named if option is not None for name in (option.key, *option.aliases)}
        kept = {key: value for key, value in self.given.items() if key not in gone}
        return Options(self.registry, {**kept, **{key.lower(): value for key, value in more.items()}}, self.usual)

    def without(self, option: Option[Any]) -> Options:
        """These options with nothing given for one of them."""
        names = {name.lower() for name in (option.key, *option.aliases)}
        return Options(self.registry, {key: value for key, value in self.given.items() if key not in names}, self.usual)


def _unpickled(given: Mapping[str, str], usual: Mapping[str, str]) -> Options:
    return Options(OPTIONS, given, usual)


def _parsed(option: Option[T], key: str, text: str) -> T:
    try:
        return option.parse(text)
    except ValueError as error:
        raise ConfigError(key, text, option.allowed, is_option=True) from error


def _in_lower_case(given: Mapping[str, object]) -> dict[str, str]:
    """Texts by their keys in lower case. Raises ConfigError where two spellings of a key have different values."""
    found: dict[str, str] = {}
    for key, value in given.items():
        if value is None:
            continue
        text = as_text(value)
        for one in (key, text):
            if not is_text(one):
                raise ConfigError(ascii(key)[1:-1], one, "text without halves of surrogate pairs")
        if found.setdefault(key.lower(), text) != text:
            raise ConfigError(
                key, f"{found[key.lower()]} and {text}", "one value", "Names of options have no case.", is_option=True
            )
    return found


OPTIONS = OptionRegistry(machine_options)
"""Every option of hudimeta: each module of this package that has some adds them when it is imported."""
