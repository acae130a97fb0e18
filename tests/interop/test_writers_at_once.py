"""Apache Hudi and hudimeta write one table at the same time, each in its own partition, under one lock of Hudi's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

import hudimeta
from hudimeta.services.validation.result import Outcome
from tests.concurrency.servers import zookeeper_server
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, Model, Ours, Row, Theirs, assert_everybody_reads, row

pytestmark = pytest.mark.timeout(1800)

COMMITS = 50 if FULL else 4
BETWEEN_OURS_S = 0.5
"""Hudi's commits take seconds: ours are spread over them."""
JAVA = "org.apache.hudi.client.transaction.lock."
TOGETHER = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.client.num_retries": "60",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "200",
    "hoodie.write.lock.wait_time_ms": "30000",
}


@pytest.fixture(params=["FileSystemBasedLockProvider", "ZookeeperBasedLockProvider"])
def lock(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The options of a lock that both sides know."""
    options = {"hoodie.write.lock.provider": JAVA + request.param}
    if request.param.startswith("File"):
        yield options
        return
    folder = tmp_path / "zookeeper"
    folder.mkdir()
    with zookeeper_server(folder, longest_session_ms=60_000) as address:  # Hudi's default; a lost lock it does not notice
        place = {"url": address, "base_path": "/hudi", "lock_key": "turns"}
        yield options | {f"hoodie.write.lock.zookeeper.{key}": value for key, value in place.items()}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"] if FULL else ["COPY_ON_WRITE"])
def test_nothing_is_lost_and_nothing_doubled(hudi: ApacheHudi, tmp_path: Path, lock: dict[str, str], kind: str) -> None:
    path, model = tmp_path / "table", Model()
    options = TOGETHER | lock
    ours, theirs = Ours(path, type=kind, options=options), Theirs(path, hudi, type=kind, options=options)
    first = [row(n, 1) for n in range(6)]
    ours.write("insert", first)
    model.put(first)

    def of_turn(turn: int, partition: int) -> list[Row]:
        """An update of the partition's first row and three new ones."""
        return [row(n, 2 + turn) for n in (partition, *range(9 + 9 * turn + partition, 18 + 9 * turn, 3))]

    with ThreadPoolExecutor(1) as beside:
        java = beside.submit(lambda: [theirs.write("upsert", of_turn(turn, 0)) for turn in range(COMMITS)])
        turn = 0
        while not java.done() or turn < COMMITS:
            ours.write("upsert", of_turn(turn, 1))
            model.put(of_turn(turn, 1))
            turn += 1
            wait([java], timeout=BETWEEN_OURS_S)
        java.result()
    for done in range(COMMITS):
        model.put(of_turn(done, 0))
    assert_everybody_reads(path, hudi, model.sorted(), f"{COMMITS} commits of Hudi beside {turn} of ours")
    report = hudimeta.Table(path).metadata.validate()
    assert report.outcome is not Outcome.DIFFERS, report
