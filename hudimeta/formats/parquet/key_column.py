"""The record keys of a base file, unless its footer shows that none of the wanted ones is there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudimeta.errors import CorruptFileError
from hudimeta.formats.parquet.footer import read_footer
from hudimeta.formats.parquet.page_counts import check_counts
from hudimeta.formats.plain_arrays import scalar_of, single_array

__all__ = ["read_key_column"]


def read_key_column(
    source: bytes | Any, column: str, wanted: pa.Array | None = None, path: str = "", size: int = 0
) -> pa.StringArray | None:
    """Read one column of texts.

    Args:
        source: The file's bytes, or a seekable file; the caller closes it.
        column: Name of the key column.
        wanted: Keys that are looked for; None reads in any case.
        path: For errors, and because a footer of ours knows the file's name.
        size: Bytes that the file should have; 0 when nobody says.

    Returns:
        The column's values; None when the key range or the bloom filter of the footer excludes every wanted key. A file
        without those entries is read.

    Raises:
        CorruptFileError: No Parquet file, or one without the column.
    """
    import pyarrow.parquet as pq

    file = pa.BufferReader(source) if isinstance(source, (bytes, bytearray, memoryview)) else source
    footer = read_footer(file, path, size)
    if column not in footer.arrow_schema.names:
        raise CorruptFileError(path, 0, f"the column {column}", f"the columns {footer.arrow_schema.names[:8]}")
    if wanted is not None and not _may_hold(footer, wanted):
        return None
    try:
        with pq.ParquetFile(file, metadata=footer.metadata, page_checksum_verification=True) as parquet:
            values = parquet.read([column])[column]
            check_counts(file, footer.metadata, range(footer.metadata.num_row_groups), [footer.leaf_paths.index(column)], path)
    except (pa.ArrowException, OSError) as error:
        raise CorruptFileError(path, 0, f"pages of the column {column}", str(error).splitlines()[0]) from error
    if len(values) != footer.num_rows:
        raise CorruptFileError(path, 0, f"{footer.num_rows} values of the column {column}", len(values))
    return single_array(values.cast(pa.string()))


def _may_hold(footer: Any, wanted: pa.Array) -> bool:
    import pyarrow.compute as pc

    if footer.min_key is not None and footer.max_key is not None:
        inside = pc.and_(pc.greater_equal(wanted, scalar_of(footer.min_key)), pc.less_equal(wanted, scalar_of(footer.max_key)))
        wanted = wanted.filter(inside)
    if not len(wanted):
        return False
    return footer.bloom is None or bool(footer.bloom.might_contain_any(wanted))
