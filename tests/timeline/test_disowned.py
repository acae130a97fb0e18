"""A write that was published after it had been rolled back: the timeline leaves it out, and asks nobody where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.storage import CountingStorage, LocalStorage
from hudimeta.timeline import DEFAULT_FOLDER, Timeline, TimelineWriter
from hudimeta.timeline.rollback_record import encode_rollback_metadata, encode_rollback_plan
from hudimeta.types import Action, State

FIRST, LATE, UNDO = "20260101000000000", "20260101000001000", "20260101000100000"


@pytest.fixture
def storage(tmp_path: Path) -> CountingStorage:
    return CountingStorage(LocalStorage(str(tmp_path)))


def published(storage: CountingStorage, time: str, completion: str) -> None:
    writer = TimelineWriter(storage)
    writer.create_requested(time, Action.COMMIT)
    writer.create_inflight(time, Action.COMMIT)
    writer.complete(time, Action.COMMIT, completion, b"{}")


def rolled_back(storage: CountingStorage, time: str, *, wholly: bool) -> None:
    """The pending files of a write are gone, and a rollback says so."""
    writer = TimelineWriter(storage)
    writer.create_requested(UNDO, Action.ROLLBACK, encode_rollback_plan("", time, Action.COMMIT, {}))
    writer.create_inflight(UNDO, Action.ROLLBACK)
    writer.delete_pending(time, Action.COMMIT, State.INFLIGHT)
    if wholly:
        writer.delete_pending(time, Action.COMMIT, State.REQUESTED)
        done = encode_rollback_metadata("", UNDO, time, Action.COMMIT, {})
        writer.complete(UNDO, Action.ROLLBACK, "20260101000101000", done)


@pytest.mark.parametrize("wholly", [True, False])
def test_it_does_not_count(storage: CountingStorage, wholly: bool) -> None:
    published(storage, FIRST, "20260101000000500")
    published(storage, LATE, "20260101000001500")
    rolled_back(storage, LATE, wholly=wholly)
    timeline = Timeline.load(storage)
    assert [i.time for i in timeline.writes] == [FIRST]
    assert [i.time for i in timeline.disowned] == [LATE]
    assert timeline.get(LATE) is None
    assert not timeline.is_committed(LATE)
    assert timeline.last_time >= "20260101000100000"


def test_a_service_that_was_run_again_counts(storage: CountingStorage) -> None:
    published(storage, FIRST, "20260101000000500")
    published(storage, LATE, "20260101000200000")
    rolled_back(storage, LATE, wholly=True)
    assert [i.time for i in Timeline.load(storage).writes] == [FIRST, LATE]


def test_an_archival_that_is_half_done_counts(storage: CountingStorage) -> None:
    published(storage, FIRST, "20260101000000500")
    published(storage, LATE, "20260101000001500")
    rolled_back(storage, "20260101000000700", wholly=True)
    TimelineWriter(storage).delete_pending(FIRST, Action.COMMIT, State.INFLIGHT)
    assert [i.time for i in Timeline.load(storage).writes] == [FIRST, LATE]


def test_a_healthy_timeline_is_listed_once(storage: CountingStorage) -> None:
    published(storage, FIRST, "20260101000000500")
    rolled_back(storage, LATE, wholly=True)
    mark = len(storage.log)
    Timeline.load(storage, DEFAULT_FOLDER)
    assert storage.log.counts(mark) == {"LIST": 1}
