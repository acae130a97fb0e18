"""What an object computes once keeps no other object waiting, in no version of Python."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.cached import cached_property
from hudimeta.storage import LocalStorage

ROOT = Path(__file__).resolve().parents[1]
OF_FUNCTOOLS = re.compile(r"from functools import .*cached_property|functools\.cached_property")


class _Square:
    """The square of a number."""

    def __init__(self, number: int) -> None:
        self.number, self.times = number, 0

    @cached_property
    def area(self) -> int:
        """Its area."""
        self.times += 1
        return self.number**2


def test_it_is_computed_once() -> None:
    one, other = _Square(3), _Square(4)
    assert (one.area, other.area, one.area, one.times) == (9, 16, 9, 1)
    one.__dict__["area"] = 10
    assert one.area == 10
    assert isinstance(vars(_Square)["area"], cached_property)
    assert (_Square.area.__doc__, _Square.area) == ("Its area.", vars(_Square)["area"])


def test_two_threads_that_ask_at_once_get_the_same() -> None:
    both = threading.Barrier(2)

    class Met:
        @cached_property
        def thing(self) -> object:
            both.wait(60)
            return object()

    met, found = Met(), list[object]()
    asking = [threading.Thread(target=lambda: found.append(met.thing)) for _ in range(2)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert found == [met.thing, met.thing]


def test_a_scan_of_one_table_does_not_wait_for_another_one_that_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"id": ["a"], "n": [1]})
    for name in ("slow", "quick"):
        hudimeta.Table.create(tmp_path / name, rows.schema, key="id").insert(rows)
    begun, go_on, plain = threading.Event(), threading.Event(), LocalStorage.read

    def read(storage: LocalStorage, path: str) -> bytes:
        if storage.root == str(tmp_path / "slow") and path.endswith(".commit"):
            begun.set()
            assert go_on.wait(60)
        return plain(storage, path)

    monkeypatch.setattr(LocalStorage, "read", read)
    found: list[int] = []

    def scan(name: str) -> None:
        found.append(hudimeta.Table(tmp_path / name).scan("n = 1").to_table().num_rows)

    slow, quick = (threading.Thread(target=scan, args=(name,)) for name in ("slow", "quick"))
    slow.start()
    assert begun.wait(60)
    quick.start()
    quick.join(10)
    waited = quick.is_alive()
    go_on.set()
    slow.join()
    quick.join()
    assert (waited, found) == (False, [1, 1])


def test_nothing_of_ours_takes_the_one_of_functools() -> None:
    files = [*(ROOT / "hudimeta").rglob("*.py"), *(ROOT / "datasource").rglob("*.py")]
    taken = [path.relative_to(ROOT).as_posix() for path in files if OF_FUNCTOOLS.search(path.read_text())]
    assert taken == ["hudimeta/cached.py"]
