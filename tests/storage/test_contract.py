"""What every store must do, run against each of them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import AlreadyExists, ConfigError, HudiError, NotFound, StorageError
from hudimeta.storage import (
    CountingStorage,
    LocalStorage,
    NewFile,
    RequestKind,
    Storage,
    absolute_location,
    open_storage,
    purpose_of,
)
from hudimeta.storage.at_once import delete_files
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage, SlowStorage
from hudimeta.storage.fsspec_store import FsspecStorage
from hudimeta.testing.simulation.store import Files, SimulatedStorage, StoreKind

_NUMBERS = itertools.count()


@pytest.fixture(params=["local", "object store", "counting", "faulty", "slow", "simulated"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """One empty store of each kind."""
    local = LocalStorage(str(tmp_path / "store"))
    if request.param == "object store":
        yield FsspecStorage.open(f"memory://bucket{next(_NUMBERS)}/table", {})
    elif request.param == "counting":
        yield CountingStorage(local)
    elif request.param == "faulty":
        yield FaultyStorage(local, FaultPlan(None, Fault.KILL))
    elif request.param == "simulated":
        yield SimulatedStorage(Files(lambda: 0), StoreKind.DISK)
    elif request.param == "slow":
        yield SlowStorage(local, lambda: None)
    else:
        yield local


def test_put_replaces_and_read_gives_the_bytes_back(store: Storage) -> None:
    store.put("a/b/file", b"first")
    store.put("a/b/file", b"second, longer")
    assert store.read("a/b/file") == b"second, longer"


def test_put_if_absent_keeps_what_is_there(store: Storage) -> None:
    store.put_if_absent("a/file", b"first")
    with pytest.raises(AlreadyExists, match="HUDIMETA_ALREADY_EXISTS"):
        store.put_if_absent("a/file", b"second")
    assert store.read("a/file") == b"first"


def test_staged_files_are_seen_once_they_are_published(store: Storage) -> None:
    store.put("a/old", b"first")
    staged = store.stage([NewFile("a/new", b"", False), NewFile("a/old", b"second"), NewFile("b/c/far", b"third")])
    assert [entry.path for entry in store.list("a")] == ["a/old"]
    assert store.list("b") == []
    staged.publish()
    staged.close()
    assert [store.read(path) for path in ("a/new", "a/old", "b/c/far")] == [b"", b"second", b"third"]


def test_of_staged_files_some_are_published(store: Storage) -> None:
    staged = store.stage([NewFile("a/1", b"1"), NewFile("a/2", b"2"), NewFile("a/3", b"3", False), NewFile("b/4", b"4")])
    staged.publish({"a/2", "a/3"})
    assert [(entry.path, entry.size) for entry in [*store.list("a"), *store.list("b")]] == [("a/2", 1), ("a/3", 1)]


def test_what_stops_staged_files_is_asked_before_each_of_them(store: Storage) -> None:
    asked: list[str] = []

    def before(file: NewFile) -> None:
        asked.append(file.path)
        if file.path == "a/3":
            raise PermissionError(file.path)

    staged = store.stage([NewFile(f"a/{number}", b"x", number < 3) for number in range(5)])
    with pytest.raises(PermissionError):
        staged.publish(before=before)
    staged.close()
    assert asked == ["a/3"]
    assert store.list("a") == []
    staged = store.stage([NewFile(f"a/{number}", b"x", False) for number in range(5)])
    with pytest.raises(PermissionError):
        staged.publish(before=before)
    staged.close()
    assert [entry.path for entry in store.list("a")] == ["a/0", "a/1", "a/2"]


def test_staged_files_that_are_let_go_leave_nothing(store: Storage) -> None:
    store.put("a/old", b"first")
    staged = store.stage([NewFile("a/new", b"1" * 10_000), NewFile("a/old", b"second")])
    staged.close()
    staged.close()
    assert [(entry.path, entry.size) for entry in store.list("a")] == [("a/old", 5)]


def test_a_staged_file_that_replaces_none_keeps_what_came_meanwhile(store: Storage) -> None:
    store.put("a/file", b"x")
    staged = store.stage([NewFile("a/first", b"1", False), NewFile("a/second", b"2", False), NewFile("a/third", b"3", False)])
    store.put_if_absent("a/second", b"of another")
    with pytest.raises(AlreadyExists, match="a/second"):
        staged.publish()
    staged.close()
    assert [entry.path for entry in store.list("a")] == ["a/file", "a/first", "a/second"]
    assert store.read("a/second") == b"of another"


def test_many_files_are_deleted_and_those_that_were_there_are_told(store: Storage) -> None:
    names = [f"a/{number}" for number in range(40)]
    for name in names:
        store.put(name, b"x")
    store.put("a/kept", b"x")
    assert delete_files(store, names) == names
    assert [entry.path for entry in store.list("a")] == ["a/kept"]
    assert delete_files(store, ["a/kept"]) == ["a/kept"]
    assert delete_files(store, names) == delete_files(store, []) == store.delete_some(names[:1]) == []


def test_a_staged_file_comes_also_where_its_folder_was_removed(store: Storage) -> None:
    store.put("a/file", b"x")
    staged = store.stage([NewFile("a/first", b"1"), NewFile("a/second", b"2", False)])
    store.delete_folder("a")
    staged.publish()
    assert [store.read(entry.path) for entry in store.list("a")] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("offset", "length", "expected"), [(0, 3, b"012"), (4, 100, b"456789"), (-3, 3, b"789"), (-100, 2, b"01"), (10, 1, b"")]
)
def test_read_range(store: Storage, offset: int, length: int, expected: bytes) -> None:
    store.put("file", b"0123456789")
    assert store.read_range("file", offset, length) == expected


def test_what_is_missing_is_not_found(store: Storage) -> None:
    with pytest.raises(NotFound) as caught:
        store.read("no/such/file")
    assert caught.value.path == "no/such/file"
    assert store.stat("no/such/file") is None
    assert store.list("no/such/folder") == []
    store.delete_folder("no/such/folder")


def test_list_is_one_level_sorted_with_sizes(store: Storage) -> None:
    store.put("t/b", b"12")
    store.put("t/a", b"1")
    store.put("t/folder/below", b"123")
    entries = store.list("t")
    assert [(e.path, e.is_folder) for e in entries] == [("t/a", False), ("t/b", False), ("t/folder", True)]
    assert [e.size for e in entries] == [1, 2, 0]
    assert [e.name for e in entries] == ["a", "b", "folder"]


def test_delete_removes_one_file_and_delete_folder_all_below(store: Storage) -> None:
    store.put("t/a", b"1")
    store.put("t/x/b", b"1")
    assert store.delete("t/a")
    assert store.stat("t/a") is None
    store.delete_folder("t")
    assert store.stat("t/x/b") is None


def test_sub_sees_the_same_files(store: Storage) -> None:
    store.sub("a").put("b", b"1")
    assert store.read("a/b") == b"1"
    assert store.sub("a").sub("").read("b") == b"1" if isinstance(store, LocalStorage) else True
    assert [e.path for e in store.sub("a").list("")] == ["b"]


def test_parquet_goes_through_streams(store: Storage) -> None:
    table = pa.table({"x": list(range(1000))})
    with store.open_output("data/f.parquet") as stream:
        pq.write_table(table, pa.PythonFile(stream, mode="w"))
    with store.open_input("data/f.parquet") as source:
        assert pq.read_table(source).equals(table)


def test_put_if_unchanged_compares_first(tmp_path: Path) -> None:
    store = LocalStorage(str(tmp_path))
    store.put("f", b"one")
    assert not store.put_if_unchanged("f", b"three", b"two")
    assert store.put_if_unchanged("f", b"two", b"one")
    assert store.read("f") == b"two"


def test_of_many_creators_one_wins(tmp_path: Path) -> None:
    store = LocalStorage(str(tmp_path))
    won: list[int] = []

    def create(number: int) -> None:
        try:
            store.put_if_absent("instant", str(number).encode())
        except AlreadyExists:
            return
        won.append(number)

    threads = [threading.Thread(target=create, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.read("instant") == str(won[0]).encode()
    assert [e.name for e in store.list("")] == ["instant"], "nothing temporary is left"


def test_a_stream_that_fails_leaves_no_file(tmp_path: Path) -> None:
    store = LocalStorage(str(tmp_path))
    stream = store.open_output("data/f")
    stream.__enter__()
    stream.write(b"half")
    stream.__exit__(RuntimeError, RuntimeError(), None)
    assert store.stat("data/f") is None


def test_guards_exclude_each_other_and_never_wait(tmp_path: Path) -> None:
    store = LocalStorage(str(tmp_path))
    with store.guard("g") as first:
        assert first
        with store.guard("g") as second:
            assert not second
    with store.guard("g") as again:
        assert again


def test_counting_knows_kind_and_purpose(tmp_path: Path) -> None:
    store = CountingStorage(LocalStorage(str(tmp_path)))
    store.put(".hoodie/timeline/1.commit", b"x")
    store.sub(".hoodie/metadata").put("files/f.hfile", b"y")
    store.list(".hoodie/timeline")
    mark = len(store.log)
    store.read("p/data.parquet".replace("p/data.parquet", ".hoodie/timeline/1.commit"))
    assert store.log.counts() == {"PUT": 2, "LIST": 1, "GET": 1}
    assert store.log.by_purpose(mark) == {("GET", "timeline"): 1}
    assert store.log.paths(RequestKind.PUT) == [".hoodie/timeline/1.commit", ".hoodie/metadata/files/f.hfile"]


@pytest.mark.parametrize(
    ("path", "purpose"),
    [
        ("p=1/x.parquet", "data"),
        (".hoodie/20250101.commit", "timeline"),
        (".hoodie/hoodie.properties", "properties"),
        (".hoodie/metadata/.hoodie/timeline", "metadata timeline"),
        (".hoodie/metadata/files/a.hfile", "metadata table"),
        (".hoodie/.temp/1/a", "markers"),
        (".hoodie/.locks/table_lock.json", "lock"),
    ],
)
def test_purposes(path: str, purpose: str) -> None:
    assert purpose_of(path) == purpose


def test_faults_strike_at_the_chosen_call(tmp_path: Path) -> None:
    plan = FaultPlan(1, Fault.ERROR_AFTER)
    store = FaultyStorage(LocalStorage(str(tmp_path)), plan)
    store.put("a", b"1")
    with pytest.raises(HudiError, match="injected"):
        store.put("b", b"2")
    assert store.read("b") == b"2"
    assert plan.calls == ["put a", "put b"]


def test_one_spelling_of_a_place(tmp_path: Path) -> None:
    assert absolute_location(f"file:{tmp_path}") == absolute_location(f"file://{tmp_path}/") == str(tmp_path)
    assert absolute_location("relative").startswith("/")
    assert absolute_location("s3://bucket/key/") == "s3://bucket/key"
    with pytest.raises(ConfigError, match="HUDIMETA_CONFIG"):
        absolute_location("  ")
    with pytest.raises(ConfigError, match="host"):
        absolute_location("file://elsewhere/x")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("s3:/bucket/table", "Write s3://"),
        ("s3:table", r"\./s3:table for a folder"),
        ("C:\\tables\\t", "a local path, or a URI"),
        ("my_store://bucket/table", "Correct the scheme"),
        ("://bucket/table", "Correct the scheme"),
    ],
)
def test_what_is_neither_a_path_nor_a_uri_makes_no_folder_of_that_name(
    given: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=says):
        hudimeta.Table.create(given, pa.schema([("id", pa.string())]), key="id")
    assert not list(tmp_path.iterdir())
    assert absolute_location("./s3:table") == str(tmp_path / "s3:table")


@pytest.mark.parametrize(("uri", "why"), [("zip://{}/none.zip", "."), ("reference://x", "missing 1 required")])
def test_a_driver_that_cannot_be_opened_is_told_as_the_store_it_is_of(uri: str, why: str, tmp_path: Path) -> None:
    where = uri.format(tmp_path)
    with pytest.raises(StorageError, match=f"^HUDIMETA_[A-Z_]*: {where}: .*{why}"):
        open_storage(where)


def test_an_unknown_scheme_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match="HUDIMETA_CONFIG"):
        open_storage("nosuchstore://bucket/table")
