"""Apache Hudi's lock in ZooKeeper (`ZookeeperBasedLockProvider`): the mutex of Curator's recipes, by kazoo.

Who waits has an ephemeral sequential node below `<base path>/<lock key>`; the one with the least number holds the lock.

    <base path>/<lock key>/<32 hexadecimal digits>-lock-<10 digits>              ours
    <base path>/<lock key>/_c_<UUID>-lock-<10 digits>                            Curator's

Both sides order the nodes by what follows the last `lock-`. A node is gone when its session ends: a writer that is dead, or
stopped for longer than `hoodie.write.lock.zookeeper.session_timeout_ms`, holds nothing any more.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hudimeta.commit.locks.protocol import GuardedLock, LockTiming, as_utc
from hudimeta.errors import LockLost, LockTimeout, MissingLibrary, StorageError
from hudimeta.storage import Storage

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock

__all__ = ["ZooKeeperAddress", "ZooKeeperLock"]

_NODE_NAME = "-lock-"


@dataclass(frozen=True)
class ZooKeeperAddress:
    """Where the lock is.

    Attributes:
        servers: `host:port`, several by comma.
        path: Of the node whose children wait for the lock.
        session_s: After how long without a sign of life the server ends a session.
        connection_s: How long to wait for a connection.
    """

    servers: str
    path: str
    session_s: float = 60.0
    connection_s: float = 15.0


class ZooKeeperLock(GuardedLock):
    """See the module. One object serves one writer; `held` may be entered again after it was left.

    Args:
        storage: Rooted at the table, whose OS locks keep processes of this machine from asking the server all at once.
        address: Where the lock is.
        timing: How long to wait.
    """

    def __init__(self, storage: Storage, address: ZooKeeperAddress, timing: LockTiming | None = None) -> None:
        super().__init__(storage, timing)
        self._address = address
        self._client: KazooClient | None = None
        self._lock: Lock | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """See `TableLock.held`."""
        deadline = self._timing.deadline()
        with self._guard.entered(deadline), self._connected() as client:
            lock = _recipe()(client, self._address.path, self._owner)
            self._take(client, lock, deadline)
            self._client, self._lock = client, lock
            try:
                yield
            finally:
                self._client = self._lock = None
                self._release(lock)

    def check(self) -> None:
        """See `TableLock.check`: the server is asked whether our node is there."""
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        client, lock = self._client, self._lock
        shown = f"{self._address.path} of {self._address.servers}"
        if client is None or lock is None or lock.node is None:
            raise LockLost(shown, "nobody: it is not held")
        try:
            there = client.exists(f"{self._address.path}/{lock.node}")
        except (KazooException, KazooTimeoutError) as error:
            raise LockLost(shown, f"nobody known: the session with the server is over ({type(error).__name__})") from error
        if there is None:
            raise LockLost(shown, "nobody known: the session with the server has ended meanwhile")

    @contextlib.contextmanager
    def _connected(self) -> Iterator[KazooClient]:
        try:
            from kazoo.client import KazooClient
            from kazoo.handlers.threading import KazooTimeoutError
        except ImportError as error:
            raise MissingLibrary("kazoo") from error

        quiet = logging.getLogger("hudimeta.zookeeper")
        client = KazooClient(self._address.servers, timeout=self._address.session_s, logger=quiet)
        try:
            client.start(self._address.connection_s)
        except KazooTimeoutError as error:
            client.close()
            hint = "Check hoodie.write.lock.zookeeper.url, and that a server answers there."
            raise LockTimeout(
                self._address.path, f"unknown: no answer from {self._address.servers}", self._address.connection_s, hint=hint
            ) from error
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def _take(self, client: KazooClient, lock: Lock, deadline: float) -> None:
        from kazoo.exceptions import KazooException
        from kazoo.exceptions import LockTimeout as TooLong

        try:
            try:
                lock.acquire(timeout=max(deadline - self._timing.monotonic(), 0))
            except TooLong:
                raise self._busy(client) from None
        except KazooException as error:
            message = f"ZooKeeper at {self._address.servers} gave no lock: {type(error).__name__} {error}".rstrip()
            raise StorageError(self._address.path, message) from error

    def _busy(self, client: KazooClient) -> LockTimeout:
        from kazoo.exceptions import NoNodeError

        path = self._address.path
        first = min(client.get_children(path), key=lambda name: name.rpartition(_NODE_NAME)[2], default=None)
        owner, since = "somebody who has just given it back", None
        if first is not None:
            with contextlib.suppress(NoNodeError):
                content, about = client.get(f"{path}/{first}")
                owner = content.decode("utf-8", "replace") or f"node {first}"
                since = f"since {as_utc(about.ctime)}"
        hint = f"Run the write again when the other writer has finished; to break the lock delete its node below {path}."
        return LockTimeout(path, owner, self._timing.wait_s, since, hint)

    def _release(self, lock: Lock) -> None:
        """Delete the node; when that fails it goes with the session, which ends right afterwards."""
        from kazoo.exceptions import KazooException

        with contextlib.suppress(KazooException):
            lock.release()


def _recipe() -> Any:
    """Kazoo's lock with the names of nodes that Curator orders as its own."""
    from kazoo.recipe.lock import Lock

    class CuratorsLock(Lock):  # type: ignore[misc]
        _NODE_NAME = _NODE_NAME
        _EXCLUDE_NAMES = [_NODE_NAME]  # noqa: RUF012

    return CuratorsLock
