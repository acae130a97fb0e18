"""The lock in DynamoDB, over moto's server: its item is that of Amazon's lock client, which Apache Hudi takes."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.locks.chosen import table_lock
from hudimeta.commit.locks.dynamodb_lock import DynamoDbAddress, DynamoDbLock
from hudimeta.commit.locks.protocol import LockTiming
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import ConfigError, LockLost, LockTimeout, MissingLibrary, StorageError
from hudimeta.storage import LocalStorage
from tests.concurrency.servers import aws_server
from tests.concurrency.side_by_side import Clock, WithoutGuards, together

KEYS = {"aws_access_key_id": "nobody", "aws_secret_access_key": "secret"}
JAVAS = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aws_server(tmp_path_factory.mktemp("aws")) as url:
        yield url


@pytest.fixture
def address(server: str) -> DynamoDbAddress:
    return DynamoDbAddress(f"locks-{uuid.uuid4()}", "trips", "us-east-1", server, tuple(KEYS.items()))


@pytest.fixture
def items(address: DynamoDbAddress) -> Items:
    return Items(address)


class Items:
    """The items of the lock's table, as any client of DynamoDB sees them."""

    def __init__(self, address: DynamoDbAddress) -> None:
        self.client = boto3.client("dynamodb", region_name=address.region, endpoint_url=address.endpoint, **KEYS)
        self.table = address.table

    def all(self) -> list[dict[str, str]]:
        found = self.client.scan(TableName=self.table, ConsistentRead=True)["Items"]
        return [{name: value["S"] for name, value in item.items()} for item in found]

    def put(self, **fields: str) -> None:
        self.client.put_item(TableName=self.table, Item={name: {"S": value} for name, value in fields.items()})

    def java_takes_it(self, lease_ms: int = 5_000, **more: str) -> None:
        """What Java's client writes when nobody holds the lock."""
        fields = {"key": "trips", "ownerName": "host-1234", "leaseDuration": str(lease_ms), "recordVersionNumber": "v1"}
        self.put(**fields, **more)

    def delete(self) -> None:
        self.client.delete_item(TableName=self.table, Key={"key": {"S": "trips"}})


def lock_at(address: DynamoDbAddress, folder: Path, clock: Clock, wait_s: float = 10.0) -> DynamoDbLock:
    timing = LockTiming(wait_s, wait_s=wait_s, poll_s=1.0, now_ms=clock.now_ms, monotonic=clock.monotonic, pause=clock.pause)
    return DynamoDbLock(WithoutGuards(str(folder)), address, timing)


def made(address: DynamoDbAddress, folder: Path) -> None:
    """The lock's table, as the first holder makes it."""
    with lock_at(address, folder, Clock()).held():
        pass


def test_the_item_is_that_of_javas_client(address: DynamoDbAddress, items: Items, tmp_path: Path) -> None:
    lock = lock_at(address, tmp_path, Clock())
    with lock.held():
        (item,) = items.all()
        version = item["recordVersionNumber"]
        assert item == {
            "key": "trips",
            "ownerName": item["ownerName"],
            "leaseDuration": "10000",
            "recordVersionNumber": str(uuid.UUID(version)),
            "lockedAt": "2027-01-15 08:00:00 UTC",
        }
        lock.check()
        assert items.all()[0]["recordVersionNumber"] != version, "the lease was renewed"
    assert items.all() == []
    about = items.client.describe_table(TableName=items.table)["Table"]
    assert about["KeySchema"] == [{"AttributeName": "key", "KeyType": "HASH"}]
    assert about["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_one_holds_it_and_the_other_is_told_who(address: DynamoDbAddress, tmp_path: Path) -> None:
    first, second = lock_at(address, tmp_path, Clock()), lock_at(address, tmp_path, Clock(), wait_s=3)
    told = r"hudimeta/.*since 2027-01-15 08:00:00 UTC(?s:.*)delete the item trips of the table locks"
    with first.held():

        def renewed_meanwhile(seconds: float) -> None:
            clock.now += int(seconds * 1000)
            first.check()

        clock = Clock()
        timing = LockTiming(3, wait_s=3, poll_s=1.0, now_ms=clock.now_ms, monotonic=clock.monotonic, pause=renewed_meanwhile)
        with pytest.raises(LockTimeout, match=told), DynamoDbLock(WithoutGuards(str(tmp_path)), address, timing).held():
            pass
        assert clock.monotonic() - Clock().monotonic() <= 4, "a holder that lives is not waited for beyond the deadline"
    with second.held():
        second.check()


def test_a_dead_holder_is_one_that_did_not_renew_its_lease(address: DynamoDbAddress, items: Items, tmp_path: Path) -> None:
    made(address, tmp_path)
    items.java_takes_it(lease_ms=30_000)
    clock = Clock()
    held = ExitStack()
    with pytest.warns(HudiWarning, match="of host-1234 is taken over"):
        held.enter_context(lock_at(address, tmp_path, clock).held())
    with held:
        assert clock.monotonic() - Clock().monotonic() > 30, "the holder's own lease counts, not ours"
        assert items.all()[0]["ownerName"].startswith("hudimeta/")


def test_a_released_item_is_free(address: DynamoDbAddress, items: Items, tmp_path: Path) -> None:
    made(address, tmp_path)
    items.java_takes_it(isReleased="1")
    clock = Clock()
    with lock_at(address, tmp_path, clock).held():
        assert clock.now == Clock().now
        assert "isReleased" not in items.all()[0]


def test_whoever_lost_it_is_told_before_publishing(address: DynamoDbAddress, items: Items, tmp_path: Path) -> None:
    lock = lock_at(address, tmp_path, Clock())
    with lock.held():
        items.java_takes_it()
        with pytest.raises(LockLost, match="lost to host-1234"):
            lock.check()
    assert items.all()[0]["ownerName"] == "host-1234", "nothing of the new holder's is deleted"
    items.delete()
    with lock.held():
        items.delete()
        with pytest.raises(LockLost, match="the item is gone"):
            lock.check()
    with lock.held():
        items.client.delete_table(TableName=items.table)
        with pytest.raises(LockLost, match="the item is gone"):
            lock.check()


def test_without_an_answer_it_is_held_until_the_lease_is_over(
    address: DynamoDbAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    nowhere = boto3.client("dynamodb", region_name=address.region, endpoint_url="http://127.0.0.1:1", **KEYS)
    clock = Clock()
    lock = lock_at(address, tmp_path, clock)
    with lock.held():
        lock._client = nowhere
        clock.pause(9)
        lock.check()
        clock.pause(1)
        with pytest.raises(LockLost, match="ran out"):
            lock.check()


def test_an_item_that_is_no_lock_is_named(address: DynamoDbAddress, items: Items, tmp_path: Path) -> None:
    made(address, tmp_path)
    for fields in ({"ownerName": "x"}, {"ownerName": "x", "recordVersionNumber": "v", "leaseDuration": "soon"}):
        items.put(key="trips", **fields)
        with pytest.raises(StorageError, match=r"item trips of the DynamoDB table locks.* is not a lock"):
            lock_at(address, tmp_path, Clock())._take(0.0, guarded=True)


DIES_HOLDING = """
import os, sys
from hudimeta.commit.locks.dynamodb_lock import DynamoDbAddress, DynamoDbLock
from hudimeta.commit.locks.protocol import LockTiming
from hudimeta.storage import LocalStorage

table, server, folder = sys.argv[1:]
keys = (("aws_access_key_id", "nobody"), ("aws_secret_access_key", "secret"))
address = DynamoDbAddress(table, "trips", "us-east-1", server, keys)
with DynamoDbLock(LocalStorage(folder), address, LockTiming(lease_s=0.5)).held():
    os._exit(9)
"""


def test_a_dead_writer_holds_it_no_longer_than_its_lease(address: DynamoDbAddress, server: str, tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", DIES_HOLDING, address.table, server, str(tmp_path)]).returncode == 9
    clock = Clock()
    held = ExitStack()
    with pytest.warns(HudiWarning, match="taken over"):
        held.enter_context(lock_at(address, tmp_path, clock).held())
    with held:
        assert clock.monotonic() - Clock().monotonic() <= 2


def test_processes_take_turns(address: DynamoDbAddress, tmp_path: Path) -> None:
    """Counting without a lock would lose steps."""
    made(address, tmp_path)
    storage = WithoutGuards(str(tmp_path))
    storage.put("count", b"0")

    def count() -> None:
        lock = DynamoDbLock(storage, address, LockTiming(lease_s=30, poll_s=0.001))
        for _ in range(10):
            with lock.held():
                storage.put("count", str(int(storage.read("count")) + 1).encode())

    assert together([count] * 3) == [0, 0, 0]
    assert storage.read("count") == b"30"


def test_no_server_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    nowhere = DynamoDbAddress("locks", "trips", "us-east-1", "http://127.0.0.1:1", tuple(KEYS.items()))
    with pytest.raises(StorageError, match="DynamoDB table locks in us-east-1 gave no lock"):
        lock_at(nowhere, tmp_path, Clock())._take(0.0, guarded=True)
    assert "secret" not in repr(nowhere)


def options_of(server: str, address: DynamoDbAddress, provider: str = JAVAS) -> dict[str, str]:
    return {
        "hoodie.write.lock.provider": provider,
        "hoodie.write.lock.dynamodb.table": address.table,
        "hoodie.write.lock.dynamodb.endpoint_url": server,
        "hoodie.write.lock.dynamodb.billing_mode": "PROVISIONED",
        "hoodie.aws.access.key": "nobody",
        "hoodie.aws.secret.key": "secret",
        "hoodie.write.lock.wait_time_ms": "400",
    }


def test_writes_take_it_by_option(server: str, address: DynamoDbAddress, items: Items, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3]})
    table = Table.create(str(tmp_path / "t"), rows.schema, "id", options=options_of(server, address), name="trips")
    table.insert(rows)
    about = items.client.describe_table(TableName=items.table)["Table"]
    assert about["ProvisionedThroughput"]["ReadCapacityUnits"] == 20
    other = DynamoDbLock(LocalStorage(str(tmp_path)), address, LockTiming(lease_s=0.1))
    left = pytest.warns(HudiWarning, match="left to the next writer")
    with left, other.held(), pytest.raises(LockTimeout, match="item trips of the DynamoDB table"):
        table.upsert(rows)
    assert table.scan().to_table().num_rows == 3


def test_the_item_may_be_named_after_the_tables_place(server: str, address: DynamoDbAddress, items: Items) -> None:
    options = OPTIONS.read(options_of(server, address, "DynamoDBBasedImplicitPartitionKeyLockProvider"))
    for place in ("s3://bucket/trips", "s3a://bucket/trips"):
        with table_lock(At(place), options, "trips").held():
            assert [item["key"] for item in items.all()] == ["FB397AE476BFCA30"], "what Java computes"


class At(WithoutGuards):
    """A storage of which only the place is asked."""

    def __init__(self, place: str) -> None:
        self._place = place

    @property
    def root(self) -> str:
        return self._place


def test_what_it_needs_is_told(server: str, address: DynamoDbAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(ConfigError, match=r"dynamodb\.table"):
        table_lock(storage, OPTIONS.read({"hoodie.write.lock.provider": JAVAS}), "trips")
    given: dict[str, Any] = options_of(server, address)
    with pytest.raises(ConfigError, match=r"wait_time_ms.*more than 0"):
        table_lock(storage, OPTIONS.read(given | {"hoodie.write.lock.wait_time_ms": "0"}), "trips")
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingLibrary, match="pip install boto3"), table_lock(storage, OPTIONS.read(given), "trips").held():
        pass
