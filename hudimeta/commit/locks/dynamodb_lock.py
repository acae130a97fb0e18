"""Apache Hudi's lock in DynamoDB (`DynamoDBBasedLockProvider`): an item of a table, as Amazon's lock client keeps it.

    key                    which lock: by default the table's name
    ownerName              who holds it
    leaseDuration          milliseconds, as text
    recordVersionNumber    a UUID, new whenever the holder renews its lease
    isReleased             "1" where a holder gave the lock back without deleting the item
    lockedAt               ours: when it was taken, for people

The lock is free when there is no item or a released one, and when the version number did not change for the length of the
lease: no clock is compared with another machine's. Each change is made on condition that the version number is the one that
was read. A holder renews the lease while it works, and deletes the item in the end.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hudimeta.cached import cached_property
from hudimeta.commit.locks.protocol import LockTiming, RenewedLock, as_utc
from hudimeta.config import HudiWarning
from hudimeta.engine import machine
from hudimeta.errors import LockLost, LockTimeout, MissingLibrary, StorageError
from hudimeta.redaction import hidden
from hudimeta.storage import Storage

__all__ = ["DynamoDbAddress", "DynamoDbLock"]

_RENEWALS_A_LEASE = 3
_NOT_THERE, _NO_TABLE, _TABLE_EXISTS = "ConditionalCheckFailedException", "ResourceNotFoundException", "ResourceInUseException"
_LOOKS_FOR_TABLE_EACH_S = 1.0


@dataclass(frozen=True)
class DynamoDbAddress:
    """Where the lock is.

    Attributes:
        table: Of DynamoDB; made when there is none.
        key: Of the item.
        region: Of Amazon.
        endpoint: URL of the service; None for the region's.
        credentials: `aws_access_key_id` and so on; empty for those of the machine.
        capacity: Reads and writes a second of a table that is made; None to pay by request.
        creation_s: How long a table that is made may take.
    """

    table: str
    key: str
    region: str
    endpoint: str | None = None
    credentials: tuple[tuple[str, str], ...] = ()
    capacity: tuple[int, int] | None = None
    creation_s: float = 600.0

    def __repr__(self) -> str:
        return f"DynamoDbAddress({self.table!r}, {self.key!r}, {self.region!r}, {hidden(str(self.endpoint))!r})"

    def __str__(self) -> str:
        return f"item {self.key} of the DynamoDB table {self.table} in {self.region}"


@dataclass(frozen=True)
class _Item:
    """The item as it was read, or as it was written last."""

    owner: str
    version: str
    lease_s: float
    is_free: bool = False
    since: str | None = None

    @staticmethod
    def of(fields: Mapping[str, Any], address: DynamoDbAddress) -> _Item:
        texts = {name: value.get("S") for name, value in fields.items() if isinstance(value, dict)}
        try:
            lease_s = int(texts.get("leaseDuration") or "") / 1000
            owner, version = texts["ownerName"], texts["recordVersionNumber"]
        except (KeyError, ValueError):
            owner = version = None
        if owner is None or version is None:
            message = f"{address} is not a lock: delete it if no writer runs, or name another table"
            raise StorageError(address.key, message)
        return _Item(owner, version, lease_s, "isReleased" in fields, texts.get("lockedAt"))


class DynamoDbLock(RenewedLock):
    """See the module. One object serves one writer; `held` may be entered again after it was left.

    Args:
        storage: Rooted at the table, whose OS locks keep processes of this machine from asking the server all at once.
        address: Where the lock is.
        timing: The lease, how long to wait, and how often to look.
    """

    def __init__(self, storage: Storage, address: DynamoDbAddress, timing: LockTiming | None = None) -> None:
        super().__init__(storage, timing)
        self._address = address
        self._mine: _Item | None = None
        self._renewed_at = 0.0
        self._lost_to: str | None = None
        self._changing = threading.Lock()

    @property
    def _renew_every_s(self) -> float:
        return self._timing.lease_s / _RENEWALS_A_LEASE

    def check(self) -> None:
        """See `TableLock.check`: the lease is renewed on condition that it is ours, so that a whole one lies ahead."""
        self._renew()
        with self._changing:
            if self._lost_to is not None:
                raise LockLost(str(self._address), self._lost_to)
            if self._mine is None or self._timing.monotonic() - self._renewed_at >= self._timing.lease_s:
                raise LockLost(str(self._address), "nobody: the lease ran out")

    # Taking it

    def _take(self, deadline: float, guarded: bool) -> None:
        watched: _Item | None = None
        watched_since, until = 0.0, deadline
        while True:
            found = self._read(make_table=True)
            now = self._timing.monotonic()
            if found is None or found.is_free:
                taken = self._put(found)
            elif watched is None or found.version != watched.version:
                # Whether a holder lives shows within its lease; one that renews it is not waited for beyond the deadline.
                until = max(deadline, now + found.lease_s + self._timing.poll_s) if watched is None else deadline
                watched, watched_since, taken = found, now, False
            else:
                taken = now - watched_since > found.lease_s and self._put(found)
                if taken:
                    message = (
                        f"the table lock, {self._address}, of {found.owner} is taken over: nobody renewed it for its lease"
                    )
                    warnings.warn(message, HudiWarning, stacklevel=2)
            if taken:
                return
            self._timing.wait(until, partial(self._busy, found))

    def _busy(self, found: _Item | None) -> LockTimeout:
        if found is None or found.is_free:
            return LockTimeout(str(self._address), "somebody who was quicker", self._timing.wait_s)
        since = f"since {found.since}" if found.since else f"who renews it within {found.lease_s:.0f} s"
        hint = (
            "Run the write again when the other writer has finished; a dead owner's lock is free when its lease is over. To "
            f"break the lock delete the item {self._address.key} of the table {self._address.table}."
        )
        return LockTimeout(str(self._address), found.owner, self._timing.wait_s, since, hint)

    def _read(self, *, make_table: bool = False) -> _Item | None:
        try:
            with self._our_errors():
                fields = self._client.get_item(TableName=self._address.table, Key=self._key, ConsistentRead=True).get("Item")
        except _Refused as refused:
            if refused.code != _NO_TABLE:
                raise refused.error from refused
            if make_table:
                self._create_table()
            return None
        return _Item.of(fields, self._address) if fields else None

    def _put(self, found: _Item | None) -> bool:
        """Put an item of ours in the place of what was found; False when somebody else was first."""
        wanted = _Item(self._owner, str(machine.machine().new_id()), self._timing.lease_s, since=as_utc(self._timing.now_ms()))
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": "key"},
        }
        if found is not None:
            condition = {
                "ConditionExpression": "recordVersionNumber = :found",
                "ExpressionAttributeValues": {":found": {"S": found.version}},
            }
        item = {
            **self._key,
            "ownerName": {"S": wanted.owner},
            "leaseDuration": {"S": self._lease_text},
            "recordVersionNumber": {"S": wanted.version},
            "lockedAt": {"S": wanted.since},
        }
        began = self._timing.monotonic()
        if not self._on_condition(wanted, "put_item", Item=item, **condition):
            return False
        with self._changing:
            self._mine, self._renewed_at, self._lost_to = wanted, began, None
        return True

    def _on_condition(self, wanted: _Item, request: str, **arguments: Any) -> bool:
        """Make a change; True when it was made, be it by a request whose answer was lost and that was repeated."""
        try:
            with self._our_errors():
                getattr(self._client, request)(TableName=self._address.table, **arguments)
        except _Refused as refused:
            found = self._read()
            if found is not None and found.version == wanted.version:
                return True
            if refused.code not in (_NOT_THERE, _NO_TABLE):
                raise refused.error from refused
            return False
        return True

    # Keeping it, and giving it back

    def _renew(self) -> None:
        """Renew the lease. What fails is tried again at the next turn; `check` sees when the lease ran out meanwhile."""
        with self._changing, contextlib.suppress(StorageError):
            if self._mine is None or self._lost_to is not None:
                return
            began = self._timing.monotonic()
            wanted = _Item(self._owner, str(machine.machine().new_id()), self._timing.lease_s, since=self._mine.since)
            made = self._on_condition(
                wanted,
                "update_item",
                Key=self._key,
                UpdateExpression="SET leaseDuration = :lease, recordVersionNumber = :new",
                **self._while_ours({":lease": {"S": self._lease_text}, ":new": {"S": wanted.version}}),
            )
            if made:
                self._mine, self._renewed_at = wanted, began
            else:
                self._lost_to = "another writer"
                found = self._read()
                self._lost_to = "nobody: the item is gone" if found is None else found.owner

    def _release(self) -> None:
        """Delete the item. What was done under the lock is done: an error here only leaves the lease to run out."""
        with self._changing, contextlib.suppress(_Refused):
            try:
                if self._mine is not None and self._lost_to is None:
                    with self._our_errors():
                        ours = self._while_ours({})
                        self._client.delete_item(TableName=self._address.table, Key=self._key, **ours)
            finally:
                self._mine = None  # what is not ours is not renewed

    def _while_ours(self, values: Mapping[str, Any]) -> dict[str, Any]:
        assert self._mine is not None
        own = {":owner": {"S": self._mine.owner}, ":version": {"S": self._mine.version}}
        return {
            "ConditionExpression": "recordVersionNumber = :version AND ownerName = :owner",
            "ExpressionAttributeValues": {**own, **values},
        }

    # The service

    @property
    def _key(self) -> dict[str, Any]:
        return {"key": {"S": self._address.key}}

    @property
    def _lease_text(self) -> str:
        return str(int(self._timing.lease_s * 1000))

    @cached_property
    def _client(self) -> Any:
        try:
            import boto3
        except ImportError as error:
            raise MissingLibrary("boto3") from error
        at = self._address
        return boto3.client("dynamodb", region_name=at.region, endpoint_url=at.endpoint, **dict(at.credentials))

    @contextlib.contextmanager
    def _our_errors(self) -> Iterator[None]:
        """Errors of Amazon's client as ours."""
        self._client  # noqa: B018 - made before its errors are imported: it tells of a missing library
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            raise _Refused(self._address, str(error), error.response.get("Error", {}).get("Code", "")) from error
        except BotoCoreError as error:
            raise _Refused(self._address, str(error)) from error

    def _create_table(self) -> None:
        about: dict[str, Any] = {"BillingMode": "PAY_PER_REQUEST"}
        if self._address.capacity is not None:
            reads, writes = self._address.capacity
            about = {
                "BillingMode": "PROVISIONED",
                "ProvisionedThroughput": {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes},
            }
        name = self._address.table
        try:
            with self._our_errors():
                self._client.create_table(
                    TableName=name,
                    KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
                    AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
                    **about,
                )
        except _Refused as refused:
            if refused.code != _TABLE_EXISTS:
                raise refused.error from refused
        until = self._timing.monotonic() + self._address.creation_s
        while self._table_status() != "ACTIVE":
            if self._timing.monotonic() >= until:
                raise StorageError(name, f"not active {self._address.creation_s:.0f} s after it was made in DynamoDB")
            self._timing.pause(_LOOKS_FOR_TABLE_EACH_S)

    def _table_status(self) -> str:
        try:
            with self._our_errors():
                return str(self._client.describe_table(TableName=self._address.table)["Table"]["TableStatus"])
        except _Refused as refused:
            if refused.code != _NO_TABLE:
                raise refused.error from refused
            return "CREATING"


class _Refused(Exception):
    """What the service said no to, or no answer at all; `code` is the service's word."""

    def __init__(self, address: DynamoDbAddress, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.error = StorageError(address.key, f"{address} gave no lock: {hidden(text)}")
