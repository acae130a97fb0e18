"""Nothing outside of a storage's root is read, written or deleted, whatever path is asked for and whatever lies there."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.errors import HudiError, OutsideTable
from hudimeta.storage import LocalStorage, Storage, check_native_files, open_storage
from hudimeta.storage.fsspec_store import FsspecStorage

CANARY = b"must survive"
_NUMBERS = itertools.count()

Act = Callable[[Storage, str], object]


def _write_stream(store: Storage, path: str) -> None:
    with store.open_output(path) as stream:
        stream.write(b"overwritten")


def _guarded(store: Storage, path: str) -> None:
    guard = store.guard(path)
    if guard is None:
        raise OutsideTable(path, "no guards here", "")
    with guard:
        pass


READS: dict[str, Act] = {
    "read": lambda s, p: s.read(p),
    "read_range": lambda s, p: s.read_range(p, 0, 5),
    "open_input": lambda s, p: s.open_input(p),
    "stat": lambda s, p: s.stat(p),
    "list": lambda s, p: s.list(p),
    "sub": lambda s, p: s.sub(p).list(""),
}
CHANGES: dict[str, Act] = {
    "put": lambda s, p: s.put(p, b"x"),
    "put_if_absent": lambda s, p: s.put_if_absent(p, b"x"),
    "put_if_unchanged": lambda s, p: s.put_if_unchanged(p, b"x", CANARY),
    "guard": _guarded,
    "delete": lambda s, p: s.delete(p),
    "delete_some": lambda s, p: s.delete_some([p]),
    "delete_folder": lambda s, p: s.delete_folder(p),
    "open_output": _write_stream,
}
ACTS = READS | CHANGES
LEADING_OUT = [
    *("..", "../canary", "a/../../canary", "a/..", "./canary", "a/./b", "/canary", "//canary", "a//b", "a/", "/"),
    *("../table/a/f", "%2e%2e/canary", ".%2E/canary", "a/%2E./x", "a\0b", "..\0", "\ud800", "a" * 5000, "a/" * 3000 + "b"),
]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("kind", ["local", "object store"])
def test_paths_that_are_not_normal_are_refused(kind: str, act: str, tmp_path: Path) -> None:
    above: Storage
    if kind == "local":
        above = LocalStorage(str(tmp_path))
    else:
        above = FsspecStorage.open(f"memory://inside{next(_NUMBERS)}", {})
    above.put("canary", CANARY)
    above.put("table/a/f", b"1")
    store = open_storage(above.root + "/table")
    for path in LEADING_OUT:
        with pytest.raises(OutsideTable, match="HUDIMETA_OUTSIDE_TABLE") as caught:
            ACTS[act](store, path)
        assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    assert above.read("canary") == CANARY
    assert [e.path for e in above.list("")] == ["canary", "table"]
    assert store.read("a/f") == b"1"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder full of links that lead out, beside what they lead to."""
    outside, root = tmp_path / "outside", tmp_path / "table"
    outside.mkdir()
    (root / "real").mkdir(parents=True)
    (outside / "canary").write_bytes(CANARY)
    (root / "file").symlink_to(outside / "canary")
    (root / "folder").symlink_to(outside)
    (root / "real" / "up").symlink_to("../..")
    (root / "round").symlink_to(".")
    (root / "dangling").symlink_to(outside / "new")
    os.mkfifo(root / "pipe")
    os.link(outside / "canary", root / "second name")
    return root


LINKED = [
    *("folder/canary", "real/up/outside/canary", "round/real", "round/round/round/file"),
    *("file", "folder", "dangling", "pipe"),
]
REPLACEABLE = {"file", "dangling", "pipe", "folder"}
"""A link or pipe may itself be replaced or deleted: it lies inside, and what it leads to stays."""


def _outside(table: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (table.parent / "outside").iterdir()}


@pytest.mark.parametrize("act", ACTS)
def test_links_are_not_followed(act: str, table: Path) -> None:
    store = LocalStorage(str(table))
    for path in LINKED:
        is_own = act in CHANGES and path in REPLACEABLE
        with contextlib.suppress(OutsideTable, HudiError if is_own else OutsideTable):
            ACTS[act](store, path)
            assert is_own or (act in {"list", "sub"} and path == "pipe"), path
        assert _outside(table) == {"canary": CANARY}, path


def test_files_are_replaced_and_not_written_into(table: Path) -> None:
    _write_stream(LocalStorage(str(table)), "second name")
    assert (table / "second name").read_bytes() == b"overwritten"
    assert _outside(table) == {"canary": CANARY}


def test_a_folder_that_becomes_a_link_is_noticed_before_a_change(tmp_path: Path) -> None:
    store = LocalStorage(str(tmp_path / "table"))
    store.put("part/file", b"1")
    store.read("part/file")
    outside = tmp_path / "outside"
    (tmp_path / "table" / "part").rename(outside)
    (tmp_path / "table" / "part").symlink_to(outside)
    for act in ("put", "delete", "open_output"):
        with pytest.raises(OutsideTable, match="part': is a symbolic link"):
            CHANGES[act](store, "part/file")
    assert (outside / "file").read_bytes() == b"1"


def test_the_root_itself_may_be_reached_through_a_link(tmp_path: Path) -> None:
    LocalStorage(str(tmp_path / "real")).put("a/file", b"1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = LocalStorage(str(tmp_path / "link"))
    assert store.read("a/file") == b"1"
    assert [e.path for e in store.list("")] == ["a"]
    store.put("a/file", b"2")
    assert store.sub("a").read("file") == b"2"


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff", "wb"):
        pass
    with pytest.raises(OutsideTable):
        LocalStorage(str(tmp_path)).list("")


def test_files_that_spark_opens_are_held_to_the_same(table: Path) -> None:
    (table / "real" / "f").write_bytes(b"1")
    check_native_files(str(table), ["real/f", "real/missing"])
    for path in ["../outside/canary", "/outside", *LINKED]:
        with pytest.raises(OutsideTable):
            check_native_files(str(table), ["real/f", path])
    with pytest.raises(OutsideTable):
        check_native_files("s3://bucket/table", ["a/../../b"])
