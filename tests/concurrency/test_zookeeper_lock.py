"""The lock in ZooKeeper, beside Curator's mutex, which Apache Hudi's `ZookeeperBasedLockProvider` takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from hudimeta import Table
from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.locks.protocol import LockTiming
from hudimeta.commit.locks.zookeeper_lock import ZooKeeperAddress, ZooKeeperLock
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import LockLost, LockTimeout, StorageError
from hudimeta.metadata.keys import path_id
from hudimeta.storage import LocalStorage
from tests.concurrency.servers import zookeeper_server
from tests.concurrency.side_by_side import WithoutGuards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATH = "/hudi/trips"
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture
def client(server: str) -> Iterator[KazooClient]:
    client = KazooClient(server)
    client.start()
    yield client
    client.stop()
    client.close()


def lock_at(server: str, folder: Path, wait_s: float = 0.3) -> ZooKeeperLock:
    return ZooKeeperLock(WithoutGuards(str(folder)), ZooKeeperAddress(server, PATH, 2.0, 5.0), LockTiming(wait_s=wait_s))


def test_one_holds_it_and_the_other_is_told_who(server: str, tmp_path: Path, client: KazooClient) -> None:
    first, second = lock_at(server, tmp_path), lock_at(server, tmp_path)
    with first.held():
        first.check()
        with (
            pytest.raises(LockTimeout, match=r"hudimeta/.*since 20\d\d-.* UTC(?s:.*)delete its node below /hudi/trips"),
            second.held(),
        ):
            pass
    with second.held():
        second.check()
    assert client.get_children(PATH) == []


def test_whoever_lost_it_is_told_before_publishing(server: str, tmp_path: Path, client: KazooClient) -> None:
    lock = lock_at(server, tmp_path)
    with lock.held():
        for node in client.get_children(PATH):
            client.delete(f"{PATH}/{node}")
        with pytest.raises(LockLost):
            lock.check()


DIES_HOLDING = """
import os, sys
from hudimeta.commit.locks.zookeeper_lock import ZooKeeperAddress, ZooKeeperLock
from hudimeta.metadata.keys import path_id
from hudimeta.storage import LocalStorage

with ZooKeeperLock(LocalStorage(sys.argv[2]), ZooKeeperAddress(sys.argv[1], sys.argv[3], 2.0, 5.0)).held():
    os._exit(9)
"""


def test_a_dead_writer_holds_it_no_longer_than_its_session(server: str, tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", DIES_HOLDING, server, str(tmp_path), PATH]).returncode == 9
    with lock_at(server, tmp_path, wait_s=30).held():
        pass


def test_a_server_that_gives_no_lock_is_a_sentence(server: str, tmp_path: Path, client: KazooClient) -> None:
    client.ensure_path("/closed", acl=[make_acl("world", "anyone", read=True)])
    lock = ZooKeeperLock(
        LocalStorage(str(tmp_path)), ZooKeeperAddress(server, "/closed/trips", 2.0, 5.0), LockTiming(wait_s=0.3)
    )
    with pytest.raises(StorageError, match="gave no lock: NoAuthError"), lock.held():
        pass


def test_no_server_is_a_sentence(tmp_path: Path) -> None:
    lock = ZooKeeperLock(LocalStorage(str(tmp_path)), ZooKeeperAddress("127.0.0.1:1", PATH, 1.0, 0.2))
    with pytest.raises(LockTimeout, match=r"no answer from 127.0.0.1:1(?s:.*)zookeeper\.url"), lock.held():
        pass


def test_writes_take_it_by_option(server: str, tmp_path: Path, client: KazooClient) -> None:
    import pyarrow as pa

    options = {
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        "hoodie.write.lock.zookeeper.url": server.partition(":")[0],
        "hoodie.write.lock.zookeeper.port": server.partition(":")[2],
        "hoodie.write.lock.zookeeper.base_path": "/hudi",
        "hoodie.write.lock.wait_time_ms": "300",
    }
    rows = pa.table({"id": [1, 2, 3]})
    table = Table.create(str(tmp_path / "t"), rows.schema, "id", options=options, name="trips")
    table.insert(rows)
    left = pytest.warns(HudiWarning, match="left to the next writer")
    with left, lock_at(server, tmp_path).held(), pytest.raises(LockTimeout, match=PATH):
        table.upsert(rows)
    assert table.scan().to_table().num_rows == 3


def test_the_node_may_be_named_after_the_tables_place(server: str, tmp_path: Path, client: KazooClient) -> None:
    options = OPTIONS.read(
        {
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider",
            "hoodie.write.lock.zookeeper.url": server,
        }
    )
    with table_lock(LocalStorage(str(tmp_path)), options, "trips").held():
        assert len(client.get_children(f"/tmp/{path_id(str(tmp_path))}/lock_key")) == 1


@contextmanager
def curators_mutex(spark: SparkSession, server: str) -> Iterator[Any]:
    """The mutex that Hudi makes; Spark's JVM has Curator."""
    jvm: Any = spark._jvm  # type: ignore[attr-defined]
    curator = jvm.org.apache.curator
    client = curator.framework.CuratorFrameworkFactory.newClient(server, curator.retry.RetryOneTime(100))
    client.start()
    try:
        yield curator.framework.recipes.locks.InterProcessMutex(client, PATH)
    finally:
        client.close()


def test_curator_and_we_exclude_each_other(spark: SparkSession, server: str, tmp_path: Path) -> None:
    millis = spark._jvm.java.util.concurrent.TimeUnit.MILLISECONDS  # type: ignore[attr-defined]
    with curators_mutex(spark, server) as mutex:
        with lock_at(server, tmp_path).held():
            assert not mutex.acquire(300, millis)
        assert mutex.acquire(10_000, millis)
        with pytest.raises(LockTimeout, match="its owner is"), lock_at(server, tmp_path).held():
            pass
        mutex.release()
        with lock_at(server, tmp_path).held():
            pass
