"""Log files that tell of their keys, among those of Apache Hudi: both sides read all rows, write on, and compact."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import Model, Ours, Theirs, plain_rows, row

OURS = {"hoodie.index.type": "BLOOM", "hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_both_sides_go_on(hudi: ApacheHudi, tmp_path: Path, form: str) -> None:
    path, model = tmp_path / "table", Model()
    mine = {**OURS, "hoodie.logfile.data.block.format": form}
    ours = Ours(path, type="MERGE_ON_READ", options=mine)
    theirs = Theirs(path, hudi, type="MERGE_ON_READ", options={"hoodie.index.type": "BLOOM"})
    turns = (ours, ours, theirs, ours, theirs, "compact theirs", ours, theirs, ours, "compact ours", theirs)
    for turn, side in enumerate(turns):
        if side == "compact theirs":
            theirs.write("compact", [])
        elif side == "compact ours":
            ours.write("compact", [])
        else:
            assert not isinstance(side, str)
            rows = [row(number, turn) for number in range(turn % 3, 30 + turn, 3 if turn else 1)]
            side.write("upsert", rows)
            model.put(rows)
            if turn in (3, 4):
                gone = model.sorted()[turn::9]
                side.write("delete", gone)
                model.remove(gone)
        expected = model.sorted()
        assert plain_rows(hudi.read(path).table) == expected, f"as Apache Hudi reads turn {turn}"
        assert plain_rows(hudimeta.Table(path).scan().to_table()) == expected, f"turn {turn}"
        for wanted in expected[turn::20]:
            found = hudimeta.Table(path).scan(where=f"id = '{wanted['id']}'").to_table()
            assert plain_rows(found) == [wanted]


@pytest.mark.timeout(600)
def test_new_rows_in_logs_are_read_and_compacted(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Apache Hudi's writers find such rows by its record index."""
    path, model = tmp_path / "table", Model()
    options = {"hoodie.metadata.record.index.enable": "true", "hoodie.compact.inline": "false"}
    ours = Ours(path, type="MERGE_ON_READ", options={**options, "hudimeta.log.inserts": "true"})
    theirs = Theirs(path, hudi, type="MERGE_ON_READ", options={**options, "hoodie.index.type": "RECORD_INDEX"})
    for turn in range(6):
        rows = [row(number, turn) for number in (*range(turn * 10, turn * 10 + 10), *range(0, turn * 10, 7))]
        side = theirs if turn in (2, 5) else ours
        side.write("upsert", rows)
        model.put(rows)
        if turn == 1:
            assert not list(path.glob("*/*.parquet"))
        if turn == 3:
            theirs.write("compact", [])
        assert plain_rows(hudi.read(path).table) == model.sorted(), f"as Apache Hudi reads turn {turn}"
        assert plain_rows(hudimeta.Table(path).scan().to_table()) == model.sorted(), f"turn {turn}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("form", ["", "avro"])
def test_hudi_finds_keys_of_a_global_index_where_columns_were_altered(hudi: ApacheHudi, tmp_path: Path, form: str) -> None:
    """1.2.0 does not in slices with a Parquet block, its own neither, unless it writes such blocks itself."""
    path, model = tmp_path / "table", Model()
    options = {**OURS, "hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.metadata.record.index.enable": "false"}
    asked = {**options, "hoodie.schema.on.read.enable": "true"}
    ours = Ours(path, type="MERGE_ON_READ", options={**options, **({"hoodie.logfile.data.block.format": form} if form else {})})
    theirs = Theirs(path, hudi, type="MERGE_ON_READ", options=asked)
    ours.write("insert", [row(number, 1) for number in range(12)])
    ours.table().alter(move={"note": "month"})
    for side, first, turn in ((ours, 0, 2), (theirs, 4, 3), (ours, 2, 4), (theirs, 6, 5)):
        rows = [row(number, turn) for number in range(first, first + 8)]
        side.write("upsert", rows)
        model.put([row(number, 1) for number in range(12)] if turn == 2 else [])
        model.put(rows)
        assert plain_rows(hudi.read(path, options={"hoodie.schema.on.read.enable": "true"}).table) == model.sorted()
        assert plain_rows(hudimeta.Table(path).scan().to_table()) == model.sorted()
