"""Rows as users or Spark hand them over, as Arrow tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Set
from typing import Any

import pyarrow as pa

from hudimeta.errors import SchemaMismatch
from hudimeta.schema import conform_column, normalise_type
from hudimeta.schema.promotion import is_list_like
from hudimeta.write.not_rows import not_rows

__all__ = [
    "as_stream",
    "as_table",
    "batches_of",
    "columns_of_python",
    "fitted",
    "from_frame",
    "joined_batches",
    "without_views",
]


_ADVICE = (
    "Give every column values of one type and as many as the others, or make an Arrow table with a schema, such as"
    " pyarrow.Table.from_pylist(rows, table.schema)."
)


def as_stream(data: Any) -> pa.RecordBatchReader | None:
    """Rows that come batch by batch, unread; None where they are in memory already.

    Args:
        data: See `as_table`. A reader, and whatever has `__arrow_c_stream__` and is no Arrow table, such as a scan of a table.

    Raises:
        SchemaMismatch: A stream of something else than rows, or of a type that Arrow does not know.
    """
    data = _collected(data)
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table) or not hasattr(data, "__arrow_c_stream__"):
        return None
    if _is_of("pandas", data):
        return None
    _refuse_objects(data)
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"{type(data).__name__} that is no table of Arrow's types ({error})"
        raise SchemaMismatch("*", what, "rows with columns", "Cast such columns, or give a table of rows.") from error


def batches_of(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of a stream, each with the columns that it states. What the source of a stream raises comes through.

    Raises:
        SchemaMismatch: A stream that breaks off, or of which a batch has other columns.
    """
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the source itself: what PyArrow says by itself has no number
            raise _broken(f"a stream that breaks off ({error})") from error
        if not batch.schema.equals(reader.schema):
            raise _broken(f"a stream with a batch of other columns ({', '.join(map(str, batch.schema))})")
        yield batch


def _broken(what: str) -> SchemaMismatch:
    hint = "No row of them is in the table: mend what makes the batches, and hand all of them over anew."
    return SchemaMismatch("*", what, "batches of one schema to the end", hint)


def as_table(data: Any) -> pa.Table:
    """Rows of any of the kinds that Python users have.

    Args:
        data: pyarrow Table, RecordBatch or RecordBatchReader; anything with `__arrow_c_stream__` or `__arrow_c_array__`
            (Polars, DuckDB relations, nanoarrow); a lazy frame of Polars, which is collected; a pandas DataFrame, whose index
            is left out; a dict of columns; a list of dicts, one a row: what a row lacks of the columns of the others is null.

    Raises:
        SchemaMismatch: Something else, or values that make no column of one type.
    """
    data = _collected(data)
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return pa.Table.from_batches(batches_of(data), data.schema)
    is_pandas = _is_of("pandas", data)
    _refuse_objects(data)
    try:
        if not is_pandas and (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")):
            return pa.table(data)
        if is_pandas and hasattr(data, "columns"):
            return pa.Table.from_pandas(data, preserve_index=False).replace_schema_metadata(None)
        if isinstance(data, dict):
            _refuse_single_values(data)
            return pa.table({name: _column(name, values) for name, values in data.items()})
        if isinstance(data, list) and all(isinstance(row, dict) for row in data):
            # Of every row: PyArrow's own conversion takes the columns of the first row and drops what only others have.
            names = dict.fromkeys(name for row in data for name in row)
            return pa.table({name: _column(name, [row.get(name) for row in data]) for name in names})
    except (pa.ArrowException, TypeError, ArithmeticError, LookupError, ValueError) as error:
        why = "; ".join(map(str, error.args))
        raise SchemaMismatch(
            "*", f"not one column of one type and length ({why})", "columns that fit together", _ADVICE
        ) from error
    raise not_rows(data)


def _collected(data: Any) -> Any:
    """The rows of a lazy frame of Polars; anything else as it is. What Polars raises comes through."""
    return data.collect() if _is_of("polars", data) and type(data).__name__ == "LazyFrame" else data


def _is_of(library: str, data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == library


def _refuse_objects(data: Any) -> None:
    """Refuse columns of Python objects in a Polars frame: as Arrow they are addresses, and look like bytes."""
    if not _is_of("polars", data):
        return
    for name, kind in getattr(data, "schema", {}).items():
        if str(kind) == "Object":
            raise SchemaMismatch(name, "Polars' type Object", "a type that Hudi tables have", "Cast it, or drop the column.")


def _refuse_single_values(data: dict[str, Any]) -> None:
    """Refuse what Arrow takes apart as if it were a column: a text becomes its letters, and a set has no order of rows."""
    for name, values in data.items():
        if isinstance(values, (str, bytes, bytearray, Set, dict)):
            what = f"a {type(values).__name__}, which is no column"
            raise SchemaMismatch(name, what, "a list of values, one a row", "Put it into a list; of one row, give [row].")


def without_views(rows: pa.Table) -> pa.Table:
    """Rows that Arrow can choose from: it takes nothing out of views, which all texts of Polars are, nor out of runs.

    Columns of an extension type are those that they are stored as.
    """
    for at, field in enumerate(rows.schema):
        if _holds_views(field.type):
            plain = pa.field(field.name, normalise_type(field.type, field.name, allow_null_type=True))
            rows = rows.set_column(at, plain, conform_column(rows.column(at), plain))
    return rows


def _holds_views(kind: pa.DataType) -> bool:
    if (
        isinstance(kind, pa.BaseExtensionType)
        or pa.types.is_run_end_encoded(kind)
        or kind in (pa.string_view(), pa.binary_view())
    ):
        return True
    if pa.types.is_dictionary(kind):
        return _holds_views(kind.value_type)
    return any(_holds_views(kind.field(at).type) for at in range(kind.num_fields))


def columns_of_python(data: Any) -> frozenset[str]:
    """Names of the columns that `as_table` gave a type because they had none: their values are in lists or dicts of Python."""
    if isinstance(data, dict):
        return frozenset(name for name, values in data.items() if isinstance(values, (list, tuple)))
    return frozenset(name for row in data for name in row) if isinstance(data, list) else frozenset()


def from_frame(rows: pa.Table, data: Any, schema: pa.Schema) -> pa.Table:
    """Rows of a pandas frame as the table means them; all others as they are.

    pandas makes floats of whole numbers where one is missing. As they are, they would make the table's column one of doubles,
    for good. And a column that a frame has for its index is not missing: it would be null in the rows that are written.

    Args:
        rows: As `as_table` made them.
        data: What they were made of.
        schema: The table's.
    """
    if not _is_of("pandas", data) or not hasattr(data, "columns"):
        return rows
    for name in data.index.names:
        if name in schema.names and name not in rows.column_names:
            rows = rows.append_column(name, _column(name, data.index.get_level_values(name)))
    for at, field in enumerate(rows.schema):
        wanted = schema.field(field.name).type if field.name in schema.names else field.type
        if field.type == pa.float64() and pa.types.is_integer(wanted) and rows.column(at).null_count:
            with contextlib.suppress(pa.ArrowInvalid):  # fractions, and what the type does not hold, stay floats
                rows = rows.set_column(at, field.name, rows.column(at).cast(wanted))
    return rows


def fitted(rows: pa.Table, names: frozenset[str], schema: pa.Schema) -> pa.Table:
    """Rows whose numbers have the types of the table's columns where these hold them.

    Python has one type of whole numbers and one of others, for which Arrow takes the widest. As they are, they would make every
    column of the table as wide, and find no key of a narrower one.

    Args:
        rows: As `as_table` made them.
        names: See `columns_of_python`; all other columns have the types that somebody chose.
        schema: The table's.
    """
    for at, field in enumerate(rows.schema):
        if field.name in names and field.name in schema.names:
            kind = _fitting_type(rows.column(at).combine_chunks(), schema.field(field.name).type)
            rows = rows if kind == field.type else rows.set_column(at, field.name, rows.column(at).cast(kind))
    return rows


def _fitting_type(values: pa.Array, wanted: pa.DataType) -> pa.DataType:
    """The type of `values`, with numbers as narrow as `wanted` has them, at every depth."""
    given = values.type
    if pa.types.is_list(given) and is_list_like(wanted):
        return pa.list_(_fitting_type(values.flatten(), wanted.value_type))
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        inner = {field.name: field.type for field in wanted}
        pairs = zip(given, values.flatten(), strict=True)
        return pa.struct([(f.name, _fitting_type(v, inner[f.name]) if f.name in inner else f.type) for f, v in pairs])
    if (given, wanted) in ((pa.int64(), pa.int32()), (pa.float64(), pa.float32())) and _fits(values, wanted):
        return wanted
    return given


def _fits(values: pa.Array, wanted: pa.DataType) -> bool:
    import pyarrow.compute as pc

    try:
        narrow = values.cast(wanted)
    except pa.ArrowInvalid:
        return False
    return bool(wanted == pa.int32() or pc.is_inf(narrow).equals(pc.is_inf(values)))


def joined_batches(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.Table]:
    """Batches joined into tables of about `limit` bytes; the last one may be smaller."""
    parts: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        parts.append(batch)
        size += batch.nbytes
        if size >= limit:
            yield pa.Table.from_batches(parts)
            parts, size = [], 0
    if parts:
        yield pa.Table.from_batches(parts)


def _column(name: str, values: Any) -> Any:
    """Values as an Arrow column; what is one already stays as it is."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ArithmeticError, LookupError, ValueError) as error:
        raise SchemaMismatch(name, f"of no one type ({error})", "values of one type", _ADVICE) from error
