"""Files of kept plans: damaged, foreign and removed ones change no plan, and the report says what became of them."""

from __future__ import annotations

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.plan_cache.places import PLANS_PATH
from hudimeta.storage.locate import open_storage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation
from tests.conftest import Unpack
from tests.plan_cache.test_same_plans import keeping, rows_of, seen, snapshot_of

FROM_KEPT = ["planned from a kept plan"]


def a_table(path: Path, type: str = "MERGE_ON_READ") -> ModelledTable:
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": type})
    table.write(Operation.INSERT, simple_rows(range(40), 1, partitions=4))
    table.write(Operation.UPSERT, simple_rows(range(9), 2, partitions=4))
    return table


def remarks(path: str, options: dict[str, str]) -> list[str]:
    """What a plan of now says of kept plans, once it was found to be right."""
    snapshot, plain = snapshot_of(path, options), snapshot_of(path, {})
    assert rows_of(snapshot.slices()) == rows_of(plain.slices())
    assert snapshot.partitions().equals(plain.partitions())
    assert snapshot.kept_plan is not None
    return snapshot.kept_plan.remarks


def kept_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("where", ["local", "table"])
def test_a_plan_is_kept_and_goes_on_with_the_table(tmp_path: Path, where: str) -> None:
    table, options = a_table(tmp_path / "t"), keeping(tmp_path / "plans", **{"hudimeta.plan.cache": where})
    folder = tmp_path / "plans" if where == "local" else tmp_path / "t" / PLANS_PATH
    assert remarks(table.path, options) == ["no kept plan: none is kept", "the plan is kept"]
    assert remarks(table.path, options) == FROM_KEPT
    files = kept_files(folder)
    table.write(Operation.UPSERT, simple_rows(range(30, 50), 3, partitions=4))
    came = "planned from a kept plan and 1 commits that came since"
    assert remarks(table.path, options) == [came, "the plan is kept"]
    assert set(files) < set(kept_files(folder)), "what was kept stays, beside what came since"
    assert remarks(table.path, options) == FROM_KEPT
    scan = Table(table.path, options).scan(where="part = 'p1'")
    scan.plan()
    assert set(FROM_KEPT) <= set(scan.report.notes)
    assert not (tmp_path / ("plans" if where == "table" else "t/" + PLANS_PATH)).exists()


def test_a_warm_plan_opens_no_base_file_of_the_metadata_table(tmp_path: Path) -> None:
    table, options = a_table(tmp_path / "t"), keeping(tmp_path / "plans")
    opening = {("GET", "properties"): 1, ("LIST", "timeline"): 1, ("LIST", "metadata timeline"): 1}
    remarks(table.path, options)
    warm = snapshot_of(table.path, options)
    warm.slices()
    warm.partitions()
    assert warm.storage.log.by_purpose() == opening
    table.write(Operation.INSERT, simple_rows(range(50, 60), 3))
    later = snapshot_of(table.path, options)
    later.slices()
    assert later.storage.log.by_purpose() == {**opening, ("GET", "timeline"): 1}, "the commit that came since"


@pytest.mark.parametrize("with_delta", [False, True])
def test_damage_is_noticed(tmp_path: Path, with_delta: bool) -> None:
    table, options = a_table(tmp_path / "t"), keeping(tmp_path / "plans")
    remarks(table.path, options)
    if with_delta:
        table.write(Operation.UPSERT, simple_rows(range(3), 3))
        remarks(table.path, options)
    whole = tmp_path / "whole"
    shutil.copytree(tmp_path / "plans", whole)
    chance, names = random.Random(3), [path.relative_to(whole) for path in kept_files(whole)]
    for name in names:
        data = (whole / name).read_bytes()
        flipped = bytearray(data)
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        for spoilt in (bytes(flipped), data[: chance.randrange(len(data))], data + b"\0", b""):
            shutil.rmtree(tmp_path / "plans")
            shutil.copytree(whole, tmp_path / "plans")
            (tmp_path / "plans" / name).unlink()
            (tmp_path / "plans" / name).write_bytes(spoilt)
            found = remarks(table.path, options)
            assert any("damaged" in remark for remark in found), (name, found)
            assert remarks(table.path, options) == FROM_KEPT, "made anew"


def test_files_of_another_plan_are_noticed(tmp_path: Path) -> None:
    one, other = a_table(tmp_path / "t"), a_table(tmp_path / "u")
    first, second = keeping(tmp_path / "plans"), keeping(tmp_path / "others")
    remarks(one.path, first)
    remarks(other.path, second)
    for mine, theirs in zip(kept_files(tmp_path / "plans"), kept_files(tmp_path / "others"), strict=True):
        if mine.suffix == ".arrow":
            mine.unlink()
            shutil.copy(theirs, mine)
    assert any("damaged" in remark for remark in remarks(one.path, first))
    (mine_at,), (theirs_at,) = (list((tmp_path / name).iterdir()) for name in ("plans", "others"))
    shutil.rmtree(mine_at)
    shutil.copytree(theirs_at, mine_at)
    assert remarks(one.path, first)[0].startswith("no kept plan: the metadata table was compacted, or laid out anew")


def test_another_table_in_the_same_place_is_noticed(tmp_path: Path) -> None:
    table, options = a_table(tmp_path / "t"), keeping(tmp_path / "plans")
    remarks(table.path, options)
    shutil.copytree(tmp_path / "t", tmp_path / "u")
    shutil.rmtree(tmp_path / "t")
    shutil.copytree(tmp_path / "u", tmp_path / "t", copy_function=shutil.copyfile)
    assert remarks(table.path, options)[0].startswith("no kept plan: "), "the same instants, in other files"
    shutil.rmtree(tmp_path / "t")
    a_table(tmp_path / "t", "COPY_ON_WRITE")
    assert remarks(table.path, options)[0].startswith("no kept plan: ")


def test_many_at_once(tmp_path: Path) -> None:
    table, options = a_table(tmp_path / "t"), keeping(tmp_path / "plans")
    for step in range(3):
        expected = rows_of(snapshot_of(table.path, {}).slices())
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _: rows_of(snapshot_of(table.path, options).slices()), range(8)))
        assert found == [expected] * 8
        table.write(Operation.UPSERT, simple_rows(range(step, step + 5), 3 + step))
    masters = [path for path in kept_files(tmp_path / "plans") if path.name.endswith(".slices.arrow")]
    assert 1 <= len(masters) <= 2


def test_the_oldest_plans_make_room(tmp_path: Path) -> None:
    one, other = a_table(tmp_path / "t"), a_table(tmp_path / "u")
    remarks(one.path, keeping(tmp_path / "plans"))
    size = sum(path.stat().st_size for path in kept_files(tmp_path / "plans"))
    remarks(other.path, keeping(tmp_path / "plans", **{"hudimeta.plan.cache.bytes": str(size + 10)}))
    assert remarks(other.path, keeping(tmp_path / "plans")) == FROM_KEPT
    assert remarks(one.path, keeping(tmp_path / "plans"))[0] == "no kept plan: none is kept"


def test_what_plans_are_not_kept_of(tmp_path: Path, conformance_table: Unpack) -> None:
    table, options = a_table(tmp_path / "t"), keeping(tmp_path / "plans")
    assert snapshot_of(table.path, {}).kept_plan is None, "off unless asked for"
    small = {**options, "hudimeta.plan.cache.min.files": "1000"}
    assert remarks(table.path, small) == ["no kept plan: none is kept"]
    earlier = snapshot_of(table.path, options).at(Table(table.path).timeline.writes[0].time)
    assert earlier.kept_plan is None
    legacy = conformance_table("cow__v6_simplekeygen_nonhivestyle", fresh=True)
    found = snapshot_of(str(legacy), {**options, "hoodie.metadata.enable": "true"})
    assert seen(found) == seen(snapshot_of(str(legacy), {}))
    assert not kept_files(tmp_path / "plans")
    blocked = tmp_path / "no folder"
    blocked.write_text("")
    assert "the plan is not kept" in remarks(table.path, keeping(blocked))[-1]
    assert open_storage(str(tmp_path)).list("plans") == []
