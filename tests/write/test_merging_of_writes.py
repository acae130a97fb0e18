"""Which version of a row survives a write: ordering values of every sort, payload classes, and rows of one batch."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta import Table
from hudimeta.errors import ConfigError, SchemaMismatch, UnsupportedFeature
from hudimeta.storage import open_storage
from hudimeta.table import properties
from hudimeta.testing.invariants import check_all

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
PAYLOAD, VERSION = "hoodie.datasource.write.payload.class", "hoodie.write.table.version"
PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
NON_DEFAULTS = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"


def rows(*values: tuple[Any, ...], ordering: pa.DataType | None = None) -> pa.Table:
    """Rows `id, ts, a, b` from tuples."""
    columns = list(zip(*values, strict=True)) or [(), (), (), ()]
    kinds = [pa.string(), ordering or pa.int64(), pa.string(), pa.int32()]
    arrays = [pa.array(list(v), kind) for v, kind in zip(columns, kinds, strict=True)]
    return pa.table(dict(zip(("id", "ts", "a", "b"), arrays, strict=True)))


def contents(path: Path) -> list[tuple[Any, ...]]:
    found = Table(path).scan(columns=["id", "ts", "a", "b"]).to_table()
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=str)


@BOTH
def test_of_rows_with_one_key_and_equal_ordering_the_last_wins(tmp_path: Path, kind: str) -> None:
    table = Table.create(tmp_path / "t", rows().schema, key="id", ordering="ts", type=kind)
    table.upsert(rows(("k", 1, "first", 1), ("k", 1, "last", 2), ("k", 0, "older", 3)))
    assert contents(tmp_path / "t") == [("k", 1, "last", 2)]
    table.upsert(rows(("k", 1, "again", 4)))
    assert contents(tmp_path / "t") == [("k", 1, "again", 4)], "and against the table the later write"


@BOTH
def test_nan_is_above_every_number_as_in_java(tmp_path: Path, kind: str) -> None:
    path, floats, nan = tmp_path / "t", pa.float64(), math.nan
    table = Table.create(path, rows(ordering=floats).schema, key="id", ordering="ts", type=kind)
    table.upsert(rows(("a", nan, "x", 1), ("a", math.inf, "y", 2), ("b", -0.0, "x", 1), ("b", 0.0, "y", 2), ordering=floats))
    assert [row[2] for row in contents(path)] == ["x", "y"]
    table.upsert(rows(("a", 1e308, "late", 3), ("b", -0.0, "late", 3), ordering=floats))
    assert [row[2] for row in contents(path)] == ["x", "y"]
    table.upsert(rows(("a", nan, "nan again", 4), ("b", nan, "nan", 4), ordering=floats))
    assert [row[2] for row in contents(path)] == ["nan again", "nan"]
    check_all(open_storage(path))
    table.delete(pa.table({"id": ["a"], "ts": [1.0]}))
    assert [row[0] for row in contents(path)] == ["b"], "a delete by key asks for no ordering value"


@BOTH
def test_an_ordering_column_must_be_there_and_have_values(tmp_path: Path, kind: str) -> None:
    table = Table.create(tmp_path / "t", rows().schema, key="id", ordering="ts", type=kind)
    table.upsert(rows(("k", 1, "x", 1)))
    with pytest.raises(SchemaMismatch, match=r"ts.*decides which row is newer"):
        table.upsert(rows(("k", 2, "y", 1)).drop_columns(["ts"]))
    with pytest.raises(SchemaMismatch, match="null in 1 rows"):
        table.upsert(rows(("k", None, "y", 1)))
    assert contents(tmp_path / "t") == [("k", 1, "x", 1)]


@BOTH
def test_several_ordering_fields_compare_one_after_the_other(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    table = Table.create(path, rows().schema, key="id", ordering=["ts", "b"], type=kind, options={VERSION: "9"})
    table.upsert(rows(("k", 1, "x", 5), ("m", 1, "x", 5), ("n", 1, "x", 5)))
    table.upsert(rows(("k", 1, "later", 4), ("m", 1, "wins", 6), ("n", 2, "wins", 0)))
    assert contents(path) == [("k", 1, "x", 5), ("m", 1, "wins", 6), ("n", 2, "wins", 0)]
    table.delete(pa.table({"id": ["m"]}))
    table.upsert(rows(("m", 1, "back", 7)))
    assert contents(path) == [("k", 1, "x", 5), ("m", 1, "back", 7), ("n", 2, "wins", 0)]
    check_all(open_storage(path))


def test_several_ordering_fields_need_version_9(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="version 9"):
        Table.create(tmp_path / "t", rows().schema, key="id", ordering=["ts", "b"])


@BOTH
@pytest.mark.parametrize("version", ["8", "9"])
def test_partial_updates_by_payload_class(tmp_path: Path, kind: str, version: str) -> None:
    path = tmp_path / "t"
    options = {PAYLOAD: PARTIAL, VERSION: version}
    Table.create(path, rows().schema, key="id", ordering="ts", type=kind, options=options)
    table = Table(path)
    table.upsert(rows(("k", 5, "a5", None), ("m", 1, "a1", 1), ("m", 2, None, 2)))
    assert contents(path) == [("k", 5, "a5", None), ("m", 2, "a1", 2)], "rows of one batch are merged too"
    table.upsert(rows(("k", 6, None, 6), ("m", 3, None, None)))
    assert contents(path) == [("k", 6, "a5", 6), ("m", 3, "a1", 2)]
    if kind == "COPY_ON_WRITE":  # the reader of a log lets late versions fill what its newest one lacks, as Hudi's does
        table.upsert(rows(("k", 3, "late", 3), ("m", 1, "late", None)))
        assert contents(path) == [("k", 6, "a5", 6), ("m", 3, "a1", 2)]
    check_all(open_storage(path))
    if version == "9":
        assert table.properties["hoodie.table.partial.update.mode"] == "IGNORE_DEFAULTS"
    else:
        assert table.properties["hoodie.compaction.payload.class"] == PARTIAL


@BOTH
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_null_in_an_ordering_column_that_decides_nothing_is_filled_as_any_other(
    tmp_path: Path, kind: str, version: str
) -> None:
    path = tmp_path / "t"
    options = {PAYLOAD: NON_DEFAULTS, VERSION: version}
    table = Table.create(path, rows().schema, key="id", ordering="ts", type=kind, options=options)
    table.insert(rows(("k", 5, "x", 1), ("m", 5, "x", 1)))
    table.upsert(rows(("k", None, None, 2), ("m", 3, "y", None)))
    table.upsert(rows(("m", None, None, 7)))
    assert contents(path) == [("k", 5, "x", 2), ("m", 3, "y", 7)]
    if kind == "MERGE_ON_READ":
        assert table.compact()
        assert contents(path) == [("k", 5, "x", 2), ("m", 3, "y", 7)]


@BOTH
def test_texts_that_were_not_at_hand_are_filled(tmp_path: Path, kind: str) -> None:
    """What Apache Hudi makes of PostgresDebeziumAvroPayload: in late rows and rows of one batch too, but not in bytes."""
    path, toast = tmp_path / "t", "__debezium_unavailable_value"
    schema = rows().schema.append(pa.field("raw", pa.binary()))
    table = Table.create(path, schema, key="id", ordering="ts", type=kind, options={VERSION: "9"})
    filled = {
        "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": toast,
    }
    properties.update(open_storage(path), filled)

    def given(*values: tuple[Any, ...]) -> pa.Table:
        return rows(*values).append_column(schema.field("raw"), rows(*values)["a"].cast(pa.binary()))

    table.insert(given(("k", 10, "x", 1), ("m", 10, toast, 1), ("n", 10, None, 1)))
    table.upsert(given(("k", 11, toast, 2), ("m", 9, "late", 0), ("n", 12, toast, 2), ("o", 1, "o", 1), ("o", 2, toast, 2)))
    found = {row["id"]: (row["ts"], row["a"], row["b"], row["raw"]) for row in Table(path).scan().to_table().to_pylist()}
    bytes_of_toast = toast.encode()
    merged = {"k": (11, "x", 2, bytes_of_toast), "n": (12, None, 2, bytes_of_toast), "o": (2, "o", 2, bytes_of_toast)}
    assert found == merged | {"m": (10, "late", 1, bytes_of_toast)}


@BOTH
def test_event_time_by_payload_class_is_a_custom_mode_in_version_8(tmp_path: Path, kind: str) -> None:
    """Apache Hudi 1.0.2 refuses to merge by this class beside any other mode."""
    path = tmp_path / "t"
    table = Table.create(path, rows().schema, key="id", ordering="ts", type=kind, options={PAYLOAD: "EventTimeAvroPayload"})
    assert table.properties["hoodie.record.merge.mode"] == "CUSTOM"
    assert table.properties["hoodie.record.merge.strategy.id"] == "00000000-0000-0000-0000-000000000000"
    table.upsert(rows(("k", 5, "x", 1), ("m", 5, "x", 1)))
    table.upsert(rows(("k", 4, "late", 2), ("m", 6, "new", 2)))
    assert contents(path) == [("k", 5, "x", 1), ("m", 6, "new", 2)]


def test_payload_classes_that_are_not_known_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeature, match=r"com.example.Mine"):
        Table.create(tmp_path / "t", rows().schema, key="id", ordering="ts", options={PAYLOAD: "com.example.Mine"})


def test_a_write_cannot_change_how_the_table_merges(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", rows().schema, key="id", ordering="ts")
    table.upsert(rows(("k", 1, "x", 1)))
    with pytest.raises(ConfigError, match="DefaultHoodieRecordPayload"):
        Table(tmp_path / "t", {PAYLOAD: PARTIAL}).upsert(rows(("k", 2, "y", 1)))
    Table(tmp_path / "t", {PAYLOAD: "EventTimeAvroPayload"}).upsert(rows(("k", 2, "y", 1)))


def test_a_write_may_name_the_class_that_the_table_was_made_with(tmp_path: Path) -> None:
    """Of version 9, which says by properties what the class does, and keeps its name: each write of Apache Hudi's gives it."""
    path, debezium = tmp_path / "t", "org.apache.hudi.common.model.debezium."
    Table.create(path, rows().schema, key="id", ordering="ts", options={VERSION: "9"}).upsert(rows(("k", 1, "x", 1)))
    made = {
        "hoodie.table.legacy.payload.class": f"{debezium}PostgresDebeziumAvroPayload",
        "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE",
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value": "__debezium_unavailable_value",
    }
    properties.update(open_storage(path), made)
    named = {PAYLOAD: f"{debezium}PostgresDebeziumAvroPayload"}
    Table(path, named).upsert(rows(("k", 2, "__debezium_unavailable_value", 2)))
    assert contents(path) == [("k", 2, "x", 2)]
    with pytest.raises(ConfigError, match=r"PostgresDebeziumAvroPayload"):
        Table(path, {PAYLOAD: f"{debezium}MySqlDebeziumAvroPayload"}).upsert(rows(("k", 3, "y", 1)))


_VERSIONS = st.lists(
    st.tuples(st.sampled_from("km"), st.integers(0, 3), st.sampled_from([None, "p", "q"]), st.sampled_from([None, 1, 2])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=20)
@given(versions=_VERSIONS, cut=st.integers(0, 12))
def test_one_batch_of_partial_updates_equals_as_many_writes(
    tmp_path_factory: pytest.TempPathFactory, versions: list[tuple[Any, ...]], cut: int
) -> None:
    """In order of arrival, none late: how a write is cut into batches must not show."""
    given_rows = sorted(versions, key=lambda v: v[1])
    found = []
    for parts in ([given_rows], [given_rows[:cut], given_rows[cut:]]):
        path = tmp_path_factory.mktemp("partial") / "t"
        Table.create(path, rows().schema, key="id", ordering="ts", options={PAYLOAD: PARTIAL, "hoodie.metadata.enable": False})
        for part in parts:
            Table(path).upsert(rows(*part))
        found.append(contents(path))
    assert found[0] == found[1]


FLAG, INDEXED = "_hoodie_is_deleted", ["record_index"]
FIELD, MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"


def flagged(*values: tuple[str, int, bool]) -> pa.Table:
    """Rows `id, ts`, of which some ask for their deletion; `ts` is an int, of which Apache Hudi takes 0 for none."""
    kinds = {"id": pa.string(), "ts": pa.int32(), FLAG: pa.bool_()}
    columns = zip(kinds.items(), zip(*values, strict=True) if values else ((), (), ()), strict=True)
    return pa.table({name: pa.array(list(column), kind) for (name, kind), column in columns})


@BOTH
def test_a_delete_with_zero_in_an_int_ordering_column_deletes_whatever_is_older(tmp_path: Path, kind: str) -> None:
    table = Table.create(tmp_path / "t", flagged().schema, key="id", ordering="ts", type=kind, indexes=INDEXED)
    table.upsert(flagged(*((key, 5, False) for key in "abc")))
    table.upsert(flagged(("a", 0, True), ("b", 4, True), ("d", 7, False), ("d", 0, True), ("e", 0, True), ("e", -1, False)))
    left = [("b", 5), ("c", 5), ("e", -1)]
    assert sorted(zip(*(table.scan().to_table()[name].to_pylist() for name in ("id", "ts")), strict=True)) == left
    check_all(open_storage(tmp_path / "t"))
    assert table.metadata.validate().holds


@BOTH
@pytest.mark.parametrize(
    ("values", "marker", "deletes"),
    [
        (pa.array([0.0, 1.0]), "1.0", True),
        (pa.array([0.0, 1.0]), "1", False),
        (pa.array([0.0, 1e7], pa.float32()), "1.0E7", True),
        (pa.array([0, 1]), "1", True),
        (pa.array([False, True]), "true", True),
        (pa.array([None, 20454], pa.date32()), "20454", True),
        (pa.array([None, 20454], pa.date32()), "2026-01-01", False),
        (pa.array([None, Decimal("1.00")]), "1.00", False),
        (pa.array([[], ["D"]]), "D", False),
    ],
    ids=str,
)
def test_a_marker_is_compared_with_the_text_that_java_has_of_a_value(
    tmp_path: Path, kind: str, values: pa.Array, marker: str, deletes: bool
) -> None:
    data = pa.table({"id": ["a", "b"], "op": values})
    options = {FIELD: "op", MARKER: marker}
    table = Table.create(tmp_path / "t", data.schema, key="id", type=kind, options=options)
    table.upsert(data.set_column(1, "op", values.take(pa.array([0, 0]))))
    table.upsert(data)
    assert sorted(table.scan().to_table()["id"].to_pylist()) == (["a"] if deletes else ["a", "b"])


def test_a_flag_of_deletes_that_is_no_boolean_is_refused(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", rows().schema, key="id", ordering="ts")
    table.insert(rows(("a", 1, "x", 1)))
    with pytest.raises(SchemaMismatch, match=r"_hoodie_is_deleted.*bool"):
        table.upsert(rows(("a", 2, "y", 1)).append_column(FLAG, pa.array(["true"])))
    assert contents(tmp_path / "t") == [("a", 1, "x", 1)]
