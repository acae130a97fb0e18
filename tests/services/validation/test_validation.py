"""Validation says of every recorded table what Apache Hudi left in it, and finds whatever is broken on purpose."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, IndexNotReady, ValidationFailed
from hudimeta.metadata import column_stats, partition_stats
from hudimeta.metadata.delta import MetadataDelta, PartitionDelta
from hudimeta.metadata.record import RecordLayout
from hudimeta.metadata.writer import MetadataWriter
from hudimeta.services.validation import Outcome, ValidationReport, validate
from hudimeta.services.validation.statistics import FoundBounds, breaches
from hudimeta.storage import open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.timeline.clock import InstantGenerator, SystemClock
from hudimeta.types import Operation
from tests.conftest import Unpack

SOUND = {
    "mdt_all_v8": {"bloom_filters", "column_stats", "partition_stats", "record_index", "secondary_index_sec_note"},
    "big_mor": {"bloom_filters", "column_stats", "record_index", "secondary_index_by_who"},
    "expr_index_v9": {"expr_index_ex_day", "record_index"},
    "part_rli": {"record_index"},
    "mdt_logcompact": {"record_index"},
    "single_complex_key": {"record_index"},
    "v8_by_11_all": {"column_stats", "partition_stats", "record_index"},
    "all_types_cow8": {"column_stats", "partition_stats"},
    "multi_level_typed": {"column_stats", "partition_stats"},
    "event_late_mor": {"column_stats", "partition_stats"},
    "zstd_no_dict": {"bloom_filters"},
    "v6_mor_written_by_12": set(),
    "evolve_write_mor": set(),
    "failed_write_markers": set(),
    "inflight_left_mor": set(),
    "pending_compaction": set(),
    "odd_partitions": set(),
}
"""Recorded tables whose metadata is right, and what they keep beside the listing."""


@pytest.mark.parametrize("name", SOUND)
def test_what_apache_hudi_kept_right_holds(rich_table: Unpack, name: str) -> None:
    report = hudimeta.Table(rich_table(name)).metadata.validate()
    assert report.outcome is Outcome.HOLDS, report
    assert {check.name for check in report.checks} >= {"files", "file slices", *SOUND[name]}
    assert report.check("files").compared


def test_the_stale_indexes_of_a_recorded_table_are_named_row_by_row(rich_table: Unpack) -> None:
    report = hudimeta.Table(rich_table("mdt_all_v9")).metadata.validate()
    assert report.outcome is Outcome.DIFFERS
    assert set(report.differences) == {"record_index", "secondary_index_sec_note"}
    (lost,) = report.differences["record_index"]
    assert (lost.what, lost.count) == ("live keys that the index lacks", 1)
    assert lost.examples[0].startswith("ord-0001 in south/")
    stale = {d.what: d.count for d in report.differences["secondary_index_sec_note"]}
    assert stale == {"rows that the index lacks": 8, "entries of no row": 9}
    assert report.proven == ("partition_stats", "secondary_index_sec_qty")
    text = str(report)
    assert "differs      record_index: 25 rows compared" in text
    assert "ord-0001" in text


def test_a_report_is_plain_data_too(rich_table: Unpack) -> None:
    report = hudimeta.Table(rich_table("mdt_all_v9")).metadata.validate(["record_index"])
    plain = json.loads(report.to_json())
    assert plain["outcome"] == "differs"
    (check,) = plain["checks"]
    assert check["name"] == "record_index"
    assert check["differences"][0]["count"] == 1
    with pytest.raises(ValidationFailed, match="live keys that the index lacks: 1"):
        report.raise_if_differs()


def test_partitions_that_are_not_there_are_refused(rich_table: Unpack) -> None:
    with pytest.raises(ConfigError, match="record_index"):
        hudimeta.Table(rich_table("deletes_cow")).metadata.validate(["record_index"])
    with pytest.raises(IndexNotReady, match="no metadata table"):
        hudimeta.Table(rich_table("auto_keys")).metadata.validate()


# Broken on purpose


def _table(folder: Path, **options: str) -> ModelledTable:
    table = ModelledTable(str(folder / "t"), {**SIMPLE_OPTIONS, **options})
    table.write(Operation.INSERT, simple_rows(range(40), 1))
    table.write(Operation.UPSERT, simple_rows(range(0, 40, 3), 2))
    return table


def _report(table: ModelledTable) -> ValidationReport:
    return hudimeta.Table(table.path).metadata.validate()


def _slander(table: ModelledTable, change: Callable[[pa.Table], pa.Table], partition: str = column_stats.PARTITION) -> None:
    """Write records into the metadata table that are not true, as a broken writer would."""
    records = hudimeta.Table(table.path).metadata.records(partition)
    _write_metadata(table, partition, lambda layout: {"records": column_stats.encode_values(change(records), layout)})


def _forget(table: ModelledTable, column: str, path: str) -> None:
    """Take the statistics of a column in a partition away."""
    records = _column(hudimeta.Table(table.path).metadata.records(partition_stats.PARTITION), column)
    gone = records.filter(pa.compute.equal(records["file_name"], path))["key"].combine_chunks()
    _write_metadata(table, partition_stats.PARTITION, lambda _: {"removed": gone})


def _write_metadata(table: ModelledTable, partition: str, change: Callable[[RecordLayout], dict[str, Any]]) -> None:
    storage = open_storage(table.path)
    metadata = hudimeta.Table(table.path).snapshot().metadata
    times = InstantGenerator(SystemClock(), metadata._properties.zone)
    instant = times.next(metadata.timeline.last_time)
    writer = MetadataWriter(storage, 8, times)
    groups = {partition: len(metadata.file_groups(partition))}
    writer.begin(instant)
    delta = MetadataDelta([PartitionDelta(partition, **change(writer.layout))])
    record = writer.record(instant, writer.write_logs(instant, delta, groups))
    writer.complete(instant, record, metadata.timeline.last_time)


def _said(records: pa.Table, **values: Any) -> pa.Table:
    for name, value in values.items():
        at = records.schema.get_field_index(name)
        records = records.set_column(at, records.field(at), pa.array([value] * len(records), records.field(at).type))
    return records


def _column(records: pa.Table, name: str) -> pa.Table:
    return records.filter(pa.compute.equal(records["column_name"], name))


def test_our_own_tables_hold(tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        folder = tmp_path / kind
        report = _report(_table(folder, **{"hoodie.datasource.write.table.type": kind}))
        assert report.outcome is Outcome.HOLDS, report
        assert report.check("column_stats").compared >= 2


def test_a_deleted_file_is_named(tmp_path: Path) -> None:
    table = _table(tmp_path)
    lost = hudimeta.Table(table.path).file_slices()["base_file"].to_pylist()[0]
    next(Path(table.path).rglob(lost)).unlink()
    report = _report(table)
    assert report.outcome is Outcome.DIFFERS
    (difference,) = report.check("files").differences
    assert difference.what == "listed but not on storage"
    assert lost in difference.examples[0]
    assert report.check("column_stats").outcome is Outcome.DIFFERS  # it cannot be read


def test_a_file_that_nobody_lists_is_named(tmp_path: Path) -> None:
    table = _table(tmp_path)
    source = next(Path(table.path).rglob("*.parquet"))
    twin = source.with_name("11111111-2222-3333-4444-555555555555-0" + source.name[source.name.index("_") :])
    twin.write_bytes(source.read_bytes())
    report = _report(table)
    assert [d.what for d in report.check("files").differences] == ["on storage but not listed"]
    assert [d.what for d in report.check("file slices").differences] == ["file groups that are not listed"]


def test_bounds_that_are_too_narrow_are_found(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _slander(table, lambda records: _said(_column(records, "ts"), max_value=b"\x00"))
    report = _report(table)
    (difference,) = report.check("column_stats").differences
    assert difference.what == "column ts: a value above the maximum"
    assert difference.count == 2  # a file in each partition
    assert "stated" in difference.examples[0]
    assert report.check("partition_stats").outcome is Outcome.HOLDS


def test_bounds_of_years_that_python_does_not_have_are_told_as_text() -> None:
    kind = pa.timestamp("us", "UTC")
    counts = {"null_count": pa.array([0], pa.int64()), "value_count": pa.array([1], pa.int64())}
    old = {side: pa.array([-(1 << 62)], kind) for side in ("min", "max")}
    found = FoundBounds(pa.table({"name": ["a"], **old, **counts, "is_log": [False]}))
    stated = pa.table({"name": ["a"], "min": pa.array([0], kind), "max": pa.array([1 << 62], kind), **counts})
    ((what, (told,)),) = breaches(found, stated).items()
    assert what == "a value below the minimum"
    assert told.startswith("a: found -144169-")
    assert told.endswith("to +148108-07-06 14:00:27.387904")


def test_nulls_that_are_denied_or_invented_are_found(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"))
    rows = simple_rows(range(6), 1)
    table.write(Operation.INSERT, rows.set_column(3, "x", pa.array([None, 1.0, 2.0] * 2)))
    _slander(table, lambda records: _said(_column(records, "x"), null_count=0))
    _slander(table, lambda records: _said(_column(records, "ts"), null_count=3, value_count=3))
    found = {d.what for d in _report(table).check("column_stats").differences}
    assert found == {"column x: nulls, where none are stated", "column ts: values, where only nulls are stated"}


def test_partition_bounds_that_are_too_narrow_are_found(tmp_path: Path) -> None:
    table = _table(tmp_path)
    _slander(table, lambda records: _said(_column(records, "ts"), min_value=b"\x7e"), partition_stats.PARTITION)
    report = _report(table)
    assert [d.what for d in report.check("partition_stats").differences] == ["column ts: a value below the minimum"]
    assert report.check("column_stats").outcome is Outcome.HOLDS


def test_a_partition_without_a_record_differs_where_it_holds_values(tmp_path: Path) -> None:
    """Hudi leaves out partitions that it did not write to since a column came, and reads them all the same."""
    table = ModelledTable(str(tmp_path / "t"))
    rows = simple_rows(range(6), 1)
    table.write(Operation.INSERT, rows.set_column(3, "x", pa.array([1.0, None] * 3)))
    _forget(table, "x", "p1")
    report = _report(table)
    assert report.outcome is Outcome.HOLDS, report
    assert report.check("partition_stats").notes == ("column x: 1 partitions without a record, where it is null, such as p1",)
    for where, keys in {
        "x IS NULL": ["k0001", "k0003", "k0005"],
        "x >= 0 OR id = 'k0001'": ["k0000", "k0001", "k0002", "k0004"],
    }.items():
        chosen = hudimeta.Table(table.path, {"hudimeta.index.use": "partition_stats", "hudimeta.index.trust": "true"})
        assert sorted(chosen.scan(where).to_table()["id"].to_pylist()) == keys
    _forget(table, "ts", "p1")
    (difference,) = _report(table).check("partition_stats").differences
    assert difference.what == "column ts: partitions without a record, which readers of Apache Hudi pass over"
    assert difference.examples == ("p1",)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_partitions_that_are_said_to_hold_no_nulls_are_not_proven(tmp_path: Path, kind: str) -> None:
    """Hudi counts only files with a record of a column that came later; a log file may hold all rows anew, or not."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind})
    rows = simple_rows(range(6), 1)
    table.write(Operation.INSERT, rows.set_column(3, "x", pa.array([1.0, None] * 3)))
    table.write(Operation.UPSERT, simple_rows([1], 2))
    _slander(table, lambda records: _said(_column(records, "x"), null_count=0), partition_stats.PARTITION)
    report = hudimeta.Table(table.path).metadata.validate(prove=True)
    found = report.check("partition_stats")
    assert found.outcome is (Outcome.DIFFERS if kind == "COPY_ON_WRITE" else Outcome.CANNOT_TELL), report
    assert "nulls, where none are stated" in str(report)
    chosen = hudimeta.Table(table.path, {"hudimeta.index.use": "partition_stats"})
    assert sorted(chosen.scan("x IS NULL").to_table()["id"].to_pylist()) == ["k0003", "k0005"]


def test_entries_of_null_are_no_difference_in_the_first_form(tmp_path: Path) -> None:
    """Apache Hudi 1.2 writes them into tables of version 8 too, whose secondary indexes have that form."""
    path = tmp_path / "t"
    rows = pa.table({"id": ["a", "b", "c"], "note": ["x", None, ""]})
    options = {"hoodie.metadata.record.index.enable": "true", "hoodie.write.table.version": "9"}
    hudimeta.Table.create(path, rows.schema, "id", options=options).insert(rows)
    hudimeta.Table(path).metadata.create_index("by_note", "secondary_index", "note")
    assert None in hudimeta.Table(path).metadata.records("secondary_index_by_note")["secondary"].to_pylist()
    definitions = path / ".hoodie" / ".index_defs" / "index.json"
    told = json.loads(definitions.read_text())
    del told["hudimeta.seal"]
    told["indexDefinitions"]["secondary_index_by_note"]["version"] = "V1"
    definitions.write_text(json.dumps(told))
    (check,) = hudimeta.Table(path).metadata.validate(["secondary_index_by_note"]).checks
    assert (check.outcome, check.compared) == (Outcome.HOLDS, 2), str(check)


def test_a_metadata_file_that_is_damaged_is_a_difference(tmp_path: Path) -> None:
    table = _table(tmp_path)
    for log in Path(table.path, ".hoodie/metadata/column_stats").glob(".col-stats-*_2*.log.*"):
        log.write_bytes(log.read_bytes()[:-40])
    report = _report(table)
    assert report.outcome is Outcome.DIFFERS
    assert report.check("column_stats").differences[0].what == "cannot be read"


# Proof


def test_what_was_validated_can_be_proven_for_reads_and_stays_so(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("mdt_all_v8", fresh=True))
    where = "id = 'ord-0003'"
    unproven = table.scan(where=where)
    assert any("nothing proves that record_index" in note for note in unproven.report.notes)
    report = table.metadata.validate(prove=True)
    assert report.recorded == ("partition_stats", "record_index", "secondary_index_sec_note")
    assert "recorded as proven: partition_stats, record_index" in str(report)
    for _ in range(2):
        scan = table.scan(where=where)
        assert scan.to_table()["note"].to_pylist() == ["note 3/3"]
        assert not any("nothing proves" in note for note in scan.report.notes), scan.report
        table.delete("id = 'ord-0009'")  # a commit of ours carries it on
    assert table.metadata.validate().holds


def test_nothing_is_proven_that_does_not_hold(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("mdt_all_v9", fresh=True))
    report = table.metadata.validate(prove=True)
    assert report.recorded == ("partition_stats", "secondary_index_sec_qty")
    scan = table.scan(where="id = 'ord-0001'")
    assert scan.to_table().num_rows == 1
    assert any("nothing proves that record_index" in note for note in scan.report.notes)


# A table that moves


def test_differences_of_a_table_that_moved_prove_nothing(tmp_path: Path) -> None:
    table = _table(tmp_path)
    snapshot = hudimeta.Table(table.path).snapshot()
    report = validate(snapshot)
    assert report.outcome is Outcome.HOLDS
    lost = snapshot.slices()["base_file"].to_pylist()[0]
    written = table.write(Operation.UPSERT, simple_rows(range(40), 3))
    next(Path(table.path).rglob(lost)).unlink()  # as a cleaner does in a table that many write to
    report = validate(snapshot)
    assert report.outcome is Outcome.CANNOT_TELL
    assert written.instant in report.moved
    assert "the table moved meanwhile" in str(report)
    assert report.proven == ()
    report.raise_if_differs()


# Reads that validate


def test_a_read_that_validates_fails_instead_of_returning_too_little(tmp_path: Path) -> None:
    table = _table(tmp_path)
    options = {"hudimeta.metadata.validate": True}
    scan = hudimeta.Table(table.path, options).scan(where="ts > 0")
    assert scan.to_table().num_rows == 40
    assert any(note.startswith("validated: storage has the 4 files") for note in scan.report.notes)
    source = next(Path(table.path).rglob("*.parquet"))
    source.with_name("11111111-2222-3333-4444-555555555555-0" + source.name[source.name.index("_") :]).write_bytes(b"PAR1")
    assert hudimeta.Table(table.path).scan().to_table().num_rows == 40
    with pytest.raises(ValidationFailed, match="on storage but not listed"):
        hudimeta.Table(table.path, options).scan().to_table()


def test_the_option_is_documented() -> None:
    assert OPTIONS.read({"hudimeta.metadata.validate": "true"}).given


@pytest.mark.parametrize("version", ["8", "9"])
def test_files_without_a_value_of_a_column_hold(tmp_path: Path, version: str) -> None:
    """Apache Hudi indexes no meta columns where keys are computed: bounds begin with a number, and nulls look like one then."""
    kinds = [pa.int32(), pa.binary(), pa.string(), pa.date32(), pa.float64(), pa.bool_(), pa.decimal128(9, 3)]
    values = [1, b"x", "x", datetime.date(2026, 1, 1), 1.5, True, Decimal("1.500")]
    schema = pa.schema([*((f"c{at}", kind) for at, kind in enumerate(kinds)), ("id", pa.string())])
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.populate.meta.fields": "false"}
    options |= {"hoodie.write.table.version": version}
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", indexes=["column_stats"], options=options)
    table.insert(pa.Table.from_pylist([{"id": "k1", **{f"c{at}": value for at, value in enumerate(values)}}], schema))
    table.insert(pa.Table.from_pylist([{"id": "k2", "c0": 2}], schema))
    records = table.metadata.records("column_stats").select(["column_name", "value_type", "value_type_info"]).to_pylist()
    types = {tuple(record.values()) for record in records}
    assert len(types) == len({name for name, *_ in types}), "the type of a column does not depend on its values"
    assert {kind is None for _, kind, _ in types} == {version == "8"}
    definitions = tmp_path / "t/.hoodie/.index_defs/index.json"
    stated = json.loads(definitions.read_text())
    stated["indexDefinitions"]["column_stats"]["sourceFields"] = schema.names
    definitions.write_text(json.dumps(stated))
    report = hudimeta.Table(tmp_path / "t").metadata.validate()
    assert report.holds, str(report)
