"""Buckets counted by other rules: rows stay as they are and are found, and nobody writes by rules of before."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, CorruptFileError, TableError, UnsupportedFeature
from hudimeta.services.bucket_rescaling import rescale_buckets
from hudimeta.storage import LocalStorage
from hudimeta.table.properties import update
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted, Paused

CONFIGS = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
EXPRESSIONS = "hoodie.bucket.index.partition.expressions"
INDEXED = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.index.bloom.filter.enable": "true"}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def rows(numbers: range, ts: int) -> pa.Table:
    count = len(numbers)
    return pa.table(
        {
            "id": [f"k{n:03d}" for n in numbers],
            "part": [f"2026-0{1 + n // 40}" for n in numbers],
            "ts": [ts] * count,
            "value": [n / 7 for n in numbers],
        }
    )


def made(path: Path, type: str = "COPY_ON_WRITE", rules: str = "2026-02,4", **more: str) -> Table:
    """A table of two partitions of forty rows, each written twice."""
    options = {**BUCKETS, **more, **({EXPRESSIONS: rules} if rules else {})}
    schema = rows(range(1), 1).schema
    table = Table.create(path, schema, key="id", partition_by="part", ordering="ts", type=type, options=options)
    table.upsert(rows(range(80), 1))
    table.upsert(rows(range(20, 60), 2))
    return Table(path)


def buckets(table: Table) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in table.file_slices().to_pylist():
        found.setdefault(one["partition_path"], []).append(int(one["file_id"][:8]))
    return {path: sorted(numbers) for path, numbers in sorted(found.items())}


def shown(table: Table, meta: bool = True) -> list[dict[str, Any]]:
    columns = ["_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path"] if meta else []
    return sorted(table.scan(columns=[*columns, "id", "part", "ts", "value"]).to_table().to_pylist(), key=lambda row: row["id"])


def test_a_table_is_made_with_rules(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    assert buckets(table) == {"2026-01": [0, 1], "2026-02": [0, 1, 2, 3]}
    assert [file.name for file in (tmp_path / "t" / CONFIGS).iterdir()] == ["00000000000000.hashing_config"]
    table.upsert(rows(range(100), 3))
    assert buckets(table) == {"2026-01": [0, 1], "2026-02": [0, 1, 2, 3], "2026-03": [0, 1]}
    assert [row["ts"] for row in shown(table)] == [3] * 100


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("version", ["8", "9"])
def test_rows_move_to_their_new_buckets(tmp_path: Path, type: str, version: str) -> None:
    table = made(tmp_path / "t", type, **INDEXED, **{"hoodie.write.table.version": version})
    before = shown(table)
    plan = table.rescale_buckets("2026-01,3;2026-02,6", dry_run=True)
    assert str(plan).splitlines()[:2] == [
        "buckets by 2026-01,3;2026-02,6, not by 2026-02,4",
        f"  rows move in 2 partitions with 6 file groups, {sum(one.size for one in plan.plan.partitions):,} bytes",
    ]
    assert buckets(table) == {"2026-01": [0, 1], "2026-02": [0, 1, 2, 3]}
    report = table.rescale_buckets("2026-01,3;2026-02,6")
    assert report.commit is not None
    assert report.commit.file_groups_replaced == 6
    assert buckets(table) == {"2026-01": [0, 1, 2], "2026-02": [0, 1, 2, 3, 4, 5]}
    assert shown(table) == before
    assert table.scan(query_type="incremental", begin=report.commit.instant).count() == 0
    upsert = table.upsert(rows(range(10, 90), 3))
    assert (upsert.inserted, upsert.updated) == (10, 70)
    assert buckets(table)["2026-03"] == [0, 1]
    assert table.metadata.validate(prove=True).holds
    check_all(LocalStorage(str(tmp_path / "t")))


def test_what_does_not_change_stays(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    before = {path for path in (tmp_path / "t").rglob("*.parquet") if ".hoodie" not in path.parts}
    report = table.rescale_buckets("2026-02,4;2026-0[3-9],5")
    assert report.plan.partitions == ()
    assert {path for path in (tmp_path / "t").rglob("*.parquet") if ".hoodie" not in path.parts} == before
    table.upsert(rows(range(80, 120), 1))
    assert buckets(table)["2026-03"] == [0, 1, 2, 3, 4]
    again = table.rescale_buckets("2026-02,4;2026-0[3-9],5")
    assert again.commit is None
    assert str(again) == "the table goes by 2026-02,4;2026-0[3-9],5: nothing to do"


def test_a_restore_brings_the_rules_of_before_back(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    before, saved = shown(table), table.savepoint().instant
    table.rescale_buckets(".*,3")
    table.upsert(rows(range(80), 3))
    table.restore(saved)
    assert (shown(table), buckets(table)) == (before, {"2026-01": [0, 1], "2026-02": [0, 1, 2, 3]})
    assert table.upsert(rows(range(80), 4)).updated == 80
    assert [file.name for file in (tmp_path / "t" / CONFIGS).iterdir()] == ["00000000000000.hashing_config"]


def test_rules_that_a_rollback_of_apache_hudi_left_are_removed(tmp_path: Path) -> None:
    """It removes them only where its options bring rules; its writers go by every file that is not pending."""
    table = made(tmp_path / "t")
    saved = table.savepoint().instant
    table.rescale_buckets(".*,3")
    (left,) = set((tmp_path / "t" / CONFIGS).iterdir()) - {tmp_path / "t" / CONFIGS / "00000000000000.hashing_config"}
    data = left.read_bytes()
    table.restore(saved)
    left.write_bytes(data)
    assert ".*,3" not in str(Table(tmp_path / "t").call("partition_bucket_index_manager", show_config=True).to_pylist())
    assert Table(tmp_path / "t").rescale_buckets(".*,5", dry_run=True).plan.former == "2026-02,4"
    assert left.exists()  # a question removes nothing
    assert Table(tmp_path / "t").upsert(rows(range(80), 4)).updated == 80
    assert not left.exists()


def test_with_the_only_rules_their_folder_goes(tmp_path: Path) -> None:
    """Apache Hudi takes the folder for a sign of rules, and fails where none are in it."""
    table = made(tmp_path / "t", rules="")
    saved = table.savepoint().instant
    table.rescale_buckets(".*,3")
    table.restore(saved)
    assert not (tmp_path / "t" / CONFIGS).exists()
    assert table.rescale_buckets(".*,3").commit is not None


def test_options_of_a_write_do_not_count_beside_the_rules_of_the_table(tmp_path: Path) -> None:
    made(tmp_path / "t")
    report = Table(tmp_path / "t", {EXPRESSIONS: "2026,7"}).upsert(rows(range(80), 3))
    assert (report.updated, report.inserted) == (80, 0)
    assert any("by the rules of the table" in note for note in report.notes)


def test_a_table_without_rules_gets_them_by_a_rescale_alone(tmp_path: Path) -> None:
    made(tmp_path / "t", rules="")
    with pytest.raises(ConfigError, match=r"Call Table\.rescale_buckets first"):
        Table(tmp_path / "t", {EXPRESSIONS: "2026-01,4"}).upsert(rows(range(80), 3))
    table = Table(tmp_path / "t")
    table.rescale_buckets("2026-01,4")
    assert buckets(table) == {"2026-01": [0, 1, 2, 3], "2026-02": [0, 1]}


def test_buckets_of_others_are_not_taken_for_those_that_options_say(tmp_path: Path) -> None:
    """Apache Hudi keeps no number: one that is a multiple of the real one names no bucket that is not there."""
    made(tmp_path / "t", rules="")
    properties = tmp_path / "t" / ".hoodie/hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "bucket" not in line and "seal" not in line]
    properties.write_text("\n".join(kept) + "\n")
    with pytest.raises(ConfigError, match="has rows of other buckets"):
        Table(tmp_path / "t", {**BUCKETS, "hoodie.bucket.index.num.buckets": "4"}).rescale_buckets(".*,8")
    with pytest.raises(ConfigError, match="has rows of other buckets"):
        Table(tmp_path / "t", {**BUCKETS, "hoodie.bucket.index.num.buckets": "1"}).rescale_buckets(".*,8", dry_run=True)
    assert Table(tmp_path / "t", BUCKETS).rescale_buckets(".*,8").commit is not None


@pytest.mark.parametrize("rules", ["", " ", "x", "(,4"])
def test_bad_rules_change_nothing(tmp_path: Path, rules: str) -> None:
    table = made(tmp_path / "t")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(ConfigError):
        table.rescale_buckets(rules)
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_tables_without_fixed_buckets_are_refused(tmp_path: Path) -> None:
    schema = rows(range(1), 1).schema
    with pytest.raises(ConfigError, match="has no buckets"):
        Table.create(tmp_path / "plain", schema, key="id").rescale_buckets(".*,3")
    Table(tmp_path / "plain").upsert(rows(range(3), 1))
    for dry_run in (True, False):  # the procedure asks for buckets whatever the table has
        with pytest.raises(ConfigError, match=r"file group .* of other buckets"):
            Table(tmp_path / "plain", {"hoodie.index.type": "BUCKET"}).rescale_buckets(".*,3", dry_run=dry_run)
    ring = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    table = Table.create(tmp_path / "ring", schema, key="id", type="MERGE_ON_READ", options=ring)
    with pytest.raises(UnsupportedFeature, match="Cluster the table"):
        table.rescale_buckets(".*,3")
    with pytest.raises(ConfigError, match="buckets split and merge"):
        Table.create(tmp_path / "both", schema, key="id", type="MERGE_ON_READ", options={**ring, EXPRESSIONS: "a,3"})
    assert not (tmp_path / "both").exists()


def test_file_groups_of_a_plan_do_not_move(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "MERGE_ON_READ")
    assert table.services.compaction.schedule() is not None
    with pytest.raises(TableError, match="Run the plan or cancel it, then rescale"):
        table.rescale_buckets(".*,3")


def begun(path: Path, mine: pa.Table) -> Paused:
    """A write that has planned its files."""
    session = partial(WriteSession, LocalStorage(str(path)), OPTIONS.read({}))
    return Paused(lambda engine: write_rows(session(engine=engine), Operation.UPSERT, mine))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    ("numbers", "rules"),
    [(range(80), "2026-01,3;2026-02,5"), (range(80, 120), "2026-01,3;2026-0[23],5"), (range(80, 120), "2026-02,4;2026-03,5")],
    ids=["rows that move", "a new partition", "rules alone"],
)
def test_a_write_that_began_before_begins_anew(tmp_path: Path, type: str, numbers: range, rules: str) -> None:
    """Of a new partition nothing was replaced: the new buckets of its own rows are of the rules of before."""
    table, mine = made(tmp_path / "t", type), rows(numbers, 3)
    write = begun(tmp_path / "t", mine)
    table.rescale_buckets(rules)
    assert write.finish().attempts == 2
    again = table.upsert(mine)
    assert (again.inserted, again.updated) == (0, len(numbers))
    check_all(LocalStorage(str(tmp_path / "t")))


@pytest.mark.parametrize("numbers", [range(30, 50), range(80, 120)], ids=["rows that move", "a new partition"])
def test_rows_that_came_meanwhile_are_in_the_new_buckets(tmp_path: Path, numbers: range) -> None:
    table = made(tmp_path / "t", rules="2026-02,1")
    engine = Interrupted(lambda: table.upsert(rows(numbers, 3)))
    session = WriteSession(LocalStorage(str(tmp_path / "t")), OPTIONS.read({}), engine=engine)
    report = rescale_buckets(session, ".*,4")
    assert report.commit is not None
    assert report.commit.attempts == 2
    assert table.upsert(rows(range(max(80, numbers.stop)), 4)).inserted == 0


def test_a_deep_check_reads_the_rules(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.rescale_buckets(".*,3")
    assert table.metadata.validate(deep=True).holds
    newest = max((tmp_path / "t" / CONFIGS).iterdir())
    newest.write_text(newest.read_text().replace(".*,3", ".*,4"))
    report = table.metadata.validate(deep=True)
    assert not report.holds
    assert "hashing_config" in str(report)


def test_lost_rules_stop_a_write(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.rescale_buckets(".*,3")
    newest = max((tmp_path / "t" / CONFIGS).iterdir())
    newest.unlink()
    with pytest.raises(CorruptFileError, match="the rules of the table's buckets"):
        Table(tmp_path / "t").upsert(rows(range(3), 4))


def test_rules_in_the_properties_of_a_table_count(tmp_path: Path) -> None:
    """Where no file has any."""
    made(tmp_path / "t", rules="")
    update(LocalStorage(str(tmp_path / "t")), {EXPRESSIONS: "2026-03,3"})
    table = Table(tmp_path / "t")
    table.upsert(rows(range(80, 120), 1))
    assert buckets(table) == {"2026-01": [0, 1], "2026-02": [0, 1], "2026-03": [0, 1, 2]}
    assert table.rescale_buckets("2026-03,1").plan.former == "2026-03,3"
    assert table.upsert(rows(range(80, 120), 2)).updated == 40


def test_whoever_wants_to_cluster_fixed_buckets_is_told_of_it(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeature, match="rescale_buckets"):
        made(tmp_path / "t").cluster()
