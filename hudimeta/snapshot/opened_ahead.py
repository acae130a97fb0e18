"""The metadata table of a far-away table is opened while something else is asked for, which it does not need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from hudimeta.errors import HudiError
from hudimeta.storage.at_once import beside, reads_ahead

if TYPE_CHECKING:
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["open_ahead", "with_metadata_ahead"]

R = TypeVar("R")


def with_metadata_ahead(snapshot: Snapshot, ask: Callable[[], R]) -> R:
    """The answer to a question; the metadata table is needed next.

    Args:
        snapshot: Of the table.
        ask: Asks what the metadata table has no part in.
    """
    return beside(ask, lambda: _open_metadata(snapshot), snapshot.storage) if reads_ahead(snapshot.storage) else ask()


def open_ahead(snapshot: Snapshot) -> Snapshot:
    """The snapshot of a write, which asks for the newest commit, the metadata table and its definitions of indexes next."""
    if reads_ahead(snapshot.storage):
        beside(lambda: _read_newest(snapshot), lambda: _open_metadata(snapshot), snapshot.storage)
    return snapshot


def _read_newest(snapshot: Snapshot) -> None:
    with contextlib.suppress(HudiError):  # whoever needs it meets it again, here and below
        snapshot.timeline.latest_schema()


def _open_metadata(snapshot: Snapshot) -> None:
    with contextlib.suppress(HudiError):
        if snapshot.metadata is not None and snapshot.for_writes:
            _ = snapshot.metadata.index_definitions
