"""The first read of a table that was opened some time ago."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import hudimeta
from hudimeta.engine.machine import ThisMachine, running_on

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})


class After(ThisMachine):
    """This machine, on which time passes when the test says so."""

    passed_s = 0.0

    def monotonic(self) -> float:
        return self.passed_s


def test_it_shows_what_others_wrote_since(tmp_path: Path) -> None:
    hudimeta.Table.create(tmp_path / "t", ROWS.schema, key="id").upsert(ROWS)
    here = After()
    with running_on(here):
        tables = [hudimeta.Table(tmp_path / "t") for _ in range(4)]
        hudimeta.Table(tmp_path / "t").upsert(pa.table({"id": ["c"], "n": [3]}))
        here.passed_s = 1.5
        assert tables[0].scan().to_table()["id"].to_pylist() == ["a", "b", "c"]
        assert tables[1].scan("n > 2").count() == 1
        assert len(tables[2].timeline.writes) == 2
        assert tables[3].file_slices().num_rows == 1


def test_a_table_just_opened_is_not_listed_again(tmp_path: Path) -> None:
    hudimeta.Table.create(tmp_path / "t", ROWS.schema, key="id").upsert(ROWS)
    counts = []
    for passed_s in (0.5, 1.5):
        here = After()
        with running_on(here):
            table = hudimeta.Table(tmp_path / "t")
            here.passed_s = passed_s
            scan = table.scan()
            scan.plan()
            counts.append(sum(scan.report.requests.values()))
    assert counts[1] - counts[0] == 1
