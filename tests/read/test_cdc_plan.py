"""From which files the changes of a commit are told."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.errors import TableError
from hudimeta.testing.builders import simple_rows

ONE_VERSION = {
    "hoodie.clean.automatic": "false",
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("keeps", [False, True], ids=["savepoint deleted", "savepoint kept"])
def test_what_a_savepoint_kept_of_a_replaced_group_is_not_what_was_replaced(tmp_path: Path, kind: str, keeps: bool) -> None:
    """Its newest slice is cleaned, and an older one left: rows would be told as deleted that were not there any more."""
    options = {"hoodie.table.cdc.enabled": "true", **ONE_VERSION}
    rows = simple_rows([0, 2], 1)
    table = hudimeta.Table.create(
        tmp_path / "t", rows.schema, key="id", partition_by="part", ordering="ts", type=kind, options=options
    )
    first = table.upsert(rows)
    table.savepoint(first.instant)
    table.delete(simple_rows([0], 2))
    if kind == "MERGE_ON_READ":
        table.compact()
    before = table.timeline.writes[-1].completed_at
    table.delete_partition("p0")
    changes = table.scan(query_type="cdc", begin=before).to_table()
    assert changes.column("op").to_pylist() == ["d"]
    table.upsert(simple_rows([1], 2))
    table.clean()
    if not keeps:
        table.delete_savepoint(first.instant)
    with pytest.raises(TableError, match=r"cannot be known: cleaning has removed the file group .*, which it replaced"):
        table.scan(query_type="cdc", begin=before).to_table()
