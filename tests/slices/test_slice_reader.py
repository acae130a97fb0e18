"""Rows of file slices: damage, projection, renamed columns, computed keys, bootstrapped files, and blocks that do not count."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import CorruptFileError, NotFound, UnsupportedFeature
from hudimeta.snapshot.file_slice import slices_of
from tests.conftest import Unpack
from tests.recorded_tables import BOOTSTRAP_ROOT


def first_base(table: hudimeta.Table) -> Path:
    (path, *_) = [s.base_path for s in slices_of(table.file_slices()) if s.base_path]
    return Path(table.path) / str(path)


def overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


# Damage


def test_a_damaged_base_file_is_named(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("deletes_cow", fresh=True))
    victim = first_base(table)
    data = victim.read_bytes()
    overwrite(victim, data[: len(data) // 2])
    with pytest.raises(CorruptFileError) as caught:
        table.scan().to_table()
    assert caught.value.path == str(victim.relative_to(table.path))


def test_a_base_file_that_is_gone_is_named(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("deletes_cow", fresh=True))
    victim = first_base(table)
    victim.unlink()
    with pytest.raises(NotFound) as caught:
        table.scan().to_table()
    assert caught.value.path == str(victim.relative_to(table.path))


def test_a_page_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    """Uncompressed, so that nothing but the checksum can tell."""
    table = hudimeta.Table.create(
        tmp_path / "t",
        pa.schema([("id", pa.string()), ("v", pa.int64())]),
        key="id",
        options={"hoodie.parquet.compression.codec": "uncompressed"},
    )
    table.insert({"id": ["a"], "v": [1234567890123456789]})
    victim = first_base(table)
    data = victim.read_bytes()
    at = data.index((1234567890123456789).to_bytes(8, "little"))
    overwrite(victim, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(CorruptFileError):
        table.scan(columns=["v"]).to_table()


def test_a_torn_log_is_passed_over_and_reported(rich_table: Unpack) -> None:
    scan = hudimeta.Table(rich_table("corrupt_tail_log")).scan()
    assert scan.to_table().num_rows == 14
    (span,) = scan.report.corrupt
    assert ".log." in span
    assert "from byte" in span


def test_a_base_file_of_another_format_is_refused_by_name(rich_table: Unpack) -> None:
    from hudimeta.formats.base_file import open_base_file
    from hudimeta.storage import open_storage

    storage = open_storage(rich_table("deletes_cow"))
    with pytest.raises(UnsupportedFeature, match=r"\.lance"), open_base_file(storage, "p/f_0-0-0_1.lance"):
        pass


# What is read


def test_only_asked_columns_are_decoded(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("big_mor"))
    whole = table.scan().to_table().sort_by("id")
    for name in set(table.schema.names) - {"id"}:
        narrow = table.scan(columns=[name, "id"]).to_table().sort_by("id")
        assert narrow.column(name).equals(whole.column(name)), name


def test_counting_agrees_with_reading(rich_table: Unpack) -> None:
    for name in ("big_mor", "deletes_mor", "bootstrap_meta", "partial_merge_mor", "virtual_keys_cow"):
        table = hudimeta.Table(rich_table(name))
        assert table.scan().count() == table.scan().to_table().num_rows, name


def test_blocks_of_unfinished_writes_do_not_count(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("inflight_left_mor"))
    scan = table.scan()
    pending = [i.time for i in table.timeline.pending_writes]
    assert pending
    assert not set(scan.to_table().column("_hoodie_commit_time").to_pylist()) & set(pending)


def test_an_upgraded_table_judges_blocks_by_their_own_instant(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("upgraded_6_8_9_mor"))
    writes = [i.time for i in table.timeline.writes]
    early = table.scan(as_of=writes[1])
    times = set(early.to_table().column("_hoodie_commit_time").to_pylist())
    assert max(times) <= writes[1]
    assert early.report.blocks_ignored > 0, "the same log file holds later blocks"


# Altered tables


def test_renamed_columns_are_found_in_old_files(rich_table: Unpack) -> None:
    path = rich_table("alter_drop_cow9")
    rows = hudimeta.Table(path).scan(columns=["id", "price"]).to_table()
    assert rows.column("price").null_count == 0
    by_name = hudimeta.Table(path, {"hoodie.schema.on.read.enable": "false"}).scan(columns=["id", "price"]).to_table()
    assert by_name.num_rows == rows.num_rows


def test_a_filter_on_a_renamed_column_is_not_decided_by_statistics_of_its_former_name(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("alter_rename_mor"))
    whole = table.scan().to_table()
    qty = [q for q in whole.column("qty").to_pylist() if q is not None]
    assert table.scan(where=f"qty >= {min(qty)}").count() == len(qty)


# Keys that are not stored


def test_computed_keys_merge_and_stay_hidden(conformance_table: Unpack) -> None:
    table = hudimeta.Table(conformance_table("mor__parquet__v6_simplekeygen_hivestyle_no_metafields"))
    rows = table.scan().to_table()
    assert rows.column("_hoodie_record_key").null_count == rows.num_rows
    (key,) = table.properties.record_keys
    keys = rows.column(key).to_pylist()
    assert len(keys) == len(set(keys)), "every key once: log records met their base rows"


# Bootstrapped tables


def test_a_skeleton_and_its_source_must_have_the_same_rows(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("bootstrap_meta", fresh=True))
    assert table.scan(as_of="00000000000001", columns=["id", "_hoodie_record_key"]).count() == 12
    skeleton = next(Path(table.path).glob("region=east/*_00000000000001.parquet"))
    shorter = pq.ParquetFile(skeleton).read().slice(1)
    skeleton.unlink()
    pq.write_table(shorter, skeleton)
    again = hudimeta.Table(table.path, {"hoodie.metadata.enable": "false"})
    with pytest.raises(CorruptFileError, match="as many rows as the source has"):
        again.scan(as_of="00000000000001").to_table()


def test_columns_of_a_bootstrapped_table_come_from_three_places(rich_table: Unpack) -> None:
    table = hudimeta.Table(rich_table("bootstrap_meta"))
    assert BOOTSTRAP_ROOT.is_dir()
    (row,) = table.scan(as_of="00000000000001", where="id = 'ord-0000'").to_table().to_pylist()
    assert row["_hoodie_commit_time"] == "00000000000001"
    assert row["ts"] == 1100
    assert row["region"] == "north"


def test_pages_without_a_match_are_passed_by(tmp_path: Path) -> None:
    count = 100_000  # pages have 8,192 rows
    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("note", pa.string())])
    numbers = range(count)
    rows = pa.table({"id": [f"{n:06}" for n in numbers], "n": numbers, "note": [f"note {n}" for n in numbers]})
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id")
    table.insert(rows)
    scan = table.scan(where="n IN (7, 8, 90001)", columns=["id", "note"])
    assert scan.to_table().to_pydict() == {"id": ["000007", "000008", "090001"], "note": ["note 7", "note 8", "note 90001"]}
    assert scan.report.rows_read == 2 * 8_192
    assert scan.report.rows_ruled_out == count - 2 * 8_192
    assert "rows not read, by their bounds" in str(scan.report)
    within = table.scan(where="note LIKE '%90001'", columns=["id"])  # which bounds say nothing of
    assert within.to_table()["id"].to_pylist() == ["090001"]
    assert (within.report.rows_read, within.report.rows_ruled_out) == (count, 0)
    assert within.report.rows_passed_by == count - 8_192
    assert "only the columns of the predicate unpacked" in str(within.report)
    everywhere = table.scan(where="n % 4000 = 0", columns=["note"])
    assert everywhere.to_table().num_rows == 25
    assert everywhere.report.rows_passed_by == 0


def test_a_read_takes_time_in_proportion_to_the_columns(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        schema = pa.schema([("id", pa.string()), *((f"c{n}", pa.int64()) for n in range(count))])
        options = {"hoodie.metadata.index.column.stats.enable": "false"}
        table = hudimeta.Table.create(tmp_path / str(count), schema, key="id", type="mor", options=options)
        for value in (1, 2):
            table.upsert(pa.table([["a"], *([value] for _ in range(count))], schema=schema))
        table.scan().to_table()
        begin = time.process_time()
        assert table.scan().to_table().num_columns == count + 6
        return time.process_time() - begin

    assert seconds(3_000) < 18 * seconds(300)  # above thirty times, where each column looks through all
