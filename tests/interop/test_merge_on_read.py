"""We read MERGE_ON_READ tables while Apache Hudi updates, deletes, compacts, clusters and cleans them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, Model, Row, Theirs, plain_rows, row

INDEXES = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.compact.max.delta.commits": "4"}
STEPS = ("insert", "upsert", "late", "delete", "compact", "upsert", "again", "cluster", "upsert", "clean")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("partition_by", ["month", ""] if FULL else ["month"])
def test_we_read_along(hudi: ApacheHudi, tmp_path: Path, partition_by: str) -> None:
    path, model = tmp_path / "table", Model()
    theirs = Theirs(path, hudi, bool(partition_by), type="MERGE_ON_READ", options=INDEXES)
    snapshots: dict[str, list[Row]] = {}
    for turn, step in enumerate(STEPS):
        _turn(theirs, model, turn, step)
        expected = model.sorted()
        table = hudimeta.Table(path)
        unplanned = hudimeta.Table(path, {"hoodie.metadata.enable": "false"})
        assert plain_rows(hudi.read(path).table) == expected, step
        assert plain_rows(table.scan().to_table()) == expected, step
        assert plain_rows(unplanned.scan().to_table()) == expected, step
        snapshots[table.timeline.writes[-1].time] = expected
        optimised = hudi.read(path, options={"hoodie.datasource.query.type": "read_optimized"})
        assert plain_rows(table.scan(query_type="read_optimized").to_table()) == plain_rows(optimised.table), step
        for where in ("amount >= 20 AND amount < 31.5", "note IS NULL", "id = 'k00013'"):
            found = plain_rows(table.scan(where).to_table())
            assert found == plain_rows(hudi.read(path, where=where).table), where
    for instant, expected in list(snapshots.items())[-2:]:
        assert plain_rows(hudimeta.Table(path).scan(as_of=instant).to_table()) == expected


def _turn(theirs: Theirs, model: Model, turn: int, step: str) -> None:
    if step in ("compact", "cluster"):
        options = {"hoodie.compact.inline.max.delta.commits": "1"}
        assert theirs.hudi.service(theirs.path, step, options) is not None
    elif step == "clean":
        theirs.write("clean", [])
    elif step == "delete":
        rows = model.sorted()[::7]
        theirs.write("delete", rows)
        model.remove(rows)
    else:
        late = {"late": -10, "again": 0}.get(step, turn)
        rows = [dict(r, ts=r["ts"] + late, note=f"turn {turn}") for r in model.sorted()[turn % 3 :: 3]]
        if step in ("insert", "again"):
            rows += [row(n, 100) for n in range(60) if f"k{n:05d}" not in model.rows]
        theirs.write("insert" if step == "insert" else "upsert", rows)
        model.put(rows)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["AWSDmsAvroPayload", "PartialUpdateAvroPayload"])
def test_rows_that_come_after_our_deletes_where_a_class_merges(hudi: ApacheHudi, tmp_path: Path, name: str) -> None:
    """Release 1.0.2 compares what deletes in logs say of their order, and 1.2.0 does not: both find the same rows."""
    kinds = {"id": pa.string(), "amount": pa.float64(), "ts": pa.int64(), "Op": pa.string(), "_hoodie_is_deleted": pa.bool_()}
    schema = pa.schema(list(kinds.items()))

    def rows(*values: tuple[str, int, bool]) -> pa.Table:
        made = [dict(zip(kinds, (key, ts / 2, ts, "D" if gone else "U", gone), strict=True)) for key, ts, gone in values]
        return pa.Table.from_pylist(made, schema)

    options = {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{name}"}
    path = tmp_path / "table"
    table = hudimeta.Table.create(path, schema, "id", ordering="ts", type="MERGE_ON_READ", options=options)
    table.insert(rows(*((key, 5, False) for key in "abcd")))
    table.upsert(rows(("a", 9, True), ("b", 4, True)))
    table.delete(pa.table({"id": ["c"]}))
    table.upsert(rows(("a", 7, False), ("c", 6, False)))
    expected = {"a": 7, "c": 6, "d": 5}
    for found in (table.scan().to_table(), hudi.read(path).table):
        assert {row["id"]: row["ts"] for row in found.to_pylist()} == expected
