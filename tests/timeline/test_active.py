"""The active timeline: grouping, half-written files, what is committed, what the files say."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudimeta.config.registry import HudiWarning
from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.storage import CountingStorage, RequestKind, Storage, open_storage
from hudimeta.timeline.active import Timeline
from hudimeta.timeline.listing import RELIST_PAUSES_S
from hudimeta.timeline.naming import completed_name, pending_name
from hudimeta.types import Action, State

FOLDER = ".hoodie/timeline"


def at(n: int) -> str:
    """The n-th of a row of instants."""
    return f"2026010100000{n:04d}"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


def put(storage: Storage, *names: str, content: bytes = b"{}", folder: str = FOLDER) -> None:
    for name in names:
        storage.put(f"{folder}/{name}", content)


def load(storage: Storage, layout: int = 2, sleep: Callable[[float], None] | None = None) -> Timeline:
    def refuse(seconds: float) -> None:
        pytest.fail("waited although no completed write is empty")

    return Timeline.load(storage, ".hoodie" if layout == 1 else FOLDER, layout, sleep=sleep or refuse)


def test_an_absent_or_empty_timeline_has_nothing(storage: Storage) -> None:
    timeline = load(storage)
    assert (timeline.instants, timeline.first_active_write, timeline.last_time) == ((), None, "")
    assert not timeline.is_committed(at(1))
    assert timeline.latest_schema() is None
    assert timeline.replaced_file_groups().num_rows == 0
    assert timeline.rolled_back == frozenset()
    assert repr(timeline) == "Timeline .hoodie/timeline (layout 2): 0 completed, 0 pending"


def test_the_highest_state_wins_and_services_are_told_from_writes(storage: Storage) -> None:
    put(storage, f"{at(1)}.deltacommit.requested", f"{at(1)}.deltacommit.inflight", f"{at(1)}_{at(2)}.deltacommit")
    put(storage, f"{at(3)}.compaction.requested", f"{at(3)}.compaction.inflight", f"{at(3)}_{at(4)}.commit")
    put(storage, f"{at(5)}.clustering.requested", f"{at(5)}.clustering.inflight")
    put(storage, f"{at(6)}.commit.requested", f"{at(6)}.inflight", content=b"")
    put(storage, "junk", f"{at(7)}.commit.crc", f".{at(7)}_{at(8)}.commit.crc", "history/manifest_1")
    timeline = load(storage)
    assert [(i.time, i.action, i.state, i.completion, i.pending_action) for i in timeline] == [
        (at(1), Action.DELTA_COMMIT, State.COMPLETED, at(2), None),
        (at(3), Action.COMMIT, State.COMPLETED, at(4), Action.COMPACTION),
        (at(5), Action.CLUSTERING, State.INFLIGHT, None, None),
        (at(6), Action.COMMIT, State.INFLIGHT, None, None),
    ]
    done = timeline.get(at(3))
    assert done is not None
    assert timeline.files_of(done) == (
        f"{at(3)}.compaction.requested",
        f"{at(3)}.compaction.inflight",
        f"{at(3)}_{at(4)}.commit",
    )
    assert timeline.get(at(3), Action.COMPACTION) == done
    assert timeline.get(at(3), Action.CLEAN) is None
    assert timeline.pending_writes == timeline.pending


def test_a_file_counts_when_its_instant_is_committed(storage: Storage) -> None:
    put(storage, f"{at(3)}_{at(4)}.commit", f"{at(5)}.commit.requested", f"{at(6)}_{at(7)}.commit", f"{at(8)}.clean.requested")
    timeline = load(storage)
    expected = {at(1): True, at(2): True, at(3): True, at(4): False, at(5): False, at(6): True, at(8): False}
    assert {time: timeline.is_committed(time) for time in expected} == expected
    assert timeline.completion_of(at(1)) == at(1), "archived, and no history knows when it completed"
    assert timeline.completion_of(at(6)) == at(7)
    assert timeline.completion_of(at(5)) is None
    assert list(timeline.completion_times) == [at(3), at(6)]
    assert [instant.time for instant in timeline.pending_writes] == [at(5)]
    assert timeline.last_time == at(8)


def test_a_pending_write_can_be_the_first_active_one(storage: Storage) -> None:
    put(storage, f"{at(2)}.deltacommit.requested", f"{at(4)}_{at(5)}.deltacommit")
    timeline = load(storage)
    assert timeline.first_active_write == at(2)
    assert [timeline.is_committed(at(n)) for n in (1, 2, 3, 4)] == [True, False, False, True]


def test_savepointed_writes_do_not_begin_the_timeline(storage: Storage) -> None:
    """Archiving steps over a savepointed write, so that writes between it and the next may be archived."""
    put(storage, f"{at(1)}_{at(2)}.commit", f"{at(1)}_{at(3)}.savepoint", f"{at(6)}_{at(7)}.commit")
    timeline = load(storage)
    assert timeline.first_active_write == at(6)
    assert timeline.is_committed(at(4))
    assert timeline.is_committed(at(1))


def test_what_is_older_than_savepointed_writes_was_archived(storage: Storage) -> None:
    """A restore leaves nothing behind the savepointed write; what was archived before it stays committed."""
    put(storage, f"{at(2)}_{at(3)}.commit", f"{at(2)}_{at(4)}.savepoint")
    timeline = load(storage)
    assert timeline.first_active_write == at(2)
    assert [timeline.is_committed(at(n)) for n in (1, 2, 5)] == [True, True, False]


def test_writes_between_completion_times(storage: Storage) -> None:
    put(storage, f"{at(1)}_{at(9)}.deltacommit", f"{at(2)}_{at(3)}.deltacommit", f"{at(4)}_{at(5)}.clean")
    timeline = load(storage)
    assert [i.time for i in timeline.writes_between("000")] == [at(2), at(1)]
    assert [i.time for i in timeline.writes_between(at(3))] == [at(1)]
    assert [i.time for i in timeline.writes_between("000", at(3))] == [at(2)]


def test_a_completed_file_without_completion_time_is_dated_by_its_age(storage: Storage, tmp_path: Path) -> None:
    put(storage, f"{at(1)}.commit", content=b'{"operationType": "INSERT"}')
    os.utime(tmp_path / FOLDER / f"{at(1)}.commit", (1767225600, 1767225600.5))
    (instant,) = load(storage).writes
    assert instant.completion == "20260101000000500"
    assert load(storage).metadata(instant)["operationType"] == "INSERT"


def test_an_empty_completed_write_is_awaited(storage: Storage) -> None:
    """Somebody is writing the file: its bytes arrive during the second pause."""
    put(storage, f"{at(1)}.inflight", f"{at(1)}_{at(2)}.commit", content=b"")
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            put(storage, f"{at(1)}_{at(2)}.commit")

    timeline = load(storage, sleep=sleep)
    assert timeline.writes[0].completion == at(2)
    assert pauses == list(RELIST_PAUSES_S[:2])


def test_a_completed_write_that_stays_empty_counts_by_its_name_and_says_so(storage: Storage) -> None:
    """As in Apache Hudi; but what the file should say is asked for in vain, of a clean as well."""
    put(storage, f"{at(1)}.inflight", f"{at(1)}_{at(2)}.commit", f"{at(3)}_{at(4)}.deltacommit", content=b"")
    put(storage, f"{at(5)}_{at(6)}.clean", content=b"")
    pauses: list[float] = []
    with pytest.warns(HudiWarning) as warned:
        timeline = load(storage, sleep=pauses.append)
    assert pauses == list(RELIST_PAUSES_S), "bounded"
    assert not timeline.pending
    assert [i.time for i in timeline.empty_writes] == [at(1), at(3)]
    assert timeline.is_committed(at(1))
    paths = [f"{FOLDER}/{at(1)}_{at(2)}.commit", f"{FOLDER}/{at(3)}_{at(4)}.deltacommit"]
    assert [str(w.message).partition(" ")[0] for w in warned] == paths
    for instant, path in zip(timeline.writes, paths, strict=True):
        with pytest.raises(CorruptFileError, match="restore the file from a copy") as caught:
            timeline.metadata(instant)
        assert caught.value.path == path
    with pytest.raises(CorruptFileError, match="empty file"):
        timeline.metadata(timeline.completed[-1])


def test_nobody_waits_for_a_file_that_was_left_empty_long_ago(storage: Storage, tmp_path: Path) -> None:
    put(storage, f"{at(1)}_{at(2)}.commit", content=b"")
    os.utime(tmp_path / FOLDER / f"{at(1)}_{at(2)}.commit", (1767225600, 1767225600))
    with pytest.warns(HudiWarning, match="is empty"):
        assert load(storage).empty_writes


def test_of_two_publications_the_one_with_content_counts(storage: Storage) -> None:
    put(storage, f"{at(1)}_{at(2)}.commit", content=b"")
    put(storage, f"{at(1)}_{at(3)}.commit")
    with pytest.warns(HudiWarning):
        timeline = load(storage, sleep=lambda _: None)
    assert [i.completion for i in timeline] == [at(3)]
    assert not timeline.empty_writes


def test_of_two_publications_of_one_instant_the_first_counts(storage: Storage) -> None:
    put(storage, f"{at(1)}_{at(3)}.commit", f"{at(1)}_{at(2)}.commit")
    (instant,) = load(storage).instants
    assert instant.completion == at(2)


def test_layout_1_has_no_completion_times(storage: Storage) -> None:
    put(storage, f"{at(1)}.commit.requested", f"{at(1)}.inflight", f"{at(1)}.commit", "hoodie.properties", folder=".hoodie")
    put(storage, f"{at(2)}.compaction.requested", f"{at(2)}.commit", f"{at(3)}.replacecommit.inflight", folder=".hoodie")
    timeline = load(storage, layout=1)
    assert [(i.time, i.action, i.completion, i.pending_action) for i in timeline] == [
        (at(1), Action.COMMIT, at(1), None),
        (at(2), Action.COMMIT, at(2), Action.COMPACTION),
        (at(3), Action.REPLACE_COMMIT, None, None),
    ]
    assert timeline.history.load().num_rows == 0


def test_archives_of_version_6_are_not_read(storage: Storage) -> None:
    put(storage, ".commits_.archive.1_1-0-1", ".commits_.archive.2", "other", folder=".hoodie/archived")
    history = load(storage, layout=1).history
    assert history.instants() == ()


def test_contents_are_read_once(storage: Storage) -> None:
    put(storage, f"{at(1)}_{at(2)}.commit", content=b'{"operationType": "INSERT"}')
    put(storage, f"{at(1)}.commit.requested", f"{at(1)}.inflight", content=b"")
    timeline = load(storage)
    (instant,) = timeline.writes
    assert timeline.read(instant) == b'{"operationType": "INSERT"}'
    assert timeline.pending_bytes(instant) == b""
    assert timeline.plan(instant) == {}
    storage.delete_folder(FOLDER)
    assert timeline.metadata(instant)["operationType"] == "INSERT"
    with pytest.raises(NotFound):
        timeline.pending_bytes(instant, State.INFLIGHT)


@pytest.mark.parametrize("content", [b"[1]", b"{", b"\xff\xfe", b"Obj\x01garbage", b"null"])
def test_damaged_content_is_named_by_path(storage: Storage, content: bytes) -> None:
    put(storage, f"{at(1)}_{at(2)}.commit", f"{at(3)}_{at(4)}.clean", content=content)
    timeline = load(storage)
    for instant in timeline.completed:
        with pytest.raises(CorruptFileError) as caught:
            timeline.metadata(instant)
        assert caught.value.path == f"{FOLDER}/{instant.file_name}"


def commit(**members: object) -> bytes:
    return json.dumps({"operationType": "UPSERT", **members}).encode()


def test_the_newest_schema_comes_from_a_write_rather_than_a_service(storage: Storage) -> None:
    def schema(name: str) -> dict[str, str]:
        return {"schema": name}

    put(storage, f"{at(1)}_{at(2)}.commit", content=commit(extraMetadata=schema("one")))
    put(storage, f"{at(3)}_{at(4)}.commit", content=commit(extraMetadata=schema("two")))
    put(storage, f"{at(5)}_{at(6)}.commit", content=commit(extraMetadata=schema("plan's"), operationType="COMPACT"))
    put(storage, f"{at(7)}_{at(8)}.commit", content=commit(extraMetadata={"schema": ""}))
    timeline = load(storage)
    newest, first = timeline.latest_schema(), timeline.latest_schema(as_of=at(2))
    assert newest is not None
    assert first is not None
    assert (newest[0].time, newest[1]) == (at(3), "two")
    assert (first[0].time, first[1]) == (at(1), "one")
    assert timeline.latest_schema(as_of=at(0)) is None


def test_a_service_gives_the_schema_when_nothing_else_does(storage: Storage) -> None:
    put(storage, f"{at(5)}_{at(6)}.commit", content=commit(extraMetadata={"schema": "s"}, operationType="COMPACT"))
    found = load(storage).latest_schema()
    assert found is not None
    assert found[1] == "s"


def test_replaced_groups_and_rolled_back_instants(storage: Storage) -> None:
    put(storage, f"{at(1)}_{at(2)}.replacecommit", content=commit(partitionToReplaceFileIds={"p": ["a", "b"]}))
    put(storage, f"{at(3)}_{at(4)}.replacecommit", content=commit(partitionToReplaceFileIds={"": ["c"], "q": []}))
    put(storage, f"{at(5)}.replacecommit.inflight", content=commit(partitionToReplaceFileIds={"p": ["pending"]}))
    put(storage, f"{at(6)}_{at(7)}.rollback", content=json.dumps({"commitsRollback": [at(0)]}).encode())
    timeline = load(storage)
    assert timeline.replaced_file_groups().to_pylist() == [
        {"partition_path": "p", "file_id": "a", "instant": at(1)},
        {"partition_path": "p", "file_id": "b", "instant": at(1)},
        {"partition_path": "", "file_id": "c", "instant": at(3)},
    ]
    assert timeline.replaced_file_groups(as_of=at(2))["file_id"].to_pylist() == ["a", "b"]
    assert timeline.rolled_back == {at(0)}


def test_long_timelines_print_their_ends(storage: Storage) -> None:
    for n in range(60):
        put(storage, f"{at(2 * n)}_{at(2 * n + 1)}.commit")
    lines = repr(load(storage)).splitlines()
    assert lines[0].endswith("60 completed, 0 pending")
    assert "... 35 more ..." in lines[7]
    assert at(0) in lines[2]
    assert at(118) in lines[-1]


some_files = st.tuples(st.integers(0, 30), st.sampled_from(list(Action)), st.sampled_from(list(State)))


@example([(0, Action.COMMIT, State.COMPLETED), (1, Action.ROLLBACK, State.INFLIGHT)])
@given(st.lists(some_files, max_size=40))
def test_any_set_of_files_makes_a_consistent_timeline(files: list[tuple[int, Action, State]]) -> None:
    """Whatever lies in the folder: each instant once, in its highest state; arrays and single answers agree."""
    highest: dict[tuple[str, Action], State] = {}
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, FOLDER)
        folder.mkdir(parents=True)
        for n, action, state in files:
            done = state is State.COMPLETED
            name = completed_name(at(n), action, at(n + 100)) if done else pending_name(at(n), action, state)
            (folder / name).write_bytes(b"{}")
            key = (at(n), action.completed_as)
            highest[key] = max(state, highest.get(key, state))
        timeline = load(open_storage(root))
    assert {(i.time, i.action.completed_as): i.state for i in timeline} == highest


def test_the_next_listing_by_a_storage_reads_only_what_has_changed(tmp_path: Path) -> None:
    storage = CountingStorage(open_storage(tmp_path))
    first, second = (completed_name(at(n), Action.CLEAN, at(n + 1)) for n in (1, 3))
    put(storage, first, second, content=b"old")
    for instant in Timeline.load(storage).completed:
        assert Timeline.load(storage).read(instant) == b"old"
    put(storage, second, content=b"new")
    os.utime(tmp_path / FOLDER / second, (1, 1))
    mark = len(storage.log)
    timeline = Timeline.load(storage)
    assert [timeline.read(instant) for instant in timeline.completed] == [b"old", b"new"]
    assert storage.log.paths(RequestKind.GET, mark) == [f"{FOLDER}/{second}"]


def test_whatever_changes_in_the_folder_is_in_the_next_listing(tmp_path: Path) -> None:
    storage = CountingStorage(open_storage(tmp_path))
    first, second = f"{at(1)}_{at(2)}.deltacommit", f"{at(3)}_{at(4)}.deltacommit"
    put(storage, first)
    alone = load(storage)
    assert load(storage).instants == alone.instants
    put(storage, second)
    assert [i.file_name for i in load(storage)] == [first, second]
    put(storage, second, content=b"{}  ")
    assert load(storage).instants[1].size == 4
    by_age = load(storage, layout=1).instants
    assert by_age == (), "another folder of the same storage"
    storage.delete(f"{FOLDER}/{second}")
    assert load(storage).instants == alone.instants
