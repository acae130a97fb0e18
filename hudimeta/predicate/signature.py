"""What a function that a predicate may call is: which types it takes, what it returns, how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

__all__ = ["Constants", "Context", "Function", "Signature", "Types", "WrongArguments"]


class WrongArguments(Exception):
    """The arguments do not fit; the text says what would."""


@dataclass(frozen=True)
class Context:
    """What an evaluation needs besides its arguments.

    Attributes:
        zone: The session's time zone.
        length: Number of rows.
        type: Type of the result.
    """

    zone: str
    length: int
    type: pa.DataType


@dataclass(frozen=True)
class Signature:
    """What a call with given argument types comes to.

    Attributes:
        arguments: Types that the arguments are cast to, one each.
        result: Type of the call.
    """

    arguments: tuple[pa.DataType, ...]
    result: pa.DataType


Types = Sequence[pa.DataType]
Constants = dict[int, Any]


@dataclass(frozen=True)
class Function:
    """One function.

    Attributes:
        resolve: Argument types to signature; raises WrongArguments.
        run: (context, arguments) to an array of `context.type`.
        arity: Fewest and most arguments.
        constants: Positions of arguments that must be constants.
        order: (types after casting, constants, zone) to +1 when larger first arguments give larger or equal results,
            -1 when they give smaller or equal ones, 0 when there is no such rule.
        total: True when the result is null only where an argument is.
        result_of: (signature, constants as they are cast) to the result's type, where they decide about it.
    """

    resolve: Callable[[Types], Signature]
    run: Callable[[Context, list[Any]], Any]
    arity: tuple[int, int]
    constants: frozenset[int] = frozenset()
    order: Callable[[Types, Constants, str], int] = lambda _types, _constants, _zone: 0
    total: bool = False
    result_of: Callable[[Signature, Constants], pa.DataType] = lambda signature, _constants: signature.result
