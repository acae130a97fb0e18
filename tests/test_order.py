"""Who runs when: the order and the turn of a run can be had again, and no test is lost by either."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import rotation, thorough
from tests.elsewhere import of_other_verbs, only_when
from tests.order import WRITTEN, in_order
from tools.slow_tests import slow_tests

ITEMS: Any = [SimpleNamespace(path=Path(f"tests/test_{file}.py"), name=f"{file}{n}") for file in "abcde" for n in range(8)]


def names(order: str) -> list[str]:
    return [item.name for item in in_order(ITEMS, order)]


def test_a_number_is_an_order_that_can_be_had_again() -> None:
    assert names("1") == names("1")
    assert names("1") != names("2")
    assert sorted(names("1")) == sorted(names(WRITTEN))
    assert names(WRITTEN) == [item.name for item in ITEMS]


def test_files_stay_together_for_what_their_tests_share() -> None:
    files = [name[0] for name in names("7")]
    assert len([n for n in range(1, len(files)) if files[n] != files[n - 1]]) == 4
    assert files != sorted(files)


def test_every_test_of_a_large_set_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    marker = SimpleNamespace(args=(3,))
    items: Any = [SimpleNamespace(nodeid=f"test_{n % 2}[{n}]", get_closest_marker=lambda _: marker) for n in range(60)]
    items.append(SimpleNamespace(nodeid="test_always", get_closest_marker=lambda _: None))
    through_spark = SimpleNamespace(params={"door": "spark"})
    items.append(SimpleNamespace(nodeid="test_0[spark]", get_closest_marker=lambda _: marker, callspec=through_spark))
    taken = []
    for turn in range(5, 8):
        monkeypatch.setattr(rotation, "TURN", turn)
        left = [item.nodeid for item in rotation.waiting(items)]
        assert len(left) == 40
        taken += [item.nodeid for item in items if item.nodeid not in left]
    every_time = ["test_always", "test_0[spark]"] * 2
    assert sorted(taken) == sorted([*(item.nodeid for item in items), *every_time])


def test_tests_of_other_verbs_are_left_to_them() -> None:
    def item(name: str, *conditions: object, fixtures: tuple[str, ...] = ()) -> SimpleNamespace:
        markers = [only_when(condition, "make all-full").mark for condition in conditions]
        return SimpleNamespace(
            name=name, iter_markers=lambda _: markers, get_closest_marker=lambda _: None, fixturenames=fixtures
        )

    items: Any = [
        item("always"),
        item("full", "1"),
        item("not full", ""),
        item("both", True, 0),
        item("classic", fixtures=("attached",)),
    ]
    assert [left.name for left in of_other_verbs(items, remote=False)] == ["not full", "both"]
    assert [left.name for left in of_other_verbs(items, remote=True)] == ["not full", "both", "classic"]


def test_slow_tests_take_turns_in_runs_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    items: Any = [SimpleNamespace(nodeid=f"test_slow[{n}]", get_closest_marker=lambda _: None) for n in range(8)]
    halves = SimpleNamespace(args=(2,))
    items += [
        SimpleNamespace(nodeid=f"test_marked[{n}]", get_closest_marker=lambda name: halves if name == "rotation" else None)
        for n in range(8)
    ]
    items.append(SimpleNamespace(nodeid="test_quick", get_closest_marker=lambda _: None))
    left = []
    for turn in range(rotation.PARTS_OF_SLOW_TESTS):
        monkeypatch.setattr(rotation, "TURN", turn)
        left += [item.nodeid for item in rotation.waiting(items, {"test_slow", "test_marked"})]
        assert len(rotation.waiting(items)) == 4
    assert sorted(left) == sorted(item.nodeid for item in items[:16] for _ in range(rotation.PARTS_OF_SLOW_TESTS - 1))
    assert rotation.is_of_everything(["tests/interop"])
    assert not rotation.is_of_everything(["tests", "tests/services"])


def test_the_slow_tests_are_there() -> None:
    listed = rotation.slow_tests()
    files = {name.partition("::")[0] for name in listed}
    written = {f: (thorough.ROOT / f).read_text(encoding="utf-8") if (thorough.ROOT / f).exists() else "" for f in files}
    assert len(listed) > 100
    gone = [name for name in listed if f"def {name.rpartition('::')[2]}(" not in written[name.partition("::")[0]]]
    assert gone == [], "write the new names into tests/data/slow_tests.txt"


def test_slow_is_what_a_run_measured() -> None:
    printed = "0.70s call     tests/a/test_b.py::test_c[x y]@spark\n0.40s setup tests/a/test_b.py::test_c[x y]@spark\n"
    assert slow_tests(printed + "0.40s call     tests/a/test_b.py::test_d\n") == ["tests/a/test_b.py::test_c"]


def item(path: str, **params: str) -> Any:
    return SimpleNamespace(path=thorough.ROOT / path, callspec=SimpleNamespace(params=params))


def test_a_fast_run_leaves_out_places_and_other_doors() -> None:
    assert thorough.is_thorough(item("tests/crash/test_rebase.py"))
    assert thorough.is_thorough(item("tests/services/test_in_thread.py"))
    assert not thorough.is_thorough(item("tests/services/test_clean.py"))
    assert thorough.is_thorough(item("tests/write/test_inserts.py", door="routed"))
    assert not thorough.is_thorough(item("tests/write/test_inserts.py", door="engine"))


def test_the_places_that_a_fast_run_leaves_out_are_there() -> None:
    assert [place for place in thorough.PLACES if not (thorough.ROOT / place).exists()] == []


def test_a_fast_run_still_asks_every_package() -> None:
    """A place that is listed whole holds a kind of tests, not the tests of a package of the engine."""
    packages = {folder.name for folder in (thorough.ROOT / "hudimeta").iterdir() if (folder / "__init__.py").exists()}
    whole = {Path(place).name for place in thorough.PLACES if Path(place).parent == Path("tests")}
    assert whole & packages == set()
