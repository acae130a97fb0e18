"""Which index a table is written with changes no row: the same random writes to tables that differ in their index alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hudimeta
from hudimeta.services.validation import validate
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

EXAMPLES = int(os.environ.get("HUDIMETA_INDEX_EXAMPLES", "2"))
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
BLOOMS = {"hoodie.metadata.index.bloom.filter.enable": "true"}
RECORDS = {"hoodie.metadata.record.index.enable": "true"}
LOCAL: dict[str, dict[str, str]] = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM", **BLOOMS},
    "bloom in footers": {"hoodie.index.type": "BLOOM", "hoodie.metadata.enable": "false"},
    "buckets": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
}


def moving(moves: bool) -> dict[str, dict[str, str]]:
    """Global indexes, with and without moves."""
    said = str(moves).lower()
    names = ("simple", "bloom", "record")
    how = {f"hoodie.{name}.index.update.partition.path": said for name in names}
    return {
        "simple": {"hoodie.index.type": "GLOBAL_SIMPLE", **how},
        "bloom": {"hoodie.index.type": "GLOBAL_BLOOM", **BLOOMS, **how},
        "record": {"hoodie.index.type": "RECORD_INDEX", **RECORDS, **how},
        "the table's": {**RECORDS, **how},
        "window": {"hudimeta.record.window.days": "3", **how},  # partitions that name no day are all in it
    }


batch = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["x", "y", "z"]), st.integers(0, 5)), min_size=1, max_size=8
)
steps = st.lists(st.tuples(st.sampled_from(["upsert", "upsert", "upsert", "delete", "compact"]), batch), min_size=2, max_size=5)


def rows(given_rows: list[tuple[str, str, int]], v: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": k, "part": p, "v": v, "ts": t} for k, p, t in given_rows], SCHEMA)


def history(path: Path, kind: str, options: dict[str, str], work: list[tuple[str, Any]]) -> list[list[tuple[Any, ...]]]:
    """The rows after each step."""
    table = hudimeta.Table.create(
        path, SCHEMA, key="id", partition_by="part", ordering="ts", type=kind, options=options, name="t"
    )
    states = []
    for number, (what, given_rows) in enumerate(work):
        if what == "compact":
            if kind == "MERGE_ON_READ":
                table.compact()
        else:
            getattr(table, what)(rows(given_rows, number))
        found = hudimeta.Table(path).scan().to_table()
        names = ("id", "_hoodie_partition_path", "v", "ts")
        states.append(sorted(zip(*(found[name].to_pylist() for name in names), strict=True)))
    check_all(open_storage(path))
    if options.get("hoodie.metadata.enable") != "false":
        table = hudimeta.Table(path)
        keyed = {"record_index", "bloom_filters"} & set(table.metadata.ready)
        report = validate(table.snapshot(), ["files", *sorted(keyed)])
        assert report.holds, report
    return states


@pytest.mark.rotation(2)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("indexes", [LOCAL, moving(True), moving(False)], ids=["of partitions", "moving", "staying"])
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_the_index_changes_no_row(kind: str, indexes: dict[str, dict[str, str]], work: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {name: history(Path(folder) / str(n), kind, index, work) for n, (name, index) in enumerate(indexes.items())}
    expected = found.pop("simple")
    for name, states in found.items():
        assert states == expected, name
