"""Partitions named by times in a zone that the table does not say: writers in Java take that of their own machine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError
from hudimeta.storage import open_storage
from hudimeta.table.properties import update

T = "hoodie.keygen.timebased."
NUMBERS = {T + "timestamp.type": "UNIX_TIMESTAMP", T + "output.dateformat": "yyyy-MM-dd"}
TEXTS = {T + "timestamp.type": "DATE_STRING", T + "input.dateformat": "yyyy-MM-dd HH:mm", T + "output.dateformat": "yyyy-MM-dd"}
SHOWN_IN_UTC = {**TEXTS, T + "output.timezone": "UTC"}
EVENING = 1_700_010_000  # 2023-11-15T01:00:00Z, in New York the evening before


def rows(value: str, at: object = EVENING) -> pa.Table:
    return pa.table({"id": ["a"], "at": [at], "v": [value]})


def table(path: Path, times: dict[str, str], zone: str | None, at: object = EVENING) -> Path:
    """A table whose rows were written in a zone that it does not say any more."""
    where = "timezone" if zone is None else ("input" if "input.dateformat" in str(times) else "output") + ".timezone"
    given = {**times, **({} if zone is None else {T + where: zone}), "hoodie.datasource.write.keygenerator.type": "TIMESTAMP"}
    Table.create(path, rows("", at).schema, key="id", partition_by="at", options=given).insert(rows("first", at))
    update(open_storage(str(path)), {T + where: None})
    return path


def places(path: Path) -> list[tuple[str, str]]:
    found = Table(path).scan().to_table()
    return list(zip(found["_hoodie_partition_path"].to_pylist(), found["v"].to_pylist(), strict=True))


@pytest.mark.parametrize(("zone", "day"), [("UTC", "15"), ("America/New_York", "14")])
def test_rows_tell_the_zone(tmp_path: Path, new_york: None, zone: str, day: str) -> None:
    path = table(tmp_path / "t", NUMBERS, zone)
    Table(path).upsert(rows("second"))
    assert places(path) == [(f"2023-11-{day}", "second")]


def test_rows_of_other_zones_are_not_doubled(tmp_path: Path) -> None:
    path = table(tmp_path / "t", NUMBERS, "America/New_York")
    with pytest.raises(ConfigError, match=r"timebased\.timezone.*2023-11-14"):
        Table(path).upsert(rows("second"))
    Table(path, {T + "timezone": "America/New_York"}).upsert(rows("second"))
    assert places(path) == [("2023-11-14", "second")]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_reads_find_rows_of_any_zone(tmp_path: Path, zone: str) -> None:
    path = table(tmp_path / "t", NUMBERS, zone)
    assert Table(path).scan(f"at = {EVENING}").count() == 1


def test_a_clock_of_this_machine_for_the_first_rows(tmp_path: Path, new_york: None) -> None:
    path = table(tmp_path / "t", NUMBERS, "UTC")
    Table(path).delete(where="true")
    Table(path).services.clean()
    Table(path).insert(rows("first"))
    assert places(path) == [("2023-11-14", "first")]


def test_texts_are_of_a_zone_where_another_shows_them(tmp_path: Path, new_york: None) -> None:
    text = "2023-11-14 20:00"
    path = table(tmp_path / "t", SHOWN_IN_UTC, "America/New_York", text)
    Table(path).upsert(rows("second", text))
    assert places(path) == [("2023-11-15", "second")]


@pytest.mark.parametrize(
    ("times", "at", "said"),
    [
        (NUMBERS, 1, {T + "output.timezone": "UTC"}),
        (SHOWN_IN_UTC, "", {T + "input.timezone": "UTC", T + "output.timezone": "UTC"}),
        (TEXTS, "", {}),
    ],
)
def test_new_tables_say_it(tmp_path: Path, times: dict[str, str], at: object, said: dict[str, str]) -> None:
    """Or writers in other zones would take theirs; texts that no zone shows stay as they are written."""
    options = {**times, "hoodie.datasource.write.keygenerator.type": "TIMESTAMP"}
    made = Table.create(tmp_path / "t", rows("", at).schema, key="id", partition_by="at", options=options)
    assert {name: text for name, text in made.properties.items() if name.startswith(T) and "timezone" in name} == said
