"""What each index leaves out, what it needs to be believed, and what the report says of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import ConfigError
from hudimeta.formats.avro.container import decode_container, decode_container_schema, encode_container
from hudimeta.formats.bloom import BloomFilter
from hudimeta.formats.parquet.footer import ParquetFooter, footer_of
from hudimeta.metadata.index_definitions import COMPLETE_KEY
from hudimeta.predicate import bind, parse
from hudimeta.slices.record_keys import WantedKeys, wanted_keys
from hudimeta.slices.row_groups import judged_rows
from tests.conftest import Unpack
from tests.indexes.skipping.plan_reports import TRUST, left_out, note_of, plan_report

# Proof


def mark_complete(path: Path, indexes: str) -> str:
    """Write into the newest commit that indexes are complete; returns its instant."""
    newest = max(hudimeta.Table(path).timeline.writes, key=lambda i: i.completed_at)
    file = path / ".hoodie" / "timeline" / newest.file_name
    data = file.read_bytes()
    (record,) = decode_container(data)
    record["extraMetadata"] = {**(record["extraMetadata"] or {}), COMPLETE_KEY: indexes}
    shutil.copymode(file, file)
    file.write_bytes(encode_container(decode_container_schema(data), [record]))
    crc = file.with_name(f".{file.name}.crc")
    crc.unlink(missing_ok=True)
    return newest.time


def test_an_index_that_the_newest_write_calls_complete_needs_no_trust(rich_table: Unpack) -> None:
    path = rich_table("big_mor", fresh=True)
    table = hudimeta.Table(path)
    row = table.scan(columns=["id", "who"]).to_table().slice(7, 1).to_pylist()[0]
    by_key, by_value = f"id = '{row['id']}'", f"who = '{row['who']}'"
    assert "nothing proves that record_index is complete" in note_of(plan_report(path, by_key), "record_index")
    mark_complete(path, "record_index")
    assert plan_report(path, by_key).slices_kept == 1
    assert "record_index" in left_out(plan_report(path, by_key))
    assert "secondary_index_by_who is complete" in note_of(plan_report(path, by_value), "secondary_index_by_who")
    before = hudimeta.Table(path).scan(where=by_value, columns=["id"]).to_table().sort_by("id")
    newest = mark_complete(path, "record_index, secondary_index_by_who")
    assert "secondary_index_by_who" in left_out(plan_report(path, by_value))
    assert hudimeta.Table(path).scan(where=by_value, columns=["id"]).to_table().sort_by("id").equals(before)
    earlier = max(i.time for i in table.timeline.writes if i.time < newest)
    assert "as of" in note_of(table_at(path, by_key, earlier), "record_index")


def table_at(path: Path, where: str, as_of: str) -> hudimeta.ScanReport:
    return hudimeta.Table(path, TRUST).scan(where=where, as_of=as_of).plan().report


def test_a_read_of_base_files_alone_is_not_judged_by_the_newest_rows(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("big_mor"), TRUST)
    everything = table.scan(query_type="read_optimized", columns=["id"]).to_table().column(0).to_pylist()
    scan = table.scan(where=f"id = '{everything[0]}'", query_type="read_optimized")
    assert scan.to_table().num_rows == 1
    assert "read-optimized" in note_of(scan.report, "record_index")


def test_an_index_with_a_write_that_the_reader_does_not_see_is_not_used(rich_table: Unpack) -> None:
    """As for a reader that listed the timeline a moment before that write: the index knows the rows of tomorrow."""
    path = rich_table("mdt_all_v8", fresh=True)
    writes = sorted(hudimeta.Table(path).timeline.writes, key=lambda i: i.time)
    before = hudimeta.Table(path).scan(as_of=writes[-2].time).to_table().sort_by("id")
    for file in (path / ".hoodie" / "timeline").glob(f"*{writes[-1].time}*"):
        file.unlink()
    table = hudimeta.Table(path, TRUST)
    for row in before.to_pylist():
        scan = table.scan(where=f"id = '{row['id']}'")
        assert scan.to_table().num_rows == 1
        assert "does not show" in note_of(scan.report, "record_index")


# Options and reports


def test_indexes_are_chosen_by_kind_or_name(rich_table: Unpack) -> None:
    path = rich_table("mdt_all_v8")
    where = "id = 'ord-0002' AND note = 'note 2/0'"
    only = plan_report(path, where, use="secondary_index_sec_note", trust="true")
    assert left_out(only) == {"secondary_index_sec_note"}
    assert note_of(only, "column_stats").endswith("switched off by hudimeta.index.use")
    assert left_out(plan_report(path, where, use="bloom_filters")) == {"bloom_filters"}
    none = plan_report(path, where, use="none", trust="true")
    assert (none.skipped, none.slices_kept) == ((), none.slices)
    with pytest.raises(ConfigError, match="secondary_indx"):
        plan_report(path, where, use="secondary_indx")


def test_every_file_has_one_decision(rich_table: Unpack) -> None:
    for trust in ("false", "true"):
        table = hudimeta.Table(rich_table("mdt_all_v8"), {"hudimeta.index.trust": trust})
        everything = {p.rpartition("/")[2] for p in table.scan().plan().files}
        plan = table.scan(where="id IN ('ord-0002', 'nobody') AND qty < 1000").plan()
        decisions = plan.report.decisions().to_pylist()
        named = [d["file_name"] for d in decisions if d["file_name"] is not None]
        whole = {d["partition_path"] for d in decisions if d["file_name"] is None}
        assert len(named) == len(set(named))
        assert {n for n in everything if n not in named} == {
            p.rpartition("/")[2] for p in table.scan().plan().files if p.rpartition("/")[0] in whole
        }
        assert {d["file_name"] for d in decisions if d["kept"]} == {p.rpartition("/")[2] for p in plan.files}
        for decision in decisions:
            assert decision["kept"] == (decision["decided_by"] is None) == (decision["conjunct"] is None)
        assert {d["conjunct"] for d in decisions} <= {None, "id IN ('ord-0002', 'nobody')"}
        assert ("record_index" in {d["decided_by"] for d in decisions}) == (trust == "true")


def test_every_index_that_is_not_used_says_why(rich_table: Unpack) -> None:
    report = plan_report(rich_table("mdt_all_v9"), "amount > 0")
    for index, why in {
        "record_index": "does not fix the record key (id)",
        "secondary_index_sec_qty": "does not fix",
        "secondary_index_sec_note": "does not fix",
        "bloom_filters": "does not fix the record key (id)",
    }.items():
        assert why in note_of(report, index)


# Keys


def keys(where: str, schema: pa.Schema, **properties: str) -> Any:
    given = {f"hoodie.{name.replace('_', '.')}": value for name, value in properties.items()}
    table = {"hoodie.table.version": "8", "hoodie.table.partition.fields": "c", **given}
    found = wanted_keys(bind(parse(where), schema), table)
    return sorted(found.texts.to_pylist()) if isinstance(found, WantedKeys) else found


def test_keys_are_spelled_as_the_table_spells_them() -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int32()), ("c", pa.float64()), ("_hoodie_record_key", pa.string())])
    simple = {"table_recordkey_fields": "a", "table_keygenerator_type": "SIMPLE"}
    assert keys("a IN ('x', 'y', 'x') AND b > 1", schema, **simple) == ["x", "y"]
    assert keys("a = 'x' AND a IN ('x', 'z')", schema, **simple) == ["x"]
    assert keys("a = ''", schema, **simple) == []
    assert keys("_hoodie_record_key = 'k'", schema, **simple) == ["k"]
    assert "does not fix" in keys("a > 'x'", schema, **simple)
    assert "does not fix" in keys("a = 'x' OR b = 1", schema, **simple)
    both = {"table_recordkey_fields": "a,b", "table_keygenerator_type": "COMPLEX"}
    assert keys("a = 'x' AND b IN (1, 2)", schema, **both) == ["a:x,b:1", "a:x,b:2"]
    assert keys("a = '' AND b = 1", schema, **both) == ["a:__empty__,b:1"]
    assert "does not fix" in keys("a = 'x'", schema, **both)
    one = {"table_recordkey_fields": "a", "table_keygenerator_type": "COMPLEX"}
    assert keys("a = 'x'", schema, **one) == ["a:x", "x"], "releases differ, so both spellings are looked up"
    assert "no record keys" in keys("a = 'x'", schema, populate_meta_fields="false", **simple)


# Bloom filters


def test_bloom_filters_skip_files_of_ranges_that_overlap(rich_table: Unpack) -> None:
    path = rich_table("zstd_no_dict")
    table = hudimeta.Table(path)
    rows = table.scan(columns=["dev", "_hoodie_file_name"]).to_table().to_pylist()
    for row in rows[:10]:
        report = plan_report(path, f"dev = {row['dev']}")
        assert report.slices_kept == len({r["_hoodie_file_name"] for r in rows if r["dev"] == row["dev"]})
        assert left_out(report) <= {"bloom_filters"}
    assert plan_report(path, "dev = 123456789").slices_kept == 0


def test_a_slice_with_logs_is_left_out_when_nothing_of_it_can_hold_the_key(rich_table: Unpack) -> None:
    path = rich_table("mdt_all_v9")
    kept = {
        use: [plan_report(path, f"id = 'ord-{number:04}x'", use=use).slices_kept for number in range(0, 30, 3)]
        for use in ("column_stats", "bloom_filters,column_stats")
    }
    both = zip(*kept.values(), strict=True)
    assert any(with_filters == 0 < without for without, with_filters in both), (
        "ranges of base files hold the keys, filters do not"
    )
    alone = plan_report(path, "id = 'ord-0000x'", use="bloom_filters")
    assert any("have log files, of which it knows nothing" in note for note in alone.notes)


# Row groups


def footer(rows: pa.Table, path: Path, metadata: dict[str, str] | None = None, size: int = 10) -> ParquetFooter:
    with pq.ParquetWriter(path, rows.schema) as writer:
        writer.write_table(rows, row_group_size=size)
        if metadata:
            writer.add_key_value_metadata(metadata)
    return footer_of(pq.read_metadata(path))


def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    rows = pa.table({"n": range(100), "s": [f"{i:03}" for i in range(100)], "x": [float(i) for i in range(100)]})
    told = footer(rows, tmp_path / "f.parquet")
    for where, expected in {
        "n BETWEEN 35 AND 44": [3, 4],
        "s = '035'": [3],
        "x < 15": [0, 1],
        "n < 0": [],
        "n + 1 = 100": [9],
        "n IS NULL": [],
        "gone > 5 OR n = 3": list(range(10)),
    }.items():
        schema = rows.schema.append(pa.field("gone", pa.int64()))
        keep = judged_rows(told, None, bind(parse(where), schema), (), None).groups
        assert keep.nonzero()[0].tolist() == expected, where
    stated = judged_rows(told, None, bind(parse("n = 35"), rows.schema), ("n",), None).groups
    assert stated.all(), "a column that the path states is not taken from the file"


def test_bounds_of_another_type_than_the_column_has_today_say_nothing(tmp_path: Path) -> None:
    """What reading makes of the stored values need not be what a predicate's cast would make of the bounds."""
    stored = pa.table({"n": range(20), "at": pa.array(range(20), pa.timestamp("us"))})
    told = footer(stored, tmp_path / "f.parquet")
    today = pa.schema([("n", pa.timestamp("us", "UTC")), ("at", pa.timestamp("us", "UTC"))])
    for where in ("n = TIMESTAMP'2000-01-01 00:00:00'", "at = TIMESTAMP'2000-01-01 00:00:00'"):
        assert judged_rows(told, None, bind(parse(where), today), (), None).groups.all(), where
    wider = bind(parse("n = 15"), pa.schema([("n", pa.int32())]))
    assert judged_rows(told, None, wider, (), None).groups.tolist() == [False, True]


def test_keys_of_a_footer_rule_out_the_whole_file(tmp_path: Path) -> None:
    rows = pa.table({"id": [f"k{i:02}" for i in range(0, 40, 2)]})
    bloom = BloomFilter.create_simple(rows.column("id").to_pylist())
    entries = {
        "org.apache.hudi.bloomfilter": bloom.to_base64(),
        "hoodie_bloom_filter_type_code": "SIMPLE",
        "hoodie_min_record_key": "k00",
        "hoodie_max_record_key": "k38",
    }
    told = footer(rows, tmp_path / "f.parquet", entries)
    everything = bind(parse("id IS NOT NULL"), rows.schema)

    def holds(*texts: str) -> bool:
        wanted = WantedKeys(pa.array(texts, pa.string()), everything.expr)
        return bool(judged_rows(told, None, everything, (), wanted).groups.all())

    assert holds("k04")
    assert holds("zzz", "k04")
    assert not holds("k05")
    assert not holds("zzz")
    assert not holds()
    bare = footer(rows, tmp_path / "g.parquet")
    wanted = WantedKeys(pa.array(["zzz"]), everything.expr)
    assert judged_rows(bare, None, everything, (), wanted).groups.all(), "a footer without keys says nothing of them"


def test_a_scan_counts_the_row_groups_that_footers_ruled_out(rich_table: Unpack) -> None:
    path = rich_table("zstd_no_dict")
    scan = hudimeta.Table(path, {"hudimeta.index.use": "footers"}).scan(where="dev = 123456789")
    assert scan.to_table().num_rows == 0
    assert scan.report.row_groups == scan.report.row_groups_skipped > 0
    assert "not read, by footers" in str(scan.report)
    without = hudimeta.Table(path, {"hudimeta.index.use": "none"}).scan(where="dev = 123456789")
    assert without.to_table().num_rows == without.report.row_groups == 0
