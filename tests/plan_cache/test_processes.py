"""Processes that keep and use the plans of one table at once, and one that dies while it keeps one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hudimeta.plan_cache.places import PLANS_PATH
from hudimeta.testing.builders import simple_rows
from hudimeta.types import Operation
from tests.plan_cache.test_kept_files import FROM_KEPT, a_table, kept_files, remarks
from tests.plan_cache.test_same_plans import keeping

KEPT = 10
"""Plans that each process makes of kept ones."""
PLANNER = Path(__file__).with_name("planner.py")


def planner(path: str, options: dict[str, str], *numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(PLANNER), path, json.dumps(options), *map(str, numbers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("where", ["local", "table"])
def test_two_processes_beside_a_writer(tmp_path: Path, where: str) -> None:
    table, options = a_table(tmp_path / "t"), keeping(tmp_path / "plans", **{"hudimeta.plan.cache": where})
    running = [planner(table.path, options, KEPT) for _ in range(2)]
    ts = 3
    while any(process.poll() is None for process in running):
        table.write(Operation.UPSERT, simple_rows(range(ts % 9, ts % 9 + 3), ts, partitions=4))
        ts += 1
    for process in running:
        told, errors = process.communicate()
        assert process.returncode == 0, errors
        assert not [text for text in json.loads(told) if "damaged" in text]
    remarks(table.path, options)
    assert remarks(table.path, options) == FROM_KEPT, "of what the processes have left"


@pytest.mark.parametrize("where", ["local", "table"])
def test_a_process_that_dies_while_it_keeps_a_plan(tmp_path: Path, where: str) -> None:
    table, options = a_table(tmp_path / "t"), keeping(tmp_path / "plans", **{"hudimeta.plan.cache": where})
    folder = tmp_path / "plans" if where == "local" else tmp_path / "t" / PLANS_PATH
    dying = [planner(table.path, options, 1, at) for at in (1, 3, 4)]  # each finds an empty folder, or what others left
    for process in dying:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    left = kept_files(folder)
    assert {path.suffix for path in left} == {".arrow"}, "files that nothing names"
    assert remarks(table.path, options) == ["no kept plan: none is kept", "the plan is kept"]
    assert remarks(table.path, options) == FROM_KEPT
    for path in left:
        os.utime(path, (1, 1))
    table.write(Operation.INSERT, simple_rows(range(50, 52), 3))
    remarks(table.path, options)
    assert not set(left) & set(kept_files(folder)), "removed, once they are older than any writer"
