"""Dates and moments that Spark stored as INT96 or by its older calendar are read as they were written, or refused by name."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import UnsupportedFeature
from hudimeta.formats.base_file import BaseFile, open_base_file
from hudimeta.formats.log import BlockType, HeaderKey, decode_data_block, encode_block, read_blocks
from hudimeta.storage import open_storage

UTC = dt.timezone.utc
LEGACY = {"org.apache.spark.version": "3.5.6", "org.apache.spark.legacyDateTime": "", "org.apache.spark.legacyINT96": ""}
IN_UTC = LEGACY | {"org.apache.spark.timeZone": "Etc/UTC"}
CALLED = ["0001-01-01", "0004-02-29", "1000-03-01", "1500-03-01", "1582-10-04", "1582-10-15", "2026-01-02"]
STORED = [-719164, -718010, -354220, -171595, -141428, -141427, 20455]
"""The days that stand in a file of the old calendar for dates that are called so, as Spark 3.5 stores them."""
DAYS = [dt.date.fromisoformat(called) for called in CALLED]
MOMENTS = [dt.datetime(d.year, d.month, d.day, 17, 0, 3, 5000, tzinfo=UTC) for d in DAYS]
_MICROS = np.array(STORED, np.int64) * 86_400_000_000 + (17 * 3600 + 3) * 1_000_000 + 5000


def stored_rows(unit: str = "us") -> pa.Table:
    """Numbers of the old calendar in columns, and in structs, lists and maps, with nulls beside them."""
    days = pa.array(STORED, pa.int32()).cast(pa.date32())
    ats = pa.array(_MICROS if unit == "us" else _MICROS // 1000).cast(pa.timestamp(unit, "UTC"))
    one_each, last = pa.array(range(8), pa.int32()), pa.array([False] * 6 + [True])
    pairs = pa.StructArray.from_arrays([days, ats], ["day", "at"])
    inner = pa.StructArray.from_arrays([days, ats], fields=pairs.type.fields, mask=pa.array([True] + [False] * 6))
    with_nulls = pa.concat_arrays([part for n in range(7) for part in (ats.slice(n, 1), pa.nulls(1, ats.type))])
    lists = pa.ListArray.from_arrays(pa.array(range(0, 16, 2), pa.int32()), with_nulls, mask=last)
    by_name = pa.MapArray.from_arrays(one_each, pa.array(["k"] * 7), pairs, mask=last)
    return pa.table({"day": days, "at": ats, "inner": inner, "ats": lists, "by_name": by_name})


def said() -> list[dict[str, Any]]:
    """The rows that these numbers stand for."""
    pairs = [{"day": day, "at": at} for day, at in zip(DAYS, MOMENTS, strict=True)]
    rows = [
        {"day": d, "at": m, "inner": p, "ats": [m, None], "by_name": [("k", p)]}
        for d, m, p in zip(DAYS, MOMENTS, pairs, strict=True)
    ]
    rows[0]["inner"] = rows[-1]["ats"] = rows[-1]["by_name"] = None
    return rows


def write(folder: Path, rows: pa.Table, entries: dict[str, str], *, int96: bool = False, **how: Any) -> Path:
    file = folder / "f.parquet"
    how |= {"use_deprecated_int96_timestamps": int96, "store_schema": False}
    with pq.ParquetWriter(file, rows.schema, **how) as out:
        out.write_table(rows)
        out.add_key_value_metadata(entries)
    return file


def read(folder: Path, columns: list[str] | None = None) -> list[dict[str, Any]]:
    with open_base_file(open_storage(str(folder)), "f.parquet") as file:
        rows = pa.concat_tables(file.pieces(columns or file.names))
        assert columns is not None or rows.schema.types == file.schema.types
        return [dict(row) for row in rows.to_pylist()]


@pytest.mark.parametrize(("unit", "int96"), [("us", False), ("ms", False), ("us", True)])
def test_the_old_calendar_is_read_as_dates_are_called(tmp_path: Path, unit: str, int96: bool) -> None:
    write(tmp_path, stored_rows(unit), IN_UTC, int96=int96)
    assert read(tmp_path) == said()
    assert read(tmp_path, ["by_name", "inner.at"]) == [
        {"inner": None if row["inner"] is None else {"at": row["inner"]["at"]}, "by_name": row["by_name"]} for row in said()
    ]


def test_the_29th_of_february_of_a_year_that_has_none_today_is_the_next_day(tmp_path: Path) -> None:
    write(tmp_path, pa.table({"day": pa.array([-171596], pa.int32()).cast(pa.date32())}), IN_UTC)
    assert read(tmp_path) == [{"day": dt.date(1500, 3, 1)}]


@pytest.mark.parametrize(("entries", "is_old"), [({"org.apache.spark.version": "2.4.8"}, True), (LEGACY, True), ({}, False)])
def test_versions_of_spark_tell_the_calendar(tmp_path: Path, entries: dict[str, str], is_old: bool) -> None:
    write(tmp_path, stored_rows().select(["day"]).slice(1), entries)
    assert ([row["day"] for row in read(tmp_path)] == DAYS[1:]) is is_old


def test_moments_without_a_zone_are_what_they_are(tmp_path: Path) -> None:
    write(tmp_path, pa.table({"at": pa.array(_MICROS).cast(pa.timestamp("us"))}).slice(3, 1), IN_UTC)
    assert read(tmp_path) == [{"at": dt.datetime(1500, 3, 11, 17, 0, 3, 5000)}]


@pytest.mark.parametrize("zone", ["America/Los_Angeles", None])
def test_moments_before_1900_of_another_zone_are_refused(tmp_path: Path, zone: str | None) -> None:
    entries = LEGACY | ({} if zone is None else {"org.apache.spark.timeZone": zone})
    rows = stored_rows()
    write(tmp_path, rows.slice(6), entries)
    assert read(tmp_path) == said()[6:]
    write(tmp_path, rows.slice(5), entries)
    with pytest.raises(UnsupportedFeature, match=rf"moments before 1900 .*{zone or 'unknown zone'}.*f\.parquet"):
        read(tmp_path)


def test_int96_is_a_moment_of_any_year(tmp_path: Path) -> None:
    """Arrow alone counts its nanoseconds in 64 bits, and knows no zone of it."""
    at = [dt.datetime(year, 12, 31, 23, 59, 59, 678901, tzinfo=UTC) for year in (1, 1500, 2026, 9999)]
    rows = pa.table({"at": pa.array([*at, None], pa.timestamp("us", "UTC")), "n": range(5)})
    write(tmp_path, rows, {}, int96=True)
    assert [row["at"] for row in read(tmp_path)] == [*at, None]


def test_some_pages_of_a_file_tell_the_same(tmp_path: Path) -> None:
    rows = pa.concat_tables([stored_rows()] * 2000)
    write(tmp_path, rows, IN_UTC, int96=True, data_page_size=1024, write_batch_size=128)
    matches = np.zeros(rows.num_rows, np.bool_)
    matches[:7] = True
    with open_base_file(open_storage(str(tmp_path)), "f.parquet") as file:
        found = file.matching(0, ["day", "at"], matches)
    assert found is not None
    assert found[0].to_pylist() == [{"day": row["day"], "at": row["at"]} for row in said()]


def test_bounds_of_the_old_calendar_are_unknown(tmp_path: Path) -> None:
    write(tmp_path, stored_rows(), IN_UTC)
    with open_base_file(open_storage(str(tmp_path)), "f.parquet") as file:
        assert _minima(file) == {"day": None, "at": None}
    write(tmp_path, stored_rows().slice(3), {"org.apache.spark.version": "3.5.6"})
    with open_base_file(open_storage(str(tmp_path)), "f.parquet") as file:
        assert _minima(file) == {"day": dt.date(1500, 3, 11), "at": dt.datetime(1500, 3, 11, 17, 0, 3, 5000, tzinfo=UTC)}


def _minima(file: BaseFile) -> dict[str, Any]:
    assert file.footer is not None
    rows = file.footer.statistics.select(["column", "min"]).to_pylist()
    return {row["column"]: row["min"] for row in rows if row["column"] in ("day", "at")}


def test_a_log_block_of_parquet_tells_the_same(tmp_path: Path) -> None:
    content = write(tmp_path, stored_rows(), IN_UTC, int96=True).read_bytes()
    data = encode_block(BlockType.PARQUET_DATA, {HeaderKey.INSTANT_TIME: "20260102030405000"}, content)
    (block,) = read_blocks(data, "f.log").blocks
    assert decode_data_block(block).to_pylist() == said()
