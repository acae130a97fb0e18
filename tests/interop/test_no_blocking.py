"""Apache Hudi and hudimeta add to the same buckets at the same time, in the mode of both that does not block."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

import hudimeta
from hudimeta.services.validation.result import Outcome
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, Model, Ours, Row, Theirs, assert_everybody_reads, readers, row

pytestmark = pytest.mark.timeout(900)

COMMITS = 12 if FULL else 3
BETWEEN_OURS_S = 0.5
"""Hudi's commits take seconds: ours are spread over them."""
NON_BLOCKING = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.client.num_retries": "60",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
}


def test_both_add_to_the_same_buckets(hudi: ApacheHudi, tmp_path: Path) -> None:
    path, model = tmp_path / "table", Model()
    ours = Ours(path, type="MERGE_ON_READ", options=NON_BLOCKING)
    theirs = Theirs(path, hudi, type="MERGE_ON_READ", options=NON_BLOCKING)

    def of_turn(turn: int, side: int) -> list[Row]:
        """Rows that the other side writes too, with another time; and some of one's own."""
        shared = [row(n, 2 * turn + side + 1) for n in range(6)]
        return shared + [row(100 * (1 + side) + 3 * turn + n, turn) for n in range(3)]

    ours.write("upsert", of_turn(0, 1))
    model.put(of_turn(0, 1))
    done: list[int] = []
    with ThreadPoolExecutor(1) as beside:
        java = beside.submit(lambda: [theirs.write("upsert", of_turn(turn, 0)) for turn in range(COMMITS)])
        while not java.done():
            done.append(1)
            ours.write("upsert", of_turn(len(done), 1))
            model.put(of_turn(len(done), 1))
            wait([java], timeout=BETWEEN_OURS_S)
        java.result()
    for turn in range(COMMITS):
        model.put(of_turn(turn, 0))
    ids = {one["file_id"] for one in hudimeta.Table(path).file_slices().to_pylist()}
    assert ids == {f"{number:08d}-0000-0000-0000-000000000000-0" for number in range(2)}, "each bucket of both has one id"
    # Its fifth reader, hudi-rs, finds nothing in file groups of log files alone.
    for name, read in list(readers(path, hudi).items())[:4]:
        assert read() == model.sorted(), f"{name} after {COMMITS} commits of Hudi beside {len(done)} of ours"
    ours.write("compact", [])
    theirs.write("upsert", of_turn(COMMITS, 0))
    model.put(of_turn(COMMITS, 0))
    assert_everybody_reads(path, hudi, model.sorted(), "a compaction of ours and another commit of Hudi")
    report = hudimeta.Table(path).metadata.validate()
    assert report.outcome is not Outcome.DIFFERS, report
