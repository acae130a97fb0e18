"""Advice: three workloads, on each of which every candidate is built on a copy and measured; and what the notes hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError
from hudimeta.read import noting
from hudimeta.services.advice import Advice, Measure, Recommendation
from tests.cli.test_metadata_commands import DONE, told

FILES, ROWS = 16, 250
OPTIONS = {"hoodie.parquet.small.file.limit": "0"}
NOTES = ".hoodie/.aux/hudimeta/queries.json"
_DAY_MS = 86_400_000

_chance = np.random.default_rng(7)
WORKLOADS = {
    "points": [f"rider = 'r{n:05d}'" for n in _chance.integers(0, 4_000, 10)],
    "ranges": [
        f"a >= {a} AND a < {a + 600} AND b > {b} AND b < {b + 6}"
        for a, b in zip(_chance.integers(0, 9_000, 10), _chance.integers(0, 90, 10), strict=True)
    ],
    "expression": [f"lower(city) = 'ab{n:04d}'" for n in _chance.integers(0, 1_500, 10)],
}
EXPECTED = {"points": Measure.SECONDARY_INDEX, "ranges": Measure.CLUSTERING, "expression": Measure.EXPRESSION_INDEX}


def rows(number: int) -> pa.Table:
    chance, ids = np.random.default_rng(number), np.arange(number * ROWS, (number + 1) * ROWS)
    spelled = np.where(chance.random(ROWS) < 0.5, "Ab", "aB")
    return pa.table(
        {
            "id": [f"k{one:07d}" for one in ids],
            "rider": [f"r{one:05d}" for one in chance.integers(0, 4_000, ROWS)],
            "city": [f"{how}{one:04d}" for how, one in zip(spelled, chance.integers(0, 1_500, ROWS), strict=True)],
            "a": chance.integers(0, 10_000, ROWS),
            "b": chance.random(ROWS) * 100,
            "pad": [chance.bytes(40).hex() for _ in ids],
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of many files in which no value has a place of its own."""
    path = tmp_path_factory.mktemp("advice") / "rides"
    table = hudimeta.Table.create(path, rows(0).schema, key="id", options=OPTIONS)
    for number in range(FILES):
        table.insert(rows(number))
    return path


@pytest.fixture
def rides(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "rides"))


def bytes_read(path: Path, workload: list[str]) -> int:
    table = hudimeta.Table(path, {"hudimeta.learn": "false"})
    return sum(table.scan(where).plan().report.bytes_kept for where in workload)


def answers(path: Path, workload: list[str]) -> list[list[str]]:
    table = hudimeta.Table(path, {"hudimeta.learn": "false"})
    return [sorted(table.scan(where, ["id"]).to_table()["id"].to_pylist()) for where in workload]


def build(path: Path, one: Recommendation) -> None:
    """What a recommendation says, by the table's own verbs."""
    table = hudimeta.Table(path, OPTIONS)
    if one.measure is Measure.CLUSTERING:
        mean = sum(table.file_slices()["base_size"].to_pylist()) // FILES + 1
        sized = {"hoodie.clustering.plan.strategy.target.file.max.bytes": mean}
        hudimeta.Table(path, OPTIONS | sized).cluster(one.columns, one.layout)
    elif one.measure is Measure.SECONDARY_INDEX:
        table.indexes.create(type="record_index")
        table.indexes.create(type="secondary_index", columns=one.columns)
    elif one.measure is Measure.EXPRESSION_INDEX:
        kind = "bloom_filters" if one.index.endswith("_bloom") else "column_stats"
        table.indexes.create("tried", kind, one.columns, expression=one.expression.partition("(")[0])
    else:
        raise AssertionError(one)


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_best_is_named_and_keeps_its_promise(rides: Path, tmp_path: Path, name: str) -> None:
    workload = WORKLOADS[name]
    table = hudimeta.Table(rides, OPTIONS)
    for where in workload:
        table.scan(where).to_table()
    before, known = bytes_read(rides, workload), answers(rides, workload)

    advice = table.advise()
    (best, *_) = advice.recommended
    assert best.measure is EXPECTED[name]
    assert (advice.queries, best.queries) == (10, 10)
    assert abs(advice.bytes_read - before) <= 10
    assert bytes_read(rides, workload) == before, "advice alone builds nothing"

    measured = {}
    for at, one in enumerate((best, *advice.considered)):
        copy = Path(shutil.copytree(rides, tmp_path / f"try {at}"))
        build(copy, one)
        measured[one.name] = before - bytes_read(copy, workload)
    assert measured[best.name] >= max(measured.values()) - 0.05 * before, measured

    done = table.advise(apply=True)
    assert done.applied
    saved = before - bytes_read(rides, workload)
    assert abs(saved - done.bytes_saved) <= 0.25 * saved, (saved, done.bytes_saved)
    assert answers(rides, workload) == known
    again = table.advise()
    assert best.name not in [one.name for one in again.recommended]
    table.metadata.validate().raise_if_differs()


def test_advice_prints_and_shows_itself(rides: Path) -> None:
    table = hudimeta.Table(rides, OPTIONS)
    assert "nothing" in str(table.advise())
    for where in WORKLOADS["points"]:
        table.scan(where).plan()
    advice = table.advise()
    assert "secondary index of rider" in repr(advice)
    assert "<th" in advice._repr_html_()
    code, found = told("advise", rides, "--dry-run", "--apply")
    assert (code, found["dry_run"], found["applied"]) == (DONE, True, [])
    assert found["recommended"][0]["measure"] == "secondary_index"
    assert found["recommended"][0]["first"] == ["record_index"]
    with pytest.raises(ConfigError):
        table.advise(unused_days=-1)


def test_statistics_of_a_column_that_has_none_are_named_and_built(tmp_path: Path) -> None:
    path = tmp_path / "t"
    few = OPTIONS | {"hoodie.metadata.index.column.stats.column.list": "a"}
    table = hudimeta.Table.create(
        path, pa.schema([("id", pa.string()), ("a", pa.int64()), ("n", pa.int64())]), "id", options=few
    )
    for number in range(6):
        ids = range(number * 100, number * 100 + 100)
        table.insert(pa.table({"id": [str(one) for one in ids], "a": [one % 7 for one in ids], "n": list(ids)}))
    workload = ["n BETWEEN 110 AND 120", "n < 20 AND a >= 0"]
    for where in workload:
        assert table.scan(where).count() > 0
    before = bytes_read(path, workload)
    advice = table.advise(apply=True)
    assert [one.name for one in advice.recommended] == ["column stats of n"]
    assert before - bytes_read(path, workload) == advice.bytes_saved
    assert set(table.metadata.index_definitions["column_stats"].source_fields) >= {"a", "n"}


def test_a_record_index_that_another_index_brought_along_is_not_built_twice(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = hudimeta.Table.create(path, rows(0).schema, key="id", options=OPTIONS)
    for number in range(8):
        spread = pa.array([f"k{8 * one + number:07d}" for one in range(ROWS)])
        table.insert(rows(number).set_column(0, "id", spread))
    workload = [*WORKLOADS["points"], *(f"id = 'k{one:07d}'" for one in (404, 808, 1204, 1605))]
    for where in workload:
        table.scan(where).to_table()
    before, known = bytes_read(path, workload), answers(path, workload)
    advice = table.advise(apply=True)
    assert [one.measure for one in advice.recommended] == [Measure.SECONDARY_INDEX, Measure.RECORD_INDEX]
    assert len(advice.applied) == 2
    assert {"record_index", "secondary_index_rider"} <= set(table.indexes.list()["name"].to_pylist())
    assert bytes_read(path, workload) < before / 2
    assert answers(path, workload) == known


def test_one_order_of_rows_is_recommended_at_most(rides: Path) -> None:
    table = hudimeta.Table(rides, OPTIONS)
    for where in ("a < 300", "a BETWEEN 5000 AND 5200", "b < 2", "b BETWEEN 50 AND 52"):
        table.scan(where).plan()
    advice = table.advise()
    measures = [one.measure for one in advice.recommended]
    assert measures.count(Measure.CLUSTERING) == 1
    assert len([one for one in advice.considered if one.measure is Measure.CLUSTERING]) >= 2


def test_a_table_without_a_metadata_table_is_told_why_nothing_helps(tmp_path: Path) -> None:
    off = {"hoodie.metadata.enable": "false"}
    table = hudimeta.Table.create(tmp_path / "t", rows(0).schema, key="id", options=off)
    table.insert(rows(0))
    assert table.scan("a < 300").count()
    advice = table.advise()
    assert advice.recommended == ()
    assert any("no index can be built" in note for note in advice.notes)


def test_notes_count_reads_by_their_shape(rides: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hudimeta.Table(rides, OPTIONS)
    table.scan("rider = 'x' AND a > 5").to_table()
    table.scan("a > 7 AND rider IN ('y', 'z')").to_table()
    table.scan("upper(city) = 'AB0001' OR b < 1").to_table()
    table.scan().to_table()
    assert not (rides / NOTES).exists(), "a minute has not gone by"
    monkeypatch.setattr(noting, "EVERY_S", 0.0)
    table.scan("id = 'k0000001'").to_table()
    plain: dict[str, Any] = json.loads((rides / NOTES).read_text())
    shapes = {tuple(map(tuple, one["filters"])): one for one in plain["shapes"]}
    assert shapes[(("a", "range"), ("rider", "equality"))]["queries"] == 2
    assert (("city, b", "other"),) in shapes
    by_key = shapes[(("id", "equality"),)]
    assert by_key["bytesSeen"] > by_key["bytesKept"] > 0
    assert by_key["samples"] == [["id = 'k0000001'", "UTC"]]
    assert "column_stats" in plain["used"]
    # nobody minds the file, and a damaged one is begun anew
    table.metadata.validate().raise_if_differs()
    table.services.clean()
    table.repair.orphans()
    table.services.maintain()
    assert (rides / NOTES).exists()
    (rides / NOTES).write_text("{")
    table.scan("id = 'k0000002'").to_table()
    assert [one["queries"] for one in json.loads((rides / NOTES).read_text())["shapes"]] == [1]


def test_nothing_is_noted_where_that_is_off_or_refused(rides: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noting, "EVERY_S", 0.0)
    quiet = hudimeta.Table(rides, {"hudimeta.learn": "false"})
    assert quiet.scan("a > 5").to_table().num_rows
    assert not (rides / NOTES).exists()
    (rides / ".hoodie" / ".aux").mkdir(exist_ok=True)
    (rides / ".hoodie" / ".aux" / "hudimeta").write_text("a file where the folder would be")
    table = hudimeta.Table(rides)
    assert table.scan("a > 5").to_table().num_rows == table.scan("a > 5").count()
    assert "nothing" in str(table.advise())
    assert "what this process has read is not noted" in str(table.advise())


@pytest.mark.rotation(3)
def test_what_a_process_noted_last_outlives_it(rides: Path) -> None:
    code = f"import hudimeta; hudimeta.Table({str(rides)!r}).scan(\"rider = 'r00001'\").to_table()"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    advice = hudimeta.Table(rides).advise()
    assert advice.queries == 2
    assert isinstance(advice, Advice)


def test_indexes_that_are_not_used_are_named(rides: Path) -> None:
    table = hudimeta.Table(rides, OPTIONS)
    table.indexes.create(type="record_index")
    table.indexes.create(type="secondary_index", columns="rider")
    table.scan("a = 1").to_table()
    assert table.advise().unused == ()
    plain = json.loads((rides / NOTES).read_text())
    plain["since"] -= 40 * _DAY_MS
    plain["used"]["secondary_index_rider"] = plain["since"] + 5 * _DAY_MS
    (rides / NOTES).write_text(json.dumps(plain))
    unused = {one.index: one for one in table.advise().unused}
    assert "column_stats" not in unused
    assert (unused["secondary_index_rider"].days, unused["secondary_index_rider"].ever) == (35, True)
    assert "35 days" in str(unused["secondary_index_rider"])
    assert "secondary_index_rider" not in {one.index for one in table.advise(unused_days=36).unused}
    assert "record_index" not in {one.index for one in table.advise(unused_days=36).unused}, "the other index needs it"
