"""Rows made ready for a table: checked against its schema, with keys and partition paths, one row a key where that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import ConfigError, SchemaMismatch
from hudimeta.formats.bulk_texts import is_surely_sound
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of, single_array
from hudimeta.keys import KeyGenerator
from hudimeta.schema import conform
from hudimeta.slices.log_parts import deleted_rows, natural_rows
from hudimeta.slices.merge_rules import DELETED_COLUMN, KEY_COLUMN, MergeRules
from hudimeta.slices.ordering import order_codes, ordering_columns, places_beside_barriers
from hudimeta.table.positions import rows_at
from hudimeta.types import Operation
from hudimeta.write.carried_keys import CARRYING_COLUMNS, carried_keys, carries_keys, check_stay

__all__ = ["KeyedBatch", "check_sound", "concatenated", "keyed_batch", "keys_only_batch", "with_unstored"]


@dataclass(frozen=True)
class KeyedBatch:
    """Rows with what a write needs to know of them.

    Attributes:
        rows: Data columns in the table's schema, without meta columns.
        keys: Record keys, string; None when the table generates them.
        partitions: Partition paths, string.
        deleted: bool; rows that ask for the deletion of their key.
        files: What rows of the table say of their file, string: the name of a base file, or the bare id of the file group for a
            row that won in a log; null where that is not known or the row is new; None for rows that nobody read.
    """

    rows: pa.Table
    keys: pa.StringArray | None
    partitions: pa.StringArray
    deleted: np.ndarray[Any, Any]
    files: pa.StringArray | None = None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def groups(self) -> pa.StringArray | None:
        """Ids of the file groups in which rows were read, as far as `files` tells. Rows of one key are told apart by them."""
        if self.files is None:
            return None
        coded = self.files.dictionary_encode()
        return pc.list_element(pc.split_pattern(coded.dictionary, "_", max_splits=1), scalar_of(0)).take(coded.indices)

    @property
    def of_base_keys(self) -> pa.StringArray:
        """Keys of the rows that may be those of a base file, also where a log has other versions of them."""
        if self.keys is None or self.files is None:
            return array_of([], pa.string()) if self.keys is None else self.keys
        return self.keys.filter(fill_null(pc.match_substring(self.files, "_"), True))

    def partitions_of_deletes(self) -> set[str]:
        """Paths of the partitions with a row that asks for the deletion of its key: an overwrite replaces them as well."""
        return set(self.partitions.filter(array_of(self.deleted)).unique().to_pylist())

    def take(self, at: np.ndarray[Any, Any]) -> KeyedBatch:
        """The rows at some positions, in that order."""
        where = array_of(at)
        keys = None if self.keys is None else self.keys.take(where)
        files = None if self.files is None else self.files.take(where)
        return KeyedBatch(rows_at(self.rows, at), keys, self.partitions.take(where), self.deleted[at], files)

    def names(self, *, whole_table: bool = False) -> pa.StringArray:
        """What two rows share of which one is kept: key and partition, or the key alone where it is unique in the table."""
        if self.keys is None:
            raise ValueError("rows without keys have no names")
        parts = [self.keys] if whole_table else [self.partitions, self.keys]
        groups = self.groups
        parts += [] if groups is None else [fill_null(groups, "")]
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, scalar_of("\0"))

    def combined(self, rules: MergeRules, *, whole_table: bool = False) -> KeyedBatch:
        """One row for each (partition, key), or for each key where keys are unique in the whole table.

        The row with the highest ordering value stays, of equal ones the last; a delete without one (see `natural_rows`)
        takes the place of all before it.
        """
        if self.keys is None or not len(self):
            return self
        coded = self.names(whole_table=whole_table).dictionary_encode()
        if len(coded.dictionary) == len(self):
            return self
        codes = numpy_of(coded.indices)
        age = np.arange(len(self))
        sort_by = [age]
        if rules.by_event_time:
            sort_by.append(order_codes(ordering_columns(self.rows, rules.ordering_fields)))
            sort_by.append(places_beside_barriers(codes, natural_rows(self.rows, self.deleted, rules)))
        order = np.lexsort((*sort_by, codes))
        last = np.flatnonzero(np.r_[codes[order][1:] != codes[order][:-1], True])
        return self.take(np.sort(order[last]))


def concatenated(batches: Sequence[KeyedBatch]) -> KeyedBatch:
    """Rows with keys of several batches, one after another."""
    return KeyedBatch(
        pa.concat_tables([batch.rows for batch in batches]),
        pa.concat_arrays([batch.keys for batch in batches if batch.keys is not None]),
        pa.concat_arrays([batch.partitions for batch in batches]),
        np.concatenate([batch.deleted for batch in batches]),
        pa.concat_arrays([pa.nulls(len(b), pa.string()) if b.files is None else b.files for b in batches]),
    )


def keyed_batch(
    rows: pa.Table, schema: pa.Schema, generator: KeyGenerator, rules: MergeRules, *, carried: bool = False
) -> KeyedBatch:
    """Make rows ready.

    Args:
        rows: As the user gave them; meta columns are ignored, unless they are the keys.
        schema: The table's data columns after this write.
        generator: Makes keys.
        rules: Mark deletes.
        carried: The rows have their keys in their meta columns; see `carries_keys`.

    Raises:
        SchemaMismatch: Types or nulls that do not fit, a null key or ordering value, no column for one of these or for the
            partition; a row with a generated key that its columns place elsewhere.
    """
    _check_present(rows, generator, rules)
    if not carried:
        check_sound(rows)
    fitted = conform(rows, schema)
    _check_flag(schema)
    named = with_unstored(fitted, rows, generator)
    paths = single_array(generator.partition_paths(named))
    keys = None if generator.generates_keys else single_array(generator.record_keys(named))
    if carried:
        keys, lying = carried_keys(rows)
        check_stay(lying, paths)
    for field in rules.ordering_fields if rules.by_event_time else ():
        column = ordering_columns(fitted, (field,))[0]
        if column.null_count:
            raise SchemaMismatch(
                field,
                f"null in {column.null_count} rows",
                "a value in every row, because it decides which row is newer",
                "Fill the nulls, or create the table without ordering columns.",
            )
    return KeyedBatch(fitted, keys, paths, deleted_rows(fitted, rules))


def check_sound(rows: pa.Table) -> None:
    """Arrow takes bytes of others as they come, so that a text can be no UTF-8, and offsets or codes can lead nowhere.

    Raises:
        SchemaMismatch: A column that nobody could read.
    """
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        try:
            if not is_surely_sound(column):
                column.validate(full=True)
        except pa.ArrowInvalid as error:
            hint = "Texts are UTF-8: decode such bytes by their own encoding, or give them as binary. Dates are whole days."
            raise SchemaMismatch(name, f"no sound {column.type} ({error})", "values that can be read", hint) from error


def with_unstored(fitted: pa.Table, rows: pa.Table, generator: KeyGenerator) -> pa.Table:
    """With the columns that keys and paths are made of, also those that the table's files do not hold.

    Raises:
        SchemaMismatch: A column that no file holds has values that are none of its type.
    """
    typed = {field.name: field for field in generator.unstored}
    names = (*generator.record_fields, *(field.name for field in generator.partitions))
    for top in dict.fromkeys(name.partition(".")[0] for name in names):
        if top not in fitted.column_names and top in rows.column_names:
            own = rows.select([rows.column_names.index(top)])
            column = _fitted(own, typed[top]) if top in typed else own[top]
            # A table without any column does not know how many rows it has.
            fitted = fitted.append_column(top, column) if fitted.num_columns else pa.table({top: column})
    return fitted


def _fitted(column: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    """A column as the table has it; whole numbers may come in any width that holds them."""
    (given,) = column.columns
    if pa.types.is_integer(given.type) and pa.types.is_integer(field.type):
        try:
            column = pa.table({field.name: given.cast(field.type)})
        except pa.ArrowInvalid as error:
            raise SchemaMismatch(field.name, str(error), field.type, "Partition paths alone hold these values.") from error
    return conform(column, pa.schema([field]))[field.name]


def _check_present(rows: pa.Table, generator: KeyGenerator, rules: MergeRules) -> None:
    """Rows may leave out columns, which are null then, but none that says what a row is and where it goes."""
    given = {name.lower() for name in rows.column_names}
    needed = (
        (generator.record_fields, "a column, because it is part of the record key"),
        ([field.name for field in generator.partitions], "a column, because the partition is made of it"),
        (rules.ordering_fields if rules.by_event_time else (), "a column, because it decides which row is newer"),
    )
    for names, why in needed:
        for name in names:
            if name.partition(".")[0].lower() not in given:
                hint = f"Add the column to the rows, which have {', '.join(rows.column_names)}."
                raise SchemaMismatch(name, "missing", why, hint)


def _check_flag(schema: pa.Schema) -> None:
    """The column by which rows ask for their deletion is a boolean, to Apache Hudi as well: others would be stored as rows."""
    if DELETED_COLUMN in schema.names and schema.field(DELETED_COLUMN).type != pa.bool_():
        hint = "Cast it, or give the column another name and set hoodie.payload.delete.field and hoodie.payload.delete.marker."
        raise SchemaMismatch(DELETED_COLUMN, schema.field(DELETED_COLUMN).type, pa.bool_(), hint)


def keys_only_batch(
    rows: pa.Table, generator: KeyGenerator, schema: pa.Schema, rules: MergeRules, *, whole_table: bool = False
) -> KeyedBatch:
    """Rows that name what to delete: key and partition columns are needed, ordering columns used, all others ignored.

    With `whole_table` keys are unique in the whole table, and partition columns are not needed. Of a table that generates
    its keys, rows name those that they were read as, by their meta columns.

    Raises:
        ConfigError: The table generates its keys, and the rows do not carry any.
        SchemaMismatch: A column is missing.
    """
    carried = carries_keys(generator, Operation.DELETE, rows.column_names)
    if generator.generates_keys and not carried:
        raise ConfigError(
            "hoodie.table.recordkey.fields",
            "",
            "key columns",
            "This table generates its keys: delete with a predicate, or rows that were read with "
            f"{' and '.join(CARRYING_COLUMNS)}.",
        )
    names = (*generator.record_fields, *(field.name for field in generator.partitions), *rules.ordering_fields)
    tops = {name.partition(".")[0] for name in names} & set(rows.column_names)
    places = [place for place, name in enumerate(rows.column_names) if name in tops]
    check_sound(rows.select(places))
    fitted = conform(rows.select(places), pa.schema([f for f in schema if f.name in tops]))
    named = with_unstored(fitted, rows, generator)
    if carried:
        keys, paths = carried_keys(rows)
        # A table without any column does not know how many rows it has.
        counted = fitted if fitted.num_columns else pa.table({KEY_COLUMN: keys})
        return KeyedBatch(counted, keys, paths, np.ones(len(keys), dtype=bool))
    keys = single_array(generator.record_keys(named))
    known = all(field.name.partition(".")[0] in named.column_names for field in generator.partitions)
    if known or not whole_table:
        paths = single_array(generator.partition_paths(named))
    else:
        paths = pa.repeat(scalar_of("", pa.string()), len(keys))
    return KeyedBatch(fitted if fitted.num_columns else named, keys, paths, np.ones(len(keys), dtype=bool))
