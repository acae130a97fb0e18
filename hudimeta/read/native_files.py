"""Which base files any Parquet reader reads as the table's columns, by their names, without knowing of Hudi.

Files keep the columns that they were written with. A column that came later is simply absent, which readers show as null; a few
wider types they know as well. What they do not know is a column that was renamed or that took the name of another one, and
most changes of types. That belongs to the commit which wrote a file, so it is stated for instants and not for each file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hudimeta.errors import SchemaError
from hudimeta.formats.base_file import schema_of_base_file
from hudimeta.schema import SCHEMA_KEY, avro_to_arrow, hudi_type_of
from hudimeta.schema.hudi_types import BLOB, VARIANT
from hudimeta.schema.promotion import Fit, fit, is_list_like
from hudimeta.snapshot.table_schema import plain_schema
from hudimeta.storage import join
from hudimeta.table.properties_file import PROPERTIES_PATH
from hudimeta.types import COPYING_OPERATIONS, META_COLUMNS

if TYPE_CHECKING:
    from hudimeta.schema import InternalSchema
    from hudimeta.schema.internal_schema import SchemaColumn
    from hudimeta.snapshot.snapshot import Snapshot
    from hudimeta.snapshot.table_schema import TableSchema

__all__ = ["foreign_instants", "unlike_column"]

_WIDENED = {(pa.int32(), pa.int64())}
"""Promotions of whole columns that Spark's Parquet reader does since 4.0 as Hudi does. That of floats is not among them: 0.1
is 0.1 in Hudi, and 0.10000000149011612 there. Types grow from int over long and float to double, so it still holds that what
follows a file that reads alike does so too."""


def foreign_instants(snapshot: Snapshot) -> frozenset[str]:
    """The instants whose base files do not read as the table's columns.

    For most tables this costs nothing, since they still have the columns that they were created with. For others it takes the
    list of their files, and for each column that came or changed as many commits as lead to the change: as time goes by, a
    column is first absent, then of narrower types, then as the table has it.
    """
    import pyarrow.compute as pc

    table, history = snapshot.schema.arrow, snapshot.history
    doubtful = _doubtful_columns(snapshot)
    if history is None and not doubtful:
        return frozenset()
    slices = snapshot.slices()
    held = slices.filter(pc.is_valid(slices.column("base_file")))
    instants = sorted(pc.unique(held.column("base_instant")).to_pylist())
    if history is not None:
        return frozenset(t for t in instants if not _same_columns(history.at(t), history.latest))
    if len({name.lower() for name in table.names}) < len(table.names):
        return frozenset(instants)  # readers that match names without case cannot tell two columns apart
    schemas = lru_cache(maxsize=None)(partial(_written, snapshot, held))
    return frozenset(time for column in doubtful for time in _foreign_in(column, instants, schemas))


def unlike_column(schema: TableSchema, columns: Sequence[str]) -> str:
    """The first column that no file holds as Spark's own reader would show it, and why; "" for none.

    Args:
        schema: Of the table.
        columns: Names of those that are read.
    """
    stored = {field.name: field for field in schema.stored}
    for name in columns:
        if _holds_times(schema.arrow.field(name).type):
            return f"column {name} holds times of day, which Spark's own reader does not show as numbers"
        kind = hudi_type_of(stored[name]) if name in stored else None
        if kind == VARIANT:
            return f"column {name} holds variants, of which files may hold pieces that Spark's own reader leaves out"
        if kind is not None and kind != BLOB:
            return f"column {name} holds vectors, which Spark's own reader shows as bytes"
    return ""


def _holds_times(kind: pa.DataType) -> bool:
    """Whether a type is a time of day, or holds one at any depth."""
    if pa.types.is_time(kind):
        return True
    return any(_holds_times(kind.field(number).type) for number in range(kind.num_fields))


def _foreign_in(column: pa.Field, instants: list[str], written: Callable[[str], pa.Schema]) -> list[str]:
    """The instants whose files hold a column otherwise; `written` tells the columns of an instant's files."""
    alike = _first(len(instants), lambda at: _reads_alike(written(instants[at]), column))
    if not alike or not _is_in(written(instants[alike - 1]), column):
        return []
    return instants[_first(alike - 1, lambda at: _is_in(written(instants[at]), column)) : alike]


def _doubtful_columns(snapshot: Snapshot) -> list[pa.Field]:
    """The columns that files may hold otherwise, because the table was not created with them as they are."""
    created = snapshot.properties.create_schema
    then = plain_schema(avro_to_arrow(created, PROPERTIES_PATH)) if created else pa.schema([])
    return [f for f in snapshot.schema.arrow if f.name not in META_COLUMNS and not _reads_alike(then, f)]


def _first(end: int, holds: Callable[[int], bool]) -> int:
    """The first number below `end` for which something holds that holds from there on; `end` when there is none."""
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _is_in(file: pa.Schema, column: pa.Field) -> bool:
    """Whether a file has a column that a reader takes for the table's."""
    return column.name.lower() in (name.lower() for name in file.names)


def _written(snapshot: Snapshot, held: pa.Table, instant: str) -> pa.Schema:
    """The columns of an instant's base files: from its commit, or from one of the files where that is archived or vague."""
    import pyarrow.compute as pc

    commit = snapshot.timeline.get(instant) if snapshot.timeline.is_committed(instant) else None
    if commit is not None and commit in snapshot.timeline.writes:
        metadata = snapshot.timeline.metadata(commit)
        avro = (metadata.get("extraMetadata") or {}).get(SCHEMA_KEY)
        if avro and metadata.get("operationType") not in COPYING_OPERATIONS:
            return plain_schema(avro_to_arrow(avro, snapshot.timeline.path_of(commit)))
    file = held.filter(pc.equal(held.column("base_instant"), instant)).slice(0, 1).to_pylist()[0]
    return plain_schema(schema_of_base_file(snapshot.storage, join(file["partition_path"], file["base_file"])))


def _reads_alike(file: pa.Schema, column: pa.Field) -> bool:
    """Whether a file has the column, and a reader shows it as the table has it."""
    if [name for name in file.names if name.lower() == column.name.lower()] != [column.name]:
        return False
    stored = file.field(column.name).type
    return _alike(stored, column.type) or (stored, column.type) in _WIDENED


def _alike(stored: pa.DataType, shown: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(stored) and types.is_struct(shown):
        inner = {stored.field(i).name: stored.field(i).type for i in range(stored.num_fields)}
        fields = [shown.field(i) for i in range(shown.num_fields)]
        return all(_alike(inner[f.name], f.type) for f in fields if f.name in inner)
    if is_list_like(stored) and is_list_like(shown):
        return _alike(stored.value_type, shown.value_type)
    if types.is_map(stored) and types.is_map(shown):
        return _alike(stored.key_type, shown.key_type) and _alike(stored.item_type, shown.item_type)
    if types.is_nested(stored) or types.is_nested(shown):
        return False
    try:
        return fit(stored, shown) is Fit.SAME
    except SchemaError:
        return False


def _same_columns(then: InternalSchema, now: InternalSchema) -> bool:
    """Whether what both versions call by one name is one column of one type, and what is new now has a name of its own."""
    return _same_fields(then.columns, now.columns)


def _same_fields(then: tuple[SchemaColumn, ...], now: tuple[SchemaColumn, ...]) -> bool:
    by_id, names = {c.id: c for c in then}, {c.name.lower() for c in then}
    for column in now:
        former = by_id.get(column.id)
        if former is None and column.name.lower() in names:
            return False
        if former is not None and not _same_column(former, column):
            return False
    return True


def _same_column(then: SchemaColumn, now: SchemaColumn) -> bool:
    if then.name != now.name or bool(then.children) != bool(now.children):
        return False
    if then.children:
        return pa.types.is_struct(then.type) == pa.types.is_struct(now.type) and _same_fields(then.children, now.children)
    return bool(then.type == now.type)
