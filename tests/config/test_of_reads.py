"""Options of reads on a write: what they would say is refused or told, never passed over in silence."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.config import OPTIONS, HudiWarning, check_of_a_write, refuse_on_write
from hudimeta.config.options import SPILL_FOLDER
from hudimeta.errors import ConfigError

ROWS = ["_hoodie_record_key", "id", "Fare"]


@pytest.mark.parametrize(
    ("key", "value", "same"),
    [
        ("hudimeta.filter", "id > 1", None),
        ("hudimeta.partitions", "p1", None),
        ("As.Of.Instant", "2026-01-01", None),
        ("hoodie.datasource.view.type", "incremental", "SNAPSHOT"),
        ("hoodie.datasource.query.incremental.format", "cdc", "latest_state"),
        ("hoodie.datasource.streaming.startOffset", "latest", "earliest"),
    ],
)
def test_what_says_which_rows_a_read_returns_is_refused(key: str, value: str, same: str | None) -> None:
    for check in (refuse_on_write, lambda given: check_of_a_write(given, ROWS)):
        with pytest.raises(ConfigError, match="it is an option of reads"):
            check({key: value})
        check({} if same is None else {key: same})


def test_columns_must_be_those_of_the_rows() -> None:
    with pytest.raises(ConfigError, match=r"hudimeta\.columns.*select the columns of the rows: they have Fare too"):
        check_of_a_write({"hudimeta.columns": "id"}, ROWS)
    for named in ("fare, id", "id,fare,more", "`Fare`,`id`", ""):
        check_of_a_write({"hudimeta.columns": named}, ROWS)


@pytest.mark.parametrize(
    ("key", "value", "same"),
    [
        ("hudimeta.read.corrupt", "skip", "fail"),
        ("hudimeta.read.retry.on.clean", "true", "false"),
        ("hoodie.datasource.read.incr.fallback.fulltablescan.enable", "true", "false"),
        ("maxFilesPerTrigger", "10", "0"),
        ("maxBytesPerTrigger", "1000", "0"),
        ("failOnDataLoss", "false", "TRUE"),
    ],
)
def test_what_says_how_a_read_goes_on_is_passed_over_with_a_word(key: str, value: str, same: str) -> None:
    with pytest.warns(HudiWarning, match=f"option {key}={value} is about reads, and is passed over by a write"):
        check_of_a_write({key: value}, ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_of_a_write({key: same, "hoodie.datasource.write.operation": "insert"}, ROWS)
        refuse_on_write({key: value})  # a table's entry in a catalog says it to its reads


def test_a_bad_value_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"failOnDataLoss|failondataloss"):
        check_of_a_write({"failOnDataLoss": "maybe"}, ROWS)


@pytest.mark.parametrize("given", ["s3://bucket/plans", "plans:here", "file://elsewhere/plans", "plans\0", " "])
def test_what_is_no_folder_of_this_machine_makes_none(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"id": ["a"], "ts": [1]})
    table = Table.create(tmp_path / "t", rows.schema, key="id", ordering="ts")
    table.insert(rows)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    kept = {"hudimeta.plan.cache": "local", "hudimeta.plan.cache.min.files": "0"}
    with pytest.raises(ConfigError, match=r"'hudimeta\.plan\.cache\.dir' .* allowed is a path of this machine"):
        Table(table.path, {**kept, "hudimeta.plan.cache.dir": given}).scan().to_table()
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.parametrize(
    ("given", "meant"),
    [("spill", "{here}/spill"), ("file:///a%20b/c", "/a b/c"), ("file:/a", "/a"), ("~/a", "{home}/a"), ("/a/../b", "/b")],
)
def test_a_folder_of_this_machine_has_several_spellings(given: str, meant: str) -> None:
    found = OPTIONS.read({SPILL_FOLDER.key: given}).get(SPILL_FOLDER)
    assert found == meant.format(here=Path.cwd(), home=Path.home())


def test_a_table_that_was_opened_with_options_of_its_reads_says_once_that_writes_pass_over_them(tmp_path: Path) -> None:
    """An update of a table with a filter changed every row, and nothing was said."""
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    Table.create(tmp_path / "t", rows.schema, "id").insert(rows)
    table = Table(tmp_path / "t", {"hudimeta.filter": "n > 1", "hoodie.datasource.query.type": "snapshot"})
    with pytest.warns(HudiWarning, match=r"was opened with hudimeta\.filter: writes pass over"):
        table.update({"n": "n + 10"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.upsert(rows)
        assert table.scan().to_table()["id"].to_pylist() == ["b"]
