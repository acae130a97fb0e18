"""Rows of a table as another engine reads them: hudi-rs, Apache Hudi's own library in Rust."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["read_with_hudi_rs"]


def read_with_hudi_rs(path: str, as_of: str | None = None) -> pa.Table:
    """All rows, of now or as of an instant."""
    import hudi

    options = hudi.HudiReadOptions()
    if as_of is not None:
        options = options.with_as_of_timestamp(as_of)
    batches = hudi.HudiTableBuilder.from_base_uri(path).build().read(options)
    return pa.Table.from_batches(batches)
