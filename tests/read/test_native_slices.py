"""Which slices a plain Parquet reader reads as the table shows them, and which it must not be given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.read.native_files import foreign_instants
from hudimeta.read.native_slices import native_slices
from tests.recorded_tables import RICH
from tests.spark.tables import create, rows


def parts(table: hudimeta.Table) -> tuple[int, int, tuple[str, ...]]:
    """How many slices are native, how many are not, and why."""
    found = native_slices(table.snapshot(), table.file_slices(), table.schema.names)
    return found.native.num_rows, found.others.num_rows, found.reasons


def test_slices_without_logs_are_native(tmp_path: Path) -> None:
    table = create(tmp_path / "t", type="MERGE_ON_READ")
    assert parts(table) == (5, 0, ())
    table.upsert(rows([1], ts=2))
    assert parts(table) == (4, 1, ("log files to merge: 1 slices",))
    table.compact()
    assert parts(table) == (5, 0, ())


def test_columns_that_came_later_or_grew_wider_are_native(tmp_path: Path) -> None:
    columns = [("id", pa.int64()), ("part", pa.string()), ("ts", pa.int32()), ("x", pa.float64())]
    table = create(tmp_path / "t", rows(range(10)).cast(pa.schema(columns)))
    table.upsert(rows([1], ts=2).append_column("n", pa.array([5], pa.int32())))
    table.upsert(rows([2], ts=3).append_column("n", pa.array([6], pa.int64())))
    assert parts(table) == (5, 0, ())


@pytest.mark.parametrize("later", [pa.string(), pa.float32()])
def test_files_before_a_change_of_type_are_foreign_even_where_the_column_came_later(tmp_path: Path, later: pa.DataType) -> None:
    table = create(tmp_path / "t", options={"hudimeta.schema.widen": "any"})
    table.upsert(rows([1], ts=2).append_column("n", pa.array([5], pa.int32())))
    table.upsert(rows([2], ts=3).append_column("n", pa.array([6], pa.int32())))
    narrow = [instant.time for instant in table.timeline.writes[1:]]
    table.upsert(rows([3], ts=4).append_column("n", pa.array([7], pa.int32()).cast(later)))
    assert foreign_instants(table.snapshot()) == set(narrow)
    native, others, (reason,) = parts(table)
    assert (native, others) == (3, 2)
    assert reason.startswith("columns that were renamed or changed their type")
    fresh = table.file_slices().filter(pc.invert(pc.is_in(table.file_slices()["base_instant"], pa.array(narrow))))
    assert native_slices(table.snapshot(), fresh, table.schema.names).reasons == (), "a reason is one for some slice"


@pytest.mark.rotation(5)
@pytest.mark.parametrize("name", RICH.names())
def test_a_parquet_reader_shows_what_the_engine_shows(rich_table: Callable[[str], Path], name: str) -> None:
    options = RICH.answer(name).get("read_options") or {}
    table = hudimeta.Table(rich_table(name), options)
    snapshot = table.snapshot()
    native = native_slices(snapshot, table.scan().plan().slices, table.schema.names).native.to_pylist()
    shown = table.scan().to_table()
    for row in native:
        read = pq.ParquetFile(Path(table.path) / row["partition_path"] / row["base_file"]).read()
        mine = shown.filter(pa.compute.is_in(shown["_hoodie_file_name"], pa.array([row["base_file"]])))
        assert read.num_rows == mine.num_rows or not snapshot.properties.populate_meta
        if read.num_rows == mine.num_rows:
            for column in sorted({*read.column_names} & {*mine.column_names}):
                stored = read[column].cast(mine[column].type) if not pa.types.is_nested(mine[column].type) else mine[column]
                assert repr(stored.to_pylist()) == repr(mine[column].to_pylist()), (column, row["partition_path"])
