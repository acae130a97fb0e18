"""The record key: one text per row, made of one field or of several.

==============  ===========================  ===============================================================
fields          text                         null and empty values
==============  ===========================  ===============================================================
one             the value                    refused
one, prefixed   `field:value`                refused (COMPLEX in some releases, see `KeyGenerator`)
several         `f1:v1,f2:v2`                `__null__`, `__empty__`; refused when all are null or empty
none            `<instant>_<task>_<row>`     generated
==============  ===========================  ===============================================================

Nothing is escaped: a value may hold `:` and `,`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudimeta.errors import SchemaMismatch
from hudimeta.formats.hfile import MAX_KEY_BYTES
from hudimeta.keys.columns import Rows, first_row, text_column
from hudimeta.keys.meta_fields import sequence_numbers

__all__ = ["EMPTY_PLACEHOLDER", "NULL_PLACEHOLDER", "composite_keys", "generated_keys", "plain_keys"]

NULL_PLACEHOLDER = "__null__"
EMPTY_PLACEHOLDER = "__empty__"
PURPOSE = "record key"


def plain_keys(rows: Rows, field: str, consistent_timestamp: bool = False) -> pa.StringArray:
    """Keys of one field, the value alone.

    Raises:
        SchemaMismatch: The column is missing or of a nested type, or a value is null, empty or endless; the text names the
            first row.
    """
    import pyarrow.compute as pc

    keys = text_column(rows, field, PURPOSE, consistent_timestamp)
    if not len(keys):
        return keys
    shortest, longest = pc.min_max(pc.binary_length(keys)).as_py().values()
    if (longest or 0) > MAX_KEY_BYTES:
        raise _long_key(keys, field)
    if keys.null_count or not shortest:
        row = first_row(pc.equal(pc.fill_null(keys, ""), ""))
        raise _bad_key(field, row)
    return keys


def composite_keys(rows: Rows, fields: Sequence[str], consistent_timestamp: bool = False) -> pa.StringArray:
    """Keys of the form `f1:v1,f2:v2` (one field gives `f1:v1`).

    Raises:
        SchemaMismatch: A column is missing or nested, or a row has nothing but null and empty values, or endless ones.
    """
    import pyarrow.compute as pc

    parts = []
    nothing = None
    for field in fields:
        text = text_column(rows, field, PURPOSE, consistent_timestamp)
        empty = pc.equal(text, "")
        blank = pc.fill_null(empty, True)
        nothing = blank if nothing is None else pc.and_(nothing, blank)
        shown = pc.fill_null(pc.if_else(empty, EMPTY_PLACEHOLDER, text), NULL_PLACEHOLDER)
        parts.append(pc.binary_join_element_wise(field, shown, ":"))
    row = first_row(nothing)
    if row is not None:
        raise _bad_key(", ".join(fields), row)
    keys = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ",")
    if len(keys) and pc.max(pc.binary_length(keys)).as_py() > MAX_KEY_BYTES:
        raise _long_key(keys, ", ".join(fields))
    return keys


def generated_keys(count: int, instant: str, task: int, first: int = 0) -> pa.StringArray:
    """Keys of a table without key fields: `<instant>_<task>_<row>`, rows counted from `first`; spelled as sequence numbers."""
    return sequence_numbers(instant, task, count, first)


def _long_key(keys: pa.Array, field: str) -> SchemaMismatch:
    import pyarrow.compute as pc

    sizes = pc.binary_length(keys)
    row = first_row(pc.greater(sizes, MAX_KEY_BYTES))
    found = f"a record key of {pc.max(sizes).as_py():,} bytes in row {row}"
    return SchemaMismatch(field, found, f"at most {MAX_KEY_BYTES:,} bytes, as indexes hold them", "Use a shorter key.")


def _bad_key(field: str, row: int | None) -> SchemaMismatch:
    return SchemaMismatch(
        field,
        f"null or empty in row {row}",
        "a record key in every row",
        "Fill the column or filter such rows before writing, or use another record key field.",
    )
