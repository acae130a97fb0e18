"""Tables on object stores through their real clients: s3fs, and gcsfs and adlfs where their servers run (`make stores`)."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import AlreadyExists, CorruptFileError, FileRemoved, NotFound, StorageError
from hudimeta.storage import NewFile, Storage
from hudimeta.storage.at_once import at_once, delete_files
from hudimeta.testing.invariants import check_all
from tests.elsewhere import only_when
from tests.storage.real_stores import STORES, RealStore, real_store

pytestmark = only_when(importlib.util.find_spec("s3fs"), "make stores")

RIDES = pa.table({"id": [1, 2, 3], "city": ["a", "b", "a"], "fare": [1.0, 2.0, 3.0], "ts": [1, 1, 1]})
INDEXES = ["column_stats", "record_index"]


@pytest.fixture(scope="module", params=STORES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealStore]:
    with real_store(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture
def store(place: RealStore) -> Storage:
    return place.open(place.new_table())


def asked_of(place: RealStore) -> list[tuple[str, int]]:
    """The requests to S3 from now on: method, and the last byte of the range that is asked for, or 0."""
    driver = fsspec.filesystem("s3", **{name.rpartition(".")[2]: value for name, value in place.options.items()})
    driver.connect()
    asked: list[tuple[str, int]] = []

    def sent(request: Any, **_: object) -> None:
        span = request.headers.get("Range", b"0")
        asked.append((request.method, int((span.decode() if isinstance(span, bytes) else span).rpartition("-")[2])))

    driver.s3.meta.events.register("before-send.s3.*", sent)
    return asked


def test_on_s3_each_call_is_one_request_for_little_more_than_is_read(tmp_path: Path) -> None:
    with real_store("amazon", tmp_path) as place:
        store = place.open(place.new_table())
        store.put("t/large", bytes(2 << 20))
        asked = asked_of(place)
        store.put("t/file", b"x")
        store.put("t/file", b"y")
        store.put_if_absent("t/new", b"z")
        assert [store.read("t/file"), store.read_range("t/file", 0, 1)] == [b"y", b"y"]
        assert [store.is_file("t/file"), store.is_file("t/none")] == [True, False]
        assert len(store.list("t")) == 3
        store.delete("t/file")
        assert [method for method, _ in asked] == ["PUT", "PUT", "PUT", "GET", "GET", "HEAD", "HEAD", "GET", "DELETE"]
        asked.clear()
        assert store.put_if_unchanged("t/new", b"new", b"z")
        assert [method for method, _ in asked] == ["HEAD", "GET", "PUT"]
        asked.clear()
        assert store.put_if_unchanged("t/new", b"newer", b"new"), "known by what it was replaced with"
        assert store.read("t/new") == b"newer"
        assert store.put_if_unchanged("t/new", b"newest", b"newer"), "known by what was read"
        assert [method for method, _ in asked] == ["PUT", "GET", "PUT"]
        place.open(store.root).put("t/new", b"of another")
        asked.clear()
        assert not store.put_if_unchanged("t/new", b"late", b"newest")
        assert [method for method, _ in asked] == ["PUT", "HEAD", "GET"]
        place.open(store.root).put("t/new", b"again")
        assert store.read("t/new") == b"again"
        place.open(store.root).put("t/new", b"of another")
        place.open(store.root).put("t/new", b"again")
        assert store.put_if_unchanged("t/new", b"late", b"again"), "what it holds counts"
        asked.clear()
        with store.open_input("t/large") as source:
            assert [len(source.read_at(1000, at)) for at in (0, 5000)] == [1000, 1000]
        assert [method for method, _ in asked] == ["HEAD", "GET"]
        assert asked[1][1] < 300_000
        asked.clear()
        with store.open_input("t/large", 2 << 20) as source:
            assert len(source.read_at(1000, 0)) == 1000
        assert [method for method, _ in asked] == ["GET"]


def test_a_thousand_files_of_s3_are_deleted_by_one_request(tmp_path: Path) -> None:
    with real_store("amazon", tmp_path) as place:
        store, names = place.open(place.new_table()), [f"d/a b/é&<{number}>" for number in range(1100)]
        asked = asked_of(place)
        for delete in (lambda: delete_files(store, names), lambda: store.delete_folder("d")):
            at_once(lambda name: store.put(name, b"x"), [*names, "d1/kept"])
            asked.clear()
            delete()
            assert [method for method, _ in asked if method != "GET"] == ["POST", "POST"]
            assert [entry.path for entry in (*store.list("d"), *store.list("d1"))] == ["d1/kept"]
        asked.clear()
        store.delete_folder("d")
        assert [method for method, _ in asked] == ["GET"]


def test_a_base_file_that_is_gone_or_of_another_size_is_told(place: RealStore) -> None:
    uri = place.new_table()
    table = hudimeta.Table.create(uri, RIDES.schema, key="id", options=place.options)
    table.upsert(RIDES)
    store, path = place.open(uri), table.file_slices()["base_file"][0].as_py()
    whole = store.read(path)
    for wrong in (whole[:-1000], b""):
        store.put(path, wrong)
        with pytest.raises(CorruptFileError, match=rf"a file of {len(whole)} bytes.*{len(wrong)} bytes"):
            hudimeta.Table(uri, options=place.options).scan().to_table()
    store.delete(path)
    with pytest.raises(FileRemoved):
        hudimeta.Table(uri, options=place.options).scan().to_table()


def test_files_are_put_replaced_and_read(store: Storage) -> None:
    store.put("a/b/file", b"first")
    store.put("a/b/file", b"second, longer")
    store.put("a/empty", b"")
    assert [store.read(path) for path in ("a/b/file", "a/empty")] == [b"second, longer", b""]
    assert store.read_range("a/b/file", 3, 4) == b"ond,"
    assert store.read_range("a/b/file", -6, 6) == b"longer"
    with pytest.raises(NotFound):
        store.read("a/none")


def test_of_many_creators_one_wins(store: Storage) -> None:
    def create(number: int) -> bool:
        try:
            store.put_if_absent("a/instant", str(number).encode())
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(8)))
    assert won.count(True) == 1
    assert store.read("a/instant") == str(won.index(True)).encode()


def test_of_many_who_replace_a_file_one_wins(store: Storage) -> None:
    store.put("lock", b"free")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: store.put_if_unchanged("lock", str(n).encode(), b"free"), range(8)))
    assert won.count(True) == 1
    assert store.read("lock") == str(won.index(True)).encode()
    assert not store.put_if_unchanged("lock", b"late", b"free")
    with pytest.raises(NotFound):
        store.put_if_unchanged("none", b"late", b"free")


def test_files_and_folders_are_told_apart(store: Storage) -> None:
    store.put("t/b", b"12")
    store.put("t/a", b"1")
    store.put("t/folder/below", b"123")
    assert [(e.path, e.size, e.is_folder) for e in store.list("t")] == [
        ("t/a", 1, False),
        ("t/b", 2, False),
        ("t/folder", 0, True),
    ]
    assert [store.is_file(path) for path in ("t/a", "t/folder", "t/none")] == [True, False, False]
    about = [store.stat(path) for path in ("t/a", "t/folder", "t/none")]
    assert [found and (found.size, found.is_folder) for found in about] == [(1, False), (0, True), None]
    assert about[0] is not None
    assert about[0].modified_ms > 1_600_000_000_000
    assert store.list("t/none") == []
    assert store.delete("t/a")
    store.delete_folder("t")
    store.delete_folder("t")
    assert store.list("t") == []


def test_lists_show_what_others_put_since(place: RealStore) -> None:
    uri = place.new_table()
    one, other = place.open(uri), place.open(uri)
    one.put("t/a", b"1")
    assert [e.path for e in other.list("t")] == ["t/a"]
    one.put("t/b", b"2")
    one.delete("t/a")
    assert [e.path for e in other.list("t")] == ["t/b"]
    assert [other.is_file(path) for path in ("t/a", "t/b")] == [False, True]
    assert other.stat("t/a") is None


def test_staged_files_and_streams(store: Storage) -> None:
    store.stage([NewFile("a/new", b"x", False), NewFile("b/far", b"y")]).publish()
    table = pa.table({"x": list(range(10_000))})
    with store.open_output("data/f.parquet") as stream:
        pq.write_table(table, pa.PythonFile(stream, mode="w"))
    with store.open_input("data/f.parquet") as source:
        assert pq.read_table(source).equals(table)
    _begin_and_fail(store)
    gc.collect()
    assert [e.path for e in store.list("data")] == ["data/f.parquet"]


def _begin_and_fail(store: Storage) -> None:
    stream = store.open_output("data/half")
    stream.__enter__()
    stream.write(b"half")
    stream.__exit__(RuntimeError, RuntimeError(), None)


def test_a_bucket_that_is_not_there_is_not_made(place: RealStore) -> None:
    uri = place.bucket + "0000-typo/t"
    with pytest.raises(StorageError, match=r"bucket|container"):
        hudimeta.Table.create(uri, RIDES.schema, key="id", options=place.options)
    with pytest.raises(StorageError, match=r"bucket|container"):
        place.open(uri).put("file", b"x")


def test_a_table_is_written_served_and_read(place: RealStore) -> None:
    uri = place.new_table()
    table = hudimeta.Table.create(
        uri,
        RIDES.schema,
        key="id",
        partition_by="city",
        ordering="ts",
        indexes=INDEXES,
        type="MERGE_ON_READ",
        options=place.options,
    )
    table.upsert(RIDES)
    table.upsert(RIDES.set_column(2, "fare", pa.array([4.0, 5.0, 6.0])))
    table.delete(where="id = 2")
    table.services.compact()
    table.services.clean()
    again = hudimeta.Table(uri, options=place.options)
    assert sorted(again.scan(columns=["id", "fare"]).to_table().to_pydict().items()) == [("fare", [4.0, 6.0]), ("id", [1, 3])]
    assert again.scan(where="id = 3").to_table().num_rows == 1
    check_all(place.open(uri))


def test_writers_beside_each_other_lose_nothing(place: RealStore) -> None:
    uri = place.new_table()
    hudimeta.Table.create(uri, RIDES.schema, key="id", indexes=INDEXES, options=place.options)

    def write(number: int) -> None:
        table = hudimeta.Table(uri, options={**place.options, "hoodie.write.num.retries.on.conflict.failures": "20"})
        for turn in range(3):
            ids = [10 * number + turn, 1000 + turn]
            table.upsert(pa.table({"id": ids, "city": ["a", "b"], "fare": [1.0, float(number)], "ts": [1, 1]}))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (1, 2)))
    found = hudimeta.Table(uri, options=place.options).scan(columns=["id"]).to_table()["id"].to_pylist()
    assert sorted(found) == [10, 11, 12, 20, 21, 22, 1000, 1001, 1002]
    check_all(place.open(uri))
