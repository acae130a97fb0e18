"""hudimeta and Apache Hudi take turns on one table; after every turn all readers must see the rows of a plain dictionary.

`make interop` has ten rounds of a partitioned COPY_ON_WRITE table and six of two other kinds; `make interop-full` ten of all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hudimeta
from hudimeta.errors import TableError
from hudimeta.types import Action
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.sides import FULL, Model, Ours, Row, Theirs, assert_everybody_reads, plain_rows, row

ROUNDS = [  # what we do, what Apache Hudi then does
    ("insert", "upsert"),
    ("upsert", "insert"),
    ("delete_where", "upsert_late"),
    ("insert_overwrite", "delete"),
    ("upsert_late", "upsert"),
    ("bulk_insert", "clean"),
    ("clean", "insert"),
    ("delete", "delete"),
    ("insert_overwrite", "upsert"),
    ("upsert", "clean"),
]
MERGE_ON_READ_ROUNDS = [
    ("insert", "upsert"),
    ("upsert", "delete"),
    ("compact", "upsert_late"),
    ("delete_where", "compact"),
    ("upsert_late", "insert"),
    ("clean", "upsert"),
    ("insert_overwrite", "delete"),
    ("upsert", "clean"),
    ("delete", "upsert"),
    ("compact", "insert"),
]
KINDS = [
    pytest.param(kind, partitioned, id=f"{kind}, {'partitioned' if partitioned else 'not partitioned'}")
    for partitioned in (True, False)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
]


class Script:
    """Chooses the rows of each turn and keeps the model."""

    def __init__(self, partitioned: bool) -> None:
        self.partitioned, self.model, self.next = partitioned, Model(), 0

    def new(self, count: int, ts: int) -> list[Row]:
        self.next += count
        return [row(n, ts) for n in range(self.next - count, self.next)]

    def rows(self, step: str, turn: int) -> list[Row]:
        """The rows of a turn, after which the model holds what must be visible."""
        model = self.model
        if step in ("insert", "bulk_insert"):
            rows = self.new(30, 100)
        elif step == "upsert":
            rows = [dict(r, ts=r["ts"] + turn, note=f"turn {turn}") for r in model.sorted()[turn % 3 :: 4]] + self.new(5, 100)
        elif step == "upsert_late":  # late rows lose, equal ones win, deleted keys come back
            late = [dict(r, ts=r["ts"] - 50, note="late") for r in model.sorted()[:6]]
            equal = [dict(r, note="equal") for r in model.sorted()[6:12]]
            rows = late + equal + [row(n, 50) for n in range(self.next) if f"k{n:05d}" not in model.rows][:7]
        elif step in ("delete", "delete_where"):
            rows = [dict(r, ts=1) for r in model.sorted()[turn % 4 :: 9]]
            model.remove(rows)
            return rows
        elif step == "insert_overwrite":
            rows = [dict(r, note="overwritten") for r in model.sorted() if r["month"] == "2026-02"][::2]
            model.overwrite(rows, self.partitioned)
            return rows
        else:
            return []
        model.put(rows)
        return rows


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("table_type", "partitioned"), KINDS if FULL else KINDS[:3])
def test_turns(hudi: ApacheHudi, tmp_path: Path, table_type: str, partitioned: bool) -> None:
    """Each does its operation on what the other left: rows, metadata table and time travel are right after every turn."""
    path, script = tmp_path / "table", Script(partitioned)
    ours, theirs = Ours(path, partitioned, table_type), Theirs(path, hudi, partitioned, table_type)
    snapshots: dict[str, list[Row]] = {}
    compacted: set[str] = set()
    every = ROUNDS if table_type == "COPY_ON_WRITE" else MERGE_ON_READ_ROUNDS
    rounds = every if FULL or (partitioned and every is ROUNDS) else every[:6]
    for number, steps in enumerate(rounds):
        # First Hudi is the one that compacts the metadata table, then we are.
        late = number >= len(rounds) // 2
        ours.options = {"hoodie.metadata.compact.max.delta.commits": "2" if late else "100"}
        theirs.options = {} if FULL else {"hoodie.metadata.compact.max.delta.commits": "100" if late else "3"}
        for turn, (side, step) in enumerate(zip((ours, theirs), steps, strict=True), start=2 * number):
            name = f"turn {turn}, {step} by {type(side).__name__}"
            rows = script.rows(step, turn)
            side.write(step.removesuffix("_late"), rows)
            expected = script.model.sorted()
            assert_everybody_reads(path, hudi, expected, name)
            assert all(hudi.validate(path).values()), name
            snapshots[hudimeta.Table(path).timeline.writes[-1].time] = expected
            compacted |= {f.name.split("_")[1] for f in (path / ".hoodie/metadata/files").glob("*[1-9]*.hfile")}
        assert_time_travel(path, snapshots)
    cleaned = [i for i in hudimeta.Table(path).timeline.completed if i.action is Action.CLEAN]
    assert cleaned, "Apache Hudi removed old files"
    partitions = set(hudimeta.Table(path).properties.metadata_partitions)
    assert partitions == {"files", "column_stats"} | ({"partition_stats"} if partitioned else set())
    assert "0-0-0" in compacted, "we compacted the metadata table"
    assert len(compacted) > 1, "Apache Hudi compacted the metadata table"


def assert_time_travel(path: Path, snapshots: dict[str, list[Row]]) -> None:
    """As of every earlier write its rows are read, or the read is refused because they were cleaned; then it is forgotten."""
    table, refused = hudimeta.Table(path), []
    for instant, expected in snapshots.items():
        try:
            assert plain_rows(table.scan(as_of=instant).to_table()) == expected, f"as of {instant}"
        except TableError:
            refused.append(instant)
    cleans = [i for i in table.timeline.completed if i.action is Action.CLEAN]
    kept = table.timeline.metadata(cleans[-1])["earliestCommitToRetain"] if cleans else ""
    assert refused == [instant for instant in snapshots if instant < kept]
    for instant in refused:
        del snapshots[instant]


def test_we_add_the_metadata_table_that_hudi_left_out(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Our first write builds it and changes hoodie.properties, of which Apache Hudi's file system keeps a checksum."""
    path, model = tmp_path / "table", Model()
    ours, theirs = Ours(path), Theirs(path, hudi, options={"hoodie.metadata.enable": "false"})
    for turn, side in enumerate((theirs, ours, theirs, ours)):
        rows = [row(n, 100 + turn) for n in range(turn * 10, turn * 10 + 30)]
        side.write("upsert", rows)
        model.put(rows)
        assert_everybody_reads(path, hudi, model.sorted(), f"turn {turn}")
        theirs.options = {}
    assert all(hudi.validate(path).values())
