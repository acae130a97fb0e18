"""Every partition that holds rows has statistics, or readers of Apache Hudi pass over it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.testing.builders import simple_rows


def partitions(table: hudimeta.Table, column: str) -> set[str]:
    found = table.metadata.records("partition_stats")
    return set(found.filter(pc.equal(found["column_name"], column))["file_name"].to_pylist())


@pytest.mark.parametrize("verb", ["insert", "upsert", "bulk_insert"])
def test_a_partition_that_was_deleted_and_is_filled_again_has_statistics(rich_table: Callable[..., Path], verb: str) -> None:
    """Hudi 1.2.0 deleted partition eu: it takes the statistics away, and lists the partition until its files are cleaned."""
    table = hudimeta.Table(rich_table("deleted_partition_cow8", fresh=True))
    assert partitions(table, "val") == {"us"}
    columns = pa.schema([field for field in table.schema if not field.name.startswith("_hoodie_")])
    getattr(table, verb)(pa.Table.from_pylist([{"id": "z", "region": "eu", "val": 9, "ts": 3}], columns))
    table = hudimeta.Table(table.path, {"hudimeta.index.use": "partition_stats", "hudimeta.index.trust": "true"})
    assert partitions(table, "val") == {"eu", "us"}
    assert table.scan(where="val = 9").to_table()["id"].to_pylist() == ["z"]
    table.metadata.validate().raise_if_differs()


def test_partition_statistics_that_are_built_over_log_files_leave_no_partition_out(tmp_path: Path) -> None:
    options = {"hoodie.metadata.index.partition.stats.enable": "false"}
    rows = simple_rows(range(6), 1)
    table = hudimeta.Table.create(
        tmp_path / "t", rows.schema, "id", "part", "ts", type="MERGE_ON_READ", indexes=["column_stats"], options=options
    )
    table.insert(rows)
    table.upsert(simple_rows([0], 2, 70.0))
    table.metadata.create_index(type="partition_stats")
    assert partitions(table, "x") == partitions(table, "ts") == partitions(table, "id") == {"p0", "p1"}
    table = hudimeta.Table(tmp_path / "t", {"hudimeta.index.use": "partition_stats"})
    for where in ("x = 70", "id = 'k0000'", "ts = 2", "x IS NOT NULL AND ts > 1"):
        assert table.scan(where=where).to_table()["id"].to_pylist() == ["k0000"], where
    table.metadata.validate().raise_if_differs()


@pytest.mark.parametrize(("digits", "scale"), [(9, 4), (28, 15), (30, 15)])
def test_decimals_of_every_length_have_statistics(digits: int, scale: int, tmp_path: Path) -> None:
    """The widest bounds of a long decimal have more digits than Python's decimals keep when they are negated."""
    kind = pa.decimal128(digits, scale)
    most = Decimal(10**digits - 1).scaleb(-scale, Context(prec=40))
    rows = pa.table({"id": ["a", "b"], "part": ["p", "q"], "d": pa.array([most, most.copy_negate()], kind)})
    indexes = ["column_stats", "partition_stats"]
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id", partition_by="part", indexes=indexes)
    table.insert(rows)
    assert partitions(table, "d") == {"p", "q"}
    table.delete(pa.table({"id": ["b"], "part": ["q"]}))
    assert table.scan(where="d > 0").to_table()["d"].to_pylist() == [most]
    table.metadata.validate().raise_if_differs()


def test_a_partition_without_statistics_is_found_by_validation(rich_table: Callable[..., Path]) -> None:
    table = hudimeta.Table(rich_table("forgotten_partition_cow8"))
    report = table.metadata.validate()
    assert not report.holds
    assert "partitions without a record" in str(report.differences["partition_stats"])
    assert "eu" in str(report)
