"""`validate(deep=True)`: every file that is damaged is named."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hudimeta.api.table import Table
from hudimeta.errors import HudiError
from hudimeta.services.validation.result import Outcome
from tests.conftest import Unpack
from tests.damage.building import lay_out, rows
from tests.damage.harm import HARMS, kind_of
from tests.damage.subjects import Subject, own_subject

PASSING = {"lock", "heartbeat", "marker"}
"""Files that live no longer than a write."""
ONE_TRY_EACH = ("one bit", "cut", "sibling")


@pytest.fixture(scope="module", params=["mor_worn", "cow_bare"])
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """A table of ours as bytes."""
    return own_subject(request.param, tmp_path_factory.mktemp("subject"))


def told(table: Path) -> str:
    """What is said of a table: the report, or why there is none."""
    try:
        return str(Table(table).metadata.validate(deep=True))
    except HudiError as error:
        return str(error)


def test_a_sound_table_holds(subject: Subject, tmp_path: Path) -> None:
    lay_out(subject.files, tmp_path / "t")
    report = Table(tmp_path / "t").metadata.validate(deep=True)
    assert report.outcome is Outcome.HOLDS
    assert {"every byte of the timeline", "every byte of base files"} <= {check.name for check in report.checks}


def test_a_table_with_an_index_that_was_built_beside_writers_holds(tmp_path: Path) -> None:
    """The inflight file of the build says who ran it, and nothing else."""
    table = Table.create(tmp_path / "t", rows(range(0), 0).schema, key="id")
    table.insert(rows(range(3), 1))
    steps = table.services.indexing
    steps.execute(steps.schedule("column_stats", "far", "n", expression="identity"))
    assert table.metadata.validate(deep=True).outcome is Outcome.HOLDS
    (inflight,) = (file for file in (tmp_path / "t/.hoodie/timeline").glob("*.indexing.inflight") if file.stat().st_size)
    inflight.write_bytes(inflight.read_bytes()[:-1])
    assert inflight.name in told(tmp_path / "t")


@pytest.mark.rotation(2)
def test_each_sort_of_file_is_read(subject: Subject, tmp_path: Path) -> None:
    """Of each sort one file is damaged in each way; pages and seals of ours leave no byte out but those that say nothing."""
    dice, table, silent = random.Random(3), tmp_path / "t", []
    lay_out(subject.files, table)
    kinds = sorted({kind_of(path) for path, content in subject.files.items() if content} - PASSING)
    for kind in kinds:
        paths = [path for path, content in subject.files.items() if content and kind_of(path) == kind]
        for harm in ONE_TRY_EACH:
            path = dice.choice(paths)
            change = HARMS[harm](path, subject.files, subject.past, dice)
            if change is None or change[path] == subject.files[path]:
                continue
            (table / path).write_bytes(change[path])
            if path.rpartition("/")[2] not in told(table):
                silent.append((kind, harm, path))
            (table / path).write_bytes(subject.files[path])
    assert silent == []


def test_tables_by_apache_hudi_hold(rich_table: Unpack) -> None:
    for name in ("mdt_all_v9", "archived_lsm", "corrupt_tail_log", "alter_rename_mor", "v6_mor_written_by_12"):
        report = Table(rich_table(name)).metadata.validate(deep=True)
        assert not [c for c in report.checks if c.name.startswith("every byte") and c.outcome is not Outcome.HOLDS], str(report)
