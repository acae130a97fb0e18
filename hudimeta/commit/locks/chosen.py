"""Which lock a table's options mean: `hoodie.write.lock.provider`, with the class names of Apache Hudi."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from hudimeta.commit.locks.file_lock import DEFAULT_FOLDER, FILE_NAME, FileLock
from hudimeta.commit.locks.process_lock import ProcessLock
from hudimeta.commit.locks.protocol import LockTiming, TableLock
from hudimeta.commit.locks.storage_lock import StorageLock
from hudimeta.config import Option, Options
from hudimeta.config import options as keys
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.metadata.keys import path_id
from hudimeta.storage import Storage, join, open_storage

__all__ = ["table_lock"]

_LOOKS_AT_DYNAMODB_EACH_S = 0.25
"""Each look is paid for."""
_S3A = re.compile(r"\As3a://", re.I)


def table_lock(storage: Storage, options: Options, table_name: str) -> TableLock:
    """The lock that a table's options ask for; Hudi's storage-based lock where they ask for none.

    Args:
        storage: Rooted at the table.
        options: Of the writer.
        table_name: The node's name in ZooKeeper when no other is given.

    Raises:
        UnsupportedFeature: A provider that hudimeta does not have: its writers would not see ours.
        ConfigError: The provider lacks an option that it needs.
    """
    timing = LockTiming(
        lease_s=options.get(keys.LOCK_LEASE_S),
        renew_s=options.get(keys.LOCK_RENEW_S),
        wait_s=options.get(keys.LOCK_WAIT_MS) / 1000,
    )
    given = options.get(keys.LOCK_PROVIDER)
    if given is None:
        _refuse_without_provider(options)
    name = "StorageBasedLockProvider" if given is None else given.rpartition(".")[2]
    if name not in _PROVIDERS:
        known = f"one of {', '.join(sorted(_PROVIDERS))}, the same for every writer of the table."
        if name.startswith("HiveMetastore"):
            known = f"ZookeeperBasedLockProvider: no metastore is asked for locks here; or to {known}"
        raise UnsupportedFeature(f"lock provider {given}", f"Set {keys.LOCK_PROVIDER.key} to {known}")
    return _PROVIDERS[name](storage, options, table_name, timing)


def _refuse_without_provider(options: Options) -> None:
    """Raise ConfigError where options say how to reach a lock service that no option asks for.

    Writers of Apache Hudi, some of which go to ZooKeeper then, would not see the lock of this one.
    """
    for option, provider in _ADDRESSES:
        if options.is_set(option):
            hint = f"Set {keys.LOCK_PROVIDER.key}={provider}, for every writer of the table, or leave {option.key} out."
            raise ConfigError(option.key, options.get(option), f"nothing without {keys.LOCK_PROVIDER.key}", hint)


def _storage_lock(storage: Storage, options: Options, table_name: str, timing: LockTiming) -> TableLock:
    if timing.lease_s <= timing.renew_s:
        more = f"more than the {timing.renew_s} of {keys.LOCK_RENEW_S.key}"
        raise ConfigError(keys.LOCK_LEASE_S.key, timing.lease_s, more, "A lease that ends before it is renewed locks nothing.")
    return StorageLock(storage, timing)


def _file_lock(storage: Storage, options: Options, table_name: str, timing: LockTiming) -> TableLock:
    given = options.get(keys.FILE_LOCK_FOLDER)
    folder = storage.sub(DEFAULT_FOLDER) if given is None else open_storage(given, options.texts)
    shown = join(given.rstrip("/") if given else DEFAULT_FOLDER, FILE_NAME)
    return FileLock(storage, folder, shown, options.get(keys.FILE_LOCK_EXPIRE_MINUTES) * 60.0, timing)


def _process_lock(storage: Storage, options: Options, table_name: str, timing: LockTiming) -> TableLock:
    return ProcessLock(storage, timing)


def _zookeeper_lock(storage: Storage, options: Options, table_name: str, timing: LockTiming) -> TableLock:
    folder = _needed(options, keys.ZOOKEEPER_BASE_PATH)
    return _lock_of_node(storage, options, f"/{folder.strip('/')}/{options.get(keys.ZOOKEEPER_KEY) or table_name}", timing)


def _zookeeper_lock_of_path(storage: Storage, options: Options, table_name: str, timing: LockTiming) -> TableLock:
    """The node is named after the table's place, as `_dynamodb_lock_of_path` names its item."""
    return _lock_of_node(storage, options, f"/tmp/{_id_of_place(storage)}/lock_key", timing)


def _lock_of_node(storage: Storage, options: Options, path: str, timing: LockTiming) -> TableLock:
    from hudimeta.commit.locks.zookeeper_lock import ZooKeeperAddress, ZooKeeperLock

    servers = _needed(options, keys.ZOOKEEPER_URL)
    port = options.get(keys.ZOOKEEPER_PORT)
    if port is not None:
        servers = ",".join(one if ":" in one else f"{one}:{port}" for one in servers.split(","))
    address = ZooKeeperAddress(
        servers,
        path,
        options.get(keys.ZOOKEEPER_SESSION_MS) / 1000,
        options.get(keys.ZOOKEEPER_CONNECTION_MS) / 1000,
    )
    return ZooKeeperLock(storage, address, timing)


def _dynamodb_lock(storage: Storage, options: Options, table_name: str, timing: LockTiming) -> TableLock:
    return _lock_of_item(storage, options, options.get(keys.DYNAMODB_KEY) or table_name, timing)


def _dynamodb_lock_of_path(storage: Storage, options: Options, table_name: str, timing: LockTiming) -> TableLock:
    """The item is named after the table's place, in which Apache Hudi takes s3a for s3."""
    return _lock_of_item(storage, options, _id_of_place(storage), timing)


def _id_of_place(storage: Storage) -> str:
    return path_id(_S3A.sub("s3://", storage.root))


def _lock_of_item(storage: Storage, options: Options, key: str, timing: LockTiming) -> TableLock:
    from hudimeta.commit.locks.dynamodb_lock import DynamoDbAddress, DynamoDbLock

    paid_by_request = options.get(keys.DYNAMODB_BILLING) == "PAY_PER_REQUEST"
    given = {"access_key_id": keys.AWS_KEY, "secret_access_key": keys.AWS_SECRET, "session_token": keys.AWS_TOKEN}
    address = DynamoDbAddress(
        _needed(options, keys.DYNAMODB_TABLE),
        key,
        options.get(keys.DYNAMODB_REGION) or os.environ.get("AWS_REGION") or "us-east-1",
        options.get(keys.DYNAMODB_ENDPOINT),
        tuple((f"aws_{name}", value) for name, option in given.items() if (value := options.get(option))),
        None if paid_by_request else (options.get(keys.DYNAMODB_READS), options.get(keys.DYNAMODB_WRITES)),
        options.get(keys.DYNAMODB_CREATION_MS) / 1000,
    )
    if not timing.wait_s:
        raise ConfigError(keys.LOCK_WAIT_MS.key, 0, "more than 0", "In DynamoDB it is how long a lease lasts, too.")
    return DynamoDbLock(storage, address, replace(timing, lease_s=timing.wait_s, poll_s=_LOOKS_AT_DYNAMODB_EACH_S))


def _needed(options: Options, option: Option[str | None]) -> str:
    value = options.get(option)
    if value is None:
        raise ConfigError(option.key, None, "set for that lock provider", "Give what Apache Hudi's writers of the table give.")
    return value


_ADDRESSES: tuple[tuple[Option[str | None], str], ...] = (
    (keys.ZOOKEEPER_URL, "ZookeeperBasedLockProvider"),
    (keys.ZOOKEEPER_BASE_PATH, "ZookeeperBasedLockProvider"),
    (keys.DYNAMODB_TABLE, "DynamoDBBasedLockProvider"),
    (keys.DYNAMODB_ENDPOINT, "DynamoDBBasedLockProvider"),
    (keys.FILE_LOCK_FOLDER, "FileSystemBasedLockProvider"),
)
"""Options that mean nothing without their lock provider."""
_PROVIDERS: Mapping[str, Callable[[Storage, Options, str, LockTiming], TableLock]] = {
    "DynamoDBBasedImplicitPartitionKeyLockProvider": _dynamodb_lock_of_path,
    "DynamoDBBasedLockProvider": _dynamodb_lock,
    "FileSystemBasedLockProvider": _file_lock,
    "InProcessLockProvider": _process_lock,
    "StorageBasedLockProvider": _storage_lock,
    "ZookeeperBasedImplicitBasePathLockProvider": _zookeeper_lock_of_path,
    "ZookeeperBasedLockProvider": _zookeeper_lock,
}
