"""Ordering values of deletes: a union of one-field records in the bytes, one column for each branch in Arrow.

A delete block says for each key with which ordering value it was deleted, as one branch of a union; the branch is the Java
class of the value. Branches 0 to 11 hold single values, branch 12 (Hudi 1.1 and later) the values of several ordering fields,
each again a union, in which 12 is a local date. Two conventions stand behind the types:

* the int 0 means "natural order": the delete wins over everything that is older, whatever the type of the ordering column;
* the value of a timestamp column is a plain long in the unit of its column, not branch 11.

A value of another class than the column's cannot be compared with it, and then the delete wins as well.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import SchemaMismatch, UnsupportedFeature
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of, single_array

__all__ = ["DELETES_SCHEMA", "ELEMENT_TYPE", "ORDERING_TYPE", "Wrapper", "ordering_values", "wrapper_for"]


class Wrapper(enum.IntEnum):
    """Branch of the union of ordering values, named after its record."""

    NULL = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    DATE = 8
    DECIMAL = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    ARRAY = 12

    @property
    def column(self) -> str:
        """Name of the branch's field in `ORDERING_TYPE`."""
        return self.name.lower()


LOCAL_DATE = 12
"""Branch 12 within an array of ordering values, where there is no array."""

_SINGLE: dict[Wrapper, pa.DataType] = {
    Wrapper.BOOLEAN: pa.bool_(),
    Wrapper.INT: pa.int32(),
    Wrapper.LONG: pa.int64(),
    Wrapper.FLOAT: pa.float32(),
    Wrapper.DOUBLE: pa.float64(),
    Wrapper.BYTES: pa.binary(),
    Wrapper.STRING: pa.string(),
    Wrapper.DATE: pa.date32(),
    Wrapper.DECIMAL: pa.decimal128(30, 15),
    Wrapper.TIME_MICROS: pa.time64("us"),
    Wrapper.TIMESTAMP_MICROS: pa.timestamp("us", "UTC"),
}

ELEMENT_TYPE = pa.struct(
    [("wrapper", pa.int8()), *((w.column, kind) for w, kind in _SINGLE.items()), ("local_date", pa.date32())]
)
"""One of several ordering values: its branch, and a field for each branch of which at most one is not null."""

ORDERING_TYPE = pa.struct([*((w.column, kind) for w, kind in _SINGLE.items()), ("array", pa.list_(ELEMENT_TYPE))])
"""An ordering value: a field for each branch, of which at most one is not null."""

DELETES_SCHEMA = pa.schema(
    [
        ("record_key", pa.string()),
        ("partition_path", pa.string()),
        pa.field("ordering_wrapper", pa.int8(), nullable=False),
        ("ordering", ORDERING_TYPE),
    ]
)
"""A decoded list of deletes. `ordering_wrapper` is a `Wrapper`."""


def wrapper_for(kind: pa.DataType) -> Wrapper:
    """The branch in which Java keeps values of an ordering column of this Arrow type.

    Raises:
        UnsupportedFeature: The type cannot order rows.
    """
    return _wrappers_of(kind)[0]


def ordering_values(deletes: pa.Table, kinds: Sequence[pa.DataType]) -> tuple[list[pa.Array], npt.NDArray[np.bool_]]:
    """The ordering values of deletes, typed as the table's ordering columns.

    Args:
        deletes: Has `DELETES_SCHEMA`.
        kinds: Arrow types of the ordering columns; one or several.

    Returns:
        For each ordering column an array of its type; and which deletes are in natural order: they win over everything that is
        older, and their values are null.
    """
    wrapper = numpy_of(deletes["ordering_wrapper"])
    ordering = single_array(deletes["ordering"])
    if len(kinds) == 1:
        value = _pick(ordering, kinds[0])
        zero = numpy_of(fill_null(pc.equal(ordering.field(Wrapper.INT.column), scalar_of(0)), False))
        natural = zero & (wrapper == Wrapper.INT) | numpy_of(value.is_null())
        return [_null_where(value, natural)], natural
    return _several(ordering.field("array"), kinds)


def _several(arrays: pa.Array, kinds: Sequence[pa.DataType]) -> tuple[list[pa.Array], npt.NDArray[np.bool_]]:
    natural = numpy_of(fill_null(pc.list_value_length(arrays), -1)) != len(kinds)
    values = []
    for k, kind in enumerate(kinds):
        where = array_of(numpy_of(arrays.offsets)[:-1] + k, mask=natural)
        element = arrays.values.take(where)
        value = _pick(element, kind)
        given = fill_null(pc.not_equal(element.field("wrapper"), int(Wrapper.NULL)), False)
        natural |= numpy_of(pc.and_(given, value.is_null()))
        values.append(value)
    return [_null_where(value, natural) for value in values], natural


def _pick(ordering: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of the branches that fit an ordering column, null where another branch is set."""
    fitting = [w.column for w in _wrappers_of(kind)]
    if pa.types.is_date(kind) and ordering.type.get_field_index("local_date") >= 0:
        fitting.append("local_date")
    try:
        columns = [ordering.field(name).cast(kind) for name in fitting]
    except pa.ArrowInvalid as error:
        raise SchemaMismatch("ordering value of a delete", error, kind) from error
    return columns[0] if len(columns) == 1 else pc.coalesce(*columns)


def _wrappers_of(kind: pa.DataType) -> tuple[Wrapper, ...]:
    """Branches whose values can be compared with a column's, first the one to write."""
    for matches, wrappers in _FITTING:
        if matches(kind):
            return wrappers
    raise UnsupportedFeature(f"an ordering column of type {kind}")


def _is_small_int(kind: pa.DataType) -> bool:
    return kind in (pa.int8(), pa.int16(), pa.int32())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


_FITTING: tuple[tuple[Any, tuple[Wrapper, ...]], ...] = (
    (pa.types.is_boolean, (Wrapper.BOOLEAN,)),
    (_is_small_int, (Wrapper.INT,)),
    (pa.types.is_int64, (Wrapper.LONG,)),
    (pa.types.is_float32, (Wrapper.FLOAT,)),
    (pa.types.is_float64, (Wrapper.DOUBLE,)),
    (_is_text, (Wrapper.STRING,)),
    (_is_bytes, (Wrapper.BYTES,)),
    (pa.types.is_date32, (Wrapper.DATE, Wrapper.INT)),
    (pa.types.is_decimal, (Wrapper.DECIMAL,)),
    (pa.types.is_time64, (Wrapper.TIME_MICROS, Wrapper.LONG)),
    (pa.types.is_time32, (Wrapper.INT,)),
    (pa.types.is_timestamp, (Wrapper.LONG, Wrapper.TIMESTAMP_MICROS)),
)


def _null_where(values: pa.Array, mask: npt.NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(array_of(mask), scalar_of(None, values.type), values) if mask.any() else values
