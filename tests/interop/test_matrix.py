"""hudimeta and Apache Hudi take turns on tables of every kind; after every turn all readers see the rows of the model.

Every run plays three rounds on a few kinds, the same ones each time. `make interop-full` plays twelve rounds on a cover of all
pairs of kinds, and four rounds on a few kinds of tables of version 9; those histories follow from HUDIMETA_MATRIX_SEED, which
they print.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import TableError, ValidationFailed
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.testing.model import ModelTable, compare_rows
from hudimeta.types import Action
from tests.elsewhere import only_when
from tests.interop.apache_hudi import ApacheHudi, Installation
from tests.interop.matrix import DIMENSIONS, SCHEMA, SEED, Combination, History, Turn, pairwise
from tests.interop.sides import FULL, read_by_hudi_rs

FOUND = Installation.find()
TABLE_VERSION = "8" if FOUND is None or FOUND.release == "1.0.2" else "9"
"""What the release at hand makes by itself."""
SMOKE = {
    Combination("secondary", "complex", "MERGE_ON_READ", "event time"): 155,
    Combination("statistics", "simple", "MERGE_ON_READ", "commit time"): 133,
    # Tasks of release 1.2.0 that update an expression index list files from slices which the driver kept, and fail: the path of
    # a base file (`BaseFile.pathInfo`) is transient there, so it is null in a task.
    **({Combination("expression", "timestamp", "COPY_ON_WRITE", "commit time"): 126} if TABLE_VERSION == "8" else {}),
}
"""What every run plays for three rounds, by these seeds: overwriting, deleting and services of both sides are among them."""
WHOLE = FULL and TABLE_VERSION == "8"
CLEAN = {"hoodie.clean.commits.retained": "2"}
ARCHIVE = {**CLEAN, "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
COMPACT = {"hoodie.compact.inline.max.delta.commits": "1"}
EXPRESSIONS: tuple[dict[str, Any], ...] = (
    {"name": "up", "type": "column_stats", "columns": "note", "expression": "upper"},
    {"name": "low", "type": "bloom_filters", "columns": "tag", "expression": "lower"},
)


@dataclass(frozen=True)
class Ours:
    """hudimeta without Spark; it opens the table anew at every turn."""

    path: Path
    combination: Combination
    settings: dict[str, str]

    def table(self, more: dict[str, str] | None = None) -> hudimeta.Table:
        return hudimeta.Table(self.path, {**self.combination.options(), **self.settings, **(more or {})})

    def create(self) -> None:
        kind, event = self.combination, self.combination.order == "event time"
        hudimeta.Table.create(
            self.path,
            SCHEMA,
            kind.key_columns,
            kind.partition_columns,
            ordering="ts" if event else (),
            type=kind.kind,
            options={"hoodie.write.table.version": TABLE_VERSION, **kind.options()},
            name="matrix",
        )

    def do(self, turn: Turn) -> None:
        if turn.step == "clean":
            self.table(CLEAN).clean()
        elif turn.step == "archive":
            self.table(ARCHIVE).archive()
        elif turn.step == "compact":
            self.table().compact()
        else:
            getattr(self.table(), turn.step)(turn.rows)


@dataclass(frozen=True)
class Theirs:
    """Apache Hudi, which is told of the table's indexes at every operation."""

    path: Path
    combination: Combination
    settings: dict[str, str]
    hudi: ApacheHudi

    def options(self) -> dict[str, str]:
        kind, event = self.combination, self.combination.order == "event time"
        # By files, Apache Hudi finds keys that a log has deleted; its updates of them then leave the record index without them.
        tagging = {"record": "RECORD_INDEX", "secondary": "RECORD_INDEX", "bloom": "BLOOM"}.get(kind.index, "SIMPLE")
        return {
            "hoodie.index.type": tagging,
            "hoodie.table.name": "matrix",
            "hoodie.datasource.write.recordkey.field": ",".join(kind.key_columns),
            "hoodie.datasource.write.partitionpath.field": ",".join(kind.partition_columns),
            **({"hoodie.datasource.write.precombine.field": "ts"} if event else {}),
            "hoodie.datasource.write.table.type": kind.kind,
            "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING" if event else "COMMIT_TIME_ORDERING",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.clean.automatic": "false",
            "hoodie.write.table.version": TABLE_VERSION,
            "hoodie.write.auto.upgrade": "false",
            **self.settings,
            **kind.options(),
        }

    def do(self, turn: Turn) -> None:
        if turn.step == "clean":
            # Without the options of the indexes, release 1.0.2 would make those that are its default.
            self.hudi.service(self.path, "clean", {**self.options(), **CLEAN, "hoodie.clean.policy": "KEEP_LATEST_COMMITS"})
        elif turn.step in ("archive", "compact"):
            more = ARCHIVE if turn.step == "archive" else COMPACT
            made = self.hudi.service(self.path, turn.step, {**self.options(), **more})
            assert made or turn.step == "archive" or not _has_logs(self.path), "Apache Hudi planned no compaction"
        else:
            self.hudi.write(self.path, turn.rows, self.options(), operation=turn.step)


def test_every_pair_of_kinds_meets() -> None:
    """The whole matrix is a pairwise cover, and no larger than its two longest dimensions ask for."""
    met = {pair for c in pairwise() for pair in itertools.combinations((c.index, c.keys, c.kind, c.order), 2)}
    wanted = {pair for one, other in itertools.combinations(DIMENSIONS, 2) for pair in itertools.product(one, other)}
    assert met == wanted
    assert len(pairwise()) == len(set(pairwise())) == 21


@only_when(FULL, "make interop-full")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("combination", pairwise() if WHOLE else tuple(SMOKE), ids=str)
def test_turns(hudi: ApacheHudi, tmp_path: Path, combination: Combination) -> None:
    print(f"HUDIMETA_MATRIX_SEED={SEED}, table version {TABLE_VERSION}")
    _play(hudi, tmp_path / "table", History(combination, 12 if WHOLE else 4))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("combination", "seed"), SMOKE.items(), ids=str)
def test_a_few_turns(hudi: ApacheHudi, tmp_path: Path, combination: Combination, seed: int) -> None:
    """Turns that no environment changes, so that every run sees the same."""
    _play(hudi, tmp_path / "table", History(combination, 3, seed))


def _play(hudi: ApacheHudi, path: Path, history: History) -> None:
    combination = history.combination
    ours = Ours(path, combination, history.settings())
    theirs = Theirs(path, combination, history.settings(), hudi)
    kept = ""
    for number, turn in enumerate(history.turns()):
        print(f"{number}: {turn.step} by {'us' if turn.ours else 'Apache Hudi'}, {turn.rows.num_rows} rows", flush=True)
        if number == 0 and turn.ours:
            ours.create()
        (ours if turn.ours else theirs).do(turn)
        if number == 0:
            _add_indexes(ours)
        _agree(ours, theirs, history, number)
        kept = max(kept, _remember(path, history.model))
    _agree_on_the_past(path, history.model, kept)
    if combination.has_metadata:
        assert all(hudi.validate(path).values())
    assert set(hudimeta.Table(path).properties.metadata_partitions) == _partitions(combination)


def _add_indexes(ours: Ours) -> None:
    """Indexes that creation does not make."""
    if ours.combination.index == "secondary":
        ours.table().metadata.create_index("by_note", "secondary_index", "note")
    for index in _expressions(ours.combination):
        ours.table().metadata.create_index(**index)


def _expressions(combination: Combination) -> tuple[dict[str, Any], ...]:
    """Release 1.0.2 fails to write a log file where an expression has bloom filters: it wants one of the log file, too."""
    if combination.index != "expression":
        return ()
    return EXPRESSIONS if combination.kind == "COPY_ON_WRITE" else EXPRESSIONS[:1]


def _partitions(combination: Combination) -> set[str]:
    more = {
        "no metadata": set(),
        "files": {"files"},
        "statistics": {"files", "column_stats", "partition_stats"},
        "record": {"files", "record_index"},
        "secondary": {"files", "record_index", "secondary_index_by_note"},
        "bloom": {"files", "bloom_filters"},
        "expression": {"files", *("expr_index_" + index["name"] for index in _expressions(combination))},
    }
    found: set[str] = more[combination.index]
    return found


def _has_logs(path: Path) -> bool:
    return any(hudimeta.Table(path).file_slices()["log_files"].to_pylist())


def _remember(path: Path, model: ModelTable) -> str:
    """Let the model know the instants that are new; returns the first one whose files the last clean kept."""
    timeline = hudimeta.Table(path).timeline
    for instant in timeline.writes:
        if instant.time not in model.past:
            model.remember(instant.time)
    cleans = [instant for instant in timeline.completed if instant.action is Action.CLEAN]
    return (timeline.metadata(cleans[-1])["earliestCommitToRetain"] or "") if cleans else ""


def _agree_on_the_past(path: Path, model: ModelTable, kept: str) -> None:
    """hudi-rs and we see what was there after every write that the cleaner retains, archived ones too.

    Of the writes before, slices are gone: hudi-rs is not asked for them, and we show the very rows or refuse.
    """
    table = hudimeta.Table(path)
    for instant in model.past:
        try:
            if instant >= kept:
                model.check(read_by_hudi_rs(path, instant), as_of=instant)
            model.check(table.scan(as_of=instant).to_table(), as_of=instant)
        except ValidationFailed as error:
            raise AssertionError(f"as of {instant}: {error}") from error
        except TableError:
            if instant >= kept:
                raise


def _agree(ours: Ours, theirs: Theirs, history: History, number: int) -> None:
    """All readers see the model, by every way to plan; the metadata table is what the table says."""
    path, hudi, expected = ours.path, theirs.hudi, history.model.all_rows()
    table = hudimeta.Table(path)
    readers: dict[str, Callable[[], pa.Table]] = {
        "hudimeta": lambda: table.scan().to_table(),
        "Apache Hudi": lambda: hudi.read(path, metadata=ours.combination.has_metadata).table,
        "hudi-rs": lambda: read_by_hudi_rs(path),
    }
    for name, read in readers.items():
        try:
            compare_rows(expected, read())
        except ValidationFailed as error:
            raise AssertionError(f"{name}: {error}") from error
    if ours.combination.has_metadata:
        report = table.metadata.validate()
        assert report.holds, str(report)
    check_all(open_storage(str(path)))
    chosen = random.Random(number)
    row = chosen.choice(expected)
    # Release 1.0.2 takes an index of an expression for one of its column: where there is one, only the expression is asked for.
    asked = ("note", row["note"]) if ours.combination.index != "expression" else ("upper(note)", str(row["note"]).upper())
    where, matches = chosen.choice(
        (
            (f"id = '{row['id']}'", [r for r in expected if r["id"] == row["id"]]),
            (f"{asked[0]} = '{asked[1]}'", [r for r in expected if r["note"] == row["note"] and r["note"] is not None]),
            (f"amount >= {row['amount']}", [r for r in expected if r["amount"] >= row["amount"]]),
        )
    )
    compare_rows(matches, table.scan(where).to_table())
    compare_rows(matches, hudi.read(path, where=where, metadata=ours.combination.has_metadata).table)
