"""What users hand over as rows and that is none: errors that say how it becomes some."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from hudimeta.errors import SchemaMismatch

__all__ = ["not_rows"]

_ROWS = "an Arrow table, batch or reader, a pandas or Polars frame, a dict of columns or a list of dicts"
_DATACLASS, _NAMED_TUPLE = "Give [dataclasses.asdict(row) for row in rows].", "Give [row._asdict() for row in rows]."
_BATCHES = "Give pyarrow.RecordBatchReader.from_batches(schema, batches)."


def not_rows(data: Any) -> SchemaMismatch:
    """The error for something of another kind than rows."""
    found = type(data).__name__
    if isinstance(data, (list, tuple)):
        odd = next((at for at, row in enumerate(data) if not isinstance(row, dict)), None)
        found += "" if odd is None else f" whose element {odd} is {type(data[odd]).__name__}"
    return SchemaMismatch("*", found, _ROWS, _way_out(data) or "Convert the rows to one of these.")


def _way_out(data: Any) -> str:
    module, name = type(data).__module__.partition(".")[0], type(data).__name__
    if isinstance(data, (str, PathLike)):
        return "If it is the path of a file, read that first, such as by pyarrow.parquet.read_table(path)."
    if module == "hudimeta" and hasattr(data, "scan"):
        return "Give the rows of that table: table.scan()."
    if module == "pyspark":
        return "Write it through pyspark_hudimeta.HudiTable(spark, path), or give df.toArrow()."
    if module == "pyarrow" and hasattr(data, "scanner"):
        return "Give dataset.scanner().to_reader()."
    if name == "Series":
        return "Give series.to_frame()."
    if name == "ndarray":
        return "Give pandas.DataFrame(array, columns=…)."
    if dataclasses.is_dataclass(data):
        return _DATACLASS
    if isinstance(data, Iterator):
        return f"Give a list of dicts; of batches of Arrow: {_BATCHES[5:]}"
    return _of_elements(data) if isinstance(data, Sequence) else ""


def _of_elements(rows: Sequence[Any]) -> str:
    first = rows[0] if len(rows) else None
    if isinstance(first, pa.Table):
        return "Give pyarrow.concat_tables(tables)."
    if isinstance(first, pa.RecordBatch):
        return _BATCHES
    if isinstance(first, tuple) and hasattr(first, "_asdict"):
        return _NAMED_TUPLE
    return _DATACLASS if dataclasses.is_dataclass(first) else ""
