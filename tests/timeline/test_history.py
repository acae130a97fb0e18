"""The archived timeline: only what the manifest names, whoever else is at work in the folder."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.storage import CountingStorage, RequestLog, Storage, open_storage
from hudimeta.table.properties import TableProperties
from hudimeta.timeline.history import COLUMNS, History, ManifestEntry, decode_manifest, encode_manifest

FOLDER = ".hoodie/timeline/history"


def at(n: int) -> str:
    return f"2026010100000{n:04d}"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


def put_file(storage: Storage, first: int, last: int, level: int = 0) -> ManifestEntry:
    """A file of archived commits, one an instant, with columns as Apache Hudi writes them."""
    numbers = range(first, last + 1)
    rows = pa.table(
        {
            "instantTime": [at(n) for n in numbers],
            "completionTime": [at(n + 100) for n in numbers],
            "action": ["clean" if n % 5 == 4 else "commit" for n in numbers],
            "metadata": pa.array([b"m%d" % n for n in numbers], pa.binary()),
            "plan": pa.array([b"p%d" % n if n % 5 == 4 else None for n in numbers], pa.binary()),
            "version": pa.array([1] * len(numbers), pa.int32()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="gzip")
    entry = ManifestEntry(f"{at(first)}_{at(last)}_{level}.parquet", len(sink.getvalue()))
    storage.put(f"{FOLDER}/{entry.name}", sink.getvalue())
    return entry


def put_manifest(storage: Storage, number: int, *entries: ManifestEntry, version: bool = True) -> None:
    storage.put(f"{FOLDER}/manifest_{number}", encode_manifest(entries, f"manifest_{number}"))
    if version:
        storage.put(f"{FOLDER}/_version_", str(number).encode())


def times(history: History) -> list[str]:
    return history.times()["instant_time"].to_pylist()


def test_nothing_was_archived(storage: Storage) -> None:
    history = History(storage, FOLDER, 2)
    assert history.load().column_names == list(COLUMNS)
    assert (history.instants(), history.manifest(), history.manifest_number()) == ((), (), None)


def test_the_newest_manifest_counts(storage: Storage) -> None:
    merged = put_file(storage, 0, 5, level=1)
    put_manifest(storage, 3, put_file(storage, 0, 2), put_file(storage, 3, 5))
    put_manifest(storage, 4, put_file(storage, 6, 7), merged)
    history = History(storage, FOLDER, 2)
    assert history.manifest_number() == 4
    assert times(history) == [at(n) for n in range(8)]
    assert [(i.action.value, i.completion) for i in history.instants()][4] == ("clean", at(104))


def test_no_version_file_is_needed(storage: Storage) -> None:
    put_manifest(storage, 9, put_file(storage, 0, 1), version=False)
    put_manifest(storage, 10, put_file(storage, 0, 1), put_file(storage, 2, 3), version=False)
    assert times(History(storage, FOLDER, 2)) == [at(n) for n in range(4)]


def test_columns_are_read_as_asked_for(storage: Storage) -> None:
    put_manifest(storage, 1, put_file(storage, 3, 5))
    rows = History(storage, FOLDER, 2).load(["plan", "action"])
    assert rows.column_names == ["plan", "action"]
    assert rows["plan"].to_pylist() == [None, b"p4", None]
    assert rows.schema.field("plan").type == pa.binary()


def test_times_are_read_once(storage: Storage) -> None:
    put_manifest(storage, 1, put_file(storage, 0, 2))
    log = RequestLog()
    history = History(CountingStorage(storage, log), FOLDER, 2)
    assert times(history) == times(history)
    n_requests = len(log)
    history.instants()
    assert len(log) == n_requests


class ArchiverAtWork:
    """Between a reader's look at the manifest and at the files, the archiver merges them and drops the old ones."""

    def __init__(self, inner: Storage) -> None:
        self._inner, self._merged = inner, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open_input(self, path: str, size: int = 0) -> Any:
        if not self._merged:
            self._merged = True
            put_manifest(self._inner, 2, put_file(self._inner, 0, 3, level=1))
            for name in (f"{at(0)}_{at(1)}_0.parquet", f"{at(2)}_{at(3)}_0.parquet"):
                self._inner.delete(f"{FOLDER}/{name}")
        return self._inner.open_input(path, size)


def test_files_merged_meanwhile_are_found_through_the_new_manifest(storage: Storage) -> None:
    put_manifest(storage, 1, put_file(storage, 0, 1), put_file(storage, 2, 3))
    assert times(History(ArchiverAtWork(storage), FOLDER, 2)) == [at(n) for n in range(4)]  # type: ignore[arg-type]


def test_a_file_that_is_gone_for_good_is_an_error(storage: Storage) -> None:
    entry = put_file(storage, 0, 1)
    put_manifest(storage, 1, entry)
    storage.delete(f"{FOLDER}/{entry.name}")
    with pytest.raises(NotFound, match=entry.name):
        History(storage, FOLDER, 2).load()


def test_damage_is_named(storage: Storage) -> None:
    entry = put_file(storage, 0, 1)
    put_manifest(storage, 1, entry)
    storage.put(f"{FOLDER}/{entry.name}", b"PAR1 this is not")
    with pytest.raises(CorruptFileError) as caught:
        History(storage, FOLDER, 2).load()
    assert caught.value.path == f"{FOLDER}/{entry.name}"
    storage.delete(f"{FOLDER}/manifest_1")
    with pytest.raises(CorruptFileError, match="the manifest that it names"):
        History(storage, FOLDER, 2).manifest()


@pytest.mark.parametrize("said", [b"1", b"3", b"one", b""])
def test_a_damaged_version_file_hides_no_instant(storage: Storage, said: bytes) -> None:
    put_manifest(storage, 1, put_file(storage, 0, 1))
    put_manifest(storage, 2, put_file(storage, 0, 1), put_file(storage, 2, 3))
    storage.put(f"{FOLDER}/_version_", said)
    assert times(History(storage, FOLDER, 2)) == [at(n) for n in range(4)]


entries = st.builds(ManifestEntry, st.from_regex(r"[0-9]{1,17}_[0-9]{1,17}_[0-9]\.parquet", fullmatch=True), st.integers(0))


@given(st.lists(entries, max_size=10))
def test_a_manifest_is_read_back(files: list[ManifestEntry]) -> None:
    assert list(decode_manifest(encode_manifest(files, "manifest_1"), "x/manifest_1")) == files


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"files": 1}',
        b'{"files": [{"fileName": "../../../etc/passwd", "fileLen": 1}]}',
        b'{"files": [{"fileName": "1_2_0.parquet"}]}',
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as caught:
        decode_manifest(data, "history/manifest_1")
    assert caught.value.path == "history/manifest_1"


def test_unknown_members_of_a_manifest_are_skipped() -> None:
    data = b'{"v": 2, "files": [{"fileName": "1_2_0.parquet", "fileLen": 7, "x": null}]}'
    assert decode_manifest(data) == (ManifestEntry("1_2_0.parquet", 7),)


def put_rows(storage: Storage, *numbers: int) -> ManifestEntry:
    """A file of archived commits in the order given, named after the first and the last, as Apache Hudi does it."""
    times = [at(n) for n in numbers]
    texts = pa.table({"instantTime": times, "completionTime": times, "action": ["commit"] * len(times)})
    said = pa.table({"metadata": pa.array([b"m"] * len(times)), "plan": pa.nulls(len(times), pa.binary())})
    sink = io.BytesIO()
    pq.write_table(pa.table([*texts.columns, *said.columns], [*texts.column_names, *said.column_names]), sink)
    entry = ManifestEntry(f"{times[0]}_{times[-1]}_0.parquet", len(sink.getvalue()))
    storage.put(f"{FOLDER}/{entry.name}", sink.getvalue())
    return entry


def test_files_that_were_moved_out_of_order_are_read_whatever_their_names_say(storage: Storage) -> None:
    """Apache Hudi moves what version 6 had archived from the newest file on, of which each has cleans before commits."""
    put_manifest(storage, 1, put_rows(storage, 8, 9, 1, 2), put_rows(storage, 5, 3, 4, 7, 6))
    storage.put(f".hoodie/timeline/{at(10)}_{at(11)}.commit", b"{}")
    stated = {"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2", "hoodie.table.initial.version": "6"}
    history = TableProperties(stated).load_timeline(storage).history
    assert at(9) in history.load(["instant_time"], at(9))["instant_time"].to_pylist()
    assert at(7) in history.load(["instant_time"], at(7))["instant_time"].to_pylist()
    assert at(3) in history.load(["instant_time"], at(3), at(3))["instant_time"].to_pylist()
    assert times(history) == [at(n) for n in range(1, 10)]


def test_names_whose_ends_are_the_wrong_way_round_exclude_nothing(storage: Storage) -> None:
    put_manifest(storage, 1, put_rows(storage, 8, 9, 1, 2))
    assert at(9) in History(storage, FOLDER, 2).load(["instant_time"], at(9))["instant_time"].to_pylist()
    assert at(2) in History(storage, FOLDER, 2).load(["instant_time"], at(2), at(2))["instant_time"].to_pylist()


def test_an_instant_that_was_archived_twice_is_there_once(storage: Storage) -> None:
    """Apache Hudi moves what two files of version 6 hold, one of which is merged out of others, into two files."""
    put_manifest(storage, 1, put_rows(storage, 1, 2, 3), put_rows(storage, 2, 3, 4))
    assert [i.time for i in History(storage, FOLDER, 2).instants()] == [at(n) for n in range(1, 5)]
