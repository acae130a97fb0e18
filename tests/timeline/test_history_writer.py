"""The history: what is added is read back, many files become few, and a reader of an older manifest still finds its files."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudimeta.errors import AlreadyExists, CorruptFileError, NotFound
from hudimeta.storage import CountingStorage, RequestLog, open_storage
from hudimeta.timeline.active import Timeline
from hudimeta.timeline.history import History
from hudimeta.timeline.history_writer import FILES_TO_MERGE, MANIFESTS_KEPT, HistoryWriter, archived_rows, without
from tests.examples import at_most

FOLDER = ".hoodie/timeline/history"


def time(number: int) -> str:
    return f"{20260101000000000 + number}"


def rows(first: int, count: int) -> pa.Table:
    return archived_rows([(time(n), time(n + 1), "commit", b"m%d" % n, None) for n in range(first, first + count)])


def history(path: Path) -> History:
    return History(open_storage(str(path)), FOLDER, 2)


def add(path: Path, first: int, count: int) -> None:
    HistoryWriter(open_storage(str(path)), history(path)).add(rows(first, count))


def test_what_is_added_is_read_back(tmp_path: Path) -> None:
    add(tmp_path, 0, 3)
    add(tmp_path, 3, 2)
    assert history(tmp_path).load().equals(rows(0, 5))
    assert [entry.name for entry in history(tmp_path).manifest()] == [
        f"{time(0)}_{time(2)}_0.parquet",
        f"{time(3)}_{time(4)}_0.parquet",
    ]
    for entry in history(tmp_path).manifest():
        assert (tmp_path / FOLDER / entry.name).stat().st_size == entry.size


def test_only_files_that_reach_an_instant_are_read_for_it(tmp_path: Path) -> None:
    for first in (0, 3, 6):
        add(tmp_path, first, 3)
    log = RequestLog()
    storage = CountingStorage(open_storage(str(tmp_path)), log)
    asked = History(storage, FOLDER, 2)
    assert asked.times(time(5))["instant_time"].to_pylist() == [time(n) for n in range(3, 9)]
    opened = len(log)
    assert asked.times(time(7))["instant_time"].to_pylist() == [time(n) for n in range(3, 9)]  # read already
    assert len(log) == opened
    assert asked.times()["instant_time"].to_pylist() == [time(n) for n in range(9)]

    timeline = Timeline.load(storage)
    later = len(log)
    assert timeline.archived_completions([time(7), time(40)]) == {time(7): time(8)}
    read = {request.path for request in log.since(later) if request.path.endswith(".parquet")}
    assert read == {f"{FOLDER}/{time(6)}_{time(8)}_0.parquet"}
    assert timeline.archived_completions([]) == {}


def test_files_have_the_schema_that_apache_hudi_writes(tmp_path: Path) -> None:
    add(tmp_path, 0, 1)
    footer = pq.read_metadata(next((tmp_path / FOLDER).glob("*.parquet")))
    assert [footer.schema.column(i).name for i in range(6)] == [
        "instantTime",
        "completionTime",
        "action",
        "metadata",
        "plan",
        "version",
    ]
    assert footer.schema.column(5).max_definition_level == 0  # required
    assert footer.row_group(0).column(0).compression == "GZIP"
    assert b"HoodieLSMTimelineInstant" in footer.metadata[b"parquet.avro.schema"]


def test_every_byte_of_a_file_is_verified(tmp_path: Path) -> None:
    add(tmp_path, 0, 2)
    add(tmp_path, 2, 2)
    file, other = sorted((tmp_path / FOLDER).glob("*.parquet"))
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for at in [*range(4, footer, 7), *range(footer, len(content) - 8, 3), *range(len(content) - 8, len(content))]:
        file.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        try:
            found = history(tmp_path).load()
        except CorruptFileError:
            continue
        assert at < footer, "a footer is sealed"
        assert found.equals(rows(0, 4)), "a page's header has bytes that mean nothing"
    file.write_bytes(other.read_bytes())
    with pytest.raises(CorruptFileError):
        history(tmp_path).load()


def test_ten_files_become_one_and_older_manifests_stay_readable(tmp_path: Path) -> None:
    for n in range(FILES_TO_MERGE - 1):
        add(tmp_path, n, 1)
    before = history(tmp_path).manifest()
    add(tmp_path, FILES_TO_MERGE - 1, 1)
    merged = history(tmp_path).manifest()
    assert [entry.name for entry in merged] == [f"{time(0)}_{time(FILES_TO_MERGE - 1)}_1.parquet"]
    assert all((tmp_path / FOLDER / entry.name).exists() for entry in before)
    for n in range(MANIFESTS_KEPT):
        add(tmp_path, FILES_TO_MERGE + n, 1)
    assert not any((tmp_path / FOLDER / entry.name).exists() for entry in before)
    assert len(list((tmp_path / FOLDER).glob("manifest_*"))) == MANIFESTS_KEPT
    assert history(tmp_path).load().equals(rows(0, FILES_TO_MERGE + MANIFESTS_KEPT))


def test_a_run_that_is_repeated_adds_nothing_twice(tmp_path: Path) -> None:
    add(tmp_path, 0, 4)
    writer = HistoryWriter(open_storage(str(tmp_path)), history(tmp_path))
    again = without(rows(2, 4), writer.known(time(2)))
    assert again["instant_time"].to_pylist() == [time(4), time(5)]


@settings(max_examples=at_most(30))
@given(st.lists(st.integers(1, 4), min_size=1, max_size=25))
def test_any_number_of_runs_keeps_every_instant_once(tmp_path_factory: object, sizes: list[int]) -> None:
    path = tmp_path_factory.mktemp("history")  # type: ignore[attr-defined]
    first = 0
    for size in sizes:
        add(path, first, size)
        first += size
    assert history(path).load().equals(rows(0, first))


def test_a_manifest_that_is_lost_takes_no_instants_along(tmp_path: Path) -> None:
    """Neither in silence, nor for good: what only it names stays where it is."""
    for n in range(4):
        add(tmp_path, n, 1)
    newest = tmp_path / FOLDER / "manifest_4"
    content = newest.read_bytes()
    newest.unlink()
    files = sorted((tmp_path / FOLDER).iterdir())
    writer = HistoryWriter(open_storage(str(tmp_path)), history(tmp_path))
    for act in (history(tmp_path).load, writer.remove_unnamed, lambda: add(tmp_path, 4, 1)):
        with pytest.raises(CorruptFileError, match=r"manifest_4 .* the manifest that _version_ names"):
            act()
    assert files == sorted((tmp_path / FOLDER).iterdir())
    newest.write_bytes(content)
    assert history(tmp_path).load().equals(rows(0, 4))


def test_a_version_that_nobody_needs_is_not_believed(tmp_path: Path) -> None:
    """Where the newest manifest names every file, a number that lost a bit says nothing."""
    add(tmp_path, 0, 2)
    for text in ("9", "0", "", "x"):
        (tmp_path / FOLDER / "_version_").write_text(text)
        assert history(tmp_path).load().equals(rows(0, 2))


def test_a_manifest_that_is_published_meanwhile_is_found(tmp_path: Path) -> None:
    for n in range(3):
        add(tmp_path, n, 1)
    (tmp_path / FOLDER / "manifest_3").rename(tmp_path / "manifest_3")
    storage = open_storage(str(tmp_path))
    reads = storage.read

    def read(path: str) -> bytes:
        if path.endswith("_version_"):
            (tmp_path / "manifest_3").rename(tmp_path / FOLDER / "manifest_3")
        return reads(path)

    with mock.patch.object(storage, "read", read):
        assert History(storage, FOLDER, 2).load().equals(rows(0, 3))


def test_a_manifest_that_came_too_late_does_not_count(tmp_path: Path) -> None:
    """Its archiver stood still: others have removed the file that it names, as a leftover."""
    add(tmp_path, 0, 2)
    late, folder = tmp_path / "late", tmp_path / FOLDER
    shutil.copytree(folder, late / FOLDER)
    add(late, 2, 1)
    shutil.copy(late / FOLDER / "manifest_2", folder)
    assert history(tmp_path).load().equals(rows(0, 2))
    HistoryWriter(open_storage(str(tmp_path)), history(tmp_path)).remove_unnamed()
    add(tmp_path, 2, 1)
    assert history(tmp_path).load().equals(rows(0, 3))
    assert (folder / "_version_").read_text() == "3"


def test_a_file_that_is_lost_is_missed_without_a_version_too(tmp_path: Path) -> None:
    add(tmp_path, 0, 2)
    before = set((tmp_path / FOLDER).glob("*.parquet"))
    add(tmp_path, 2, 1)
    (newest,) = set((tmp_path / FOLDER).glob("*.parquet")) - before
    newest.unlink()
    (tmp_path / FOLDER / "_version_").unlink()
    with pytest.raises(NotFound, match=newest.name):
        history(tmp_path).load()


def test_a_manifest_that_comes_too_late_replaces_none(tmp_path: Path) -> None:
    add(tmp_path, 0, 2)
    stale = history(tmp_path)
    seen = stale.current()
    add(tmp_path, 2, 1)
    with mock.patch.object(stale, "current", return_value=seen), pytest.raises(AlreadyExists):
        HistoryWriter(open_storage(str(tmp_path)), stale).add(rows(3, 1))
    assert history(tmp_path).load().equals(rows(0, 3))


@pytest.mark.parametrize("runs", [0, 2])
def test_a_manifest_that_apache_hudi_made_and_did_not_write_does_not_count(tmp_path: Path, runs: int) -> None:
    """It was killed in between, on a local disk; so were the files that only this one would have named."""
    for number in range(runs):
        add(tmp_path, 10 * number, 10)
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"manifest_{runs + 1}").write_bytes(b"")
    (folder / f"{time(70)}_{time(71)}_0.parquet").write_bytes(b"")
    assert len(history(tmp_path).instants()) == 10 * runs
    assert history(tmp_path).manifest_number() == (runs or None)
    HistoryWriter(open_storage(str(tmp_path)), history(tmp_path)).remove_unnamed()
    assert [file.name for file in folder.glob("*.parquet") if time(70) in file.name] == []
    add(tmp_path, 80, 5)
    assert len(history(tmp_path).instants()) == 10 * runs + 5
    assert (folder / "_version_").read_text() == str(runs + 2)
    assert not (folder / f"manifest_{runs + 1}").exists()


@pytest.mark.parametrize("said", [b"3", b"", None])
def test_an_empty_manifest_that_was_published_is_damage(tmp_path: Path, said: bytes | None) -> None:
    for number in range(3):
        add(tmp_path, 10 * number, 10)
    (tmp_path / FOLDER / "manifest_3").write_bytes(b"")
    version = tmp_path / FOLDER / "_version_"
    version.unlink()
    if said is not None:
        version.write_bytes(said)
    with pytest.raises(CorruptFileError, match="manifest_3"):
        history(tmp_path).instants()
