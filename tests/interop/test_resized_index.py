"""A record index that we gave more file groups: Apache Hudi's reader finds each key, its writer goes on, also after a death."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import StorageError
from hudimeta.services.indexing import resize
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import Model, Ours, Row, Theirs, plain_rows, row

INDEXED = {
    "hoodie.metadata.record.index.enable": "true",
}
TURNS = [
    ("we", "insert", 3),
    ("we", "resize", 8),
    ("they", "upsert", 8),
    ("we", "upsert", 8),
    ("we", "resize", 16),
    ("they", "delete", 16),
    ("we", "dead resize", 16),
    ("they", "upsert", 16),
    ("we", "resize", 20),
    ("we", "delete", 20),
    ("they", "insert", 20),
]
FEWER = [
    ("we", "insert", 8),
    ("they", "upsert", 8),
    ("we", "resize", 4),
    ("they", "upsert", 4),
    ("we", "dead resize", 4),
    ("they", "insert", 4),
    ("we", "resize", 1),
    ("we", "upsert", 1),
    ("they", "delete", 1),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("turns", [TURNS, FEWER], ids=["more", "fewer"])
def test_turns(hudi: ApacheHudi, tmp_path: Path, turns: list[tuple[str, str, int]]) -> None:
    path, model = tmp_path / "table", Model()
    first = {**INDEXED, "hoodie.metadata.record.index.min.filegroup.count": str(turns[0][2])}
    ours = Ours(path, type="MERGE_ON_READ", options={**first, "hoodie.metadata.compact.max.delta.commits": "4"})
    theirs = Theirs(path, hudi, type="MERGE_ON_READ", options={"hoodie.embed.timeline.server": "true"})
    for number, (who, step, groups) in enumerate(turns):
        name = f"turn {number}: {step}, {who}"
        if step == "resize":
            assert hudimeta.Table(path).indexes.resize(groups).groups == groups
        elif step == "dead resize":
            die_before_the_switch(path, groups // 2 if turns is FEWER else 2 * groups)
        else:
            rows = _rows(model, step, number)
            (ours if who == "we" else theirs).write(step, rows)
        checks = hudi.validate(path)
        assert all(checks.values()), f"{name}: {checks}"
        assert len(hudimeta.Table(path).metadata.file_groups("record_index")) == groups, name
        expected = model.sorted()
        assert plain_rows(hudimeta.Table(path).scan().to_table()) == expected, name
        assert plain_rows(hudi.read(path).table) == expected, name
        hudimeta.Table(path).metadata.validate().raise_if_differs()


def die_before_the_switch(path: Path, groups: int) -> None:
    """Resize, and fail at the last request, which switches to the new file groups; nothing is cleared up, as after kill -9."""
    with pytest.raises(StorageError):
        resize(WriteSession(FaultyStorage(open_storage(path), _UntilTheSwitch()), OPTIONS.read({})), groups)


class _UntilTheSwitch(FaultPlan):
    def __init__(self) -> None:
        super().__init__(None, Fault.ERROR_BEFORE)
        self._gone = False

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        self._gone = self._gone or (name.endswith((".commit", ".replacecommit")) and "metadata/.hoodie/timeline" in name)
        if self._gone and ".locks" not in name:
            raise StorageError(name, "the process is dead")
        return super().around(name, act)


def _rows(model: Model, step: str, turn: int) -> list[Row]:
    if step == "delete":
        rows = model.sorted()[turn % 4 :: 5]
        model.remove(rows)
        return rows
    if step == "insert":
        rows = [row(n, 100) for n in range(turn * 20, turn * 20 + 24) if f"k{n:05d}" not in model.rows]
    else:
        rows = [dict(r, ts=r["ts"] + turn, note=f"turn {turn % 2}") for r in model.sorted()[turn % 3 :: 3]]
        rows += [row(n, 100) for n in range(turn * 20 + 100, turn * 20 + 107)]
    model.put(rows)
    return rows
