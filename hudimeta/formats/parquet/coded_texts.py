"""Texts of few values, which stand in a Parquet file as codes of a dictionary: Arrow reads these in a third of the time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

__all__ = ["coded_texts", "texts_of_codes"]

_CODE_BYTES = 2
"""A column whose values take no more than this on average has no texts but in its dictionary."""
_MOST_BYTES = (1 << 31) - 1
"""Of the texts of one Arrow array."""


def coded_texts(metadata: Any, columns: Collection[str]) -> list[str]:
    """The columns that stand in all row groups of a file as codes alone.

    Args:
        metadata: Pyarrow's `FileMetaData`.
        columns: Names of columns of texts; none of them lies in another column.
    """
    found, leaves = list[str](), metadata.schema
    for at in range(metadata.num_columns if columns and metadata.num_row_groups else 0):
        path = str(leaves.column(at).path)
        if path in columns and _is_coded(metadata, at):
            found.append(path)
    return found


def texts_of_codes(rows: pa.Table, most: int = _MOST_BYTES) -> pa.Table:
    """Rows whose texts may be codes, with texts; `most` bytes of them in one array."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            kind = field.type.value_type
            chunks = [texts for chunk in rows.column(at).chunks for texts in _texts(chunk, most)]
            rows = rows.set_column(at, field.with_type(kind), pa.chunked_array(chunks, kind))
    return rows


def _texts(codes: pa.DictionaryArray, most: int) -> Iterator[pa.Array]:
    import pyarrow.compute as pc

    longest = pc.max(pc.binary_length(codes.dictionary)).as_py() or 1
    step = max(1, most // longest)
    for first in range(0, len(codes), step):
        yield codes.slice(first, step).dictionary_decode()


def _is_coded(metadata: Any, at: int) -> bool:
    chunks = (metadata.row_group(group).column(at) for group in range(metadata.num_row_groups))
    return all(
        chunk.has_dictionary_page and chunk.total_uncompressed_size <= _CODE_BYTES * chunk.num_values for chunk in chunks
    )
