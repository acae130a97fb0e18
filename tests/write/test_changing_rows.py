"""Update, delete where, and merge: rows that depend on what the table holds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta import Table
from hudimeta.errors import CommitError, ConfigError, SchemaMismatch
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.examples import at_most

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
Row = tuple[Any, ...]


def rows(*values: Row) -> pa.Table:
    """Rows `id, part, ts, fare, note` from tuples."""
    kinds = [pa.string(), pa.string(), pa.int64(), pa.float64(), pa.string()]
    columns = list(zip(*values, strict=True)) or [()] * 5
    arrays = [pa.array(list(v), kind) for v, kind in zip(columns, kinds, strict=True)]
    return pa.table(dict(zip(("id", "part", "ts", "fare", "note"), arrays, strict=True)))


FIRST = [(f"k{n}", f"p{n % 2}", 1, float(n), f"n{n}") for n in range(6)]


def table_of(path: Path, kind: str = "COPY_ON_WRITE", ordering: Any = "ts", values: list[Row] = FIRST) -> Table:
    table = Table.create(path, rows().schema, key="id", partition_by="part", ordering=ordering, type=kind)
    table.insert(rows(*values))
    return table


def contents(table: Table) -> list[Row]:
    found = table.scan(columns=["id", "part", "ts", "fare", "note"]).to_table()
    return sorted(tuple(row.values()) for row in found.to_pylist())


@BOTH
def test_update_sets_expressions_and_constants_where_a_predicate_is_true(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    report = table.update({"fare": "fare * 2 + ts", "NOTE": "concat(note, '!')"}, where="fare >= 3 and part = 'p1'")
    assert (report.inserted, report.updated, report.deleted) == (0, 2, 0)
    expected = [(i, p, t, f * 2 + t, n + "!") if f in (3.0, 5.0) else (i, p, t, f, n) for i, p, t, f, n in FIRST]
    assert contents(table) == expected
    table.update({"note": "null", "fare": 7})
    assert {row[3:] for row in contents(table)} == {(7.0, None)}
    assert table.update({"fare": 1.5}, where="id = 'nobody'").completion is None
    check_all(open_storage(tmp_path / "t"))


def test_updates_that_do_not_fit_change_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    for assignments, error in (
        ({"id": "'x'"}, ConfigError),
        ({"part": "'x'"}, ConfigError),
        ({"nosuch": "1"}, ConfigError),
        ({"fare": "nosuch + 1"}, ConfigError),
        ({}, ConfigError),
        ({"ts": "'abc'"}, SchemaMismatch),
        ({"ts": 1.5}, SchemaMismatch),
        ({"ts": "fare + 0.5"}, SchemaMismatch),
        ({"ts": "null"}, SchemaMismatch),
        ({"ts": True}, SchemaMismatch),
        ({"ts": dt.datetime(2024, 1, 2)}, SchemaMismatch),
        ({"ts": "fare > 1"}, SchemaMismatch),
    ):
        with pytest.raises(error):
            table.update(assignments, where="fare > 1")
    with pytest.raises(ConfigError, match="Give a dictionary"):
        table.update("fare = 0")  # type: ignore[arg-type]
    assert contents(table) == FIRST
    assert len(table.timeline.writes) == 1


def test_constants_of_every_type(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 600, tzinfo=dt.timezone.utc)
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(9, 2)),
            ("many", pa.list_(pa.int32())),
            ("deep", pa.struct([("a", pa.int32())])),
            ("small", pa.int32()),
        ]
    )
    table = Table.create(tmp_path / "t", schema, key="id")
    table.insert(pa.table([pa.array(["a"]), *(pa.nulls(1, f.type) for f in list(schema)[1:])], schema=schema))
    table.update({"day": moment.date(), "at": moment, "price": "12.5", "many": [1, 2], "deep": {"a": 4}, "small": "3 + 4"})
    (row,) = table.scan().to_table().drop_columns([c for c in table.schema.names if c.startswith("_hoodie")]).to_pylist()
    row["price"] = str(row["price"])
    expected = {"day": moment.date(), "at": moment, "price": "12.50", "many": [1, 2], "deep": {"a": 4}, "small": 7}
    assert row == {"id": "a", **expected}
    table.update({"price": 7, "small": pa.scalar(None)})
    found = table.scan(columns=["price", "small"]).to_table().to_pylist()
    assert [(str(row["price"]), row["small"]) for row in found] == [("7.00", None)]
    for assignment in ({"day": 5}, {"at": 5}, {"price": 10**8}, {"price": moment}):
        with pytest.raises(SchemaMismatch):
            table.update(assignment)
    far = {"day": pa.scalar(10_000_000, pa.date32()), "at": pa.scalar(400_000_000_000, pa.timestamp("s", "UTC"))}
    table.update(far)
    found = table.scan(columns=list(far)).to_table()
    assert [found[name].cast(pa.int64() if name == "at" else pa.int32())[0].as_py() for name in far] == [
        10_000_000,
        400_000_000_000_000_000,
    ], "days and moments that Python does not have"


@BOTH
def test_delete_where_works_without_keys_in_the_table(tmp_path: Path, kind: str) -> None:
    table = Table.create(tmp_path / "t", rows().schema, type=kind)
    table.insert(rows(*FIRST))
    assert table.delete("fare >= 4").deleted == 2
    assert table.delete([("id", "=", "k0")]).deleted == 1
    assert contents(table) == FIRST[1:4]
    table.update({"note": "'seen'"}, where="fare = 2")
    assert [row[4] for row in contents(table)] == ["n1", "seen", "n3"]
    check_all(open_storage(tmp_path / "t"))


SOURCE = [("k1", "p1", 2, 10.0, "new"), ("k2", "p0", 2, 20.0, None), ("k9", "p1", 2, 90.0, "nine")]


@BOTH
def test_a_merge_of_all_columns_is_an_upsert(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    report = table.merge(rows(*SOURCE), "id").when_matched_update().when_not_matched_insert().execute()
    assert (report.inserted, report.updated, report.deleted) == (1, 2, 0)
    assert contents(table) == sorted([row for row in FIRST if row[0] not in ("k1", "k2")] + SOURCE)
    check_all(open_storage(tmp_path / "t"))


@BOTH
def test_every_clause_in_one_merge(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    source = pa.table({"key": ["k1", "k2", "k3", "k8", "k9"], "delta": [1.0, -5.0, 0.0, 8.0, -9.0]})
    before = len(table.timeline.writes)
    report = (
        table.merge(source, on="t.id = s.key", target_alias="t", source_alias="s")
        .when_matched_delete(condition="s.delta = 0")
        .when_matched_update({"fare": "t.fare + s.delta", "note": "'changed'"}, condition="s.delta > 0")
        .when_not_matched_insert({"id": "s.key", "part": "'p7'", "ts": 5, "fare": "delta"}, condition="delta > 0")
        .when_not_matched_by_source_update({"note": "upper(note)"}, condition="fare = 0")
        .when_not_matched_by_source_delete(condition="t.fare = 5")
        .execute()
    )
    assert (report.inserted, report.updated, report.deleted) == (1, 2, 2)
    assert len(table.timeline.writes) == before + 1, "one commit"
    assert contents(table) == [
        ("k0", "p0", 1, 0.0, "N0"),
        ("k1", "p1", 1, 2.0, "changed"),
        ("k2", "p0", 1, 2.0, "n2"),
        ("k4", "p0", 1, 4.0, "n4"),
        ("k8", "p7", 5, 8.0, None),
    ]
    check_all(open_storage(tmp_path / "t"))


def test_several_columns_and_a_mapping_join_too(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    table.merge(rows(("k1", "p0", 9, 1.0, "no")), ["id", "part"]).when_matched_delete().execute()
    assert contents(table) == FIRST, "the key is in another partition"
    table.merge(pa.table({"k": pa.array([1, 3, None], pa.int32())}), {"fare": "k"}).when_matched_delete().execute()
    assert [row[3] for row in contents(table)] == [0.0, 2.0, 4.0, 5.0]


NAN = float("nan")
OF_KEYS = {
    "nan and zeros": ("float64", [0.0, -0.0, NAN, 1.5], pa.array([-0.0, NAN, 2.5]), [0, 1, 2]),
    "a float is no double": ("float32", [0.1, 0.5], pa.array([0.1, 0.5]), [1]),
    "decimal and double": (pa.decimal128(9, 3), [Decimal("6.820"), Decimal("0.125")], pa.array([6.82, 0.5]), [0]),
    "text and number": ("string", ["7", "07", "8"], pa.array([7, 9]), [0, 1]),
    "wider than the table's": ("int32", [1, 2], pa.array([2, 1 << 40]), [1]),
    "a fraction": ("int64", [1, 2], pa.array([1.5, 2.0]), [1]),
    "date and timestamp": (
        pa.date32(),
        [dt.date(2026, 1, 2), dt.date(2026, 1, 3)],
        pa.array([dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 3, 1)], pa.timestamp("us")),
        [0],
    ),
}
"""Type and values of a column of the table, those of the source, and positions of the rows that match, as Spark joins them."""


@pytest.mark.parametrize("name", OF_KEYS)
@pytest.mark.parametrize("others", [0, 1500])  # so many values are looked for by their range
def test_rows_join_as_spark_compares_columns(tmp_path: Path, name: str, others: int) -> None:
    kind, ours, theirs, matching = OF_KEYS[name]
    stored = pa.table({"id": [f"k{n}" for n in range(len(ours))], "x": pa.array(ours, kind), "hit": [0] * len(ours)})
    table = Table.create(tmp_path / "t", stored.schema, key="id")
    table.insert(stored)
    filled = pa.array(range(100_000, 100_000 + others)).cast(theirs.type, safe=False)
    source = pa.table({"y": pa.concat_arrays([theirs, filled])})
    report = table.merge(source, {"X": "y"}).when_matched_update({"hit": "1"}).execute()
    assert report.updated == len(matching)
    found = table.scan(columns=["id", "hit"]).to_table().to_pylist()
    assert sorted(row["id"] for row in found if row["hit"]) == [f"k{n}" for n in matching]


def test_a_value_that_cannot_be_compared_is_no_row_without_a_match(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    with pytest.raises(ConfigError, match="'no' is not"):
        table.merge(pa.table({"k": ["1", "no"]}), {"ts": "k"}).when_matched_delete().execute()
    every = table.merge(pa.table({"k": [1]}), {"note": "k"}).when_not_matched_by_source_delete()
    with pytest.raises(ConfigError, match="'n0' is not"):
        every.execute()
    assert contents(table) == FIRST


def test_two_rows_for_one_are_refused(tmp_path: Path) -> None:
    """Where nothing says which is the newer one, or where the condition is no key."""
    twice = rows(*SOURCE, ("k1", "p1", 3, 11.0, "again"))
    unordered, ordered = table_of(tmp_path / "unordered", ordering=None), table_of(tmp_path / "ordered")
    for table, source, on in (
        (unordered, twice, "id"),
        (ordered, twice.drop_columns(["ts"]), "id"),
        (ordered, twice.set_column(2, "ts", twice["ts"].cast(pa.string())), "id"),
        (ordered, rows(("x", "p1", 2, 0.5, "n1"), ("y", "p1", 3, 0.5, "n1")), "note"),
        (ordered, twice, "target.id = source.id and source.fare > 0"),
    ):
        with pytest.raises(CommitError, match="more than one row of the source, 1 times"):
            table.merge(source, on).when_matched_update({"fare": "source.fare"}).execute()
        assert contents(table) == FIRST
    ordered.merge(twice, "target.id = source.id and source.ts = 3").when_matched_update().execute()
    assert contents(ordered)[1] == ("k1", "p1", 3, 11.0, "again")


SEVERAL = [
    ("k1", "p1", 9, 10.0, "new"),
    ("k1", "p1", 5, 11.0, "old"),
    ("k2", "p0", 7, 12.0, "old"),
    ("k2", "p0", 7, 13.0, "new"),  # of equal ones the last
    ("k7", "p1", 5, 14.0, "old"),
    ("k7", "p1", 9, 15.0, "new"),
]
"""What Apache Hudi 1.0.2 and 1.2.0 make of such a source, also where the later write wins, is what the next test says."""


@BOTH
@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
@pytest.mark.parametrize("on", ["id", ["id", "part"]], ids=str)
def test_the_newest_row_of_a_key_is_found_before_clauses_are_looked_at(tmp_path: Path, kind: str, mode: str, on: Any) -> None:
    options = {"hoodie.record.merge.mode": mode}
    Table.create(
        tmp_path / "t", rows().schema, key="id", partition_by="part", ordering="ts", type=kind, options=options
    ).insert(rows(*FIRST))
    table = Table(tmp_path / "t")
    old = "source.note = 'old'"
    report = (
        table.merge(rows(*SEVERAL), on)
        .when_matched_update(condition=old)
        .when_matched_delete(condition=old)
        .when_not_matched_insert(condition=old)
        .execute()
    )
    assert report.completion is None
    assert contents(table) == FIRST, "the newest rows are for no clause"
    report = table.merge(rows(*SEVERAL), on).when_matched_update().when_not_matched_insert().execute()
    assert (report.inserted, report.updated) == (1, 2)
    newest = [row for row in SEVERAL if row[4] == "new"]
    assert contents(table) == sorted([row for row in FIRST if row[0] not in ("k1", "k2")] + newest)
    report = table.merge(rows(*SEVERAL), on).when_matched_delete(condition="source.note = 'new'").execute()
    assert report.deleted == 3
    check_all(open_storage(tmp_path / "t"))


def test_an_update_says_which_column_of_the_source_is_the_ordering_field(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    source = rows(*SEVERAL).rename_columns(["key", "part", "at", "fare", "note"])
    update = {"fare": "source.fare", "TS": "at"}
    table.merge(source, {"ID": "key"}).when_matched_delete(condition="source.fare < 0").when_matched_update(update).execute()
    assert [(row[0], row[2], row[3]) for row in contents(table)[1:3]] == [("k1", 9, 10.0), ("k2", 7, 13.0)]


def test_rows_of_one_key_in_two_partitions_are_not_compared(tmp_path: Path) -> None:
    """Unless keys are unique in the whole table: there the newest counts."""
    source = rows(("k1", "p1", 5, 10.0, "here"), ("k1", "p0", 9, 11.0, "there"))
    table = table_of(tmp_path / "t")
    with pytest.raises(CommitError, match="more than one row of the source, 1 times"):
        table.merge(source, "id").when_matched_update({"fare": "source.fare"}).execute()
    table.merge(source, ["id", "part"]).when_matched_update({"fare": "source.fare", "ts": "source.ts"}).execute()
    assert contents(table)[1] == ("k1", "p1", 5, 10.0, "n1")
    whole = Table(tmp_path / "t", {"hoodie.index.type": "GLOBAL_SIMPLE"})
    whole.merge(source, "id").when_matched_update({"fare": "source.fare", "ts": "source.ts"}).execute()
    assert contents(table)[1] == ("k1", "p1", 9, 11.0, "n1")


def test_a_bare_name_is_that_of_the_only_side_that_has_a_row(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t")
    source = rows(("new", "p0", 3, 50.0, "in"), ("newer", "p0", 3, 5.0, "out"))
    report = (
        table.merge(source, "id")
        .when_not_matched_insert(
            {"id": "id", "part": "part", "ts": "ts", "fare": "fare * 2", "note": "note"}, condition="fare > 9"
        )
        .when_not_matched_by_source_update({"fare": "fare + 1000", "ts": "ts + 1"}, condition="note = 'n1'")
        .when_not_matched_by_source_delete(condition="id = 'k2'")
        .execute()
    )
    assert (report.inserted, report.updated, report.deleted) == (1, 1, 1)
    kept = [(i, p, t + 1, f + 1000, n) if n == "n1" else (i, p, t, f, n) for i, p, t, f, n in FIRST if i != "k2"]
    assert contents(table) == sorted([*kept, ("new", "p0", 3, 100.0, "in")])


def test_merges_that_make_no_sense_are_refused_by_what_is_wrong(tmp_path: Path) -> None:
    table, source = table_of(tmp_path / "t"), rows(*SOURCE)
    for merge, match in (
        (table.merge(source, "id"), "at least one"),
        (table.merge(source, "nosuch").when_matched_delete(), "nosuch"),
        (table.merge(source, "target.fare > source.fare").when_matched_delete(), "columns that are equal"),
        (table.merge(source, "id").when_matched_update({"fare": "fare"}), "Both sides have it"),
        (table.merge(source, "id").when_matched_update({"id": "source.id"}), "neither part of the key"),
    ):
        with pytest.raises(ConfigError, match=match):
            merge.execute()
    twins = source.append_column("FARE", source["fare"])
    with pytest.raises(SchemaMismatch, match=r"'FARE'.*told from 'fare'.*Rename or drop"):
        table.merge(twins, "id").when_matched_update().execute()
    with pytest.raises(SchemaMismatch, match="part of the record key"):
        table.merge(source, "id").when_not_matched_insert({"fare": 1.0, "part": "'p'", "ts": 1}).execute()
    with pytest.raises(SchemaMismatch, match="'ts' is null, the table needs a value, because it decides which row is newer"):
        table.merge(source, "id").when_matched_update({"fare": "source.fare", "ts": "nullif(1, 1)"}).execute()
    assert contents(table) == FIRST


_KEYS = st.lists(st.integers(0, 12), unique=True, max_size=8)


@settings(max_examples=at_most(25))
@given(have=_KEYS, bring=_KEYS, limit=st.integers(0, 12))
def test_merging_equals_the_model(
    tmp_path_factory: pytest.TempPathFactory, have: list[int], bring: list[int], limit: int
) -> None:
    table = table_of(
        tmp_path_factory.mktemp("merge") / "t", values=[(f"k{n}", "p", 1, float(n), None) for n in have] or FIRST[:1]
    )
    expected = {row[0]: row for row in contents(table)}
    source = rows(*((f"k{n}", "p", 2, float(n), "s") for n in bring))
    (
        table.merge(source, "id")
        .when_matched_delete(condition=f"source.fare < {limit}")
        .when_matched_update()
        .when_not_matched_insert(condition=f"source.fare >= {limit}")
        .execute()
    )
    for row in source.to_pylist():
        if row["id"] in expected and row["fare"] < limit:
            del expected[row["id"]]
        elif row["id"] in expected or row["fare"] >= limit:
            expected[row["id"]] = tuple(row.values())
    assert contents(table) == sorted(expected.values())


def test_a_column_is_set_once_and_partitions_are_texts(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema({"id": pa.int64(), "p": pa.string(), "v": pa.int64()}), "id", "p")
    table.insert([{"id": 1, "p": "a", "v": 1}])
    before = table.history()
    merge = table.merge([{"id": 1, "p": "a", "v": 5}], ["id", "p"])
    acts: tuple[Callable[[], object], ...] = (
        lambda: table.update({"v": 2, "V": 3}),
        lambda: merge.when_matched_update({"v": 2, "V": 3}).execute(),
        lambda: merge.when_not_matched_insert({"id": "source.id", "p": "'x'", "ID": 3}).execute(),
    )
    for act in acts:
        with pytest.raises(ConfigError, match="every column once"):
            act()
    for partitions in (None, 7, [None], [b"a"]):
        with pytest.raises(ConfigError, match="paths of partitions"):
            table.delete_partition(partitions)  # type: ignore[arg-type]
    assert table.history() == before


X, XY, UPPER = (pa.struct(dict.fromkeys(names, pa.int64())) for names in ("x", "xy", "X"))


@pytest.mark.parametrize(
    ("kind", "other", "value", "name"),
    [
        (X, XY, {"y": 7}, "y"),
        (pa.list_(X), pa.list_(XY), [{"x": 1, "y": 7}], "y"),
        (pa.map_(pa.string(), X), pa.map_(pa.string(), UPPER), [("k", {"X": 7})], "X"),
    ],
    ids=str,
)
def test_a_field_that_a_struct_does_not_have_is_refused(
    tmp_path: Path, kind: pa.DataType, other: pa.DataType, value: Any, name: str
) -> None:
    """Without it, what the row had in the struct would be null."""
    table = Table.create(tmp_path / "t", pa.schema({"id": pa.string(), "s": kind}), key="id")
    table.upsert(pa.table({"id": ["a"], "s": pa.array([None], kind)}))
    before = table.timeline.instants
    merge = table.merge(pa.table({"id": ["a"], "s": pa.array([value], other)}), "id")
    for change in (lambda: table.update({"s": value}), merge.when_matched_update({"s": "source.s"}).execute):
        with pytest.raises(SchemaMismatch, match=f"a struct with the field '{name}', the table needs no fields but x"):
            change()
    assert table.timeline.instants == before


@BOTH
def test_values_under_an_older_name_stay_whatever_reads_are_told_of_names(tmp_path: Path, kind: str) -> None:
    """`hoodie.schema.on.read.enable=false` shows them as null: a write that reads rows must not store that."""
    table_of(tmp_path / "t", kind).alter(rename={"fare": "price"})
    by_names = Table(tmp_path / "t", {"hoodie.schema.on.read.enable": "false"})
    assert set(by_names.scan().to_table()["price"].to_pylist()) == {None}
    by_names.update({"note": "'changed'"}, where="id = 'k1'")
    by_names.merge(pa.table({"id": ["k2", "k3"], "part": ["p0", "p1"], "fee": [2.0, 2.0]}), ["id", "part"]).when_matched_update(
        {"price": "price + fee"}
    ).execute()
    by_names.delete(where="price = 4.0")
    found = Table(tmp_path / "t").scan(columns=["id", "price", "note"]).to_table().to_pylist()
    assert {row["id"]: row["price"] for row in found} == {"k0": 0.0, "k1": 1.0, "k3": 5.0, "k5": 5.0}
    assert {row["id"] for row in found if row["note"] == "changed"} == {"k1"}
