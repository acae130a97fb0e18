"""A writer that dies while a process that it forked lives on: the write is taken back all the same."""

from __future__ import annotations

import os
from pathlib import Path

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows
from tests.concurrency.side_by_side import Interrupted
from tests.forked import forked


def test_a_dead_writer_is_not_alive_in_a_process_that_it_forked(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), SIMPLE_OPTIONS)
    table.write(Operation.INSERT, simple_rows(range(4), 1))
    ended, go_on = os.pipe()
    up, begun = os.pipe()

    def fork_and_die() -> None:
        if os.fork() == 0:
            os.close(go_on)
            os.write(begun, b"1")
            os.read(ended, 1)  # until the test is over
        else:
            os.read(up, 1)
        os._exit(0)

    def write() -> int:
        session = WriteSession(table.storage, table.options, engine=Interrupted(fork_and_die))
        write_rows(session, Operation.UPSERT, simple_rows(range(2), 2))
        return 1

    assert os.waitpid(forked(write), 0)[1] == 0
    left = [i.time for i in Table(table.path).timeline.pending_writes]
    assert len(left) == 1
    assert Table(table.path).recover() == tuple(left)
    table.write(Operation.UPSERT, simple_rows(range(2), 3))
    table.check()
    for one in (go_on, ended, up, begun):
        os.close(one)
