"""The records of log blocks as columns, ready to be merged: rows in the table's schema, and deletes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.errors import SchemaError
from hudimeta.formats.avro.ordering import Wrapper, ordering_values
from hudimeta.formats.log import BlockType, HeaderKey, LogBlock, decode_data_block, decode_delete_block
from hudimeta.formats.plain_arrays import fill_null, numpy_of, scalar_of, single_array
from hudimeta.schema import avro_to_arrow, conform_array
from hudimeta.schema.java_text import java_text
from hudimeta.schema.promotion import is_text
from hudimeta.slices.merge_rules import DELETED_COLUMN, OPERATION_COLUMN, MergeRules
from hudimeta.slices.ordering import field_type, ordering_columns
from hudimeta.table.file_names import parse_log_file

__all__ = [
    "Conform",
    "DataPart",
    "DeletePart",
    "LogPart",
    "data_part",
    "delete_part",
    "deleted_rows",
    "deletes_of",
    "natural_rows",
    "read_log_parts",
    "rows_of",
]

Conform: TypeAlias = Callable[[pa.Table, pa.Schema], pa.Table]
"""Brings rows to a schema: (rows as stored, schema) -> rows with exactly that schema."""

_Mask: TypeAlias = npt.NDArray[np.bool_]
_DELETE_OPERATIONS = ("D", "-U")
"""Of Flink's change logs: a delete, and what a row was before an update. Apache Hudi takes both for deletes since 1.1."""
_FILE_NAME = "_hoodie_file_name"


@dataclass(frozen=True, slots=True)
class DataPart:
    """Rows of one data block.

    Attributes:
        rows: In the schema of the merge.
        deleted: bool per row; True where the row says of itself that it is a delete.
        natural: bool per row; True for such a delete without an ordering value.
        present: The columns that the rows have, None when they have all: others are null because nothing was written there.
    """

    rows: pa.Table
    deleted: _Mask
    natural: _Mask
    present: frozenset[str] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return int(self.rows.nbytes) + self.deleted.nbytes + self.natural.nbytes


@dataclass(frozen=True, slots=True)
class DeletePart:
    """Records of one delete block.

    Attributes:
        keys: Record keys.
        natural: bool per record; True without an ordering value that compares with the table's.
        ordering: Per field that a delete states (`MergeRules.delete_fields`) one array of its type.
    """

    keys: pa.ChunkedArray
    natural: _Mask
    ordering: tuple[pa.ChunkedArray, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return int(self.keys.nbytes) + self.natural.nbytes + sum(int(column.nbytes) for column in self.ordering)


LogPart: TypeAlias = DataPart | DeletePart


def read_log_parts(
    blocks: Iterable[LogBlock], schema: pa.Schema, conform: Conform, rules: MergeRules, *, whole: bool = False
) -> Iterator[LogPart]:
    """Decode blocks for merging, each when it is asked for.

    Args:
        blocks: Data and delete blocks, oldest first (`SliceBlocks.blocks`).
        schema: Columns of the merge; others are not decoded, except those that mark deletes.
        conform: Brings rows to a schema.
        rules: What marks deletes and which fields order.
        whole: Decode every column and leave the choice to `conform`, for tables whose columns changed their names.

    Raises:
        CorruptFileError: Damaged content.
        UnsupportedFeature: Content versions that hold Kryo, or are unknown.
    """
    columns = None if whole else [*schema.names, *rules.columns]
    for block in blocks:
        if block.type is BlockType.DELETE:
            yield delete_part(deletes_of(block), schema, rules, block)
        else:
            yield data_part(rows_of(block, columns), schema, conform, rules, block.is_partial)


def rows_of(block: LogBlock, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of a data block, which have to be of the file group whose log it stands in.

    A seal knows the file. Of blocks without one the rows tell: Hudi writes the file id where rows of a base file have its name.

    Args:
        block: With its content.
        columns: See `decode_data_block`.

    Raises:
        CorruptFileError: Damaged content, or rows of another file group.
    """
    if block.is_sealed:
        return decode_data_block(block, columns)
    rows = decode_data_block(block, None if columns is None else [*columns, _FILE_NAME])
    log = parse_log_file(block.path.rpartition("/")[2])
    if log is not None and _FILE_NAME in rows.column_names:
        for name in rows.column(_FILE_NAME).unique().to_pylist():
            if name is not None and name.partition("_")[0] != log.file_id:
                raise block.damaged(f"rows of file group {log.file_id}", f"rows of {name}")
    return rows


def deletes_of(block: LogBlock) -> pa.Table:
    """Records of a delete block, which have to be of the partition that it lies in. See `rows_of`."""
    deletes = decode_delete_block(block)
    folder, _, name = block.path.rpartition("/")
    if not block.is_sealed and parse_log_file(name) is not None:
        for partition in deletes.column("partition_path").unique().to_pylist():
            if partition is not None and partition != folder:
                raise block.damaged(f"deletes in partition {folder!r}", f"deletes in {partition!r}")
    return deletes


def delete_part(deletes: pa.Table, schema: pa.Schema, rules: MergeRules, block: LogBlock | None = None) -> DeletePart:
    """Records of a delete block, their ordering values brought to the types of the table's ordering fields.

    Args:
        deletes: What `decode_delete_block` returned.
        schema: Columns of the merge. A record whose values are of another type than the table's has none that compares.
        rules: Which fields order.
        block: That they stand in. Its header has the schema that the table had: a column may have become wider since.
    """
    keys = deletes.column("record_key")
    kinds = [field_type(schema, name) for name in rules.delete_fields]
    if not kinds:
        return DeletePart(keys, np.zeros(len(keys), bool))
    if None in kinds:
        absent = tuple(pa.chunked_array([pa.nulls(len(keys), kind or pa.int32())]) for kind in kinds)
        return DeletePart(keys, np.ones(len(keys), bool), absent)
    values, natural = ordering_values(deletes, kinds)
    then = _columns_then(block) if block is not None and (natural & _states_order(deletes)).any() else None
    if then is not None:
        values, natural = _widened(deletes, kinds, rules.delete_fields, then) or (values, natural)
    return DeletePart(keys, natural, tuple(pa.chunked_array([value]) for value in values))


def _columns_then(block: LogBlock) -> pa.Schema | None:
    """The table's columns as the header of a delete block has them; None where it has none."""
    text = block.header.get(HeaderKey.SCHEMA)
    try:
        return None if text is None else avro_to_arrow(text)
    except SchemaError as error:
        raise block.damaged("an Avro record schema in the block's header", error.message) from error


def _states_order(deletes: pa.Table) -> _Mask:
    """Which deletes have an ordering value that is not the int 0, of whatever type."""
    import pyarrow.compute as pc

    zero = numpy_of(fill_null(pc.equal(single_array(deletes["ordering"]).field("int"), scalar_of(0)), False))
    states: _Mask = (numpy_of(deletes["ordering_wrapper"]) != Wrapper.NULL) & ~zero
    return states


def _widened(
    deletes: pa.Table, kinds: Sequence[pa.DataType], fields: Sequence[str], then: pa.Schema
) -> tuple[list[pa.Array], _Mask] | None:
    """Ordering values that are of the types of their day, as those of today; None where the types were the same."""
    narrow = [field_type(then, name) for name in fields]
    if None in narrow or narrow == list(kinds):
        return None
    values, natural = ordering_values(deletes, narrow)
    wide = [conform_array(value, pa.field(name, kind), name) for value, name, kind in zip(values, fields, kinds, strict=True)]
    return wide, natural


def data_part(raw: pa.Table, schema: pa.Schema, conform: Conform, rules: MergeRules, partial: bool = False) -> DataPart:
    """Rows of a data block, brought to the schema of the merge.

    Args:
        raw: As stored in the block.
        schema: What the merge works in.
        conform: Brings rows to a schema; for a partial block it is asked only for the columns that the block has.
        rules: What marks a row as a delete.
        partial: The block holds only the columns that its write changed.
    """
    deleted = deleted_rows(raw, rules)
    if not partial:
        rows = conform(raw, schema)
        return DataPart(rows, deleted, natural_rows(rows, deleted, rules))
    names = set(raw.column_names)
    given = [field for field in schema if field.name in names]
    known = conform(raw, pa.schema(given))
    columns = [
        known.column(field.name) if field.name in names else pa.chunked_array([pa.nulls(raw.num_rows, field.type)])
        for field in schema
    ]
    rows = pa.table(columns, schema=schema)
    return DataPart(rows, deleted, natural_rows(rows, deleted, rules), frozenset(field.name for field in given))


def deleted_rows(raw: pa.Table, rules: MergeRules) -> _Mask:
    """Which rows are deletes: by Hudi's flag, by Hudi's operation column, or by the table's own marker."""
    import pyarrow.compute as pc

    deleted = np.zeros(raw.num_rows, bool)
    for name, marker in (
        (DELETED_COLUMN, "true"),
        *((OPERATION_COLUMN, operation) for operation in _DELETE_OPERATIONS),
        (rules.delete_field, rules.delete_marker),
    ):
        texts = None if name is None or raw.schema.get_field_index(name) < 0 else _texts(raw.column(name))
        if texts is not None:
            deleted |= numpy_of(fill_null(pc.equal(texts, scalar_of(marker, pa.string())), False))
    return deleted


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The texts of values that a marker is compared with; None where no value has one, as of decimals.

    They are those of what Hudi holds in memory: a day and a moment are numbers there, and a double of 1 is `1.0`.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        return column.cast(kind).cast(whole).cast(pa.string())
    types = pa.types
    plain = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or is_text(kind)
    return java_text(column) if plain else None


def natural_rows(rows: pa.Table, deleted: _Mask, rules: MergeRules) -> _Mask:
    """Deletes whose ordering value has no say, or is what Hudi takes for none: a null, or 0 in a single field of type int."""
    import pyarrow.compute as pc

    if rules.deletes_always and rules.by_event_time:
        return deleted
    if not rules.by_event_time or len(rules.ordering_fields) > 1 or not deleted.any():
        return np.zeros(len(deleted), bool)
    column = ordering_columns(rows, rules.ordering_fields)[0]
    kind = column.type
    is_int = pa.types.is_integer(kind) and kind.bit_width <= 32
    unset = pc.fill_null(pc.equal(column, 0), True) if is_int else column.is_null()
    natural: _Mask = deleted & unset.to_numpy()
    return natural
