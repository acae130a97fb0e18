"""A list of a timeline's folder says the same whether it is taken apart as a whole or from where it differs from the last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timezone
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError
from hudimeta.storage import CountingStorage, FileInfo, LocalStorage
from hudimeta.timeline.listing import TimelineListing, list_instants

FOLDER = ".hoodie/timeline"
NAMES = [
    f"{time}{rest}"
    for time in ("20260101000000000", "20260101000000001", "20260101000000002")
    for rest in (
        ".commit.requested",
        ".inflight",
        ".compaction.requested",
        ".compaction.inflight",
        ".deltacommit.requested",
        ".deltacommit.inflight",
        "_20260101000000009.commit",
        "_20260101000000009.deltacommit",
        "_20260101000000008.deltacommit",
        "_20260101000000009.savepoint",
        ".clean.requested",
    )
] + ["history", "notes.txt"]
FILES = st.dictionaries(st.sampled_from(NAMES), st.tuples(st.integers(0, 2), st.integers(1, 2)), max_size=12)


class Listed(LocalStorage):
    """A storage whose lists are given."""

    files: Sequence[FileInfo] = ()

    def list(self, path: str) -> list[FileInfo]:
        """What stands in `files`."""
        return [*self.files]


def instants(storage: CountingStorage) -> TimelineListing:
    """The folder's instants, as far as needed from what the storage has kept of the list before."""
    return list_instants(storage, FOLDER, 2, timezone.utc, lambda _: None)


@pytest.mark.filterwarnings("ignore:.* is empty:hudimeta.HudiWarning")
@given(st.lists(FILES, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_what_changed_is_enough(states: list[dict[str, tuple[int, int]]], order: Random) -> None:
    disk = Listed("/none")
    kept = CountingStorage(disk)
    for state in states:
        found = [FileInfo(f"{FOLDER}/{name}", size, age, name == "history") for name, (size, age) in state.items()]
        disk.files = sorted(found)
        whole = instants(CountingStorage(disk))
        order.shuffle(found)
        disk.files = found
        assert instants(kept) == whole


@pytest.mark.parametrize("name", ["20260101000000000_20260101000000009.commit", "20260101000000000.inflight"])
def test_a_folder_is_no_instant(name: str) -> None:
    disk = Listed("/none")
    disk.files = [FileInfo(f"{FOLDER}/{name}", 0, 1, True)]
    with pytest.raises(CorruptFileError, match=f"{name} is damaged at byte 0: expected a file, found a folder. Restore"):
        instants(CountingStorage(disk))
