"""Stores that answer conditional requests in other words than Amazon's, late, or not as they should."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import hudimeta
from hudimeta.commit.locks.storage_lock import LOCK_PATH
from hudimeta.config import HudiWarning
from hudimeta.errors import AlreadyExists, TableError, UnsupportedFeature
from hudimeta.storage import open_storage

FILE_LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})


class ClientError(Exception):
    """As botocore's: what the store answered is in `response`."""

    def __init__(self, code: str, status: int) -> None:
        self.response = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
        super().__init__(f"An error occurred ({code}) when calling the PutObject operation")


class Odd(MemoryFileSystem):  # type: ignore[misc]
    """Speaks as s3fs does: a refused request is an OSError from the client's error, whatever was refused.

    Attributes:
        passes_over: Conditions that are not looked at: "create", "replace".
        unknown: Conditions that are answered by 501.
        crossed: So many conditional requests are answered by 409 first.
        repeats: Of files that end so the answer is lost, and the client sends the request again.
    """

    cachable, protocol = False, "odd"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    passes_over: ClassVar[frozenset[str]] = frozenset()
    unknown: ClassVar[frozenset[str]] = frozenset()
    crossed: ClassVar[int] = 0
    repeats: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("odd://")))

    def info(self, path: str, **kwargs: Any) -> Any:
        found = super().info(path, **kwargs)
        return found if found["type"] == "directory" else found | {"ETag": hashlib.md5(self.cat_file(path)).hexdigest()}

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        for _ in range(1 + path.endswith(self.repeats)):
            self._put(path, value, "create" if mode == "create" else "replace" if "IfMatch" in kwargs else "", kwargs)

    def _put(self, path: str, value: bytes, condition: str, given: dict[str, Any]) -> None:
        if condition in self.unknown:
            raise OSError(38, "A header you provided implies functionality") from ClientError("NotImplemented", 501)
        if condition and Odd.crossed:
            Odd.crossed -= 1
            raise OSError(16, "others") from ClientError("ConditionalRequestConflict", 409)
        if condition and condition not in self.passes_over:
            tag = self.info(path)["ETag"] if self.exists(path) else None
            if tag != given.get("IfMatch"):
                raise OSError(22, "did not hold") from ClientError("PreconditionFailed", 412)
        super().pipe_file(path, value)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    fsspec.register_implementation("odd", Odd, clobber=True)
    monkeypatch.setattr("hudimeta.engine.machine.pause", lambda _: None)
    yield f"odd://bucket-{uuid.uuid4().hex}/table"
    Odd.crossed = 0


def test_a_file_that_is_there_is_known_though_the_store_does_not_name_the_condition(place: str) -> None:
    """Amazon's answer does, and s3fs makes a FileExistsError of it only then; MinIO's does not."""
    store = open_storage(place)
    store.put_if_absent("a", b"1")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a", b"2")
    hudimeta.Table.create(place, ROWS.schema, key="id").upsert(ROWS)
    with pytest.raises(TableError, match="there is a table"):
        hudimeta.Table.create(place, ROWS.schema, key="id")
    assert hudimeta.Table(place).scan().to_table().num_rows == 2


def test_a_create_that_others_crossed_is_asked_for_again(place: str) -> None:
    store, Odd.crossed = open_storage(place), 2
    store.put_if_absent("a", b"1")
    assert store.read("a") == b"1"
    assert not Odd.crossed


@pytest.mark.parametrize("lock", [{}, FILE_LOCK], ids=["storage", "file"])
@pytest.mark.parametrize("condition", ["create", "replace"])
def test_no_table_is_made_where_conditions_are_passed_over(
    place: str, monkeypatch: pytest.MonkeyPatch, condition: str, lock: dict[str, str]
) -> None:
    monkeypatch.setattr(Odd, "passes_over", frozenset([condition]))
    with pytest.raises(UnsupportedFeature, match=r"passes over the conditions of requests: it (creates|replaces) a file"):
        hudimeta.Table.create(place, ROWS.schema, key="id", options=lock)
    assert not Odd().find(place)


def test_the_first_lock_of_a_copied_table_finds_out_too(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hudimeta.Table.create(place, ROWS.schema, key="id")
    table.upsert(ROWS)
    open_storage(place).delete(LOCK_PATH)
    monkeypatch.setattr(Odd, "passes_over", frozenset(["create"]))
    with (
        pytest.raises(UnsupportedFeature, match="it creates a file that is there"),
        pytest.warns(HudiWarning, match="is left to the next writer"),
    ):
        hudimeta.Table(place).upsert(ROWS)
    assert hudimeta.Table(place).scan().to_table().num_rows == 2


@pytest.mark.parametrize(("condition", "said"), [("create", "without a conditional create"), ("replace", "on condition")])
def test_a_store_that_says_that_it_has_no_conditions_is_refused_by_name(
    place: str, monkeypatch: pytest.MonkeyPatch, condition: str, said: str
) -> None:
    monkeypatch.setattr(Odd, "unknown", frozenset([condition]))
    with pytest.raises(UnsupportedFeature, match=said):
        hudimeta.Table.create(place, ROWS.schema, key="id")
    assert not Odd().find(place)


def test_a_client_that_repeats_its_requests_makes_a_table_and_writes_to_it(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second request finds what the first one left: "there is a table already", which was its own."""
    monkeypatch.setattr(Odd, "repeats", ("hoodie.properties", "table_lock.json", ".commit", ".deltacommit"))
    table = hudimeta.Table.create(place, ROWS.schema, key="id", indexes=["record_index"])
    table.upsert(ROWS)
    assert hudimeta.Table(place).scan().to_table().num_rows == 2
