"""Switching the metadata table of one table on and off, and its validation."""

from __future__ import annotations

import time

from hudimeta.commit.session import WriteSession
from hudimeta.redaction import hidden
from hudimeta.services.metadata_table.life import MetadataChange
from hudimeta.table.modes import ENABLE, VALIDATE

__all__ = ["set_modes"]


def set_modes(
    session: WriteSession, enable: bool | None = None, validate: bool | None = None, *, dry_run: bool = False
) -> MetadataChange:
    """Write down how the table wants its metadata table used, for every reader and writer of hudimeta without such an option.

    Args:
        session: The table.
        enable: See `MetadataModes`; None leaves it.
        validate: See `MetadataModes`; None leaves it.
        dry_run: Only tell what would change.
    """
    begin, table = time.perf_counter(), hidden(session.storage.root)
    wanted = {key: str(on).lower() for key, on in ((ENABLE, enable), (VALIDATE, validate)) if on is not None}
    changes = {key: text for key, text in wanted.items() if session.properties.get(key) != text}
    steps = tuple(f"{key}={text}" for key, text in changes.items())
    if changes and not dry_run:
        with session.lock.held():
            session.change_properties(lambda _: changes)
    names = tuple(sorted(session.properties.metadata_partitions))
    return MetadataChange("set", table, steps, names, dry_run, time.perf_counter() - begin)
