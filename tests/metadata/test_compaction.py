"""Compaction of the metadata table beside writers whose clocks differ, and beside views from before it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.commit.timings import Timings
from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.formats.hfile import HFileReader, KeyValues
from hudimeta.metadata import answers, compaction, files, slice_files
from hudimeta.metadata.kinds import CODECS
from hudimeta.metadata.metadata_table import MetadataTable
from hudimeta.metadata.record import RecordLayout
from hudimeta.metadata.writer import MetadataWriter, encode_base
from hudimeta.storage import open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline import InstantGenerator, SystemClock
from hudimeta.types import Operation
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import prepare, publish, write_batch, write_rows
from tests.metadata.opened import open_metadata
from tests.read.far_away import FarAway

COMPACT_ALWAYS = OPTIONS.read({**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"})


class RunningClock:
    """Goes on by some milliseconds whenever it is asked."""

    def __init__(self, start_ms: int, step_ms: int) -> None:
        self.now, self.step = start_ms, step_ms

    def now_ms(self) -> int:
        """The present."""
        self.now += self.step
        return self.now


def test_a_writer_whose_clock_is_behind_writes_on_top_of_the_base_files(tmp_path: Path) -> None:
    """The completion of its delta commit must lie after the compaction, or its files are taken for older than the base."""
    table = ModelledTable(str(tmp_path / "t"))
    ahead, behind = RunningClock(2_000_000_000_000, 5_000), RunningClock(1_900_000_000_000, 1)
    for clock, ids in ((ahead, range(4)), (behind, range(4, 8)), (ahead, range(8, 12)), (behind, range(12, 16))):
        rows = simple_rows(ids, 1)
        write_rows(WriteSession(open_storage(table.path), COMPACT_ALWAYS, clock), Operation.INSERT, rows)
        table.model.write(Operation.INSERT, rows)
        table.model.check(table.read())
        check_all(table.storage)


def test_a_compaction_that_went_on_meanwhile_is_not_run_again(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "1"})
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    inner = tmp_path / "t" / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    (completed,) = inner.glob("*.commit")
    rows = simple_rows(range(4, 8), 2)
    session = table.session()
    # The snapshot of a write that began while the compaction before it had not yet been completed.
    content = completed.read_bytes()
    completed.unlink()
    files = TableFiles.at(session, session.properties.load_timeline(session.storage))
    with session.coordinator.writing(Operation.INSERT, files.snapshot.timeline) as (write, _):
        outcome = write_batch(session, files, write, prepare(files, session, Operation.INSERT, rows), Timings())
        assert files.snapshot.metadata is not None
        completed.write_bytes(content)
        publish(session, files, write, files.snapshot.file_schema, outcome, Timings())
    table.model.write(Operation.INSERT, rows)
    instants = [path.name.split("_")[0] for path in inner.glob("*.commit")]
    assert len(instants) == len(set(instants))
    table.model.check(table.read())
    check_all(table.storage)


def _prepared(table: ModelledTable) -> compaction.PreparedCompaction:
    session = table.session()
    return compaction.prepare(session.storage, _metadata(session), _writer(session), session.times)


def _writer(session: WriteSession) -> MetadataWriter:
    return MetadataWriter(session.storage, session.properties.version, session.times)


def _metadata(session: WriteSession) -> MetadataTable:
    return MetadataTable.open(session.storage, session.properties, session.properties.load_timeline(session.storage))


def test_what_is_written_while_a_compaction_merges_lies_on_top_of_it(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "100"})
    for turn in range(3):
        table.write(Operation.UPSERT, simple_rows(range(2 * turn, 2 * turn + 4), turn))
    prepared = _prepared(table)
    for turn in range(3, 6):
        table.write(Operation.UPSERT, simple_rows(range(turn, 2 * turn + 4), turn))
    session = table.session()
    found = _metadata(session)
    assert prepared.fits(found), "only delta commits came"
    compaction.compact(session.storage, found, _writer(session), session.times, prepared, LocalEngine())
    assert len(compaction.fresh_deltas(_metadata(table.session()))) == 3, "those of meanwhile are still to be compacted"
    table.check()
    check_all(table.storage)
    table.write(Operation.UPSERT, simple_rows(range(20), 7))
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda table, newest: table.rollback(newest),
        lambda table, _: table.metadata.drop_index("partition_stats"),
        lambda table, _: Table(table.path, {"hoodie.metadata.compact.max.delta.commits": "1"}).upsert(simple_rows([9], 9)),
    ],
    ids=["undone", "an index dropped", "compacted by another"],
)
def test_a_merge_is_not_used_after_the_table_was_changed_below_it(
    tmp_path: Path, meanwhile: Callable[[Table, str], object]
) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "100"})
    instants = [table.write(Operation.UPSERT, simple_rows(range(4), turn)).instant for turn in range(3)]
    prepared = _prepared(table)
    meanwhile(Table(table.path), instants[-1])
    assert not prepared.fits(_metadata(table.session()))


def test_a_log_compaction_of_apache_hudi_that_died_is_taken_back_before_a_compaction(tmp_path: Path) -> None:
    """Apache Hudi would run it first, and refuse to write: "a compaction instant with greater timestamp exists"."""
    options = {**SIMPLE_OPTIONS, "hoodie.metadata.compact.max.delta.commits": "100"}
    table = ModelledTable(str(tmp_path / "t"), options)
    for turn in range(3):
        table.write(Operation.UPSERT, simple_rows(range(4), turn))
    session = table.session()
    found = _metadata(session)
    instant, planned = session.times.next(found.timeline.last_time), compaction.plan(found)
    inner = tmp_path / "t" / ".hoodie" / "metadata"
    (inner / ".hoodie" / "timeline" / f"{instant}.logcompaction.requested").write_bytes(planned.encode())
    (inner / ".hoodie" / "timeline" / f"{instant}.logcompaction.inflight").touch()
    half = inner / "files" / f".files-0000-0_{instant}.log.1_0-1-1"
    half.write_bytes(b"#HUDI#")
    assert compaction.is_due(found, 1)
    assert not compaction.is_due(_metadata(table.session()), 1), "the next write takes it back first"
    rows = simple_rows(range(2, 6), 9)
    write_rows(WriteSession(open_storage(table.path), COMPACT_ALWAYS), Operation.UPSERT, rows)
    table.model.write(Operation.UPSERT, rows)
    assert list(inner.rglob("*.commit"))
    assert not list(inner.rglob("*.logcompaction.*"))
    assert not half.exists()
    table.check()
    check_all(table.storage)


def test_one_writer_merges_and_another_when_that_one_died() -> None:
    alone = [fresh for fresh in range(28) if compaction.falls_to(fresh, 10, pending=False)]
    assert alone == [10, 15, 20, 25], "the one whose commit makes it due, and one now and then"
    beside = [fresh for fresh in range(43) if compaction.falls_to(fresh, 10, pending=True)]
    assert beside == [30, 35, 40], "a pending write may still be taken back, so a compaction waits for it for a while"
    assert [fresh for fresh in range(6) if compaction.falls_to(fresh, 1, pending=True)] == [3, 4, 5]


def test_a_merge_that_does_not_fit_is_made_again_while_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of an index that was dropped meanwhile nothing comes back."""
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    session, held = table.session(options=COMPACT_ALWAYS), list[bool]()
    prepare_merge = compaction.prepare

    def prepared_before_a_drop(*args: Any) -> compaction.PreparedCompaction:
        held.append(session.lock.is_held)
        prepared = prepare_merge(*args)
        if len(held) == 1:
            Table(table.path).metadata.drop_index("partition_stats")
        return prepared

    monkeypatch.setattr(compaction, "prepare", prepared_before_a_drop)
    table.model.write(Operation.UPSERT, simple_rows([1], 2))
    write_rows(session, Operation.UPSERT, simple_rows([1], 2))
    assert held == [False, False]
    assert session.coordinator.compacted_metadata
    assert not (Path(table.path) / ".hoodie/metadata/partition_stats").exists()
    table.check()
    check_all(table.storage)


def test_a_table_that_was_upgraded_meanwhile_is_compacted_by_a_later_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this writer merged is of the old version; it says that the upkeep is left."""
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    session, prepare_merge = table.session(options=COMPACT_ALWAYS), compaction.prepare

    def prepared_before_an_upgrade(*args: Any) -> compaction.PreparedCompaction:
        prepared = prepare_merge(*args)
        monkeypatch.setattr(compaction, "prepare", prepare_merge)
        Table(table.path).upgrade()
        return prepared

    monkeypatch.setattr(compaction, "prepare", prepared_before_an_upgrade)
    table.model.write(Operation.UPSERT, simple_rows([1], 2))
    report = write_rows(session, Operation.UPSERT, simple_rows([1], 2))
    assert any("the table has version 9 now, and had 8" in note for note in report.notes)
    table.check()
    check_all(table.storage)
    table.write(Operation.UPSERT, simple_rows([2], 3))
    table.check()


def test_file_groups_far_away_are_merged_while_others_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.metadata.record.index.enable": "true"})
    far = FarAway(meeting=4, among=r"record_index/\.record-index-\S+_1-0-0$")
    table.write(Operation.UPSERT, simple_rows(range(40), 1))
    compacting = OPTIONS.read({**table.options.given, "hoodie.metadata.compact.max.delta.commits": "1"})
    far.begin(monkeypatch)
    session = WriteSession(open_storage(shutil.copytree(table.path, tmp_path / "elsewhere")), compacting)
    write_rows(session, Operation.BULK_INSERT, simple_rows([100], 2))
    assert session.coordinator.compacted_metadata
    assert far.most >= 4
    monkeypatch.undo()
    assert Table(tmp_path / "elsewhere").metadata.validate().holds


EVERY_KIND = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "100",
}


def records_in(partition: str, cells: list[KeyValues], layout: RecordLayout) -> list[str]:
    """Records of base files, as `MetadataTable.records` has them."""
    if partition != "files":
        tables = [CODECS[partition].decode(found, layout.schema_text, "") for found in cells]
        return sorted(str(row) for table in tables for row in table.to_pylist())
    entries = files.without_partition_list(files.live(files.decode_values(cells[0], layout.schema_text)))
    return sorted(str({"partition_path": row["key"], "name": row["name"], "size": row["size"]}) for row in entries.to_pylist())


@pytest.mark.parametrize("piece_bytes", [1, 200_000])
def test_the_pieces_that_are_merged_do_not_show(piece_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record index of several blocks, and one of each other kind, below logs that change some of each."""
    table = ModelledTable(str(tmp_path / "t"), EVERY_KIND)
    compacting = OPTIONS.read({**EVERY_KIND, "hoodie.metadata.compact.max.delta.commits": "1"})
    write_rows(table.session(options=compacting), Operation.INSERT, simple_rows(range(6_000), 1))
    for operation, ids in ((Operation.UPSERT, range(0, 7_000, 9)), (Operation.DELETE, range(0, 6_000, 11))):
        write_rows(table.session(), operation, simple_rows(ids, 2))
    metadata, _ = open_metadata(Path(table.path))
    writer = MetadataWriter(table.storage, metadata.version, InstantGenerator(SystemClock()))
    groups = [(name, group) for name in metadata.ready for group in metadata.named_groups(name)]
    assert {name for name, group in groups if group.base and group.logs} >= {"column_stats", "record_index"}
    assert "bloom_filters" in {name for name, _ in groups}  # whose logs may belong to other groups than its base files

    def base_files() -> list[tuple[bytes, int]]:
        pieces = [metadata.group_pieces(name, group, writer.layout) for name, group in groups]
        return [encode_base(writer.version, "f", some) for some in pieces]

    def statistics() -> list[dict[str, object]]:
        found = answers.column_stats(metadata, {"id": pa.string(), "ts": pa.int64()})
        return [row for table in found.values() for row in table.sort_by("file_name").to_pylist()]

    def listing() -> list[dict[str, object]]:
        return (
            pa.concat_tables(metadata.file_pieces())
            .sort_by([("partition_path", "ascending"), ("name", "ascending")])
            .to_pylist()
        )

    at_once, statistics_at_once, listing_at_once = base_files(), statistics(), listing()
    for name in metadata.ready:
        new = [HFileReader(data).scan() for (partition, _), (data, _) in zip(groups, at_once, strict=True) if partition == name]
        assert records_in(name, new, writer.layout) == sorted(map(str, metadata.records(name).to_pylist()))
    monkeypatch.setattr(slice_files, "PIECE_BYTES", piece_bytes)
    monkeypatch.setattr(slice_files, "LARGE_BYTES", piece_bytes)
    assert base_files() == at_once
    assert statistics() == statistics_at_once
    assert listing() == listing_at_once
