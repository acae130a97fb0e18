"""Tables that are partitioned by a timestamp: writers of Apache Hudi name their folders by numbers or by texts of a clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError, UnsupportedFeature
from tests.write.moment_folders import EVENING, FRACTIONS, HIVE, insert_as_hudi, rows, table

NUMBER = "at=1767323045500000"


def places(path: Path, where: str | None = None) -> list[tuple[str, str]]:
    found = Table(path).scan(where).to_table()
    return sorted(zip(found["_hoodie_partition_path"].to_pylist(), found["v"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("hive", "encode", "folder"),
    [(True, False, "at=2026-01-02 03%3A04%3A05"), (False, False, "2026-01-02 03%3A04%3A05")],
)
def test_an_upsert_finds_rows_that_sql_wrote(tmp_path: Path, hive: bool, encode: bool, folder: str) -> None:
    path = table(tmp_path / "t", rows("first"), hive=hive, encode=encode)
    assert places(path) == [(folder, "first")]
    Table(path).upsert(rows("second", EVENING, EVENING.replace(year=1961)))
    assert places(path) == [(folder.replace("2026", "1961"), "second"), (folder, "second")]


@pytest.mark.parametrize("where", ["at = timestamp'2026-01-02 03:04:05.5Z'", "at > timestamp'2026-01-02 03:04:05.4Z'"])
def test_reads_find_rows_by_the_moment_that_they_have(tmp_path: Path, where: str) -> None:
    """The path lacks the fraction of the second: rows tell it."""
    path = table(tmp_path / "t", rows("first"))
    assert len(places(path, where)) == 1
    assert places(path, "at = timestamp'2026-01-02 03:04:05Z'") == []


@pytest.mark.parametrize(("zone", "hour"), [("UTC", "03"), ("America/New_York", "22")])
def test_rows_tell_the_zone_of_the_clock(tmp_path: Path, new_york: None, zone: str, hour: str) -> None:
    path = table(tmp_path / "t", rows("first"), zone=zone)
    Table(path).upsert(rows("second"))
    ((folder, value),) = places(path)
    assert f" {hour}%3A" in folder
    assert value == "second"


def test_clocks_that_agree_in_winter_are_asked_for_summer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summer = EVENING.replace(month=7)
    path = table(tmp_path / "t", rows("first", EVENING, summer), zone="Europe/London")
    with pytest.raises(ConfigError, match=r"TZ.*zone of the clock"):
        Table(path).upsert(rows("second"))
    monkeypatch.setenv("TZ", "Europe/London")
    Table(path).upsert(rows("second", EVENING, summer))
    assert [value for _, value in places(path)] == ["second", "second"]


def test_a_stray_row_does_not_hide_the_zone(tmp_path: Path) -> None:
    """SQL's UPDATE leaves rows where they are, with the moment that it read from the path."""
    path = table(tmp_path / "t", rows("first"), zone="UTC")
    Table(path).upsert(rows("first", EVENING, EVENING.replace(microsecond=0)))
    strayed = {"hoodie.simple.index.update.partition.path": "false", "hoodie.index.type": "GLOBAL_SIMPLE"}
    Table(path, strayed).upsert(rows("first", EVENING.replace(year=2020)))
    Table(path).upsert(rows("second", EVENING, EVENING.replace(microsecond=0)))
    assert places(path) == [("at=2026-01-02 03%3A04%3A05", "second")] * 2


def test_bulk_inserts_of_dataframes_show_fractions(tmp_path: Path) -> None:
    path = table(tmp_path / "t", rows("first"), FRACTIONS, encode=True)
    Table(path).upsert(rows("second", EVENING, EVENING.replace(microsecond=0)))
    assert places(path) == [("at=2026-01-02 03%3A04%3A05.0", "second"), ("at=2026-01-02 03%3A04%3A05.5", "second")]


def test_a_null_keeps_its_own_partition(tmp_path: Path) -> None:
    path = table(tmp_path / "t", rows("first"))
    Table(path).upsert(rows("second", EVENING, None))
    assert [folder for folder, _ in places(path)] == ["at=2026-01-02 03%3A04%3A05", "at=__HIVE_DEFAULT_PARTITION__"]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, rows("").schema, key="id", partition_by="at", options={HIVE: "true"}).insert(rows("first"))
    Table(path).upsert(rows("second"))
    assert places(path) == [(NUMBER, "second")]


def test_two_forms_are_refused_until_one_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, rows("").schema, key="id", partition_by="at", options={HIVE: "true"}).insert(rows("first"))
    insert_as_hudi(path, rows("first"))
    with pytest.raises(UnsupportedFeature, match=r"number.*1767323045500000.*delete_partition"):
        Table(path).upsert(rows("second"))
    Table(path).delete_partition([NUMBER])
    Table(path).upsert(rows("second"))
    assert places(path) == [("at=2026-01-02 03%3A04%3A05", "second")]


def test_texts_of_no_writer_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "t", rows("first"), "yyyy-MM-dd")
    with pytest.raises(UnsupportedFeature, match=r"timestamp at as 'at=2026-01-02'.*new table"):
        Table(path).upsert(rows("second"))
    assert places(path) == [("at=2026-01-02", "first")]


def test_an_emptied_table_keeps_its_form(tmp_path: Path) -> None:
    path = table(tmp_path / "t", rows("first"))
    Table(path).delete_partition("at=*")
    Table(path).insert(rows("second"))
    ((folder, _),) = places(path)
    assert folder.endswith("%3A04%3A05")


def test_virtual_keys(tmp_path: Path) -> None:
    path = table(tmp_path / "t", rows("first"), **{"hoodie.populate.meta.fields": "false"})
    Table(path).upsert(rows("second"))
    assert Table(path).scan().to_table()["v"].to_pylist() == ["second"]
