"""Tables and scans that are copied, or go to other processes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta

COPIES: tuple[Callable[[Any], Any], ...] = (lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy)
SCANS: tuple[dict[str, Any], ...] = (
    {"where": "v > 3"},
    {"where": pc.field("v") > 3},
    {"as_of": "2099-01-01"},
    {"query_type": "read_optimized"},
    {"query_type": "incremental", "begin": "earliest"},
    {"query_type": "incremental", "begin": "earliest", "end": "2099-01-01"},
    {"query_type": "cdc", "begin": "earliest"},
    {"limit": 3},
)


def rows(name: str, n: int) -> pa.Table:
    return pa.table({"id": [f"{name}{i}" for i in range(n)], "month": ["01", "02"] * (n // 2), "v": list(range(n))})


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudimeta.Table:
    options = {"hoodie.table.cdc.enabled": True, "hoodie.datasource.write.operation": "upsert"}
    made = hudimeta.Table.create(
        tmp_path / "t", rows("a", 2).schema, key="id", partition_by="month", type=request.param, options=options
    )
    made.upsert(rows("a", 10))
    return made


@pytest.mark.parametrize("copied", COPIES)
def test_a_table_that_was_read_and_written_is_opened_where_it_arrives(
    table: hudimeta.Table, copied: Callable[[hudimeta.Table], hudimeta.Table]
) -> None:
    assert table.scan("v > 3").count() == 6  # which reads the metadata table
    there = copied(table)
    assert (repr(there), there.scan().count()) == (repr(table), 10)
    there.upsert(rows("b", 2))
    assert table.scan().count() == there.scan().count() == 12


@pytest.mark.parametrize("copied", COPIES)
def test_a_scan_shows_the_same_moment_wherever_it_is_read(
    table: hudimeta.Table, copied: Callable[[hudimeta.Scan], hudimeta.Scan]
) -> None:
    scans = [table.scan(**asked) for asked in SCANS]
    found = [scan.to_table().num_rows for scan in scans]
    fresh = table.scan("v > 3")
    table.upsert(rows("b", 10))
    assert [copied(scan).to_table().num_rows for scan in scans] == found
    assert copied(fresh).count() == 12, "the moment of a scan that was not used yet is not settled"


def test_a_scan_of_an_empty_table_stays_empty(tmp_path: Path) -> None:
    table = hudimeta.Table.create(tmp_path / "t", rows("a", 2).schema, key="id")
    scans = [table.scan(), table.scan(query_type="incremental", begin="earliest")]
    assert [scan.count() for scan in scans] == [0, 0]
    table.upsert(rows("a", 2))
    assert [pickle.loads(pickle.dumps(scan)).to_table().num_rows for scan in scans] == [0, 0]


def test_a_range_that_an_option_ends_keeps_its_end(table: hudimeta.Table) -> None:
    ended = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.end.instanttime": "2020-01-01"}
    scan = hudimeta.Table(table.path, ended).scan(begin="earliest")
    assert scan.count() == 0
    assert pickle.loads(pickle.dumps(scan)).count() == 0
