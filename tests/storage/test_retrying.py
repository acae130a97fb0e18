"""What happens where a store asks for fewer requests: waits, second attempts, and an error when the budget is spent."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import hudimeta
from hudimeta.errors import AlreadyExists, StorageError, Throttled
from hudimeta.storage import CountingStorage, LocalStorage, open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.storage.fsspec_store import FsspecStorage
from hudimeta.storage.retrying import RetryBudget, RetryingStorage
from hudimeta.testing.builders import simple_rows


class Hours:
    """A timer that goes on only when somebody waits."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def now(self) -> float:
        return sum(self.waited)

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


def store(
    folder: Path, fault: Fault, times: int, budget: RetryBudget | None = None
) -> tuple[CountingStorage, Hours, FaultPlan]:
    """A store that strikes at the first calls that change it, behind retries, counted."""
    timer, plan = Hours(), FaultPlan(0, fault, times)
    faulty = FaultyStorage(LocalStorage(str(folder)), plan)
    return CountingStorage(RetryingStorage(faulty, budget or RetryBudget(), timer)), timer, plan


def test_a_request_is_made_again_until_the_store_does_it(tmp_path: Path) -> None:
    storage, timer, plan = store(tmp_path, Fault.THROTTLED, times=3)
    storage.put("a", b"1")
    assert storage.read("a") == b"1"
    assert len(plan.calls) == 4
    assert storage.log.counts() == {"PUT": 4, "GET": 1}
    assert storage.log.refused() == 3
    short, middle, long = timer.waited
    assert 0.05 <= short <= 0.1 <= middle <= 0.2 <= long <= 0.4


@pytest.mark.parametrize("verb", ["delete_some", "delete_folder"])
def test_a_removal_is_made_again_and_counted(tmp_path: Path, verb: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").touch()
    storage, _, _ = store(tmp_path, Fault.THROTTLED, times=2)
    assert getattr(storage, verb)({"delete_some": ["a/b"], "delete_folder": "a"}[verb]) in (["a/b"], None)
    assert storage.list("a") == []
    assert storage.log.counts()["DELETE"] == 3
    assert storage.log.refused() == 2


@pytest.mark.parametrize(
    ("budget", "attempts"), [(RetryBudget(attempts=4), 4), (RetryBudget(attempts=99, seconds=0.12, first_pause=0.1), 2)]
)
def test_the_budget_ends_the_attempts(tmp_path: Path, budget: RetryBudget, attempts: int) -> None:
    storage, timer, plan = store(tmp_path, Fault.THROTTLED, times=1000, budget=budget)
    with pytest.raises(Throttled, match=f"at each of {attempts} attempts in") as raised:
        storage.sub("folder").put("a", b"1")
    assert raised.value.attempts == attempts == len(plan.calls)
    assert raised.value.seconds == pytest.approx(timer.now())
    assert storage.log.refused() == attempts
    assert set(storage.log.by_purpose()) == {("PUT", "data")}


def test_a_file_that_a_refused_attempt_created_is_ours(tmp_path: Path) -> None:
    storage, _, _ = store(tmp_path, Fault.THROTTLED_AFTER, times=1)
    storage.put_if_absent("a", b"mine")
    assert storage.read("a") == b"mine"


@pytest.mark.parametrize("content", [b"", b"theirs"])
def test_a_file_of_somebody_else_is_not(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    storage, _, _ = store(tmp_path, Fault.THROTTLED, times=1)
    with pytest.raises(AlreadyExists):
        storage.put_if_absent("a", content and b"mine")


def test_a_file_that_a_refused_attempt_replaced_is_ours(tmp_path: Path) -> None:
    storage, _, _ = store(tmp_path, Fault.THROTTLED_AFTER, times=1)
    (tmp_path / "a").write_bytes(b"old")
    assert storage.put_if_unchanged("a", b"new", b"old")
    assert not storage.put_if_unchanged("a", b"newer", b"old")


class AskedForLess(Exception):
    """As clients of object stores raise it: the driver's exception says little, its cause has the answer."""

    def __init__(self, status: int | None = None, code: str | None = None) -> None:
        super().__init__("an error occurred")
        if code is not None:
            self.response = {"Error": {"Code": code}}
        else:
            self.status = status


class Busy(MemoryFileSystem):  # type: ignore[misc]
    """A store that refuses what it is told to."""

    cachable = False
    refusals: list[Exception]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> Any:
        if self.refusals:
            raise OSError("driver's words") from self.refusals.pop()
        return super().cat_file(path, start, end, **kwargs)


@pytest.mark.parametrize(
    "refusal", [AskedForLess(429), AskedForLess(503), AskedForLess(code="SlowDown")], ids=["429", "503", "S3"]
)
def test_answers_of_stores_that_ask_for_fewer_requests(refusal: Exception) -> None:
    driver, prefix = Busy(), f"/bucket-{uuid.uuid4().hex}"
    driver.refusals = []
    storage = FsspecStorage(driver, prefix, f"memory:/{prefix}")
    storage.put("a", b"1")
    driver.refusals = [refusal]
    with pytest.raises(Throttled):
        storage.read("a")
    driver.refusals = [refusal, refusal]
    counted = CountingStorage(RetryingStorage(storage, timer=Hours()))
    assert (counted.read("a"), counted.log.refused()) == (b"1", 2)
    driver.refusals = [AskedForLess(500)]
    with pytest.raises(StorageError, match="driver's words") as raised:
        counted.read("a")
    assert not isinstance(raised.value, Throttled)


def test_object_stores_are_opened_with_retries_in_every_process() -> None:
    storage = CountingStorage(open_storage(f"memory://retried{uuid.uuid4().hex}"))
    assert isinstance(storage.inner, RetryingStorage)
    sent = pickle.loads(pickle.dumps(storage))
    assert isinstance(sent.inner, RetryingStorage)
    assert len(sent.log) == 0


def test_a_table_is_written_while_its_store_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = FaultPlan(3, Fault.THROTTLED, times=5)
    monkeypatch.setattr(
        "hudimeta.storage.locate.LocalStorage",
        lambda where: RetryingStorage(FaultyStorage(LocalStorage(where), plan), timer=Hours()),
    )
    rows = simple_rows([1, 2, 3], 1)
    table = hudimeta.Table.create(tmp_path / "t", rows.schema, key="id")
    table.upsert(rows)
    assert len(plan.calls) > 8
    assert hudimeta.Table(tmp_path / "t").scan().count() == 3
