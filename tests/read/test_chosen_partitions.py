"""Reads that are limited to partitions: all kinds of query, with and without predicates and indexes; writes see all."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.config import HudiWarning
from hudimeta.errors import ConfigError
from hudimeta.read.scan import Scan
from hudimeta.testing.builders import simple_rows


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudimeta.Table:
    """Ids 0 to 8 in three partitions, of which 0 to 2 were updated."""
    rows = simple_rows(range(9), 1, partitions=3)
    made = hudimeta.Table.create(
        tmp_path / "t",
        rows.schema,
        key="id",
        partition_by="part",
        ordering="ts",
        type=request.param,
        indexes=["column_stats", "record_index"],
        options={"hoodie.table.cdc.enabled": "true"},
    )
    made.insert(rows)
    made.upsert(simple_rows(range(3), 2, partitions=3))
    return made


def in_partition(scan: Scan) -> list[str]:
    return sorted(set(scan.to_table()["part"].to_pylist()))


def test_every_kind_of_read_is_limited(table: hudimeta.Table) -> None:
    first, second, _ = sorted(set(table.scan().to_table()["part"].to_pylist()))
    limited = hudimeta.Table(table.path, {"hudimeta.partitions": first})
    assert in_partition(limited.scan()) == in_partition(limited.scan("x >= 0")) == [first]
    assert limited.scan().count() == limited.scan("x >= 0").count() == 3
    assert limited.scan(query_type="read_optimized").count() == 3
    assert limited.scan().plan().report.partitions == 1
    begin = table.timeline.writes[0].completed_at
    changed = limited.scan(query_type="incremental", begin=begin)
    assert in_partition(changed) == [first]
    assert changed.count() == 1
    assert limited.scan(query_type="cdc", begin=begin).to_table().num_rows == 1
    both = hudimeta.Table(table.path, {"hudimeta.partitions": f"{first},{second}"})
    assert in_partition(both.scan()) == [first, second]
    every_key = f"id in ({', '.join(repr(i) for i in table.scan().to_table()['id'].to_pylist())})"
    assert in_partition(both.scan(every_key)) == [first, second], "asked of the record index"


def test_a_partition_that_is_not_there_is_named_with_those_that_are(table: hudimeta.Table) -> None:
    with pytest.raises(ConfigError, match=r"allowed is the path of a partition of .*there are '"):
        hudimeta.Table(table.path, {"hudimeta.partitions": "nothing"}).scan().to_table()


def versions(table: hudimeta.Table) -> dict[str, int]:
    """Each key with its `ts`."""
    found = hudimeta.Table(table.path).scan().to_table()
    assert found.num_rows == len(set(found["id"].to_pylist())), "no key is doubled"
    return dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


def test_a_write_by_a_limited_table_finds_rows_everywhere(table: hudimeta.Table) -> None:
    limited = hudimeta.Table(table.path, {"hudimeta.partitions": "p0"})
    with pytest.warns(HudiWarning, match=r"opened with hudimeta\.partitions: writes pass over"):
        limited.upsert(simple_rows(range(9), 3, partitions=3))
    assert versions(table) == {f"k{n:04d}": 3 for n in range(9)}
    limited.update({"ts": 4}, where="id in ('k0000', 'k0001')")
    assert versions(table) == {f"k{n:04d}": 4 if n < 2 else 3 for n in range(9)}
    limited.delete(where="ts = 4")
    assert sorted(versions(table)) == [f"k{n:04d}" for n in range(2, 9)]


def test_a_merge_into_a_limited_table_overwrites_no_row_that_it_only_does_not_read(table: hudimeta.Table) -> None:
    before = versions(table)
    limited = hudimeta.Table(table.path, {"hudimeta.partitions": "p0"})
    rows = simple_rows([1, 9], 7, partitions=3)
    with pytest.warns(HudiWarning, match=r"opened with hudimeta\.partitions"):
        limited.merge(rows, ["id", "part"]).when_not_matched_insert().execute()
    assert versions(table) == {**before, "k0009": 7}
    limited.merge(rows, ["id", "part"]).when_matched_delete().when_not_matched_insert().execute()
    del before["k0001"]
    assert versions(table) == before
