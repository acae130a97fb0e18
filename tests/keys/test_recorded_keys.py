"""Record keys and partition paths, computed anew from the data columns of every table that Apache Hudi wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.formats.properties import decode_properties
from hudimeta.keys import KeyGenerator, PartitionLayout
from tests.recorded_tables import CONFORMANCE, RICH

PARTITION_OF_SOURCE = {"bootstrap_full"}
"""Its source files had the partition column only in their path; Apache Hudi left the column empty in the rows it took over."""

EMPTY = {"cow__v6_empty", "cow__v8_empty"}

checked: dict[str, int] = {}


def generator_of(base: Path, name: str) -> KeyGenerator:
    properties = dict(decode_properties((base / ".hoodie" / "hoodie.properties").read_bytes()))
    if name in RICH.names():
        options = RICH.answer(name)["write_options"]
        properties |= {k: v for k, v in options.items() if k.startswith("hoodie.keygen.timebased.")}
    return KeyGenerator.from_properties(properties)


def base_files(base: Path) -> list[Path]:
    return [f for f in sorted(base.rglob("*.parquet")) if ".hoodie" not in f.relative_to(base).parts]


def check(base: Path, name: str) -> int:
    keys = generator_of(base, name)
    rows = 0
    for path in base_files(base):
        table = pq.ParquetFile(path).read()
        folder = path.parent.relative_to(base).as_posix().removeprefix(".")
        if not table.num_rows or not set(keys.record_fields) <= set(table.column_names):
            continue  # empty, or the skeleton of a bootstrapped file, which has no data columns
        stored = table["_hoodie_record_key"].combine_chunks()
        if not stored.null_count and not keys.generates_keys:
            keys = keys.learned_from(table)
            assert keys.record_keys(table).equals(stored), path
        if name not in PARTITION_OF_SOURCE and partition_columns_as_typed(keys, table):
            paths = keys.partition_paths(table)
            assert set(paths.to_pylist()) == {folder}, path
        rows += table.num_rows
    return rows


def partition_columns_as_typed(keys: KeyGenerator, table: pa.Table) -> bool:
    """False for tables that drop the columns, and where an UPDATE turned a column of epoch numbers into text."""
    for field in keys.partitions:
        if field.name not in table.column_names:
            return False
        if field.time is not None and field.time.unit and pa.types.is_string(table.schema.field(field.name).type):
            return False
    return True


@pytest.mark.parametrize("name", CONFORMANCE.names())
def test_conformance_tables(name, conformance_table):
    checked[name] = check(conformance_table(name), name)
    assert checked[name] or name in EMPTY


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", RICH.names())
def test_rich_tables(name, rich_table):
    checked[name] = check(rich_table(name), name)
    assert checked[name]


def test_how_many_tables_were_recomputed(shared, capsys):
    """Runs last in this file; with a selection of tests it says how many of those there were."""
    with capsys.disabled():
        print(f"\nkeys recomputed in {sum(map(bool, checked.values()))} tables, {sum(checked.values())} rows")


@pytest.mark.parametrize("name", ["odd_partitions", "multi_level_typed", "drop_partition_cols", "time_keygen_datestring"])
def test_partition_values_come_back_from_the_folders(name, rich_table):
    base = rich_table(name)
    properties = decode_properties((base / ".hoodie" / "hoodie.properties").read_bytes())
    layout = PartitionLayout.from_properties(properties)
    for path in base_files(base):
        folder = path.parent.relative_to(base).as_posix()
        table = pq.ParquetFile(path).read()
        values = layout.values(pa.array([folder]), table.schema).to_pylist()[0]
        if name == "drop_partition_cols":
            assert values == {"region": folder.removeprefix("region=")}
        elif name == "time_keygen_datestring":
            assert values == {}, "a folder that renders a time is not the column's value"
        else:
            assert table.select(list(values)).to_pylist() == [values] * table.num_rows
