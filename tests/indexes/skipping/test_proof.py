"""What the newest state of an index may be asked, and when it is too new."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.indexes.proof import runs_ahead


@pytest.mark.parametrize(("commits_to_compaction", "ahead"), [("1", True), ("10", False)])
def test_a_pending_write_that_the_metadata_table_has_folded_in_is_too_new(
    tmp_path: Path, commits_to_compaction: str, ahead: bool
) -> None:
    """Its records can be told from others' while they lie in log files, but not in a base file."""
    schema = pa.schema([("id", pa.string())])
    options = {"hoodie.metadata.compact.max.delta.commits": commits_to_compaction}
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", options=options)
    for key in "abc":
        table.bulk_insert(pa.table([[key]], schema=schema))
    opened = hudimeta.Table(tmp_path / "t")
    assert not runs_ahead(opened.snapshot().metadata)
    second = opened.timeline.writes[1]
    (tmp_path / "t" / ".hoodie" / "timeline" / second.file_name).unlink()
    assert runs_ahead(hudimeta.Table(tmp_path / "t").snapshot().metadata) is ahead
