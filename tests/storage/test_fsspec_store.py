"""What only stores behind fsspec do: drivers that remember listings, and drivers with exceptions of their own."""

from __future__ import annotations

import os
import pickle
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import hudimeta
from hudimeta.commit.liveness import Heartbeat, is_alive
from hudimeta.config import HudiWarning
from hudimeta.errors import StorageError, Throttled, UnsupportedFeature
from hudimeta.storage.at_once import delete_files
from hudimeta.storage.fsspec_store import FsspecStorage


class Remembering(MemoryFileSystem):  # type: ignore[misc]
    """Keeps listings and answers from them, as the drivers of S3, Google and Azure do with fsspec's own means."""

    cachable = False

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        found = super().ls(path, detail=True)
        self.dircache[self._strip_protocol(path).rstrip("/")] = found
        return found if detail else [entry["name"] for entry in found]

    def info(self, path: str, **kwargs: Any) -> Any:
        path = self._strip_protocol(path)
        known = self._ls_from_cache(path)
        return super().info(path) if known is None else known[0]


def two_processes() -> tuple[FsspecStorage, FsspecStorage]:
    """One table as two processes see it, each with a driver of its own."""
    prefix = f"/bucket-{uuid.uuid4().hex}/table"
    return tuple(FsspecStorage(Remembering(), prefix, f"memory:/{prefix}") for _ in range(2))  # type: ignore[return-value]


def test_what_another_process_wrote_after_a_listing_is_there() -> None:
    here, there = two_processes()
    there.put("folder/old", b"1")
    assert [info.name for info in here.list("folder")] == ["old"]
    there.put("folder/new", b"12")
    there.delete("folder/old")
    found = here.stat("folder/new")
    assert found is not None
    assert found.size == 2
    assert here.stat("folder/old") is None


def test_a_store_in_another_process_remembers_no_listing_either() -> None:
    here, there = two_processes()
    there.put("folder/old", b"1")
    sent = pickle.loads(pickle.dumps(here))
    assert [info.name for info in sent.list("folder")] == ["old"]
    there.delete("folder/old")
    assert sent.stat("folder/old") is None


def test_a_writer_whose_heartbeat_was_listed_long_ago_is_alive() -> None:
    here, there = two_processes()
    beat = Heartbeat(there, "20260102030405000")
    beat.beat()
    (listed,) = here.list(".hoodie/.heartbeat")
    # The other process goes on beating: its file gets younger than what was listed.
    now = listed.modified_ms
    while (seen := there.stat(beat.path)) is not None and seen.modified_ms <= listed.modified_ms:
        beat.beat()
    assert seen is not None
    assert is_alive(here, "20260102030405000", None, lambda: now + 120_001)


class DriverError(Exception):
    """What a driver raises that is no OSError, as those of Google and Azure do."""


def test_errors_of_a_drivers_own_are_storage_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, _ = two_processes()

    def fail(*_: Any, **__: Any) -> None:
        raise DriverError("503, slow down")

    monkeypatch.setattr(Remembering, "cat_file", fail)
    monkeypatch.setattr(Remembering, "pipe_file", fail)
    for request in (lambda: storage.read("a"), lambda: storage.put("a", b""), lambda: storage.put_if_absent("a", b"")):
        with pytest.raises(StorageError, match="DriverError: 503, slow down"):
            request()


def test_a_store_that_replaces_nothing_on_condition_is_refused_before_anything_is_written() -> None:
    """It showed when the first lock was given back: the table was there, and its lock held for five minutes."""
    place = f"memory://bucket-{uuid.uuid4().hex}/table"
    with pytest.raises(UnsupportedFeature, match="replacing a file of MemoryFileSystem on condition"):
        hudimeta.Table.create(place, pa.schema([("id", pa.string())]), key="id")
    assert not MemoryFileSystem().find(place)


_SINGLE = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
_ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.insert(_ROWS),
        lambda t: t.upsert(_ROWS),
        lambda t: t.bulk_insert(_ROWS),
        lambda t: t.insert_overwrite(_ROWS),
        lambda t: t.delete(where="id = 'a'"),
        lambda t: t.update({"n": 5}),
        lambda t: t.alter(add={"m": pa.int64()}),
        lambda t: t.compact(),
        lambda t: t.cluster(),
        lambda t: t.services.clustering.schedule(),
        lambda t: t.services.compaction.schedule(),
        lambda t: t.clean(),
        lambda t: t.savepoint(),
        lambda t: t.rollback(t.timeline.writes[-1].time),
        lambda t: t.indexes.create("of_n", "secondary_index", "n"),
        lambda t: t.metadata.rebuild(),
    ],
)
def test_writes_to_a_table_that_was_copied_to_such_a_store_leave_nothing_there(write: Callable[[hudimeta.Table], Any]) -> None:
    """A write of one writer heard of it when it published: its instant and its files stayed."""
    place = f"memory://bucket-{uuid.uuid4().hex}/table"
    indexes = ["column_stats", "record_index"]
    options = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    made = hudimeta.Table.create(place, _ROWS.schema, key="id", type="MERGE_ON_READ", indexes=indexes, options=_SINGLE)
    made.insert(_ROWS)
    made.upsert(_ROWS)
    before = MemoryFileSystem().find(place)
    with pytest.raises(UnsupportedFeature, match="replacing a file of MemoryFileSystem on condition"):
        write(hudimeta.Table(place, options))
    assert MemoryFileSystem().find(place) == before
    made.insert(_ROWS)


class ClientError(Exception):
    """As botocore's: what the store answered is in `response`."""

    def __init__(self, code: str, status: int) -> None:
        self.response = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
        super().__init__(f"An error occurred ({code}) when calling the PutObject operation")


class Conditional(MemoryFileSystem):  # type: ignore[misc]
    """Replaces a file on condition as the driver of S3 does: with an OSError of changing words around the client's error."""

    cachable = False
    refusal: tuple[str, str, int] = ("", "", 0)

    def info(self, path: str, **kwargs: Any) -> Any:
        return super().info(path, **kwargs) | {"ETag": '"1"'}

    def pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        text, code, status = self.refusal
        if "IfMatch" in kwargs and status:
            raise OSError(22, text) from ClientError(code, status)
        super().pipe_file(path, value)


WORDS = ("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", "Bedingung nicht erfüllt")


@pytest.mark.parametrize(("code", "status"), [("PreconditionFailed", 412), ("ConditionalRequestConflict", 409)])
@pytest.mark.parametrize("text", WORDS)
def test_a_refused_condition_is_known_by_its_code_whatever_the_text(text: str, code: str, status: int) -> None:
    driver = Conditional()
    store = FsspecStorage(driver, f"/bucket-{uuid.uuid4().hex}/table", "s3://bucket/table")
    store.put("lock", b"old")
    driver.refusal = (text, code, status)
    assert not store.put_if_unchanged("lock", b"new", b"old")
    assert store.read("lock") == b"old"


def test_another_error_is_no_refused_condition_though_its_text_says_so() -> None:
    driver = Conditional()
    store = FsspecStorage(driver, f"/bucket-{uuid.uuid4().hex}/table", "s3://bucket/table")
    store.put("lock", b"old")
    driver.refusal = ("no precondition helps against this", "AccessDenied", 403)
    with pytest.raises(StorageError, match="no precondition helps"):
        store.put_if_unchanged("lock", b"new", b"old")


class FailsWithin(MemoryFileSystem):  # type: ignore[misc]
    """Opens files, and fails when something is read of one, or when one is whole."""

    cachable = False

    def open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        file = super().open(path, mode, **kwargs)

        def fail(*_: Any) -> None:
            raise TimeoutError("no answer")

        if mode == "rb":
            file.read = fail
        else:
            file.commit = file.close = fail
        return file


def test_what_fails_within_an_open_file_is_an_error_of_storage() -> None:
    prefix = f"/bucket-{uuid.uuid4().hex}"
    store = FsspecStorage(FailsWithin(), prefix, f"memory:/{prefix}")
    store.put("a", b"1")
    with pytest.raises(StorageError, match="a: no answer"):
        store.open_input("a").read()
    with pytest.raises(StorageError, match="b: no answer"), store.open_output("b") as out:
        out.write(b"1")


class ManyAtOnce(MemoryFileSystem):  # type: ignore[misc]
    """Amazon's store, as far as its driver deletes there: it leaves what it may not delete, and says so in its answer."""

    cachable, protocol = False, "s3"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    kwargs: ClassVar[dict[str, Any]] = {}

    def __init__(self, held: tuple[str, ...] = (), refusal: Exception | None = None) -> None:
        super().__init__()
        self.held, self.refusal, self.asked = held, refusal, 0

    def _cat_file(self, path: str) -> bytes:
        raise NotImplementedError

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.lstrip("/").partition("/")
        return bucket, key, None

    def call_s3(self, method: str, _: dict[str, Any], **asked: Any) -> dict[str, Any]:
        self.asked += 1
        if method == "list_objects_v2":
            place = f"/{asked['Bucket']}/"
            keys = [path[len(place) :] for path in self.find(place + asked["Prefix"])]
            return {"Contents": [{"Key": key} for key in keys]}
        assert method == "delete_objects"
        if self.refusal is not None:
            raise self.refusal
        paths = [f"/{asked['Bucket']}/{one['Key']}" for one in asked["Delete"]["Objects"]]
        for path in paths:
            if path.rpartition("/")[2] not in self.held:
                super().rm_file(path)
        left = [path for path in paths if path.rpartition("/")[2] in self.held]
        return {"Errors": [{"Key": path.split("/", 2)[2], "Code": "AccessDenied"} for path in left]}

    def rm_file(self, path: str) -> None:
        if path.rpartition("/")[2] in self.held:
            raise PermissionError("Access Denied")
        super().rm_file(path)


def s3_with(held: tuple[str, ...] = (), refusal: Exception | None = None) -> tuple[ManyAtOnce, FsspecStorage]:
    driver, prefix = ManyAtOnce(held, refusal), f"/bucket-{uuid.uuid4().hex}/table"
    storage = FsspecStorage(driver, prefix, f"s3:/{prefix}")
    for number in range(4):
        storage.put(f"folder/{number}", b"x")
    return driver, storage


@pytest.mark.parametrize(
    "delete",
    [lambda storage: delete_files(storage, [f"folder/{n}" for n in range(4)]), lambda storage: storage.delete_folder("folder")],
)
def test_what_a_store_leaves_of_many_deleted_files_is_an_error(delete: Callable[[FsspecStorage], object]) -> None:
    _, storage = s3_with(held=("2",))
    with pytest.raises(StorageError, match="Access Denied"):
        delete(storage)
    assert [entry.name for entry in storage.list("folder")] == ["2"]


def test_a_store_that_deletes_only_single_files_is_asked_once_for_more() -> None:
    driver, storage = s3_with(refusal=OSError("NotImplemented"))
    names = [f"folder/{number}" for number in range(4)]
    with pytest.warns(HudiWarning, match="single ones now: NotImplemented"):
        assert delete_files(storage, names) == names
    for name in names:
        storage.put(name, b"x")
    assert delete_files(storage, names) == names
    assert storage.list("folder") == []
    assert driver.asked == 1


def test_a_store_that_asks_for_fewer_requests_is_not_asked_for_each_file() -> None:
    refusal = OSError("slower, please")
    refusal.__cause__ = ClientError("SlowDown", 503)
    driver, storage = s3_with(refusal=refusal)
    with pytest.raises(Throttled):
        delete_files(storage, ["folder/0", "folder/1"])
    assert len(storage.list("folder")) == 4
    driver.refusal = None
    assert len(delete_files(storage, ["folder/0", "folder/1"])) == 2
    assert driver.asked == 2


def test_a_forked_process_has_a_driver_of_its_own(tmp_path: Path) -> None:
    wrapper = pytest.importorskip("fsspec.implementations.asyn_wrapper")  # of drivers as those of stores: see `loop` there
    driver = wrapper.AsyncFileSystemWrapper(LocalFileSystem(auto_mkdir=True))
    here, table = (
        FsspecStorage(driver, str(tmp_path), "store://bucket"),
        FsspecStorage(driver, str(tmp_path / "t"), "store://t"),
    )
    here.put("file", b"1")
    table.put("file", b"2")
    child = os.fork()
    if not child:
        try:
            signal.alarm(20)
            told = b"%s %s %d" % (here.read("file"), table.read_range("file", 0, 1), len(here.sub("t").list("")))
            here.put("told", told)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert here.read("told") == b"1 2 1"
