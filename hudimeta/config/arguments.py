"""Arguments of public methods, looked at before a method begins by what its signature says of each."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, ParamSpec, TypeVar

from hudimeta.errors import ConfigError
from hudimeta.types import is_text

__all__ = ["checked", "checked_call"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
Look = Callable[[str, Any], Any]

_DICT = re.compile(r"Mapping\[str, [^\[\]]*\]")
_MOMENTS = frozenset({"as_of", "begin", "end", "instant"})
"""Arguments that also take dates, times and numbers of Python and its libraries, whose texts are what is asked for."""


def checked(kind: type[T]) -> type[T]:
    """Have the public methods of a class look at their texts, names, flags, numbers and dicts before anything else happens.

    What is none of what the signature says raises ConfigError; names come as a list, numbers and flags as Python's own.
    Arguments of other types are their methods' to look at.
    """
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(checked_call(member.__func__)))
        elif inspect.isfunction(member):
            setattr(kind, name, checked_call(member))
    return kind


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """The same for one function."""
    names = list(inspect.signature(function).parameters)
    looks = {name: look for name in names if (look := _look_for(name, function)) is not None}
    if not looks:
        return function

    @functools.wraps(function)
    def looked(*given: Any, **named: Any) -> R:
        places = [looks[name](name, value) if name in looks else value for name, value in zip(names, given, strict=False)]
        by_name = {name: looks[name](name, value) if name in looks else value for name, value in named.items()}
        return function(*places, *given[len(places) :], **by_name)

    return looked


def _look_for(name: str, function: Callable[..., Any]) -> Look | None:
    """How to look at an argument; None where that is left to the method."""
    said = str(function.__annotations__.get(name, ""))
    plain = said.removesuffix(" | None")
    look: Look | None = _dict_of(plain) if _DICT.fullmatch(plain) else _LOOKS.get(plain)
    look = _moment if look is _text and name in _MOMENTS else look
    if look is None or (plain == said and look not in (_names, _list_of_names)):
        return look
    default = inspect.signature(function).parameters[name].default
    return look if default is inspect.Parameter.empty else functools.partial(_unless_none, look, default)


def _unless_none(look: Look, otherwise: Any, name: str, value: Any) -> Any:
    return otherwise if value is None else look(name, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(name, value, "a text")
    if not is_text(value):
        raise ConfigError(name, value, "text without halves of surrogate pairs")
    return value


def _moment(name: str, value: Any) -> str:
    if value is None or isinstance(value, (str, bytes, bool)):
        return _text(name, value)
    try:
        return str(value)
    except (OverflowError, ValueError) as error:  # a moment of Arrow that Python does not have, and cannot show
        raise ConfigError(name, type(value).__name__, "a moment of the years 1 to 9999") from error


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ConfigError(name, value, "True or False")


def _whole(name: str, value: Any) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError as error:
        raise ConfigError(name, value, "a whole number") from error
    raise ConfigError(name, value, "a whole number")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isnan(value):
        raise ConfigError(name, value, "a number")
    return float(value)


def _names(name: str, value: Any) -> Any:
    """One name, or several as a list; a set, which has no order, is left to whom order does not matter."""
    if isinstance(value, str):
        return _text(name, value)
    if isinstance(value, (bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise _no_names(name, value)
    items = list(value)
    if not all(isinstance(item, str) for item in items):
        raise _no_names(name, value)
    return value if isinstance(value, Set) else [_text(name, item) for item in items]


def _no_names(name: str, value: Any) -> ConfigError:
    if name == "partitions":
        return ConfigError(name, value, "paths of partitions", 'Give texts, such as "2024-01" or "month=2024-01".')
    return ConfigError(name, value, "a name, or a list of names")


def _list_of_names(name: str, value: Any) -> Any:
    return _names(name, [value] if isinstance(value, str) else value)


def _names_or_pairs(name: str, value: Any) -> Any:
    return _dict_of("Mapping[str, str]")(name, value) if isinstance(value, Mapping) else _names(name, value)


def _values(may_be_none: bool) -> Look:
    """Texts to look up, of Python or of Arrow."""

    def look(name: str, value: Any) -> Any:
        import pyarrow as pa

        if isinstance(value, (pa.Array, pa.ChunkedArray)):
            value = value.to_pylist()
        given = [value] if isinstance(value, str) else value
        if isinstance(given, (bytes, bytearray, Mapping)) or not isinstance(given, Iterable):
            raise ConfigError(name, value, "a list of texts")
        return [item if item is None and may_be_none else _text(name, item) for item in given]

    return look


def _pairs(name: str, value: Any) -> Any:
    """Pairs of texts."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise ConfigError(name, value, "pairs of a partition path and a file's name")
    pairs = [tuple(pair) if isinstance(pair, (tuple, list)) else () for pair in value]
    if not all(len(pair) == 2 for pair in pairs):
        raise ConfigError(name, value, "pairs of a partition path and a file's name")
    return [tuple(_text(name, part) for part in pair) for pair in pairs]


def _arrow_type(name: str, value: Any) -> Any:
    """A type, which Arrow also knows by its name."""
    import pyarrow as pa

    try:
        return pa.field(name, value).type
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ConfigError(name, value, "a type of Arrow", "Give one, such as pyarrow.string().") from error


def _dict_of(said: str) -> Look:
    """A dict whose keys are texts, and its values texts or types of Arrow where the signature says so."""
    of_texts, may_be_none, of_types = said.startswith("Mapping[str, str"), "None" in said, "DataType" in said

    def look(name: str, value: Any) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise ConfigError(
                name, value, "a dictionary of names and their values", "Give a dictionary, such as {name: value}."
            )
        for key, item in value.items():
            _text(name, key)
            if of_texts and not (item is None and may_be_none):
                _text(f"{name}[{key!r}]", item)
        return {key: _arrow_type(f"{name}[{key!r}]", item) for key, item in value.items()} if of_types else value

    return look


_LOOKS: dict[str, Look] = {
    "str": _text,
    "bool": _flag,
    "int": _whole,
    "float": _number,
    "str | Sequence[str]": _names,
    "Sequence[str]": _list_of_names,
    "str | Sequence[str] | Mapping[str, str]": _names_or_pairs,
    "pa.Array | Sequence[str]": _values(may_be_none=False),
    "pa.Array | Sequence[str | None]": _values(may_be_none=True),
    "Sequence[tuple[str, str]]": _pairs,
    "pa.DataType": _arrow_type,
}
