"""Services that plan and run at once, beside a process that runs every plan that waits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.locks.fence import FencedLock
from hudimeta.storage import LocalStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

OPTIONS = {
    **SIMPLE_OPTIONS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.blocks.threshold": "2",
}
VERBS: dict[str, Callable[[Table], object]] = {
    "compaction": lambda table: table.services.compact(),
    "log compaction": lambda table: table.services.log_compact(),
    "clustering": lambda table: table.services.cluster(),
    "indexing": lambda table: table.metadata.create_index(type="record_index", mode="async"),
}


def as_soon_as_it_is_free(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Do something whenever somebody let go of the table's lock, but while doing it."""
    held, acting = FencedLock.held, False

    @contextlib.contextmanager
    def watched(self: FencedLock) -> Iterator[None]:
        nonlocal acting
        with held(self):
            yield
        if not acting:
            acting = True
            act()
            acting = False

    monkeypatch.setattr(FencedLock, "held", watched)


@pytest.mark.parametrize("local", [True, False], ids=["OS lock", "heartbeat"])
@pytest.mark.parametrize("name", VERBS)
def test_what_is_planned_to_be_run_is_run_by_who_planned_it(
    tmp_path: Path, name: str, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that came first would leave the caller with an error, or with nothing of what it asked for."""
    if not local:
        monkeypatch.setattr(LocalStorage, "guard", lambda self, path: None)
    table = ModelledTable(str(tmp_path / "t"), OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(20), 1))
    if name != "clustering":
        for ts in (2, 3):
            table.write(Operation.UPSERT, simple_rows(range(8), ts))
    taken, looked = list[str](), list[str]()

    def run_what_waits() -> None:
        pending = Table(table.path).timeline.pending
        looked.extend(one.time for one in pending)
        taken.extend(one.name for one, _ in Table(table.path).services.maintain().done)

    as_soon_as_it_is_free(monkeypatch, run_what_waits)
    done = VERBS[name](Table(table.path, OPTIONS))
    assert looked, "the other process saw the plan"
    assert not taken
    assert str(done) != "nothing was to be done"
    monkeypatch.undo()
    assert not Table(table.path).timeline.pending
    table.check()
    check_all(table.storage)
