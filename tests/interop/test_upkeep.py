"""A table that we have cleaned and archived for long is one that Apache Hudi reads, continues and archives further."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import Model, Ours, Theirs, assert_everybody_reads, plain_rows, row

SHORT = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.metadata.compact.max.delta.commits": "3",
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_go_on_after_archivals(hudi: ApacheHudi, tmp_path: Path, kind: str) -> None:
    path, model = tmp_path / "table", Model()
    inline = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
    options = {**SHORT, **(inline if kind == "MERGE_ON_READ" else {})}  # Apache Hudi refuses the first for copy-on-write
    ours = Ours(path, type=kind, options=options)
    theirs = Theirs(path, hudi, type=kind, options={**options, "hoodie.clean.automatic": "true"})
    for turn in range(26):
        rows = [row(n, turn) for n in range(turn % 5, 40, 3)]
        ours.write("upsert", rows)
        model.put(rows)
    timeline = hudimeta.Table(path).timeline
    assert timeline.history.times().num_rows > 10
    assert hudimeta.Table(path).metadata.timeline.completed[0].time > "1", "the metadata table's own past is archived too"
    assert_everybody_reads(path, hudi, model.sorted(), "our archivals")
    for turn in range(26, 33):
        rows = [row(n, turn) for n in range(turn % 5, 40, 3)]
        theirs.write("upsert", rows)
        model.put(rows)
    for turn in range(33, 38):
        rows = [row(n, turn) for n in range(turn % 5, 40, 3)]
        ours.write("upsert", rows)
        model.put(rows)
    assert_everybody_reads(path, hudi, model.sorted(), "archivals of both")
    archived = hudimeta.Table(path).timeline.history.times()["instant_time"].to_pylist()
    assert archived == sorted(set(archived))
    check_all(open_storage(str(path)))
    assert plain_rows(hudimeta.Table(path).scan().to_table()) == model.sorted()
