"""Changes that are computed outside, from rows as of a moment, and written by tasks in one commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import CommitError, SchemaMismatch
from hudimeta.storage import CountingStorage, open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.routed.computed import ACTION, AGE, BEFORE, ROW_COLUMNS, RowAction
from hudimeta.write.routed.driver import write_routed
from hudimeta.write.routed.executors import LocalExecutors
from hudimeta.write.routed.sources import ComputedRows

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("x", pa.float64())])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
Compute = Callable[[str | None, pa.Schema], "Changes"]


@dataclass(frozen=True)
class Changes:
    """Rows of the table with new values, rows of the table to delete, new rows."""

    updated: pa.Table | None = None
    deleted: pa.Table | None = None
    inserted: pa.Table | None = None

    def rows(self, schema: pa.Schema) -> pa.Table:
        """As a task gets them."""
        parts = []
        for action, table in zip(RowAction, (self.updated, self.deleted, self.inserted), strict=True):
            if table is None:
                continue
            own = {
                name: table[name] for name in (*schema.names, *(n for n in table.column_names if n.startswith((AGE, BEFORE))))
            }
            for name, carried in ROW_COLUMNS.items():
                known = name in table.column_names
                own[carried] = table[name].cast(pa.string()) if known else pa.nulls(table.num_rows, pa.string())
            parts.append(pa.table({**own, ACTION: pa.array([int(action)] * table.num_rows, pa.int32())}))
        return pa.concat_tables(parts)


class Computing(LocalExecutors):
    """Tasks over whatever was computed last, a part for each odd and each even row."""

    def hold(self, rows: pa.Table) -> None:
        self._parts = [rows.take(pa.array(range(first, rows.num_rows, 2), pa.int64())) for first in (0, 1)]


def rows(*ids: int, ts: int = 1, x: float = 0.0) -> pa.Table:
    return pa.Table.from_pylist([{"id": n, "part": f"p{n % 2}", "ts": ts, "x": x} for n in ids], SCHEMA)


def table(path: Path, **more: Any) -> hudimeta.Table:
    made = hudimeta.Table.create(path, SCHEMA, **{"key": "id", "partition_by": "part", "ordering": "ts", **more})
    made.insert(rows(1, 2, 3, 4))
    return made


def write(path: Path, compute: Compute, operation: Operation = Operation.UPSERT, **options: str) -> Any:
    executors = Computing([])
    given = {key.replace("_", "."): value for key, value in options.items()}
    session = WriteSession(CountingStorage(open_storage(path)), OPTIONS.read(given))

    def hold(moment: str | None, schema: pa.Schema) -> None:
        executors.hold(compute(moment, schema).rows(schema))

    return write_routed(session, ComputedRows(operation, hold), executors)


def shown(path: Path) -> list[tuple[Any, ...]]:
    check_all(open_storage(path))
    return sorted(tuple(row.values()) for row in hudimeta.Table(path).scan(columns=["id", "ts", "x"]).to_table().to_pylist())


def of(path: Path, where: str, moment: str | None, **new: Any) -> pa.Table:
    """Rows as of a moment, with new values."""
    found = hudimeta.Table(path).scan(where=where, as_of=moment).to_table()
    for name, value in new.items():
        at = found.schema.get_field_index(name)
        found = found.set_column(at, name, pa.array([value] * found.num_rows, found.schema.field(at).type))
    return found


@KINDS
def test_rows_are_updated_deleted_and_inserted_in_one_commit(tmp_path: Path, kind: str) -> None:
    table(tmp_path, type=kind)
    report = write(
        tmp_path,
        lambda moment, _: Changes(of(tmp_path, "id < 3", moment, x=9.0), of(tmp_path, "id = 4", moment), rows(7, x=7.0)),
    )
    assert shown(tmp_path) == [(1, 1, 9.0), (2, 1, 9.0), (3, 1, 0.0), (7, 1, 7.0)]
    assert (report.updated, report.deleted, report.inserted) == (2, 1, 1)
    assert len(hudimeta.Table(tmp_path).timeline.writes) == 2


def moved(path: Path, where: str, moment: str | None, to: str) -> Changes:
    """Rows that are given another partition, beside the one that they had."""
    found = of(path, where, moment)
    given = of(path, where, moment, part=to, ts=2)
    return Changes(given.append_column(f"{BEFORE}part", found["part"]))


@KINDS
def test_rows_move_where_keys_are_those_of_the_whole_table(tmp_path: Path, kind: str) -> None:
    paths = tmp_path / "global", tmp_path / "simple"
    table(paths[0], type=kind)
    index = {"hoodie_index_type": "GLOBAL_SIMPLE"}
    report = write(paths[0], lambda moment, _: moved(paths[0], "id < 3", moment, "p0"), **index)
    assert report.moved == 1
    places = hudimeta.Table(paths[0]).scan(columns=["id", "part", "_hoodie_partition_path"]).to_table().to_pylist()
    assert sorted(tuple(row.values()) for row in places) == [(1, "p0", "p0"), (2, "p0", "p0"), (3, "p1", "p1"), (4, "p0", "p0")]
    check_all(open_storage(paths[0]))
    table(paths[1], type=kind)
    with pytest.raises(CommitError, match="would change column part of a row of partition 'p1', which would be of 'p0'"):
        write(paths[1], lambda moment, _: moved(paths[1], "id < 3", moment, "p0"))
    assert shown(paths[1])[0] == (1, 1, 0.0)


def test_a_table_without_rows_has_no_moment(tmp_path: Path) -> None:
    hudimeta.Table.create(tmp_path, SCHEMA, key="id", partition_by="part", ordering="ts")
    moments: list[str | None] = []

    def compute(moment: str | None, schema: pa.Schema) -> Changes:
        moments.append(moment)
        assert schema.names == SCHEMA.names
        return Changes(inserted=rows(1))

    write(tmp_path, compute)
    assert moments == [None]
    assert shown(tmp_path) == [(1, 1, 0.0)]


def test_they_are_computed_anew_when_another_writer_was_first(tmp_path: Path) -> None:
    table(tmp_path)
    moments: list[str | None] = []

    def compute(moment: str | None, _: pa.Schema) -> Changes:
        found = of(tmp_path, "id = 1", moment)
        moments.append(moment)
        if len(moments) == 1:
            hudimeta.Table(tmp_path).upsert(rows(1, 5, ts=2, x=5.0))
        return Changes(found.set_column(found.schema.get_field_index("x"), "x", pc.add(found["x"], 1.0)))

    write(tmp_path, compute)
    assert len(moments) == 2
    assert shown(tmp_path) == [(1, 2, 6.0), (2, 1, 0.0), (3, 1, 0.0), (4, 1, 0.0), (5, 2, 5.0)]


def test_of_several_changes_of_a_row_the_order_decides_or_nobody(tmp_path: Path) -> None:
    table(tmp_path / "ordered")
    table(tmp_path / "plain", ordering=())

    def twice(path: Path, moment: str | None) -> Changes:
        return Changes(pa.concat_tables([of(path, "id = 1", moment, ts=ts, x=float(ts)) for ts in (8, 9, 7)]))

    write(tmp_path / "ordered", lambda moment, _: twice(tmp_path / "ordered", moment))
    assert shown(tmp_path / "ordered")[0] == (1, 9, 9.0)
    with pytest.raises(CommitError, match="more than one row of the source, 2 times"):
        write(tmp_path / "plain", lambda moment, _: twice(tmp_path / "plain", moment))
    assert shown(tmp_path / "plain")[0] == (1, 1, 0.0)

    def placed(moment: str | None, _: pa.Schema) -> Changes:
        found = twice(tmp_path / "plain", moment).updated
        return Changes(found.append_column(f"{AGE}0", pa.array([1, 3, 2])) if found is not None else None)

    write(tmp_path / "plain", placed)
    assert shown(tmp_path / "plain")[0] == (1, 9, 9.0), "what tells the changes apart counts where there is no order"


@KINDS
def test_rows_that_are_new_to_a_table_without_key_columns_get_keys_of_their_own(tmp_path: Path, kind: str) -> None:
    table(tmp_path, key=None, ordering=(), type=kind)
    write(tmp_path, lambda moment, _: Changes(of(tmp_path, "id = 1", moment, x=2.0), inserted=rows(9, 9, 9, 8)))
    write(tmp_path, lambda moment, _: Changes(of(tmp_path, "id = 8", moment, x=3.0), inserted=rows(9)))
    assert shown(tmp_path) == [(1, 1, 2.0), (2, 1, 0.0), (3, 1, 0.0), (4, 1, 0.0), (8, 1, 3.0), *[(9, 1, 0.0)] * 4]
    keys = hudimeta.Table(tmp_path).scan(columns=["_hoodie_record_key"]).to_table().column(0)
    assert len(keys.unique()) == 9


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    table(tmp_path / "ordered")
    with pytest.raises(SchemaMismatch, match="which row is newer"):
        write(tmp_path / "ordered", lambda moment, _: Changes(of(tmp_path / "ordered", "id = 1", moment, ts=None)))


VIRTUAL, DROPPED = {"hoodie.populate.meta.fields": "false"}, {"hoodie.datasource.write.drop.partition.columns": "true"}


@pytest.mark.rotation(3)
@KINDS
@pytest.mark.parametrize("stored", [VIRTUAL, DROPPED, {**VIRTUAL, **DROPPED}], ids=["virtual", "dropped", "both"])
def test_tables_that_store_less_are_changed_by_what_is_computed(tmp_path: Path, kind: str, stored: dict[str, str]) -> None:
    table(tmp_path, options=stored, type=kind)
    write(tmp_path, lambda moment, _: Changes(of(tmp_path, "id = 1", moment, x=2.0), of(tmp_path, "id = 2", moment), rows(9)))
    assert [(n, x) for n, _, x in shown(tmp_path)] == [(1, 2.0), (3, 0.0), (4, 0.0), (9, 0.0)]
    parts = hudimeta.Table(tmp_path).scan(columns=["id", "part"]).to_table().sort_by("id")["part"].to_pylist()
    assert parts == rows(1, 3, 4, 9)["part"].to_pylist()
    write(tmp_path, lambda moment, _: Changes(deleted=of(tmp_path, "id > 3", moment)), Operation.DELETE)
    assert [n for n, *_ in shown(tmp_path)] == [1, 3]
