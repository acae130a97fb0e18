"""A slice is its base file without the rows that the overlay replaces, and the overlay's rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.slices.overlay import OverlayReader
from hudimeta.snapshot.file_slice import slices_of

TABLES = [
    "all_types_mor",
    "alter_rename_mor",
    "bucket_logs_only",
    "commit_order_mor",
    "delete_marker_mor",
    "deletes_mor",
    "dms_payload_mor8",
    "event_late_mor",
    "first_event_custom_mor",
    "hfile_blocks",
    "multi_order_mor",
    "nbcc_bucket",
    "non_defaults_mor8",
    "parquet_blocks",
    "partial_merge_mor",
    "partial_payload_mor9",
    "rolled_back_mor",
]


def by_overlay(table: hudimeta.Table) -> tuple[pa.Table, int]:
    """All rows, of base files by position and of overlays; and how many base rows were replaced."""
    scan = table.scan()
    base_only = table.scan(query_type="read_optimized")
    storage = table.snapshot().storage
    overlays, bases = OverlayReader(scan.task, storage), OverlayReader(base_only.task, storage)
    pieces, replaced = [scan.schema.empty_table()], 0
    for file_slice in slices_of(scan.plan().slices):
        base = pa.concat_tables([scan.schema.empty_table(), *bases.tables(file_slice)])
        if not file_slice.log_files:
            pieces.append(base)
            continue
        overlay = overlays.overlay(file_slice)
        assert overlay is not None
        assert np.all(np.diff(overlay.replaced) > 0), "positions are ascending, each once"
        keep = np.ones(base.num_rows, bool)
        keep[overlay.replaced] = False
        pieces += [base.filter(pa.array(keep)), overlay.rows]
        replaced += len(overlay.replaced)
    return pa.concat_tables(pieces), replaced


def shown(rows: pa.Table) -> list[str]:
    """Rows in an order that does not matter."""
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("name", TABLES)
def test_an_overlay_beside_its_base_file_is_the_merged_slice(rich_table: Callable[[str], Path], name: str) -> None:
    table = hudimeta.Table(rich_table(name))
    found, _ = by_overlay(table)
    assert shown(found) == shown(table.scan().to_table())


def test_rows_that_lose_against_their_base_row_replace_nothing(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3, 4], "ts": [5, 5, 5, 5], "x": ["a", "b", "c", "d"]})
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", ordering="ts", type="MERGE_ON_READ")
    table.insert(rows)
    table.upsert(pa.table({"id": [1, 2], "ts": [4, 6], "x": ["late", "new"]}))
    table.delete(pa.table({"id": [3], "ts": [9]}))
    found, replaced = by_overlay(table)
    assert replaced == 2, "the update of 2 and the delete of 3"
    assert sorted(found.column("x").to_pylist()) == ["a", "d", "new"]
