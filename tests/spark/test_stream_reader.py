"""The reader behind `readStream`, asked as Spark asks it, without a session: where batches end, and what their rows are."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark_hudimeta.plain.source import DefaultSource
from pyspark_hudimeta.plain.stream_reader import HudiStreamReader

import hudimeta
from hudimeta.config import HudiWarning
from hudimeta.errors import ConfigError, SchemaError, StreamDataLoss, TableError, UnsupportedFeature
from tests.conftest import Unpack
from tests.spark.tables import create, rows

Offset = dict[str, str]
CDC = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}


def begin(path: Path, **options: str) -> HudiStreamReader:
    """As Spark begins a stream: the relation is made first, and pickled on its way to the stream's own process."""
    source = DefaultSource({"path": str(path), **{key.lower(): value for key, value in options.items()}})
    schema = source.schema()
    copied: DefaultSource = pickle.loads(pickle.dumps(source))
    return copied.streamReader(schema)


def limited(reader: HudiStreamReader, start: Offset) -> Offset:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def rows_of(reader: HudiStreamReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    """What the tasks of a batch read, by a copy of the reader."""
    task: HudiStreamReader = pickle.loads(pickle.dumps(reader))
    shares = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    return [row for share in shares for batch in task.read(share) for row in batch.to_pylist()]


def ids_of(reader: HudiStreamReader, start: Offset, end: Offset) -> list[int]:
    return sorted(row["id"] for row in rows_of(reader, start, end))


def test_batches_follow_each_other(tmp_path: Path) -> None:
    table = create(tmp_path, rows([0, 5]))
    table.upsert(rows([5, 10], 2))
    reader = begin(tmp_path, maxFilesPerTrigger="1")
    start = reader.initialOffset()
    first = limited(reader, start)
    second = limited(reader, first)
    assert limited(reader, second) == second
    assert (ids_of(reader, start, first), ids_of(reader, first, second)) == ([0, 5], [5, 10])
    assert reader.partitions(second, second) == []
    everything = begin(tmp_path)
    assert everything.latestOffset(start, everything.getDefaultReadLimit())["offsetCommitTime"] == second["offsetCommitTime"]
    assert reader.reportLatestOffset() == {"offsetCommitTime": second["offsetCommitTime"]}
    table.upsert(rows([15], 3))
    reader.prepareForTriggerAvailableNow()
    table.upsert(rows([20], 4))
    third = limited(reader, second)
    assert limited(reader, third) == third, "what came later waits for the next query"
    assert ids_of(begin(tmp_path), second, third) == [15], "a query that starts anew reads the same"


@pytest.mark.parametrize(
    "kept",
    [
        {"logOffset": 3},
        {"offsetCommitTime": "earliest"},
        {"offsetCommitTime": ""},
        {"offsetCommitTime": 20261129132719394},
        {"offsetCommitTime": "20261129132719394", "from": None},
        {"offsetCommitTime": "2026112913271939\u0664"},
        [3],
    ],
)
def test_an_offset_that_is_no_position_is_refused(tmp_path: Path, kept: Any) -> None:
    """Of a checkpoint that is damaged, or one of another source."""
    create(tmp_path, rows([0]))
    reader = begin(tmp_path)
    end = reader.latestOffset(reader.initialOffset())
    for ask in (
        lambda: reader.latestOffset(kept),
        lambda: reader.partitions(kept, end),
        lambda: reader.partitions(reader.initialOffset(), kept),
    ):
        with pytest.raises(ConfigError, match=r"an offset of the stream's checkpoint .*checkpointLocation"):
            ask()


def test_a_position_ahead_of_the_table_is_told_once(tmp_path: Path) -> None:
    table = create(tmp_path / "t", rows([0]))
    other = create(tmp_path / "other", rows([0]))
    other.upsert(rows([5], 2))
    reader = begin(tmp_path / "other")
    end = reader.latestOffset(reader.initialOffset())
    stream = begin(tmp_path / "t")
    with pytest.warns(HudiWarning, match="no commit that ended then: what was read since is taken back, or the checkpoint"):
        assert stream.latestOffset(end) == end
    assert stream.latestOffset(end) == end
    table.upsert(rows([10], 3))
    assert ids_of(stream, end, stream.latestOffset(end)) == [10]


def test_what_a_restore_took_back_behind_a_stream_is_told_after_newer_commits_too(tmp_path: Path) -> None:
    table = create(tmp_path, rows([0]))
    first = table.timeline.writes[0].time
    table.savepoint(first)
    start = begin(tmp_path).latestOffset(begin(tmp_path).initialOffset())
    table.upsert(rows([5], 2))
    read = begin(tmp_path).latestOffset(start)
    table.restore(first)
    table.upsert(rows([10], 3))
    stream = begin(tmp_path)
    with pytest.warns(HudiWarning, match="has no commit that ended then: what was read since is taken back"):
        end = stream.latestOffset(read)
    assert ids_of(stream, read, end) == [10]
    assert ids_of(stream, start, begin(tmp_path).latestOffset(start)) == [10], "one that had not read it knows nothing of it"


def keys_of(reader: HudiStreamReader, start: Offset, end: Offset) -> list[str]:
    return sorted(row["_hoodie_record_key"] for row in rows_of(reader, start, end))


def test_a_stream_goes_on_where_it_stood_when_its_table_was_upgraded(rich_table: Unpack) -> None:
    """Positions in a table of version 6 are requested times, which all commits complete later than."""
    path = rich_table("v6_mor_written_by_12", fresh=True)
    reader = begin(path, maxFilesPerTrigger="1")
    offsets = [reader.initialOffset()]
    while (end := limited(reader, offsets[-1])) != offsets[-1]:
        offsets.append(end)
    batches = list(itertools.pairwise(offsets))
    before = [keys_of(reader, *batch) for batch in batches]
    assert sum(map(bool, before)) > 3
    upgraded = hudimeta.Table(path)
    upgraded.upgrade()
    again = begin(path, maxFilesPerTrigger="1")
    assert [keys_of(again, *batch) for batch in batches] == before, "batches that are repeated"
    for number, start in enumerate(offsets[1:], 1):
        rest = []
        while (end := limited(again, start)) != start:
            rest += keys_of(again, start, end)
            start = end
        assert sorted(rest) == sorted(itertools.chain(*before[number:])), "what the stream had not read, once"


def test_latest_does_not_move_when_its_first_batch_is_repeated(tmp_path: Path) -> None:
    table = create(tmp_path, rows([0]))
    start = {"hoodie.datasource.streaming.startOffset": "latest"}
    reader = begin(tmp_path, **start)
    offset = reader.initialOffset()
    assert limited(reader, offset) == offset
    table.upsert(rows([5], 2))
    end = limited(reader, offset)
    again = begin(tmp_path, **start)
    assert again.initialOffset() != offset
    assert ids_of(again, again.initialOffset(), end) == [5]


@pytest.mark.oldest
@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_batch_begins_where_spark_says_however_early_its_end_was_asked_for(tmp_path: Path, start: str) -> None:
    """As Spark 4.1 asks where `spark.sql.streaming.triggerAvailableNowWrapper.enabled` is set."""
    options = {"hoodie.datasource.streaming.startOffset": start}
    table = create(tmp_path, rows([0]))
    reader = begin(tmp_path, **options)
    offset = reader.initialOffset()
    table.upsert(rows([5], 2))
    first = reader.latestOffset(offset)
    table.upsert(rows([10], 3))
    again = begin(tmp_path, **options)
    newest = again.latestOffset()
    assert ids_of(again, again.initialOffset(), first) == ([0, 5] if start == "earliest" else [5]), "the first batch repeated"
    assert ids_of(again, first, newest) == [10]


def test_changes_come_with_their_images(tmp_path: Path) -> None:
    table = create(tmp_path, rows([0]), options={"hoodie.table.cdc.enabled": "true"})
    table.upsert(rows([0, 5], 2))
    table.delete(rows([5]))
    reader = begin(tmp_path, **CDC)
    start = reader.initialOffset()
    assert sorted(row["op"] for row in rows_of(reader, start, limited(reader, start))) == ["d", "i", "i", "u"]


def test_columns_stay_as_they_were_when_the_stream_began(tmp_path: Path) -> None:
    table = create(tmp_path, rows([0]))
    reader = begin(tmp_path)
    start = limited(reader, reader.initialOffset())
    more = rows([5], 2)
    table.upsert(more.append_column("more", more["x"]))
    end = limited(reader, start)
    (row,) = rows_of(reader, start, end)
    assert (row["id"], "more" in row) == (5, False)
    assert "more" in rows_of(begin(tmp_path), start, end)[0], "a query that starts anew has it"
    table.alter(rename={"x": "y"})
    with pytest.raises(SchemaError, match="no longer the columns with which the stream began: 'x' is none of its columns"):
        reader.partitions(start, limited(reader, end))


def test_lost_commits_end_the_stream_unless_it_may_go_on(tmp_path: Path) -> None:
    table = create(tmp_path, rows([0]), options={"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"})
    reader = begin(tmp_path)
    start = limited(reader, reader.initialOffset())
    for ts in range(2, 5):
        table.upsert(rows([0, 5 * ts], ts))
    table.clean()
    with pytest.raises(StreamDataLoss, match="failOnDataLoss=false"):
        limited(begin(tmp_path), start)
    lenient = begin(tmp_path, failOnDataLoss="false", maxFilesPerTrigger="1")
    with pytest.warns(HudiWarning, match="it goes on at"):
        end = limited(lenient, start)
    assert ids_of(lenient, start, end)[:3] == [0, 10, 15]
    lost = {
        **start,
        "from": start["offsetCommitTime"],
        "offsetCommitTime": hudimeta.Table(tmp_path).timeline.writes[1].completed_at,
    }
    with pytest.warns(HudiWarning, match="cleaning removed files of the range: its batch up to .* has what is left"):
        left = ids_of(lenient, start, lost)
    assert left == [10], "a batch that was begun before the cleaning has what is left of it"


@pytest.mark.parametrize("kind", [{}, CDC], ids=["rows", "changes"])
def test_a_batch_that_was_begun_before_a_clean_of_versions_ends_the_stream_unless_it_may_go_on(
    tmp_path: Path, kind: dict[str, str]
) -> None:
    """A cleaner that keeps versions names no earliest commit: files alone tell what is gone, of the next batch as well."""
    one_version = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table = create(
        tmp_path, rows([0]), options={**one_version, "hoodie.clean.automatic": "false", "hoodie.table.cdc.enabled": "true"}
    )
    begun = begin(tmp_path, **kind)
    start = limited(begun, begun.initialOffset())
    table.upsert(rows([0, 5], 2))
    end = limited(begun, start)
    table.upsert(rows([0, 10], 3))
    table.clean()
    with pytest.raises(
        StreamDataLoss, match=r"which it had begun, not everything is left: cleaning removed .*failOnDataLoss=false"
    ):
        begin(tmp_path, **kind).partitions(start, end)
    lenient = begin(tmp_path, failOnDataLoss="false", **kind)
    with pytest.warns(HudiWarning, match=rf"up to {start['offsetCommitTime']}, and cleaning removed .*has what is left"):
        left = rows_of(lenient, start, end)
    newest = rows_of(lenient, end, limited(lenient, end))
    if kind:
        assert (left, [row["op"] for row in newest]) == ([], ["u", "i"]), "changes of one commit are told all or not at all"
        with pytest.raises(
            StreamDataLoss, match=r"1 later commit was cleaned; the earliest .* completed at " + last_write(table)
        ):
            limited(begin(tmp_path, **kind), start)
        with pytest.warns(HudiWarning):
            assert [row["op"] for row in rows_of(lenient, start, limited(lenient, start))] == ["u", "i"]
    else:
        assert ([row["id"] for row in left], sorted(row["id"] for row in newest)) == ([5], [0, 10])


def test_a_clean_between_plan_and_rows_says_to_start_again(tmp_path: Path) -> None:
    table = create(tmp_path, rows([0]), options={"hoodie.clean.automatic": "false", "hoodie.clean.commits.retained": "1"})
    reader = begin(tmp_path)
    start = reader.initialOffset()
    shares = reader.partitions(start, limited(reader, start))
    for ts in range(2, 5):
        table.upsert(rows([0], ts))
    table.clean()
    with pytest.raises(TableError, match=r"a clean came between .* Start the query again with the same checkpoint"):
        list(reader.read(shares[0]))


def last_write(table: hudimeta.Table) -> str:
    return hudimeta.Table(table.path).timeline.writes[-1].completed_at


def test_a_batch_that_ends_later_than_its_limit_says_so(tmp_path: Path) -> None:
    one_version = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table = create(tmp_path, rows([0]), options=one_version)
    table.upsert(rows([0], 2))
    table.upsert(rows([0], 3))
    reader = begin(tmp_path, maxFilesPerTrigger="1")
    start = reader.initialOffset()
    with pytest.warns(HudiWarning, match=f"at {table.timeline.writes[0].completed_at}: the batch that would end there ends at"):
        end = limited(reader, start)
    assert end["offsetCommitTime"] == table.timeline.writes[-1].completed_at
    assert ids_of(reader, start, end) == [0]
    assert limited(reader, start) == end, "asked again, it says nothing more"


def test_what_belongs_to_no_stream_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path, rows([0]))
    for options in ({"as.of.instant": "2026"}, {"hoodie.datasource.query.type": "read_optimized"}):
        with pytest.raises(ConfigError, match="stream"):
            DefaultSource({"path": str(tmp_path), **options}).streamReader(begin(tmp_path)._schema)
    monkeypatch.setattr("pyspark_hudimeta.plain.stream_reader.has_read_limits", lambda: False)
    with pytest.raises(UnsupportedFeature, match=r"Spark 4\.1"):
        begin(tmp_path, maxBytesPerTrigger="1000")
