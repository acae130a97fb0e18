"""How functions over lists, maps and structs are computed; see `function_kernels` for what a kernel is.

A list array is taken as its elements in one flat array and where each list begins and ends there. What lies outside of a list,
where Spark raises an error, is null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hudimeta.predicate.casts import cast_array, to_canonical
from hudimeta.predicate.comparison import compare
from hudimeta.predicate.function_kernels import Kernel
from hudimeta.predicate.tree import CompareOp

if TYPE_CHECKING:
    from hudimeta.predicate.signature import Context

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Lists:
    """Lists, or maps, of one array.

    Attributes:
        begin, length: Of each list in the flat arrays; a null list is empty.
        null: Which lists are null.
        items: Elements, or values of maps.
        keys: Keys of maps.
    """

    begin: Numbers
    length: Numbers
    null: Numbers
    items: pa.Array
    keys: pa.Array | None = None

    @classmethod
    def of(cls, values: pa.Array) -> _Lists:
        null = np.asarray(values.is_null())
        if not (pa.types.is_list(values.type) or pa.types.is_map(values.type)):  # other layouts of the same
            values = values.cast(pa.list_(values.type.value_type))
        offsets = np.asarray(values.offsets).astype(np.int64)
        length = np.where(null, 0, np.diff(offsets))
        if pa.types.is_map(values.type):
            return cls(offsets[:-1], length, null, values.items, to_canonical(values.keys))
        return cls(offsets[:-1], length, null, values.values)

    def take(self, position: Numbers, missing: Numbers, t: pa.DataType) -> pa.Array:
        """The flat items at positions, null where missing, in a canonical type."""
        found = to_canonical(self.items.take(pa.array(np.where(missing, 0, position), mask=missing)))
        return found if pa.types.is_nested(t) or found.type == t else found.cast(t)

    def flat(self) -> tuple[Numbers, Numbers]:
        """The list that each element of a list that is not null belongs to, and the element's flat position."""
        rows = np.repeat(np.arange(len(self.length)), self.length)
        first = np.cumsum(self.length) - self.length
        return rows, np.arange(len(rows)) - np.repeat(first - self.begin, self.length)

    def equal(self, elements: pa.Array, wanted: pa.Array) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Rows and positions of all elements, which of them equal their row's wanted value, and which are null."""
        rows, positions = self.flat()
        held = elements.take(pa.array(positions))
        same = compare(CompareOp.EQ, held, wanted.take(pa.array(rows)))
        return rows, positions, np.asarray(same.fill_null(False)), np.asarray(held.is_null())


def _whole(values: pa.Array) -> tuple[Numbers, Numbers]:
    return np.asarray(values.fill_null(0)).astype(np.int64), np.asarray(values.is_null())


def item(context: Context, args: list[Any]) -> Any:
    """`list[i]`, counted from 0, or `map[key]`."""
    lists = _Lists.of(args[0])
    if lists.keys is not None:
        return _value_of_key(context, lists, args[1])
    index, missing = _whole(args[1])
    return lists.take(lists.begin + index, missing | (index < 0) | (index >= lists.length), context.type)


def element(context: Context, args: list[Any]) -> Any:
    """`element_at`: lists count from 1, or from -1 backwards."""
    lists = _Lists.of(args[0])
    if lists.keys is not None:
        return _value_of_key(context, lists, args[1])
    index, missing = _whole(args[1])
    missing = missing | (index == 0) | (index > lists.length) | (index < -lists.length)
    return lists.take(lists.begin + np.where(index > 0, index - 1, lists.length + index), missing, context.type)


def _value_of_key(context: Context, maps: _Lists, wanted: pa.Array) -> pa.Array:
    rows, positions, same, _ = maps.equal(cast_array(maps.keys, wanted.type, context.zone), wanted)
    at = np.full(len(maps.length), -1)
    at[rows[same][::-1]] = positions[same][::-1]  # the first of equal keys
    return maps.take(at, at < 0, context.type)


def field(context: Context, args: list[Any]) -> Any:
    """A field of a struct that is itself computed."""
    import pyarrow.compute as pc

    found = to_canonical(pc.struct_field(args[0], args[1]))
    return found if pa.types.is_nested(context.type) or found.type == context.type else found.cast(context.type)


def size(_context: Context, args: list[Any]) -> Any:
    """How many elements, or entries; null for null."""
    lists = _Lists.of(args[0])
    return pa.array(lists.length.astype(np.int32), mask=lists.null)


def contains(context: Context, args: list[Any]) -> Any:
    """Whether a list holds a value; null when it is not found beside a null, as with IN."""
    lists = _Lists.of(args[0])
    rows, _, same, gone = lists.equal(cast_array(to_canonical(lists.items), args[1].type, context.zone), args[1])
    count = len(lists.length)
    found, unknown = (np.bincount(rows[mask], minlength=count) > 0 for mask in (same, gone))
    return pa.array(found, mask=lists.null | np.asarray(args[1].is_null()) | (unknown & ~found))


def contains_key(context: Context, args: list[Any]) -> Any:
    """Whether a map has a key."""
    maps = _Lists.of(args[0])
    rows, _, same, _ = maps.equal(cast_array(maps.keys, args[1].type, context.zone), args[1])
    found = np.bincount(rows[same], minlength=len(maps.length)) > 0
    return pa.array(found, mask=maps.null | np.asarray(args[1].is_null()))


def position(context: Context, args: list[Any]) -> Any:
    """Where a list first holds a value, counted from 1; 0 when it does not."""
    lists = _Lists.of(args[0])
    rows, positions, same, _ = lists.equal(cast_array(to_canonical(lists.items), args[1].type, context.zone), args[1])
    at = np.zeros(len(lists.length), np.int64)
    at[rows[same][::-1]] = (positions - lists.begin[rows] + 1)[same][::-1]
    return pa.array(at, mask=lists.null | np.asarray(args[1].is_null()))


def entries(which: str) -> Kernel:
    """The keys or the values of maps, as lists."""

    def run(_context: Context, args: list[Any]) -> Any:
        maps = args[0]
        held = maps.keys if which == "keys" else maps.items
        return pa.ListArray.from_arrays(_offsets(maps), held)

    return run


def _offsets(values: pa.Array) -> pa.Array:
    """Offsets that are null for null lists."""
    null = np.append(np.asarray(values.is_null()), False)
    return pa.array(np.asarray(values.offsets), pa.int32(), mask=null)


def extreme(op: CompareOp) -> Kernel:
    """The largest or smallest element that is not null; NaN is the largest."""

    def run(context: Context, args: list[Any]) -> Any:
        lists = _Lists.of(args[0])
        items = to_canonical(lists.items)
        valid = np.append(np.asarray(items.is_valid()), False)
        best = np.full(len(lists.length), len(items))  # one past the end: none yet
        for step in range(int(lists.length.max(initial=0))):
            at = np.where(step < lists.length, lists.begin + step, len(items))
            better = np.asarray(compare(op, _at(items, at), _at(items, best)).fill_null(False))
            best = np.where(valid[at] & (better | ~valid[best]), at, best)
        return lists.take(best, ~valid[best], context.type)

    return run


def _at(items: pa.Array, position: Numbers) -> pa.Array:
    gone = position >= len(items)
    return items.take(pa.array(np.where(gone, 0, position), mask=gone))
