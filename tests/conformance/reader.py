"""hudimeta's engine as a reader that the recorded answers can judge, here one by one or from the command line.

For example::

    python ../shared/interop/check.py --set ../shared/interop/tables --reader tests.conformance.reader:read --only mdt_
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import hudimeta

SLICE_COLUMNS = {"partition_path": "partition"}
"""Where the recorded answers name a column of file slices otherwise than `Table.file_slices` does."""


def read(path: str, kind: str, options: dict[str, Any]) -> pa.Table:
    """Rows of one query.

    Args:
        path: The table.
        kind: snapshot, read_optimized, as_of, incremental, cdc, filter or file_slices.
        options: `instant`, `start` and `end`, or `where`, as the kind needs; `record` is what is known of the table.
    """
    given = dict((options.get("record") or {}).get("read_options") or {})
    # Recorded ranges reach into archived timelines, of which Apache Hudi answers what the table still has.
    table = hudimeta.Table(path, options={"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true", **given})
    if kind == "file_slices":
        slices = table.file_slices(as_of=options.get("instant"))
        return slices.rename_columns([SLICE_COLUMNS.get(name, name) for name in slices.column_names])
    return scan(table, kind, options).to_table()


def scan(table: Any, kind: str, options: dict[str, Any]) -> Any:
    """The scan of one query, not yet run. Raises NotImplementedError for a kind that there is not."""
    if kind == "snapshot":
        return table.scan()
    if kind in ("read_optimized", "incremental", "cdc"):
        return table.scan(query_type=kind, begin=options.get("start"), end=options.get("end"))
    if kind == "as_of":
        return table.scan(as_of=options["instant"])
    if kind == "filter":
        return table.scan(where=options["where"])
    raise NotImplementedError(kind)
