"""Where batches of a stream begin and end: every commit in one batch, whole, and what is gone is said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, StreamDataLoss
from hudimeta.read.stream_positions import (
    BEFORE_ALL,
    StreamBatchRange,
    StreamSettings,
    as_of_now,
    doubt_of,
    first_position,
    next_batch,
)
from hudimeta.testing.builders import simple_rows
from tests.conftest import Unpack
from tests.read.test_incremental import complete_at


def create(path: Path, **more: Any) -> hudimeta.Table:
    rows = simple_rows(range(4), 1)
    table = hudimeta.Table.create(path, rows.schema, key="id", partition_by="part", ordering="ts", **more)
    table.insert(rows)
    return table


def put(table: hudimeta.Table, *batches: Iterable[int]) -> list[str]:
    """Completion times of the writes."""
    return [str(table.upsert(simple_rows(ids, number + 2)).completion) for number, ids in enumerate(batches)]


def settings(**given: str) -> StreamSettings:
    return StreamSettings.of(OPTIONS.read(given))


def all_batches(table: hudimeta.Table, how: StreamSettings, since: str) -> list[StreamBatchRange]:
    found = []
    while (batch := next_batch(table.snapshot(), since, how)) is not None:
        found.append(batch)
        since = batch.end
    return found


def rows_of(table: hudimeta.Table, batch: StreamBatchRange) -> list[str]:
    scan = table.scan(query_type="incremental", begin=batch.begin, end=batch.end, columns=["id"])
    return sorted(scan.to_table()["id"].to_pylist())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_batches_are_whole_commits_and_each_commit_is_in_one(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path / "t", type=kind)
    first = table.timeline.writes[0].completed_at
    later = put(table, [0, 7], [1], [9])
    ends = [first, *later]
    for given in ({"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1"}):
        one_by_one = all_batches(table, settings(**given), BEFORE_ALL)
        assert [batch.end for batch in one_by_one] == ends
    by_two = all_batches(table, settings(maxFilesPerTrigger="3"), BEFORE_ALL)
    assert [batch.end for batch in by_two] == [first, later[1], later[2]]
    assert by_two[1].begin == first
    assert rows_of(table, by_two[1]) == rows_of(table, StreamBatchRange(first, later[1]))
    (whole,) = all_batches(table, settings(), BEFORE_ALL)
    assert (whole.end, rows_of(table, whole)) == (later[2], sorted(table.scan().to_table()["id"].to_pylist()))
    assert all_batches(table, settings(), later[2]) == []
    until = next_batch(table.snapshot(), BEFORE_ALL, settings(), later[0])
    assert until == StreamBatchRange(BEFORE_ALL, later[0])


def test_a_requested_time_becomes_a_completion_time_that_passes_nothing_by(tmp_path: Path) -> None:
    """As a position does when a table of version 6, where the latter are not known, is upgraded."""
    table = create(tmp_path / "t")
    put(table, [5], [6], [7])
    one, two, three, four = table.timeline.writes
    slow = int(three.completed_at) + 1  # the second one completes after the third
    table = complete_at(table, two, slow)
    timeline = table.timeline
    assert as_of_now(timeline, one.time) == one.completed_at
    assert as_of_now(timeline, two.time) == one.completed_at, "the third one was not read"
    assert as_of_now(timeline, three.time) == str(slow)
    assert as_of_now(timeline, four.time) == as_of_now(timeline, four.completed_at) == four.completed_at
    assert as_of_now(timeline, str(slow + 1)) == str(slow + 1), "what is of no write stays as it is"


def test_a_position_in_the_archive_of_a_table_of_version_6_is_not_doubted(rich_table: Unpack) -> None:
    """Nobody reads that archive here, so that it may be of a commit there."""
    path = rich_table("v6_mor_written_by_12", fresh=True)
    first = hudimeta.Table(path).timeline.writes[0].time
    archive = path / hudimeta.Table(path).timeline.history.folder
    for file in (path / ".hoodie").glob(f"{first}.*"):
        file.unlink()
    told = "the table has no commit that ended then"
    assert doubt_of(hudimeta.Table(path).snapshot(), first, is_start=False).startswith(told)
    archive.mkdir(exist_ok=True)
    (archive / ".commits_.archive.1_1-0-1").write_bytes(b"entries that say so")
    assert doubt_of(hudimeta.Table(path).snapshot(), first, is_start=False) == ""


def test_a_stream_begins_where_it_is_told(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    (second,) = put(table, [8])
    begins = {given: first_position(table.snapshot(), settings(**{"hoodie.datasource.streaming.startOffset": given}))
              for given in ("earliest", "LATEST", second)}  # fmt: skip
    assert begins == {"earliest": BEFORE_ALL, "LATEST": second, second: second}
    for refused in (
        {"hoodie.datasource.query.type": "read_optimized"},
        {"hoodie.datasource.read.begin.instanttime": "000"},
        {"as.of.instant": "2026-01-01"},
    ):
        with pytest.raises(ConfigError, match="in a stream"):
            settings(**refused)
    with pytest.raises(ConfigError, match=r"A stream begins where hoodie.datasource.streaming.start[oO]ffset says"):
        table.scan(begin="000").plan()
    for unknown in ("newest", "17"):
        with pytest.raises(ConfigError, match=r"startoffset.*allowed is earliest, latest, or .*yyyy"):
            first_position(table.snapshot(), settings(**{"hoodie.datasource.streaming.startOffset": unknown}))


def cleaned(path: Path, **more: Any) -> tuple[hudimeta.Table, list[str]]:
    """A table whose cleaner has kept the last two of six commits."""
    options = {**more.pop("options", {}), "hoodie.clean.commits.retained": "2", "hoodie.clean.automatic": "false"}
    table = create(path, options=options, **more)
    ends = [table.timeline.writes[0].completed_at, *put(table, [0], [0, 50], [0], [0], [0])]
    table.clean()
    return hudimeta.Table(path), ends


def test_cleaned_commits_are_told_or_left_out(tmp_path: Path) -> None:
    table, ends = cleaned(tmp_path / "t")
    everything = sorted(table.scan().to_table()["id"].to_pylist())
    (fresh,) = all_batches(table, settings(), BEFORE_ALL)
    assert (fresh.lost, rows_of(table, fresh)) == ("", everything), "a new stream begins with what there is"
    with pytest.raises(StreamDataLoss, match="later commits were cleaned") as caught:
        next_batch(table.snapshot(), ends[0], settings())
    earliest = caught.value.earliest
    assert (caught.value.position, earliest in ends) == (ends[0], True)
    assert "failOnDataLoss=false" in str(caught.value)
    one_by_one = all_batches(table, settings(failOnDataLoss="false", maxFilesPerTrigger="1"), ends[0])
    assert one_by_one[0].end == earliest
    assert "cleaned" in one_by_one[0].lost
    assert [batch.lost for batch in one_by_one[1:]] == [""] * (len(one_by_one) - 1)
    assert any("50" in row for row in rows_of(table, one_by_one[0])), "a row of a cleaned commit that is still there"
    assert all_batches(table, settings(), earliest), "behind what is kept nothing is lost"


def test_changes_of_cleaned_commits_are_left_out(tmp_path: Path) -> None:
    table, ends = cleaned(tmp_path / "t", options={"hoodie.table.cdc.enabled": "true"})
    how = settings(**{"hoodie.datasource.query.type": "cdc", "failOnDataLoss": "false"})
    (batch,) = all_batches(table, how, ends[0])
    assert batch.begin > ends[0]
    assert "cleaned" in batch.lost
    changes = table.scan(query_type="cdc", begin=batch.begin, end=batch.end).to_table()
    assert changes["op"].to_pylist() == ["u"] * 2
    assert first_position(table.snapshot(), how) == batch.begin


@pytest.mark.parametrize("archives", [False, True])
@pytest.mark.parametrize("kind", ["incremental", "cdc"])
def test_a_service_that_was_planned_before_what_is_kept_is_no_loss(tmp_path: Path, kind: str, archives: bool) -> None:
    """It completes behind what the stream has read, and brings no rows."""
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.metadata.compact.max.delta.commits": "2"}
    by_hand = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
    at_once = {"hoodie.clean.commits.retained": "1", "hoodie.compact.inline.max.delta.commits": "1"}
    options = {**few, **by_hand, **at_once, "hoodie.table.cdc.enabled": "true"}
    table = create(tmp_path / "t", type="MERGE_ON_READ", options=options)
    for _ in range(3):
        put(table, [1])  # in another partition, for the clean to have something to delete
        table.compact()
    put(table, [0])
    planned = table.schedule_compaction()
    read = put(table, [0], [0])[-1]
    assert table.clean().deleted
    table.compact()
    if archives:
        put(table, [50])
        table.archive()
    table = hudimeta.Table(tmp_path / "t")
    assert planned is not None
    assert (planned < table.snapshot().earliest_kept, table.timeline.get(planned) is None) == (True, archives)
    batches = all_batches(table, settings(**{"hoodie.datasource.query.type": kind, "maxFilesPerTrigger": "1"}), read)
    assert {(batch.lost, batch.larger) for batch in batches} == {("", "")}
    changed = [table.scan(query_type=kind, begin=b.begin, end=b.end).to_table().num_rows for b in batches]
    assert sum(changed) == int(archives), "what was written after the position"


ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_batch_does_not_end_where_file_versions_are_cleaned(tmp_path: Path, kind: str) -> None:
    """It would leave out rows of file groups that later commits have written anew."""
    table = create(tmp_path / "t", type=kind, options={**ONE_VERSION, "hoodie.clean.automatic": "false"})
    put(table, [0, 7], [1], [9], [0])
    if kind == "MERGE_ON_READ":
        table.compact()
    last = put(table, [2])[-1]
    table.clean()
    by_one = all_batches(hudimeta.Table(tmp_path / "t"), settings(maxFilesPerTrigger="1"), BEFORE_ALL)
    rows = [row for batch in by_one for row in rows_of(table, batch)]
    assert set(rows) == set(table.scan().to_table()["id"].to_pylist())
    assert (by_one[-1].end, {batch.lost for batch in by_one}) == (last, {""})
    first_write = table.timeline.writes[0].completed_at
    assert (by_one[0].larger, by_one[-1].end > first_write) == (f"cleaning took what the table was at {first_write}", True)
    assert next_batch(table.snapshot(), BEFORE_ALL, settings()) == StreamBatchRange(BEFORE_ALL, last), "nothing was asked for"


def test_a_new_stream_of_changes_begins_behind_what_a_cleaner_of_versions_took(tmp_path: Path) -> None:
    table = create(
        tmp_path / "t", options={**ONE_VERSION, "hoodie.clean.automatic": "false", "hoodie.table.cdc.enabled": "true"}
    )
    *_, gone, kept = put(table, [0], [0], [0])
    table.clean()
    how = settings(**{"hoodie.datasource.query.type": "cdc"})
    assert first_position(table.snapshot(), how) == gone
    assert all_batches(table, how, gone) == [StreamBatchRange(gone, kept)]


def test_a_first_batch_does_not_end_where_versions_of_archived_commits_are_cleaned(tmp_path: Path) -> None:
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.metadata.compact.max.delta.commits": "2"}
    table = create(tmp_path / "t", options={**ONE_VERSION, **few, "hoodie.clean.automatic": "false"})
    *_, last = put(table, [1], [1], [1], [0], [0])
    table.clean()
    table.archive()
    table = hudimeta.Table(tmp_path / "t")
    assert len(table.timeline.writes) == 3, "the others are archived, among them the first, whose files of p0 are gone"
    (whole,) = all_batches(table, settings(maxFilesPerTrigger="1"), BEFORE_ALL)
    assert (whole.end, rows_of(table, whole)) == (last, sorted(table.scan().to_table()["id"].to_pylist()))
