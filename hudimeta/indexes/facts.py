"""What indexes must know of the rows of one file that is being written: plain data that travels with the file.

Facts are gathered where the rows are in memory, by whoever writes the file, and only those that the table's indexes want. Keys
and values are Arrow arrays, so that a file of a million rows costs what its keys cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.errors import SchemaMismatch, UnsupportedEvolution
from hudimeta.formats.hfile import MAX_KEY_BYTES
from hudimeta.formats.plain_arrays import single_array, texts
from hudimeta.indexes.expression_index.facts import WantedExpression
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.metadata.keys import secondary_keys
from hudimeta.schema import SchemaChange
from hudimeta.schema.promotion import is_text
from hudimeta.slices.merge_rules import KEY_COLUMN

__all__ = [
    "NO_CHANGE",
    "FileFacts",
    "KeyChanges",
    "WantedFacts",
    "refuse_long_values",
    "refuse_values_spelled_anew",
    "row_changes",
    "texts_of_values",
    "value_keys",
    "value_texts",
]

_SHOWN = 60
"""Characters of a key that an error shows."""


def _no_texts() -> pa.StringArray:
    return texts(())  # pa.array would import pandas


@dataclass(frozen=True)
class WantedFacts:
    """Which facts the indexes of a table want of every file.

    Attributes:
        keys: The changes of record keys.
        values: Metadata partition and column of each secondary index, and whether rows without a value are in it.
        bloom: The bloom filter of base files.
        expressions: The expression indexes.
    """

    keys: bool = False
    values: tuple[tuple[str, str, bool], ...] = ()
    bloom: bool = False
    expressions: tuple[WantedExpression, ...] = ()


@dataclass(frozen=True)
class KeyChanges:
    """Keys that a file changes in its file group, or keys of a secondary index (value and record key in one).

    Attributes:
        added: Those that the file group holds from now on and did not before.
        removed: The reverse.
        maybe_added: Those of rows in a log file, which the file group may have held before; an index that does not know them
            adds them.
    """

    added: pa.StringArray = field(default_factory=_no_texts)
    removed: pa.StringArray = field(default_factory=_no_texts)
    maybe_added: pa.StringArray = field(default_factory=_no_texts)

    @property
    def every(self) -> tuple[pa.StringArray, ...]:
        """All that it speaks of."""
        return self.added, self.removed, self.maybe_added


@dataclass(frozen=True)
class FileFacts:
    """The facts of one file.

    Attributes:
        keys: Changes of record keys; None where nobody wanted them.
        values: Changes of the keys of each secondary index, by metadata partition.
        bloom: Type code and base64 text of a base file's bloom filter; None where it was not wanted or there is none.
        expressions: Rows of `column_stats.SCHEMA`, or of `bloom_filters.SCHEMA`, by metadata partition of the expression index.
    """

    keys: KeyChanges | None = None
    values: Mapping[str, KeyChanges] = field(default_factory=dict)
    bloom: tuple[str, str] | None = None
    expressions: Mapping[str, pa.Table] = field(default_factory=dict)


NO_CHANGE = FileFacts(keys=KeyChanges())
"""Of a file with the rows that its file group had before."""


def row_changes(
    before: pa.Table | None,
    after: pa.Table,
    wanted: WantedFacts,
    touched: Sequence[pa.StringArray] | None = None,
    same_keys: bool = False,
) -> FileFacts:
    """Facts about keys and values, from the rows of a file group before and after a write.

    Args:
        before: Rows with at least the record key and the indexed columns; None where there were none.
        after: The same of the rows from now on.
        wanted: What to gather.
        touched: Keys of the rows that may have changed, which are few beside those of the file; None for all.
        same_keys: The keys are known to be those of before.
    """
    if same_keys and not wanted.values:
        return FileFacts(KeyChanges() if wanted.keys else None)
    if touched is not None and before is not None and (wanted.keys or wanted.values):
        some = pa.concat_arrays([_no_texts(), *touched])
        columns = [KEY_COLUMN, *dict.fromkeys(column.partition(".")[0] for _, column, _ in wanted.values)]
        before, after = (_rows_of(rows, columns, some) for rows in (before, after))
    keys = None
    if wanted.keys:
        old = _no_texts() if before is None else single_array(before[KEY_COLUMN])
        keys = _difference(old, single_array(after[KEY_COLUMN]))
    values = {}
    for partition, column, with_nulls in wanted.values:
        old = _no_texts() if before is None else value_keys(before, column, with_nulls)
        values[partition] = _difference(old, value_keys(after, column, with_nulls))
    return FileFacts(keys, values)


def _rows_of(rows: pa.Table, columns: Sequence[str], keys: pa.StringArray) -> pa.Table:
    few = rows.select([name for name in columns if name in rows.column_names])
    return few.filter(pc.is_in(few[KEY_COLUMN], value_set=keys))


def value_keys(rows: pa.Table, column: str, with_nulls: bool) -> pa.StringArray:
    """The keys of a secondary index for some rows, one each; rows without a value are left out unless they are in it."""
    texts, keys = value_texts(rows, column), single_array(rows[KEY_COLUMN])
    if not with_nulls and texts.null_count:
        there = texts.is_valid()
        texts, keys = texts.filter(there), keys.filter(there)
    entries = secondary_keys(texts, keys).cast(pa.string())
    if len(entries) and pc.max(pc.binary_length(entries)).as_py() > MAX_KEY_BYTES:
        raise _endless(entries, keys, column)
    return entries


def refuse_long_values(rows: pa.Table, keys: pa.StringArray | None, wanted: WantedFacts) -> None:
    """Refuse values that no entry of a secondary index can hold, before a write begins.

    Args:
        rows: Data columns.
        keys: Their record keys; None when the table generates them.
        wanted: By the table's indexes.

    Raises:
        SchemaMismatch: A value that is too long.
    """
    for _, column, with_nulls in wanted.values:
        longest = pc.max(pc.binary_length(value_texts(rows, column))).as_py() or 0
        if longest > MAX_KEY_BYTES // 4:  # escaped, with a key as long, it may be too long
            named = pa.repeat(pa.scalar("", pa.string()), rows.num_rows) if keys is None else keys
            value_keys(rows.append_column(KEY_COLUMN, named), column, with_nulls)


def refuse_values_spelled_anew(change: SchemaChange, wanted: WantedFacts) -> None:
    """Refuse to widen a column of a secondary index where its values would be spelled anew, `1` as `1.0`.

    Entries of rows that are there keep the old text, under which nobody would look for them.

    Args:
        change: What a write would do.
        wanted: By the table's indexes.

    Raises:
        UnsupportedEvolution: With the column and its types.
    """
    indexes = {column: partition for partition, column, _ in wanted.values}
    for path, old, new in change.widened:
        if path in indexes and not (pa.types.is_integer(old) and (pa.types.is_integer(new) or is_text(new))):
            why = f"from {old} to {new} spells its values anew, and {indexes[path]} finds rows by that text"
            hint = f"Cast the column to {old} before writing, or drop the index: t.metadata.drop_index(…)."
            raise UnsupportedEvolution(path, why, hint)


def _endless(entries: pa.StringArray, keys: pa.StringArray, column: str) -> SchemaMismatch:
    sizes = pc.binary_length(entries)
    at = pc.index(pc.greater(sizes, MAX_KEY_BYTES), True).as_py()
    key = keys[at].as_py()
    shown = key if len(key) <= _SHOWN else f"{key[:_SHOWN]}…"
    return SchemaMismatch(
        column,
        f"a value that makes an entry of {sizes[at].as_py():,} bytes in its secondary index, in the row with the key {shown!r}",
        f"at most {MAX_KEY_BYTES:,} bytes for value and key together",
        "Use a shorter value, or drop the index: t.metadata.drop_index(…).",
    )


def value_texts(rows: pa.Table, column: str) -> pa.StringArray:
    """The values of a column as a secondary index spells them, see `texts_of_values`. A column that the rows lack is null."""
    if column_type(rows.schema, column) is None:
        return pa.nulls(rows.num_rows, pa.string())
    head, *rest = column.split(".")
    return texts_of_values(single_array(pc.struct_field(rows[head], rest) if rest else rows[head]))


def texts_of_values(values: pa.Array) -> pa.StringArray:
    """Values as a secondary index spells them: Java's texts of what Spark has in memory, which is what Apache Hudi looks up.

    A date is its day number, a moment its microseconds whatever the unit of the column, a float as Java writes it (`2.0`,
    `1.0E10`); null is null.
    """
    kind = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    elif pa.types.is_time64(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_floating(kind):
        from hudimeta.predicate import text_of_floats

        return text_of_floats(values)
    return values.cast(pa.string())


def _difference(before: pa.StringArray, after: pa.StringArray) -> KeyChanges:
    if not len(before):
        return KeyChanges(added=after)
    added = after.filter(pc.invert(pc.is_in(after, value_set=before)))
    removed = before.filter(pc.invert(pc.is_in(before, value_set=after)))
    return KeyChanges(added, removed)
