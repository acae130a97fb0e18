"""The harness itself: what Apache Hudi answers here is what was recorded from it, and its validator sees damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache_hudi import ApacheHudi, HudiFailed
from tests.recorded_tables import RICH


def test_it_reads_a_recorded_table_as_recorded(hudi: ApacheHudi, rich_table: Callable[..., Path]) -> None:
    path, recorded = rich_table("mdt_all_v8", fresh=True), RICH.answer("mdt_all_v8")
    assert hudi.read(path).table.num_rows == len(recorded["snapshot"]["rows"])
    query = recorded["filters"][0]
    found = hudi.read(path, where=query["where"])
    assert (found.table.num_rows, found.files_read) == (query["n_rows"], len(query["files_read"]))
    assert hudi.read(path, where=query["where"], metadata=False).files_read > found.files_read


def test_its_validator_agrees_with_its_own_table(hudi: ApacheHudi, rich_table: Callable[..., Path]) -> None:
    compared = hudi.validate(rich_table("mdt_all_v8", fresh=True))
    assert {"files", "rows", "column_stats", "bloom_filters", "record_index"} <= set(compared)
    assert all(compared.values())


def test_its_validator_sees_a_file_that_the_metadata_table_does_not_know(
    hudi: ApacheHudi, rich_table: Callable[..., Path]
) -> None:
    path = rich_table("mdt_all_v8", fresh=True)
    known = next(p for p in path.rglob("*.parquet") if ".hoodie" not in p.parts)
    known.with_name("stranger_0-0-0_20200101000000000.parquet").write_bytes(known.read_bytes())
    with pytest.raises(AssertionError, match="only in storage"):
        hudi.validate(path)


def test_its_failures_arrive_as_text_and_leave_it_alive(hudi: ApacheHudi, tmp_path: Path) -> None:
    with pytest.raises(HudiFailed, match="FileNotFoundException"):
        hudi.read(tmp_path / "nothing")
    assert hudi.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]
