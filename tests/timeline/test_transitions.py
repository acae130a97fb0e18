"""Moving instants along: each step once, and nothing is published for an instant that was rolled back."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta.errors import CommitError, InstantExists
from hudimeta.storage import Storage, open_storage
from hudimeta.timeline import Timeline, TimelineWriter
from hudimeta.types import Action, State

T, C = "20260101000000001", "20260101000000002"
PLAN = b'{"version": 1}'
PENDING_WORDS = [action for action in Action if action is not Action.SAVEPOINT]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


@pytest.mark.parametrize("action", PENDING_WORDS)
def test_an_instant_goes_through_its_states(storage: Storage, action: Action) -> None:
    writer = TimelineWriter(storage)
    steps = [
        lambda: writer.create_requested(T, action, PLAN),
        lambda: writer.create_inflight(T, action),
        lambda: writer.complete(T, action, C, b"{}"),
    ]
    for step in steps:
        made = step()
        (found,) = Timeline.load(storage)
        assert found == made
    assert (found.completion, found.action) == (C, action.completed_as)
    assert Timeline.load(storage).pending_bytes(found) == PLAN


def test_a_savepoint_has_no_requested_file(storage: Storage) -> None:
    writer = TimelineWriter(storage)
    writer.create_inflight(T, Action.SAVEPOINT)
    writer.complete(T, Action.SAVEPOINT, C, b"{}")
    assert [info.name for info in storage.list(".hoodie/timeline")] == [f"{T}.savepoint.inflight", f"{T}_{C}.savepoint"]


def test_names_of_a_commit(storage: Storage) -> None:
    writer = TimelineWriter(storage)
    writer.create_requested(T, Action.COMMIT)
    writer.create_inflight(T, Action.COMMIT)
    writer.complete(T, Action.COMMIT, C, b"{}")
    names = {info.name for info in storage.list(".hoodie/timeline")}
    assert names == {f"{T}.commit.requested", f"{T}.inflight", f"{T}_{C}.commit"}


def test_two_writers_never_share_an_instant(storage: Storage) -> None:
    TimelineWriter(storage).create_requested(T, Action.COMMIT)
    with pytest.raises(InstantExists) as caught:
        TimelineWriter(storage).create_requested(T, Action.COMMIT)
    assert caught.value.instant == T


def test_publishing_twice_is_publishing_once(storage: Storage) -> None:
    """A repeated request after a lost answer finds its own file; another's file is a conflict."""
    writer = TimelineWriter(storage)
    writer.create_inflight(T, Action.COMMIT)
    assert writer.complete(T, Action.COMMIT, C, b"{}") == writer.complete(T, Action.COMMIT, C, b"{}")
    with pytest.raises(InstantExists):
        writer.complete(T, Action.COMMIT, C, b'{"other": 1}')


def test_a_rolled_back_instant_is_not_published(storage: Storage) -> None:
    writer = TimelineWriter(storage)
    writer.create_requested(T, Action.DELTA_COMMIT)
    writer.create_inflight(T, Action.DELTA_COMMIT)
    assert writer.delete_pending(T, Action.DELTA_COMMIT, State.INFLIGHT)
    assert not writer.delete_pending(T, Action.DELTA_COMMIT, State.INFLIGHT)
    with pytest.raises(CommitError, match="rolled it back"):
        writer.complete(T, Action.DELTA_COMMIT, C, b"{}")
    assert Timeline.load(storage).completed == ()


def test_a_completed_instant_can_be_made_pending(storage: Storage) -> None:
    writer = TimelineWriter(storage)
    writer.create_inflight(T, Action.COMPACTION)
    done = writer.complete(T, Action.COMPACTION, C, b"{}")
    assert writer.delete_completed(done)
    (found,) = Timeline.load(storage)
    assert (found.action, found.state) == (Action.COMPACTION, State.INFLIGHT)


def test_mistakes_of_the_caller_are_refused(storage: Storage) -> None:
    writer = TimelineWriter(storage)
    writer.create_inflight(T, Action.COMMIT)
    with pytest.raises(ValueError, match="not later"):
        writer.complete(T, Action.COMMIT, T, b"{}")
    with pytest.raises(ValueError, match="has metadata"):
        writer.complete(T, Action.COMMIT, C, b"")


def test_metadata_tables_use_the_same_names(storage: Storage) -> None:
    TimelineWriter(storage.sub(".hoodie/metadata")).create_requested(T, Action.DELTA_COMMIT)
    assert storage.stat(f".hoodie/metadata/.hoodie/timeline/{T}.deltacommit.requested") is not None


@pytest.mark.parametrize("other", [a for a in Action if a not in (Action.COMMIT, Action.DELTA_COMMIT, Action.SAVEPOINT)])
def test_an_instant_of_another_action_is_refused_and_left_alone(storage: Storage, other: Action) -> None:
    writer = TimelineWriter(storage)
    writer.create_requested(T, other)
    before = storage.list(".hoodie/timeline")
    with pytest.raises(InstantExists, match=T):
        writer.create_alone(T, Action.DELTA_COMMIT)
    assert storage.list(".hoodie/timeline") == before
    writer.create_alone(C, Action.DELTA_COMMIT)
