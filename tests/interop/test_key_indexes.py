"""A table with a record index and a secondary index, on which hudimeta and Apache Hudi take turns."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.metadata.completeness import proven_indexes
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, Model, Ours, Row, Theirs, plain_rows, row

INDEXES = ("record_index", "secondary_index_note")
OPTIONS = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.index.secondary.column": "note",
}
SERVED = {"hoodie.embed.timeline.server": "true"}
"""Its default. Without it, release 1.2.0 fails each write to a merge-on-read table with a secondary or expression index."""
TURNS = [
    ("we", "insert"),
    ("they", "upsert"),
    ("we", "upsert"),
    ("we", "delete"),
    ("they", "delete"),
    ("we", "compact"),
    ("they", "upsert"),
    ("we", "upsert"),
]
MORE_TURNS = [
    ("we", "delete"),  # leaves log files: the upserts before brought new rows for small files, and rewrote all of them
    ("they", "compact"),
    ("they", "insert"),
    ("we", "bulk_insert"),
    ("we", "insert_overwrite"),
    ("they", "upsert"),
    ("we", "delete"),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_turns(hudi: ApacheHudi, tmp_path: Path, table_type: str) -> None:
    """Apache Hudi's own reader finds every key and every value where the rows are, after each turn of either."""
    path, model = tmp_path / "table", Model()
    ours = Ours(path, type=table_type, options={**OPTIONS, "hoodie.metadata.compact.max.delta.commits": "4"})
    theirs = Theirs(path, hudi, type=table_type, options=SERVED)
    turns = [turn for turn in TURNS + (MORE_TURNS if FULL else []) if table_type == "MERGE_ON_READ" or turn[1] != "compact"]
    for number, (who, step) in enumerate(turns):
        rows = _rows(model, step, number)
        (ours if who == "we" else theirs).write(step, rows)
        name = f"turn {number}: {step}, {who}"
        checks = hudi.validate(path)
        assert all(checks.values()), f"{name}: {checks}"
        assert set(INDEXES) <= set(hudimeta.Table(path).properties.metadata_partitions), name
        expected = model.sorted()
        assert plain_rows(hudimeta.Table(path).scan().to_table()) == expected, name
        assert plain_rows(hudi.read(path).table) == expected, name
        _look_up(path, expected, name)
    assert hudimeta.Table(path).metadata.validate(list(INDEXES)).proven == INDEXES


def test_hudi_skips_files_by_our_indexes(hudi: ApacheHudi, tmp_path: Path) -> None:
    """And we prove them complete until Apache Hudi writes."""
    path, model = tmp_path / "table", Model()
    ours = Ours(path, options={**OPTIONS, "hoodie.metadata.index.column.stats.enable": "false"})
    rows = [row(n, 100) for n in range(60)]
    for first in (0, 30):
        ours.write("bulk_insert", rows[first : first + 30])
    model.put(rows)
    table = hudimeta.Table(path)
    assert proven_indexes(table.snapshot().metadata, INDEXES) == frozenset(INDEXES)
    for where in ("id = 'k00003'", "note = 'n40-100 é'"):
        found = hudi.read(path, where=where, options={"hoodie.enable.data.skipping": "true"})
        assert (found.table.num_rows, found.files_read) == (1, 1), where
        scan = table.scan(where)
        assert scan.to_table().num_rows == 1
        assert len(scan.plan().slices) == 1, where
    Theirs(path, hudi).write("upsert", rows[:2])
    assert not proven_indexes(hudimeta.Table(path).snapshot().metadata, INDEXES)


def _rows(model: Model, step: str, turn: int) -> list[Row]:
    if step in ("insert", "bulk_insert"):
        rows = [row(n, 100) for n in range(turn * 20, turn * 20 + 24) if f"k{n:05d}" not in model.rows]
    elif step == "upsert":
        rows = [dict(r, ts=r["ts"] + turn, note=f"turn {turn % 2}") for r in model.sorted()[turn % 3 :: 3]]
        rows += [row(n, 100) for n in range(turn * 20 + 100, turn * 20 + 107)]
    elif step == "delete":
        rows = model.sorted()[turn % 4 :: 5]
        model.remove(rows)
        return rows
    elif step == "insert_overwrite":
        rows = [dict(r, note="overwritten") for r in model.sorted() if r["month"] == "2026-02"][::2]
        model.overwrite(rows, True)
        return rows
    else:
        return []
    model.put(rows)
    return rows


def _look_up(path: Path, expected: list[Row], name: str) -> None:
    """By both indexes, whoever wrote last."""
    table = hudimeta.Table(path, {"hudimeta.index.trust": "true"})
    some = expected[len(expected) // 2]
    wanted = {
        f"id = '{some['id']}'": [some],
        "id = 'absent'": [],
        "note = 'turn 1'": [r for r in expected if r["note"] == "turn 1"],
    }
    for where, rows in wanted.items():
        assert plain_rows(table.scan(where).to_table()) == rows, f"{name}: {where}"
