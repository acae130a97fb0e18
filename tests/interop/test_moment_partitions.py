"""Tables that SQL of Apache Hudi partitions by a timestamp: both writers find each other's rows, in folders named alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from tests.interop.apache_hudi import ApacheHudi
from tests.write.moment_folders import EVENING, rows

FOLDER = "at=2026-01-02 03%3A04%3A05"


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_of_sql_are_found(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    name, path = f"moments_{kind}", tmp_path / "t"
    hudi.sql(
        f"create table {name} (id string, v string, at timestamp) using hudi partitioned by (at) location '{path}' "
        f"tblproperties (type = '{kind}', primaryKey = 'id')"
    )
    hudi.sql(f"insert into {name} values ('a', 'first', timestamp'2026-01-02 03:04:05.5')")
    Table(path).upsert(rows("second", EVENING, EVENING.replace(day=3)))
    here = hudi.sql(f"select id, v, _hoodie_partition_path p from {name} order by id").to_pylist()
    assert [(r["id"], r["v"], r["p"]) for r in here] == [("a", "second", FOLDER), ("b", "second", FOLDER.replace("02 ", "03 "))]
    hudi.sql(
        f"merge into {name} t using (select 'b' id, 'third' v, timestamp'2026-01-03 03:04:05.5' at) s on t.id = s.id "
        "when matched then update set * when not matched then insert *"
    )
    found = Table(path).scan("at = timestamp'2026-01-03 03:04:05.5Z'").to_table()
    assert found.select(["id", "v"]).to_pylist() == [{"id": "b", "v": "third"}]
