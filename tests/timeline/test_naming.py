"""Names of the timeline's files, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.timeline.naming import InstantFile, completed_name, parse_instant_name, pending_name
from hudimeta.types import Action, State

T, C = "20261121040005314", "20261121040007732"
PENDING_ONLY = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)

times = st.from_regex(r"[0-9]{17}", fullmatch=True) | st.sampled_from(["00000000000001", T + "010", "20200101000000"])
pending_files = st.builds(InstantFile, times, st.sampled_from(list(Action)), st.sampled_from([State.REQUESTED, State.INFLIGHT]))
completed_files = st.builds(
    InstantFile,
    times,
    st.sampled_from([action for action in Action if action not in PENDING_ONLY]),
    st.just(State.COMPLETED),
    st.none() | times,
)


@given(pending_files | completed_files)
def test_a_name_is_read_back(file: InstantFile) -> None:
    done = file.state is State.COMPLETED
    name = completed_name(file.time, file.action, file.completion) if done else pending_name(file.time, file.action, file.state)
    assert parse_instant_name(name) == file


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{T}.commit.requested", InstantFile(T, Action.COMMIT, State.REQUESTED)),
        (f"{T}.inflight", InstantFile(T, Action.COMMIT, State.INFLIGHT)),
        (f"{T}.commit.inflight", InstantFile(T, Action.COMMIT, State.INFLIGHT)),
        (f"{T}_{C}.commit", InstantFile(T, Action.COMMIT, State.COMPLETED, C)),
        (f"{T}.commit", InstantFile(T, Action.COMMIT, State.COMPLETED)),
        (f"{T}.deltacommit.inflight", InstantFile(T, Action.DELTA_COMMIT, State.INFLIGHT)),
        (f"{T}_{C}.savepoint", InstantFile(T, Action.SAVEPOINT, State.COMPLETED, C)),
        (f"{T}.clustering.requested", InstantFile(T, Action.CLUSTERING, State.REQUESTED)),
        (f"{T}_{C}.replacecommit", InstantFile(T, Action.REPLACE_COMMIT, State.COMPLETED, C)),
        (f"{T}.logcompaction.inflight", InstantFile(T, Action.LOG_COMPACTION, State.INFLIGHT)),
        (f"{T}_{C}.indexing", InstantFile(T, Action.INDEXING, State.COMPLETED, C)),
        (f"{T}.restore.requested", InstantFile(T, Action.RESTORE, State.REQUESTED)),
    ],
)
def test_names_that_hudi_writes(name: str, expected: InstantFile) -> None:
    assert parse_instant_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        "hoodie.properties.backup",
        f".{T}.commit.crc",
        f"{T}.commit.crc",
        f"{T}_{C}.commit.0a1b.tmp",
        f"{T}_{C}.commit.requested",
        f"{T}_{C}.inflight",
        f"{T}.inflight.requested",
        f"{T}_{C}.compaction",
        f"{T}.clustering",
        f"{T}.schemacommit",
        f"{T}.requested",
        f"{T}_.commit",
        f"_{T}.commit",
        f"x{T}.commit",
        f"{T}.COMMIT",
        "9" * 300 + ".commit",
        "٢٠٢٦١١٢١٠٤٠٠٠٥٣١٤.commit",
        "history",
        "",
    ],
)
def test_everything_else_in_the_folder_is_no_instant(name: str) -> None:
    assert parse_instant_name(name) is None


@given(st.text(max_size=60))
def test_any_name_is_answered(name: str) -> None:
    found = parse_instant_name(name)
    assert found is None or found.time in name


def test_services_complete_under_another_word() -> None:
    assert completed_name(T, Action.COMPACTION, C) == f"{T}_{C}.commit"
    assert completed_name(T, Action.LOG_COMPACTION, C) == f"{T}_{C}.deltacommit"
    assert completed_name(T, Action.CLUSTERING, C) == f"{T}_{C}.replacecommit"
    assert completed_name(T, Action.CLEAN, None) == f"{T}.clean"
    assert pending_name(T, Action.COMMIT, State.INFLIGHT) == f"{T}.inflight"
    with pytest.raises(ValueError, match="completion time"):
        pending_name(T, Action.COMMIT, State.COMPLETED)
