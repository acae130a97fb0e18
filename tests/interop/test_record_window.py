"""A table with a record window, of which Apache Hudi knows nothing: it reads and writes it as any other, in turns with us."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import ALWAYS, check_all
from tests.elsewhere import only_when
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, SCHEMA, Model, Ours, Theirs, plain_rows, row

WINDOW = {"hudimeta.record.window.days": "3"}
TURNS = [
    "we insert",
    "they upsert",
    "we upsert",
    "they delete",
    "we upsert",
    "they insert",
    "we compact",
    "they upsert",
    "we delete",
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "table_type", ["MERGE_ON_READ", pytest.param("COPY_ON_WRITE", marks=only_when(FULL, "make interop-full"))]
)
def test_turns(hudi: ApacheHudi, tmp_path: Path, table_type: str) -> None:
    path, model = tmp_path / "table", Model()
    ours, theirs = Ours(path, type=table_type, options=WINDOW), Theirs(path, hudi, type=table_type)
    for number, turn in enumerate(TURNS):
        (who, _, step), known = turn.partition(" "), 0
        if step == "compact":
            if table_type == "MERGE_ON_READ":
                hudimeta.Table(path).compact()
            continue
        if step == "delete":
            rows = [model.rows[key] for key in sorted(model.rows)[number :: number + 2]]
            model.remove(rows)
        else:
            rows = [
                row(n, number) for n in range(3 * number, 3 * number + 12) if step == "upsert" or f"k{n:05d}" not in model.rows
            ]
            known = sum(one["id"] in model.rows for one in rows)
            model.put(rows)
        if who == "we" and step == "upsert":
            report = hudimeta.Table(path).upsert(pa.Table.from_pylist(rows, SCHEMA))
            assert "of them read anew" in report.index, "they changed slices since"
            assert report.found == known
        else:
            (ours if who == "we" else theirs).write(step, rows)
        assert all(hudi.validate(path).values()), turn
        assert plain_rows(hudimeta.Table(path).scan().to_table()) == model.sorted(), turn
        assert plain_rows(hudi.read(path).table) == model.sorted(), turn
        check_all(open_storage(path), ALWAYS)
    assert hudimeta.Table(path).properties["hudimeta.record.window.days"] == "3", "Apache Hudi keeps what it does not know"
