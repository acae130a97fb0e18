"""Indexes that are made after a session has read the table's properties, and before its write or service has an instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.services import clustering, compaction, log_compaction
from hudimeta.services.indexing import create_beside, create_index
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows

GIVEN = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.log.compaction.blocks.threshold": "2",
}
KINDS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "column_stats": [{"kind": "column_stats"}],
    "partition_stats": [{"kind": "column_stats"}, {"kind": "partition_stats"}],
    "bloom_filters": [{"kind": "bloom_filters"}],
    "secondary_index_by_ts": [{"kind": "secondary_index", "name": "by_ts", "columns": ["ts"]}],
    "expr_index_up": [{"kind": "column_stats", "name": "up", "columns": ["id"], "expression": "upper"}],
    "expr_index_low": [{"kind": "bloom_filters", "name": "low", "columns": ["id"], "expression": "lower"}],
}
ROWS = simple_rows([2, 3, 70, 71], 90)
ACTS: Mapping[str, Callable[[WriteSession], object]] = {
    "upsert": lambda session: write_rows(session, Operation.UPSERT, ROWS),
    "insert": lambda session: write_rows(session, Operation.INSERT, ROWS.slice(2)),
    "insert_overwrite": lambda session: write_rows(session, Operation.INSERT_OVERWRITE, ROWS),
    "compaction": compaction.compact,
    "log compaction": log_compaction.log_compact,
    "clustering": clustering.cluster,
}
MAKING: Mapping[str, Callable[..., object]] = {"under the lock": create_index, "beside writers": create_beside}


@pytest.mark.rotation(3)
@pytest.mark.parametrize("making", MAKING)
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("name", KINDS)
def test_it_hears_of_the_files(tmp_path: Path, name: str, act: str, making: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), GIVEN)
    for number in range(3):
        table.write(Operation.UPSERT, simple_rows(range(number, number + 8), number + 1))
    session = table.session()
    for asked in KINDS[name]:
        MAKING[making](table.session(), **asked)
    ACTS[act](session)
    rows = ROWS.slice(2) if act == "insert" else ROWS
    if act in ("upsert", "insert", "insert_overwrite"):
        table.model.write(Operation(act.upper()), rows)
    assert name in Table(table.path).properties.metadata_partitions
    Table(table.path).metadata.validate().raise_if_differs()
    check_all(table.storage)
    for where in ("ts = 90", "id = 'k0070'", "upper(id) = 'K0070'", "lower(id) = 'k0002'", "x > 50"):
        found = Table(table.path).scan(where).to_table().num_rows
        plain = Table(table.path, {"hoodie.metadata.enable": "false"}).scan(where).to_table().num_rows
        assert found == plain, where
    table.model.check(table.read())
