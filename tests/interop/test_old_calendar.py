"""Dates and moments from before the present calendar, as Spark's older one spells them in files that Apache Hudi writes."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from tests.interop.apache_hudi import ApacheHudi

OLD_CALENDAR = {
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.session.timeZone": "UTC",
    "hoodie.spark.sql.insert.into.operation": "bulk_insert",
}
DAY, MOMENT = date(1500, 2, 28), datetime(1066, 10, 14, 9, 30, tzinfo=timezone.utc)
ROWS = [{"id": "a", "day": DAY, "at": MOMENT}, {"id": "b", "day": date(2026, 1, 2), "at": MOMENT.replace(year=2026)}]


@pytest.mark.parametrize("stored", ["TIMESTAMP_MICROS", "INT96"])
def test_rows_of_the_old_calendar_are_told_alike(hudi: ApacheHudi, tmp_path: Path, stored: str) -> None:
    name, path = f"old_calendar_{stored.lower()}", tmp_path / "t"
    # Apache Hudi cannot state bounds of INT96.
    statistics = f"'hoodie.metadata.index.column.stats.enable' = '{str(stored != 'INT96').lower()}'"
    hudi.sql(
        f"create table {name} (id string, day date, at timestamp) using hudi location '{path}' "
        f"tblproperties (type = 'cow', primaryKey = 'id', 'hoodie.parquet.outputtimestamptype' = '{stored}', {statistics})"
    )
    how = {**OLD_CALENDAR, "spark.sql.parquet.outputTimestampType": stored}
    values = ", ".join(f"('{r['id']}', date'{r['day']}', timestamp'{r['at']:%Y-%m-%d %H:%M:%S}')" for r in ROWS)
    hudi.sql(f"insert into {name} values {values}", settings=how)
    columns = ["id", "day", "at"]
    assert sorted(Table(path).scan(columns=columns).to_table().to_pylist(), key=lambda r: r["id"]) == ROWS
    assert Table(path).scan("day = date'1500-02-28'", columns=["id"]).to_table().to_pylist() == [{"id": "a"}]
    more = {"id": "c", "day": date(1582, 10, 4), "at": datetime(1, 1, 1, tzinfo=timezone.utc)}
    Table(path).upsert(pa.Table.from_pylist([more]))
    there = hudi.sql(f"select id, day, at from {name} order by id", settings={"spark.sql.session.timeZone": "UTC"})
    assert [(r["id"], r["day"], r["at"]) for r in there.to_pylist()] == [(r["id"], r["day"], r["at"]) for r in (*ROWS, more)]
