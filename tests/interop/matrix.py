"""Kinds of tables, and random histories of two writers on them: what `test_matrix.py` runs.

A combination says what kind of table it is. Its history is a seeded shuffle of one deck of operations for each side, so that
every operation is done by both in every whole history; rows are chosen by the same seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import pyarrow as pa

from hudimeta.testing.model import ModelTable, Row
from hudimeta.types import Operation

SEED = int(os.environ.get("HUDIMETA_MATRIX_SEED", "20260301"))
"""Of all histories; another one makes other histories."""
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXES = ("no metadata", "files", "statistics", "record", "secondary", "bloom", "expression")
KEYS = ("simple", "complex", "timestamp")
ORDERS = ("commit time", "event time")
DIMENSIONS: tuple[tuple[str, ...], ...] = (INDEXES, KEYS, KINDS, ORDERS)

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("sub", pa.int64()),
        ("month", pa.string()),
        ("place", pa.string()),
        ("at", pa.int64()),
        ("amount", pa.float64()),
        ("note", pa.string()),
        ("tag", pa.string()),
        ("ts", pa.int64()),
    ]
)
HOUR_MS = 3_600_000
FIRST_HOUR = 1_790_000_000_000 // HOUR_MS
PARTITIONS = 3

DECKS = {
    "COPY_ON_WRITE": ["insert"] * 2 + ["upsert"] * 4 + ["delete"] * 3 + ["insert_overwrite", "clean", "archive"],
    "MERGE_ON_READ": ["insert"] + ["upsert"] * 4 + ["delete"] * 2 + ["compact"] * 2 + ["insert_overwrite", "clean", "archive"],
}
WRITES = {
    "insert": Operation.INSERT,
    "upsert": Operation.UPSERT,
    "delete": Operation.DELETE,
    "insert_overwrite": Operation.INSERT_OVERWRITE,
}


@dataclass(frozen=True)
class Combination:
    """One kind of table."""

    index: str
    keys: str
    kind: str
    order: str

    def __str__(self) -> str:
        short = "CoW" if self.kind == "COPY_ON_WRITE" else "MoR"
        return ", ".join((short, self.index, self.keys, self.order))

    @property
    def key_columns(self) -> tuple[str, ...]:
        return ("id", "sub") if self.keys == "complex" else ("id",)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return {"simple": ("month",), "complex": ("month", "place"), "timestamp": ("at",)}[self.keys]

    @property
    def has_metadata(self) -> bool:
        return self.index != "no metadata"

    def place_of(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Partition and key of a row, told apart as the table does; not the bytes that it writes."""
        partition = "/".join(str(row[name] // HOUR_MS if name == "at" else row[name]) for name in self.partition_columns)
        return partition, ",".join(str(row[name]) for name in self.key_columns)

    def options(self) -> dict[str, str]:
        """What both writers are told at every operation."""
        options = {
            "hoodie.metadata.enable": str(self.has_metadata).lower(),
            "hoodie.metadata.index.column.stats.enable": str(self.index == "statistics").lower(),
            "hoodie.metadata.index.partition.stats.enable": str(self.index == "statistics").lower(),
            "hoodie.metadata.record.index.enable": str(self.index in ("record", "secondary")).lower(),
            "hoodie.metadata.index.bloom.filter.enable": str(self.index == "bloom").lower(),
        }
        if self.index in ("record", "secondary"):
            options["hoodie.metadata.record.index.min.filegroup.count"] = "2"
        if self.keys == "timestamp":
            options |= {
                "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
                "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
                "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd HH",
                "hoodie.keygen.timebased.timezone": "UTC",
            }
        return options


def pairwise() -> list[Combination]:
    """Combinations in which every two values of two dimensions meet, as few as the two longest dimensions allow.

    The two longest dimensions meet each other in rows of a table; the others are chosen so that they settle most of the pairs
    that are still open, the first choice of several.
    """
    first, second, *rest = DIMENSIONS
    open_pairs = set(_pairs(*DIMENSIONS))
    made = []
    for number, begun in enumerate(product(first, second)):
        choices = list(product(*rest))
        choices = choices[number % len(choices) :] + choices[: number % len(choices)]
        best = max(choices, key=lambda chosen: len(open_pairs & set(_pairs_of((*begun, *chosen)))))
        open_pairs -= set(_pairs_of((*begun, *best)))
        made.append(Combination(*begun, *best))
    return made


def _pairs(*dimensions: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for one, other in combinations(dimensions, 2):
        yield from product(one, other)


def _pairs_of(values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield from combinations(values, 2)


@dataclass(frozen=True)
class Turn:
    """One operation: of hudimeta when `ours`, else of Apache Hudi; rows are none for services."""

    ours: bool
    step: str
    rows: pa.Table


@dataclass
class History:
    """Chooses operations and rows, and keeps the model of what must be visible.

    Args:
        combination: The kind of table.
        rounds: Each is one turn of either side; 12 play whole decks.
        seed: Of all choices.
    """

    combination: Combination
    rounds: int
    seed: int = SEED
    model: ModelTable = field(init=False)

    def __post_init__(self) -> None:
        # Python's own hash of texts differs between processes.
        self.random = random.Random(f"{self.seed} {self.combination}")
        ordering = "ts" if self.combination.order == "event time" else None
        self.model = ModelTable(self.combination.place_of, ordering)
        self.now = self.next = 0
        self.gone: set[int] = set()
        self.buried: set[int] = set()
        self.we_begin = self.random.random() < 0.5

    def settings(self) -> dict[str, str]:
        """Options of one side that change how the table is stored and never what is in it."""
        return {
            "hoodie.metadata.compact.max.delta.commits": str(self.random.choice((2, 3, 5, 8))),
            "hoodie.parquet.small.file.limit": self.random.choice(("0", "104857600")),
        }

    def turns(self) -> Iterator[Turn]:
        """The history; the model holds what must be visible after a turn when it is given."""
        decks = []
        for _ in range(2):
            deck = list(DECKS[self.combination.kind])
            self.random.shuffle(deck)
            decks.append(deck)
        yield self._turn(self.we_begin, "insert", 60)
        for one, other in list(zip(*decks, strict=True))[: self.rounds]:
            # Who begins made the table, so it is the other's turn.
            yield self._turn(not self.we_begin, one)
            yield self._turn(self.we_begin, other)

    def _turn(self, ours: bool, step: str, count: int = 12) -> Turn:
        self.now += 10
        choose = {"upsert": self._upserted, "delete": self._deleted, "insert_overwrite": self._overwriting}.get(step)
        chosen = choose() if choose else self._new(count) if step == "insert" else []
        rows = pa.Table.from_pylist(chosen, SCHEMA)
        if step in WRITES:
            before = {self._number(row) for row in self.model.all_rows()}
            self.model.write(WRITES[step], rows)
            alive = {self._number(row) for row in self.model.all_rows()}
            self.gone, self.buried = self.gone - alive, self.buried | (before - alive)
        if step == "compact" or not self._logs_bury:
            self.gone, self.buried = self.gone | self.buried, set()
        # Release 1.0.2 refuses to overwrite partitions of a table with a secondary index.
        return Turn(ours or (step == "insert_overwrite" and self.combination.index == "secondary"), step, rows)

    @property
    def _logs_bury(self) -> bool:
        """Whether keys that a log deletes may come back only after a compaction.

        By event time, release 1.0.2 reads no slice whose logs delete a key and write it again: it compares the 0 of 32 bits
        that stands for "no ordering value" in delete blocks, its own too, with the 64 bits of the column.
        """
        return self.combination.kind == "MERGE_ON_READ" and self.combination.order == "event time"

    def _row(self, number: int, ts: int, shift: int = 0) -> Row:
        """Partitions follow from `number + shift`: a key stays in its own as long as it lives."""
        chance, at = self.random, number + shift
        return {
            "id": f"k{number:04d}",
            "sub": number * 7,
            "month": f"2026-0{at % PARTITIONS + 1}",
            "place": ("here", "a b")[at % 2],
            "at": (FIRST_HOUR + at % PARTITIONS) * HOUR_MS + number,
            "amount": chance.randrange(-1000, 1000) / 4,
            "note": None if chance.random() < 0.1 else f"Note {chance.randrange(6)}",
            "tag": f"Tag {chance.randrange(30)} é",
            "ts": ts,
        }

    def _changed(self, row: Row, ts: int) -> Row:
        new = self._row(self._number(row), ts)
        return {**new, **{name: row[name] for name in ("month", "place", "at")}}

    @staticmethod
    def _number(row: Row) -> int:
        return int(row["id"][1:])

    def _live(self, share: float) -> list[Row]:
        rows = sorted(self.model.all_rows(), key=self._number)
        return self.random.sample(rows, round(len(rows) * share))

    def _new(self, count: int) -> list[Row]:
        self.next += count
        return [self._row(number, self.now) for number in range(self.next - count, self.next)]

    def _upserted(self) -> list[Row]:
        """Live rows with newer, equal and older ordering values, new rows, and deleted keys that come back anywhere."""
        live = self._live(0.3)
        changed = [self._changed(row, self.random.choice((self.now, self.now, row["ts"], row["ts"] - 5))) for row in live]
        back = self.random.sample(sorted(self.gone), min(3, len(self.gone)))
        return [*changed, *self._new(4), *(self._row(number, self.now, self.random.randrange(PARTITIONS)) for number in back)]

    def _deleted(self) -> list[Row]:
        """Rows whose other columns, the ordering value too, do not matter."""
        return [self._changed(row, self.random.choice((1, row["ts"], self.now))) for row in self._live(0.12)]

    def _overwriting(self) -> list[Row]:
        """Some rows of one partition, and new ones."""
        partition = self.random.choice(sorted({place[0] for place in self.model.rows}))
        rows = [row for place, (row,) in sorted(self.model.rows.items()) if place[0] == partition]
        kept = [self._changed(row, self.now) for row in rows[::2]]
        new = [row for row in self._new(6) if self.combination.place_of(row)[0] == partition]
        return kept + new
