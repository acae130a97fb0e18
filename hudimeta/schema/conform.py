"""Rows of one schema as rows of another: by name, at every depth, column by column and never row by row."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.errors import SchemaMismatch
from hudimeta.formats.plain_arrays import array_of, numpy_of, scalar_of, spread
from hudimeta.formats.vectors import Vector, numbers_of
from hudimeta.schema.avro_arrow import AVRO_TYPE_KEY
from hudimeta.schema.hudi_types import refuse_shredded, symbols_of, vector_of
from hudimeta.schema.java_text import java_text
from hudimeta.schema.promotion import Fit, fit, is_list_like, is_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["assemble", "cast_advice", "conform", "conform_array", "conform_column", "list_runs"]

MAX_OFFSET = 2**31 - 1
_WIDEST, _MOST_DECIMALS = 76, 38
"""Digits of the decimal in which numbers are rounded, and how many of these are decimals."""


def conform(table: pa.Table, target: pa.Schema, *, altered: bool = False) -> pa.Table:
    """Bring rows to a schema: reorder, promote, fill what is missing with nulls, drop what is extra.

    Args:
        table: Any rows; columns are found by name, fields of structs too (also in lists and in values of maps).
        target: What comes out, exactly: names, types, nullability, metadata.
        altered: True also allows the casts of `ALTER COLUMN TYPE` (numbers to decimal, strings to date or decimal), which
            apply to files older than the ALTER.

    Returns:
        Table with schema `target`; columns that already fit are not copied. Numbers and dates become text as Java writes them;
        a float becomes the double that its text stands for, as in Hudi.

    Raises:
        SchemaMismatch: A type that does not promote, a value that does not fit, or a null where the target allows none.
    """
    if table.schema.equals(target, check_metadata=True) and all(f.nullable for f in target):
        return table
    given: dict[str, int] = {}
    for position, name in enumerate(table.schema.names):
        if given.setdefault(name, position) != position:
            raise SchemaMismatch(name, "there twice", "a name of its own", "Rename or drop one of the two columns.")
    columns = []
    for field in target:
        at = given.get(field.name)
        column = pa.chunked_array([pa.nulls(table.num_rows)]) if at is None else table.column(at)
        columns.append(conform_column(column, field, altered=altered))
    return pa.Table.from_arrays(columns, schema=target)


def conform_column(column: pa.ChunkedArray, field: pa.Field, *, altered: bool = False) -> pa.ChunkedArray:
    """One column as `field` wants it; see `conform`."""
    return pa.chunked_array([conform_array(chunk, field, field.name, altered=altered) for chunk in column.chunks], field.type)


def conform_array(values: pa.Array, field: pa.Field, path: str, *, altered: bool = False) -> pa.Array:
    """One array as `field` wants it; `path` is the dotted name for errors. Raises SchemaMismatch."""
    if not field.nullable:
        _refuse_nulls(values.null_count, path)
    target = field.type
    values = _plain(values)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    if pa.types.is_struct(target):
        refuse_shredded(values.type, field, path)
        return _struct(values, target, path, altered)
    if pa.types.is_map(target):
        return _map(values, target, path, altered)
    if pa.types.is_list(target):
        vector = vector_of(field)
        return _list(values, target, path, altered) if vector is None else _vector(values, target, path, vector)
    fitted = values if values.type == target else _leaf(values, target, path, altered)
    if field.metadata and AVRO_TYPE_KEY in field.metadata and is_text(target):
        _refuse_other_symbols(fitted, field.metadata[AVRO_TYPE_KEY], path)
    return fitted


def _refuse_other_symbols(values: pa.Array, avro: bytes, path: str) -> None:
    """Refuse texts that are no symbols of their column's enum, which nobody could read."""
    import pyarrow.compute as pc

    symbols = symbols_of(avro)
    known = pc.or_kleene(pc.is_in(values, value_set=array_of(symbols, pa.string())), pc.is_null(values))
    odd = values.filter(pc.invert(known))
    if symbols and len(odd):
        hint = "Take one of the symbols of the column."
        raise SchemaMismatch(path, repr(odd[0].as_py()), f"one of {', '.join(symbols[:10])}", hint)


def _refuse_nulls(count: int, path: str) -> None:
    if count:
        raise SchemaMismatch(path, f"null in {count} rows", "a value in every row", "Fill or filter the nulls before writing.")


def _plain(values: pa.Array) -> pa.Array:
    """Without extension type, dictionary or run-end encoding: ways of storing, not types."""
    import pyarrow.compute as pc

    if isinstance(values.type, pa.BaseExtensionType):
        return _plain(values.storage)
    if pa.types.is_dictionary(values.type):
        return _taken(values.dictionary, values.indices)
    if pa.types.is_run_end_encoded(values.type):
        return pc.run_end_decode(values)
    return values


def _taken(values: pa.Array, positions: pa.Array) -> pa.Array:
    """Values at positions. Arrow takes nothing out of views, which Polars has as the values of its categories."""
    if values.type in (pa.string_view(), pa.binary_view()):
        values = values.cast(pa.large_string() if is_text(values.type) else pa.large_binary())
    return values.take(positions)


def _struct(values: pa.Array, target: pa.DataType, path: str, altered: bool) -> pa.Array:
    if not pa.types.is_struct(values.type):
        raise SchemaMismatch(path, values.type, target, "A struct cannot come from another type: rebuild the column.")
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    valid = None if not values.null_count else values.is_valid()
    given = values.flatten()  # below a null struct anything may lie: flatten makes it null
    children = []
    for i in range(target.num_fields):
        field = target.field(i)
        if field.name in names:
            child = given[names.index(field.name)]
            loose = field if valid is None else field.with_nullable(True)
            if valid is not None and not field.nullable:
                _refuse_nulls(child.is_null().filter(valid).true_count, f"{path}.{field.name}")
            children.append(conform_array(child, loose, f"{path}.{field.name}", altered=altered))
        elif field.nullable or not len(values):
            children.append(pa.nulls(len(values), field.type))
        else:
            raise SchemaMismatch(f"{path}.{field.name}", "missing", f"{field.type} not null", "Add the field to every row.")
    return assemble(target, len(values), valid, [], children)


def _list(values: pa.Array, target: pa.DataType, path: str, altered: bool) -> pa.Array:
    if pa.types.is_fixed_size_binary(values.type) and pa.types.is_primitive(target.value_type):
        return numbers_of(values, target)  # a vector, as files hold it
    if not is_list_like(values.type):
        raise SchemaMismatch(path, values.type, target, "A list cannot come from another type: rebuild the column.")
    offsets, inner = list_runs(values, path)
    children = conform_array(inner, target.value_field, f"{path}.element", altered=altered)
    return assemble(target, len(values), values.is_valid() if values.null_count else None, [offsets], [children])


def _vector(values: pa.Array, target: pa.DataType, path: str, vector: Vector) -> pa.Array:
    if values.type == vector.stored:
        return numbers_of(values, target)
    if not is_list_like(values.type):
        raise SchemaMismatch(path, values.type, str(vector), f"Give lists of {vector.dimension} numbers.")
    present = values.drop_null() if values.null_count else values  # below a null list anything may lie
    offsets, inner = list_runs(present, path)
    lists = assemble(target, len(present), None, [offsets], [vector.elements(inner, path)])
    vector.check(lists, path)
    return lists if not values.null_count else spread(lists, numpy_of(values.is_valid()))


def _map(values: pa.Array, target: pa.DataType, path: str, altered: bool) -> pa.Array:
    if not pa.types.is_map(values.type):
        raise SchemaMismatch(path, values.type, target, "A map cannot come from another type: rebuild the column.")
    offsets, entries = list_runs(values, path)
    keys = conform_array(entries.field(0), target.key_field, f"{path}.key", altered=altered)
    items = conform_array(entries.field(1), target.item_field, f"{path}.value", altered=altered)
    pairs = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    return assemble(target, len(values), values.is_valid() if values.null_count else None, [offsets], [pairs])


def list_runs(values: pa.Array, path: str) -> tuple[pa.Buffer, pa.Array]:
    """Offsets that begin at 0, and the children that they span, of a list array that may be a slice."""
    import numpy as np

    if pa.types.is_fixed_size_list(values.type):
        width = values.type.list_size
        offsets = np.arange(len(values) + 1, dtype=np.int64) * width
        inner = values.values.slice(values.offset * width, len(values) * width)
    elif pa.types.is_list_view(values.type) or pa.types.is_large_list_view(values.type):
        offsets, inner = _gather(values)
    else:
        offsets = numpy_of(values.offsets).astype(np.int64)
        children = _map_entries(values) if pa.types.is_map(values.type) else values.values
        inner = children.slice(offsets[0], offsets[-1] - offsets[0])
        offsets = offsets - offsets[0]
    if offsets[-1] > MAX_OFFSET:
        raise SchemaMismatch(path, f"{offsets[-1]} list elements in one batch", "fewer than 2^31", "Write smaller batches.")
    return pa.py_buffer(offsets.astype(np.int32)), inner


def _gather(values: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The elements of list views in the order of their rows (Arrow's own cast of a sliced view gives wrong rows)."""
    import numpy as np

    sizes = numpy_of(values.sizes).astype(np.int64)
    sizes[numpy_of(values.is_null())] = 0
    ends = np.concatenate([[0], np.cumsum(sizes)])
    starts = numpy_of(values.offsets).astype(np.int64)
    wanted = np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])
    return ends, _taken(values.values, array_of(wanted))


def _map_entries(values: pa.Array) -> pa.Array:
    """Keys and items of the whole underlying array as a struct: not of the slice, as `offsets` point into the whole."""
    fields = [values.type.key_field, values.type.item_field]
    return pa.StructArray.from_arrays([values.keys, values.items], fields=fields)


def assemble(
    kind: pa.DataType, length: int, valid: pa.Array | None, buffers: list[pa.Buffer], children: list[pa.Array]
) -> pa.Array:
    """A nested array of type `kind` from its parts; `valid` are booleans, None when every slot is."""
    bitmap = None if valid is None else valid.buffers()[1]
    return pa.Array.from_buffers(kind, length, [bitmap, *buffers], children=children)


def _leaf(values: pa.Array, target: pa.DataType, path: str, altered: bool) -> pa.Array:
    import pyarrow.compute as pc

    source = _leaf_kind(values.type, path)
    how = fit(source, target)
    if how is Fit.NO or (how is Fit.ALTERED and not altered):
        raise SchemaMismatch(path, values.type, target, cast_advice(source, target))
    try:
        if is_text(target):
            return java_text(values, path)
        if source == pa.float32() and target == pa.float64():
            return pc.cast(pc.cast(pc.cast(values, source), pa.string()), target)
        if target in (pa.float32(), pa.float64()):
            return pc.cast(values, target, safe=False)
        if how is Fit.ALTERED:
            return _alter(values, target)
        return pc.cast(values, target)
    except pa.ArrowInvalid as error:
        what = str(error).splitlines()[0]
        # What is beyond a type's range does not come into it by rounding.
        hint = "Correct or filter such values before writing." if "out of bounds" in what else cast_advice(source, target)
        raise SchemaMismatch(path, f"{values.type} with values that do not fit ({what})", target, hint) from error


def _leaf_kind(kind: pa.DataType, path: str) -> pa.DataType:
    from hudimeta.schema.normalise import normalise_type

    types = pa.types
    stored = types.is_timestamp(kind) or types.is_time(kind) or types.is_fixed_size_binary(kind)
    return kind if stored else normalise_type(kind, path)


def _alter(values: pa.Array, target: pa.DataType) -> pa.Array:
    """The casts of an ALTER: floats round half up; what is no date or number, or too large, becomes null, as in Spark."""
    import pyarrow.compute as pc

    if pa.types.is_date(target):
        fits = pc.match_substring_regex(values, r"^\s*\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\s*$")
        text = pc.utf8_trim_whitespace(pc.if_else(fits, values, scalar_of(None)))
        days = pc.cast(pc.strptime(text, "%Y-%m-%d", "s", error_is_null=True), target)
        same = pc.equal(pc.cast(days, pa.string()), text)  # Arrow takes the 29th of any February
        return pc.if_else(same, days, scalar_of(None))
    if is_text(values.type):
        fits = pc.match_substring_regex(values, r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$")
        values = pc.utf8_trim_whitespace(pc.if_else(fits, values, scalar_of(None)))
    digits = target.precision - target.scale
    wide = pa.decimal256(_WIDEST, min(_MOST_DECIMALS, _WIDEST - digits - 2))
    texts = java_text(values)
    size = pc.abs(pc.cast(texts, pa.float64()))
    fits = pc.less(size, scalar_of(10.0 ** (digits + 1)))  # neither infinite nor NaN, nor too large for `wide`
    texts = pc.if_else(fits, texts, scalar_of(None))
    numbers = _rounded(texts, wide, target.scale)
    most = scalar_of(Decimal((0, (1,), digits)), wide)
    return pc.cast(pc.if_else(pc.less(pc.abs(numbers), most), numbers, scalar_of(None)), target)


def _rounded(texts: pa.Array, wide: pa.DataType, scale: int) -> pa.Array:
    """Texts as numbers of a wide decimal type, rounded half up to so many decimals."""
    import pyarrow.compute as pc

    try:
        return pc.round(pc.cast(texts, wide), ndigits=scale, round_mode="half_towards_infinity")
    except pa.ArrowInvalid:  # one has more decimals than the type
        exact, unit = Context(prec=_WIDEST, rounding=ROUND_HALF_UP), Decimal((0, (1,), -scale))
        numbers = (None if text is None else Decimal(text).quantize(unit, context=exact) for text in texts.to_pylist())
        return pa.array(numbers, wide)


def cast_advice(source: pa.DataType, target: pa.DataType) -> str:
    """What to do about a type that does not fit."""
    types = pa.types
    if types.is_timestamp(source) and types.is_timestamp(target):
        if (source.tz is None) != (target.tz is None):
            return "One side has a time zone: attach or remove it, e.g. pc.assume_timezone or dt.tz_localize, before writing."
        return f"Round the column to {target.unit} before writing, e.g. pc.floor_temporal or dt.floor."
    return f"Cast the column to {target} before writing, or write it to a new column."
