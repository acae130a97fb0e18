"""Expressions whose statistics and filters leave files out, and those that are not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.formats.bloom import BloomFilter
from hudimeta.formats.hfile import HFileInfo, write_hfile
from hudimeta.indexes.expression_index.matching import indexed_expression, widened
from hudimeta.metadata import bloom_filters
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.keys import bloom_filter_keys
from hudimeta.metadata.record import layout_of
from hudimeta.predicate import bind, evaluate, parse
from tests.conftest import Unpack
from tests.indexes.skipping.plan_reports import left_out, note_of, plan_report

# Expressions


def test_bounds_of_an_unknown_zone_are_widened_and_nothing_is_lost() -> None:
    schema = pa.schema([("ts", pa.int64()), ("day", pa.date32())])
    pattern = "yyyy-MM-dd HH:mm"
    definition = IndexDefinition("e", "column_stats", "from_unixtime", ("ts",), {"expr": "from_unixtime", "format": pattern})
    seconds = pa.table({"ts": pa.array([0, 86_399, 951_782_400, 1_700_000_000], pa.int64())})
    here = indexed_expression(definition, schema, "UTC")
    assert here is not None
    assert (here.zoned, here.can_be_widened) == (True, True)
    for writer in ("UTC", "Pacific/Kiritimati", "Pacific/Niue", "Asia/Kolkata"):
        built = bind(parse(f"from_unixtime(ts, '{pattern}') = 'x'"), seconds.schema, timezone=writer)
        texts = _values(built, seconds)
        stats = widened(pa.table({"file_name": texts, "min": texts, "max": texts}), here)
        for reader in ("UTC", "Pacific/Kiritimati", "Pacific/Niue", "America/New_York"):
            shown = _values(bind(parse(f"from_unixtime(ts, '{pattern}') = 'x'"), seconds.schema, timezone=reader), seconds)
            for low, text, high in zip(stats["min"].to_pylist(), shown.to_pylist(), stats["max"].to_pylist(), strict=True):
                assert low <= text <= high, (writer, reader)
    ends = widened(pa.table({"file_name": ["f"], "min": ["1999-01-01 00:00"], "max": ["9999-12-31 23:00"]}), here)
    assert ends["min"].to_pylist() == [None], "elsewhere that is +10000-01-01, which lies below all digits"


def _values(bound: Any, rows: pa.Table) -> pa.Array:
    """The texts of the left side of a bound comparison."""
    from hudimeta.predicate.bind import Bound

    value = evaluate(Bound(bound.expr.left, bound.schema, bound.timezone), rows)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


@pytest.mark.parametrize(
    ("function", "column", "options", "zoned"),
    [
        ("lower", "s", {}, False),
        ("substring", "s", {"pos": "2", "len": "3"}, False),
        ("year", "day", {}, False),
        ("date_add", "day", {"days": "3"}, False),
        ("year", "at", {}, True),
        ("identity", "at", {}, False),
        ("hour", "at", {}, True),
    ],
)
def test_expressions_that_are_known(function: str, column: str, options: dict[str, str], zoned: bool) -> None:
    schema = pa.schema([("s", pa.string()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
    found = indexed_expression(IndexDefinition("e", "column_stats", function, (column,), options), schema, "UTC")
    assert found is not None
    assert found.zoned == zoned
    arguments = "".join(f", {value}" for value in options.values())
    if function != "identity":
        written = bind(parse(f"{function}({column}{arguments}) IS NULL"), schema)
        assert written.expr.child == found.expr, "a predicate that says the same is recognised"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "column", "options"),
    [("soundex", "s", {}), ("lower", "gone", {}), ("lower", "s", {"more": "1"}), ("substring", "s", {"len": "3"})],
)
def test_expressions_that_are_not_known_are_left_alone(function: str, column: str, options: dict[str, str]) -> None:
    schema = pa.schema([("s", pa.string())])
    assert indexed_expression(IndexDefinition("e", "column_stats", function, (column,), options), schema, "UTC") is None


def test_an_expression_index_skips_files(rich_table: Unpack) -> None:
    path = rich_table("expr_index_v9")
    where = "from_unixtime(ts, 'yyyy-MM-dd HH:mm') = '1970-01-01 02:20'"
    report = plan_report(path, where, trust="true")
    assert left_out(report) == {"expr_index_ex_day"}
    assert 0 < report.slices_kept < report.slices
    later = plan_report(path, "from_unixtime(ts, 'yyyy-MM-dd HH:mm') > '1970-02-01 00:00'")
    assert later.slices_kept == 0, "whatever the time zone in which it was built"
    other = plan_report(path, "from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-01'")
    assert "does not look at from_unixtime(ts, 'yyyy-MM-dd HH:mm')" in note_of(other, "expr_index_ex_day")


def test_a_bloom_filter_of_an_expression_skips_files(rich_table: Unpack) -> None:
    path = rich_table("expr_index_v9", fresh=True)
    rows = hudimeta.Table(path).scan(columns=["note", "_hoodie_file_name", "_hoodie_partition_path"]).to_table().to_pylist()
    add_lower_note_filters(path, rows)
    notes = sorted({row["note"] for row in rows if row["note"]})
    for note in notes[:5]:
        scan = hudimeta.Table(path).scan(where=f"lower(note) = '{note.lower()}'")
        assert scan.to_table().num_rows == sum(row["note"] == note for row in rows)
        assert left_out(scan.report) == {"expr_index_low"}
        assert scan.report.slices_kept == len({row["_hoodie_file_name"] for row in rows if row["note"] == note})
    assert plan_report(path, "lower(note) IN ('nothing', 'of this')").slices_kept == 0
    assert "does not fix lower(note)" in note_of(plan_report(path, "lower(note) > 'a'"), "expr_index_low")


def add_lower_note_filters(path: Path, rows: list[dict[str, Any]]) -> None:
    """Give a table an expression index of bloom filters over `lower(note)`."""
    sample = next((path / ".hoodie/metadata/expr_index_ex_day").glob("*_00000000000000002.hfile"))
    from hudimeta.formats.hfile import HFileReader

    schema_text = HFileReader(sample.read_bytes()).schema_text
    files = sorted({(row["_hoodie_partition_path"], row["_hoodie_file_name"]) for row in rows})
    blooms = []
    for file in files:
        notes = [r["note"].lower() for r in rows if r["note"] and r["_hoodie_file_name"] == file[1]]
        blooms.append(BloomFilter.create_simple(notes).to_base64().encode())
    table = pa.table(
        {
            "key": bloom_filter_keys(pa.array([p for p, _ in files]), pa.array([n for _, n in files])).cast(pa.string()),
            "type_code": ["SIMPLE"] * len(files),
            "instant": ["00000000000000002"] * len(files),
            "bloom": pa.array(blooms, pa.large_binary()),
            "is_deleted": [False] * len(files),
        }
    )
    cells = bloom_filters.encode_values(table, layout_of(schema_text, ""))
    folder = path / ".hoodie/metadata/expr_index_low"
    folder.mkdir()
    data = write_hfile(cells.keys, cells.values, HFileInfo(schema_text))
    (folder / "expr-index-low-0000-0_0-0-0_00000000000000002.hfile").write_bytes(data)
    definitions = path / ".hoodie/.index_defs/index.json"
    known = json.loads(definitions.read_text())
    entry = {"indexName": "expr_index_low", "indexType": "bloom_filters", "indexFunction": "lower", "sourceFields": ["note"]}
    known["indexDefinitions"]["expr_index_low"] = {**entry, "indexOptions": {"expr": "lower", "fpp": "0.01"}, "version": "V2"}
    definitions.write_text(json.dumps(known))
    properties = path / ".hoodie/hoodie.properties"
    text = properties.read_text().replace("expr_index_ex_day", "expr_index_ex_day,expr_index_low")
    properties.write_text(text)


def test_a_bloom_filter_of_days_knows_them_as_apache_hudi_asks(tmp_path: Path) -> None:
    """By their numbers, which Spark's literals hold: rows whose day the filter knew as `2024-05-06` alone were lost to it."""
    day = pa.array(["2024-05-06", None], pa.string()).cast(pa.date32())
    rows = pa.table({"id": ["a", "b"], "day": day})
    table = hudimeta.Table.create(tmp_path / "t", rows, key="id")
    table.insert(rows)
    table.metadata.create_index("d", "bloom_filters", "day", expression="identity")
    table.insert(rows.slice(0, 1).set_column(0, "id", pa.array(["c"])))
    stored = table.metadata.records("expr_index_d").to_pylist()
    filters = [BloomFilter.from_base64(row["bloom"], row["type_code"]) for row in stored]
    asked = [[bloom.might_contain(text) for text in ("19849", "2024-05-06", "19850")] for bloom in filters]
    assert asked == [[True, True, False]] * len(filters)
    assert filters
