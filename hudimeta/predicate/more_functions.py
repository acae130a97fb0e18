"""Functions over lists, maps, bits, bytes, parts of texts and numbers of time; `functions` says what a Function is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from hudimeta.predicate import nested_kernels as nested
from hudimeta.predicate import regex_kernels, value_kernels
from hudimeta.predicate.function_kernels import Kernel
from hudimeta.predicate.signature import Function, Signature, Types, WrongArguments
from hudimeta.predicate.tree import FIELD, ITEM, CompareOp
from hudimeta.predicate.types import (
    DATE,
    DOUBLE,
    INSTANT,
    LONG,
    STRING,
    canonical_type,
    common_type,
    is_decimal,
    is_floating,
    is_integer,
    is_numeric,
    type_name,
)

__all__ = ["more_functions"]

INT, BINARY, BOOLEAN = pa.int32(), pa.binary(), pa.bool_()


def is_list(t: pa.DataType) -> bool:
    """True for lists in any of Arrow's layouts."""
    return bool(pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t) or pa.types.is_list_view(t))


def _element(t: pa.DataType) -> pa.DataType:
    if not is_list(t):
        raise WrongArguments("a list first")
    return canonical_type(t.value_type)


def _map(t: pa.DataType) -> tuple[pa.DataType, pa.DataType]:
    if not pa.types.is_map(t):
        raise WrongArguments("a map first")
    return canonical_type(t.key_type), canonical_type(t.item_type)


def _key(key: pa.DataType, given: pa.DataType) -> pa.DataType:
    """The type in which a key is looked for."""
    if key == given or pa.types.is_null(given):
        return key
    if is_integer(key) and is_integer(given):
        return key if key.bit_width >= given.bit_width else given
    raise WrongArguments(f"a key of type {key}")


def _item(types: Types) -> Signature:
    first, second = types
    if pa.types.is_map(first):
        key, value = _map(first)
        return Signature((first, _key(key, second)), value)
    if not (is_integer(second) or pa.types.is_null(second)):
        raise WrongArguments("a list and a whole number, or a map and a key")
    return Signature((first, LONG), _element(first))


def _element_at(types: Types) -> Signature:
    if is_list(types[0]) and (types[1] == LONG or pa.types.is_null(types[1])):
        raise WrongArguments("a list and an INT, or a map and a key")
    found = _item(types)
    return Signature((types[0], INT), found.result) if is_list(types[0]) else found


def _got(types: Types) -> Signature:
    _element(types[0])
    return _item(types)


def _of_list(result: pa.DataType | None = None) -> Callable[[Types], Signature]:
    def resolve(types: Types) -> Signature:
        element = _element(types[0])
        if result is None and pa.types.is_nested(element):
            raise WrongArguments("a list of values that have an order")
        return Signature((types[0],), element if result is None else result)

    return resolve


def _sized(types: Types) -> Signature:
    if not (is_list(types[0]) or pa.types.is_map(types[0])):
        raise WrongArguments("a list or a map")
    return Signature((types[0],), INT)


def _contained(types: Types) -> Signature:
    """A list, and a value that its elements are compared with."""
    if pa.types.is_null(types[1]):
        raise WrongArguments("a value of its elements' type")
    return Signature((types[0], _sought(types)), BOOLEAN)


def _position(types: Types) -> Signature:
    """A list, and a value of its elements' type, or of a number type that holds the other whole."""
    both, given = _sought(types), types[1]
    decimals = {t for t in (_element(types[0]), given) if is_decimal(t)}
    if not pa.types.is_null(given) and decimals and decimals != {both}:
        raise WrongArguments(f"a value of its elements' type, as CAST(… AS {type_name(_element(types[0]))}) makes it")
    return Signature((types[0], both), LONG)


def _sought(types: Types) -> pa.DataType:
    """The type in which the elements of a list are compared with a value."""
    element, given = _element(types[0]), types[1]
    both = common_type(element, given)
    mixed = STRING in (element, given) and element != given and not pa.types.is_null(given)
    mixed |= any(map(is_decimal, (element, given))) and any(map(is_floating, (element, given)))
    if both is None or mixed or pa.types.is_nested(both):
        raise WrongArguments("a list and a value of its elements' type")
    return both


def _moment(types: Types) -> Signature:
    if types[0] != INSTANT and not pa.types.is_null(types[0]):
        raise WrongArguments("a TIMESTAMP")
    return Signature((INSTANT,), LONG)


def _keyed(types: Types) -> Signature:
    if pa.types.is_null(types[1]):
        raise WrongArguments("a key")
    return Signature((types[0], _key(_map(types[0])[0], types[1])), BOOLEAN)


def _entries(which: int) -> Callable[[Types], Signature]:
    return lambda types: Signature((types[0],), pa.list_(_map(types[0])[which]))


def _field(types: Types) -> Signature:
    raise WrongArguments("a struct")  # the binder knows the fields


def _whole_numbers(types: Types) -> Signature:
    both = common_type(types[0], types[1])
    if both is None or not (is_integer(both) or pa.types.is_null(both)) or STRING in types:
        raise WrongArguments("two whole numbers")
    both = INT if pa.types.is_null(both) else both
    return Signature((both, both), both)


def _whole_number(types: Types) -> Signature:
    if not is_integer(types[0]):
        raise WrongArguments("a whole number")
    return Signature((types[0],), types[0])


def _shift(types: Types) -> Signature:
    if not is_integer(types[0]) or not is_integer(types[1]):
        raise WrongArguments("two whole numbers")
    value = LONG if types[0] == LONG else INT
    return Signature((value, INT), value)


def _hex(types: Types) -> Signature:
    if is_integer(types[0]) or types[0] in (STRING, BINARY) or pa.types.is_null(types[0]):
        return Signature((LONG if is_integer(types[0]) else types[0],), STRING)
    raise WrongArguments("a whole number, a string or a binary value")


def _bytes(result: pa.DataType) -> Callable[[Types], Signature]:
    def resolve(types: Types) -> Signature:
        if types[0] not in (STRING, BINARY) and not pa.types.is_null(types[0]):
            raise WrongArguments("a binary value")
        return Signature((BINARY, INT)[: len(types)], result)

    return resolve


def _takes(*arguments: pa.DataType, to: pa.DataType) -> Callable[[Types], Signature]:
    return lambda types: Signature(arguments[: len(types)], to)


def _joined(types: Types) -> Signature:
    if any(pa.types.is_nested(t) for t in types):
        raise WrongArguments("texts")
    return Signature((STRING,) * len(types), STRING)


def _by_null(types: Types) -> Signature:
    both = common_type(types[1], types[2])
    if both is None or pa.types.is_decimal256(both):
        raise WrongArguments("values of one type")
    return Signature((types[0], both, both), both)


def _floats(types: Types) -> Signature:
    if not all(is_numeric(t) or pa.types.is_null(t) or t == STRING for t in types):
        raise WrongArguments("two numbers")
    t = pa.float32() if set(types) == {pa.float32()} else DOUBLE
    return Signature((t, t), t)


def _number_of_seconds(types: Types) -> Signature:
    if not is_numeric(types[0]):
        raise WrongArguments("a number")
    return Signature((types[0],), INSTANT)


def _number_of_units(types: Types) -> Signature:
    if not is_integer(types[0]) and not pa.types.is_null(types[0]):
        raise WrongArguments("a whole number")
    return Signature((LONG,), INSTANT)


def _days(types: Types) -> Signature:
    if types[0] != DATE and not pa.types.is_null(types[0]):
        raise WrongArguments("a DATE")
    return Signature((DATE,), INT)


def _placed(types: Types) -> Signature:
    """`locate`; a start that is null means something, so it is taken only of types that are never cast to null."""
    if len(types) > 2 and not pa.types.is_null(types[2]) and not (is_integer(types[2]) and types[2] != LONG):
        raise WrongArguments("two texts and an INT")
    return Signature((STRING, STRING, INT)[: len(types)], INT)


def _simple(kernel: Kernel, *arguments: pa.DataType, to: pa.DataType, constants: tuple[int, ...] = ()) -> Function:
    """A function of so many arguments of fixed types, null where one is."""
    return Function(_takes(*arguments, to=to), kernel, (len(arguments), len(arguments)), frozenset(constants), total=True)


def more_functions() -> dict[str, Function]:
    """Name to function."""
    size = Function(_sized, nested.size, (1, 1), total=True)
    element = Function(_element_at, nested.element, (2, 2))
    sha1 = Function(_bytes(STRING), value_kernels.each(value_kernels.digest("sha1")), (1, 1), total=True)
    locate = Function(_placed, value_kernels.place_from, (2, 3))
    return {
        ITEM: Function(_item, nested.item, (2, 2)),
        FIELD: Function(_field, nested.field, (2, 2), frozenset({1})),
        "get": Function(_got, nested.item, (2, 2)),
        "element_at": element,
        "try_element_at": element,
        "size": size,
        "cardinality": size,
        "array_size": Function(_of_list(INT), nested.size, (1, 1), total=True),
        "array_contains": Function(_contained, nested.contains, (2, 2)),
        "array_position": Function(_position, nested.position, (2, 2), total=True),
        "array_max": Function(_of_list(), nested.extreme(CompareOp.GT), (1, 1)),
        "array_min": Function(_of_list(), nested.extreme(CompareOp.LT), (1, 1)),
        "map_contains_key": Function(_keyed, nested.contains_key, (2, 2), total=True),
        "map_keys": Function(_entries(0), nested.entries("keys"), (1, 1)),
        "map_values": Function(_entries(1), nested.entries("items"), (1, 1)),
        "split": Function(_takes(STRING, STRING, INT, to=pa.list_(STRING)), regex_kernels.split, (2, 3), frozenset({1, 2})),
        "&": Function(_whole_numbers, value_kernels.bits(np.bitwise_and), (2, 2), total=True),
        "|": Function(_whole_numbers, value_kernels.bits(np.bitwise_or), (2, 2), total=True),
        "^": Function(_whole_numbers, value_kernels.bits(np.bitwise_xor), (2, 2), total=True),
        "~": Function(_whole_number, value_kernels.inverted, (1, 1), total=True),
        "shiftleft": Function(_shift, value_kernels.shifted(np.left_shift), (2, 2), total=True),
        "shiftright": Function(_shift, value_kernels.shifted(np.right_shift), (2, 2), total=True),
        "hex": Function(_hex, value_kernels.each(value_kernels.hexadecimal), (1, 1), total=True),
        "unhex": _simple(value_kernels.each(value_kernels.from_hexadecimal), STRING, to=BINARY),
        "md5": Function(_bytes(STRING), value_kernels.each(value_kernels.digest("md5")), (1, 1), total=True),
        "sha": sha1,
        "sha1": sha1,
        "sha2": Function(_bytes(STRING), value_kernels.each(value_kernels.sha2), (2, 2), frozenset({1})),
        "crc32": Function(_bytes(LONG), value_kernels.each(value_kernels.checksum), (1, 1), total=True),
        "base64": Function(_bytes(STRING), value_kernels.each(value_kernels.base_64), (1, 1), total=True),
        "ascii": _simple(value_kernels.each(value_kernels.first_code), STRING, to=INT),
        "char": _simple(value_kernels.each(value_kernels.character), LONG, to=STRING),
        "chr": _simple(value_kernels.each(value_kernels.character), LONG, to=STRING),
        "octet_length": Function(_bytes(INT), value_kernels.each(len), (1, 1), total=True),
        "bit_length": Function(_bytes(INT), value_kernels.each(lambda value: 8 * len(value)), (1, 1), total=True),
        "instr": _simple(value_kernels.rowwise(value_kernels.place), STRING, STRING, to=INT),
        "locate": locate,
        "position": locate,
        "repeat": _simple(value_kernels.each(value_kernels.repeated), STRING, INT, to=STRING, constants=(1,)),
        "translate": _simple(value_kernels.each(value_kernels.translated), STRING, STRING, STRING, to=STRING, constants=(1, 2)),
        "concat_ws": Function(_joined, value_kernels.joined, (1, 1000), frozenset({0})),
        "substring_index": _simple(
            value_kernels.each(value_kernels.before_or_after), STRING, STRING, INT, to=STRING, constants=(1, 2)
        ),
        "split_part": Function(
            _takes(STRING, STRING, INT, to=STRING), value_kernels.each(value_kernels.piece), (3, 3), frozenset({1, 2})
        ),
        "nvl2": Function(_by_null, value_kernels.choose_by_null, (3, 3)),
        "nanvl": Function(_floats, value_kernels.unless_nan, (2, 2)),
        "rint": _simple(value_kernels.whole_number, DOUBLE, to=DOUBLE),
        "unix_date": Function(_days, value_kernels.as_days, (1, 1), order=lambda *_: 1, total=True),
        "date_from_unix_date": _simple(value_kernels.as_days, INT, to=DATE),
        "unix_seconds": Function(_moment, value_kernels.since_epoch(value_kernels.SECOND), (1, 1), total=True),
        "unix_millis": Function(_moment, value_kernels.since_epoch(value_kernels.MILLISECOND), (1, 1), total=True),
        "unix_micros": Function(_moment, value_kernels.since_epoch(value_kernels.MICROSECOND), (1, 1), total=True),
        "timestamp_seconds": Function(_number_of_seconds, value_kernels.instant_of(value_kernels.SECOND), (1, 1)),
        "timestamp_millis": Function(_number_of_units, value_kernels.instant_of(value_kernels.MILLISECOND), (1, 1)),
        "timestamp_micros": Function(_number_of_units, value_kernels.instant_of(value_kernels.MICROSECOND), (1, 1)),
        "from_utc_timestamp": Function(
            _takes(INSTANT, STRING, to=INSTANT), value_kernels.moved(to_zone=True), (2, 2), frozenset({1})
        ),
        "to_utc_timestamp": Function(
            _takes(INSTANT, STRING, to=INSTANT), value_kernels.moved(to_zone=False), (2, 2), frozenset({1})
        ),
        "make_date": Function(_takes(INT, INT, INT, to=DATE), value_kernels.make_date, (3, 3)),
        "next_day": _simple(value_kernels.next_day, DATE, STRING, to=DATE, constants=(1,)),
    }
