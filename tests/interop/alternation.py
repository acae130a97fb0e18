"""Random alternation of hudimeta and Apache Hudi on one table with all indexes, with verbs that `matrix.py` does not have.

Partitions are deleted, columns are added, file groups are clustered, and the table is restored to a savepoint. After every step
both readers give the rows of the model, with and without a predicate that indexes answer, and `validate` finds no difference.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudimeta
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.services.validation.result import Outcome
from hudimeta.types import Action
from tests.interop.apache_hudi import ApacheHudi

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("note", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("ts", pa.int64()),
    ]
)
PARTITIONS = ("p0", "p1", "p2")
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}
WRITES = ("insert", "upsert", "upsert", "delete", "insert_overwrite", "delete_partition", "new column")
SERVICES = ("clean", "archive", "compact", "cluster", "restore")
BY_HUDI = frozenset(("cluster", "restore"))
"""What only Apache Hudi does."""
CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "3"}
ARCHIVE = {**CLEAN, "hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}
ONCE = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.clustering.async.max.commits": "1"}


@dataclass
class Alternation:
    """One history, which follows from its seed.

    Args:
        path: Of the table.
        hudi: Writes the other turns.
        release: Of Apache Hudi.
        kind: Of the table.
        version: Of the table.
        seed: Of all choices.
    """

    path: Path
    hudi: ApacheHudi
    release: str
    kind: str
    version: str
    seed: int
    rows: dict[str, Row] = field(default_factory=dict)
    schema: pa.Schema = SCHEMA
    saved: tuple[str, dict[str, Row], pa.Schema] | None = None
    restored: bool = False
    said: list[str] = field(default_factory=list)
    now: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed} {self.kind} {self.version}")
        compaction = {"hoodie.metadata.compact.max.delta.commits": self.random.choice(("3", "10"))}
        # Tasks of 1.2.0 that update these indexes fail as those that overwrite do, beside indexes of its own making too.
        self.has_secondary = self.random.random() < 0.4 and self.release != "1.2.0"
        self.has_expression = self.random.random() < 0.4 and self.release != "1.2.0"
        self.options = {**INDEXES, **compaction, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}

    def run(self, steps: int) -> None:
        """Begin a table, then so many steps; raises AssertionError with the history up to the first difference."""
        try:
            for step, ours in self._steps(steps):
                self.said.append(f"{step} by {'us' if ours else 'Apache Hudi'}")
                self._do(step, ours)
                if len(self.said) == 1:
                    self._add_indexes()
                self._agree()
        except Exception as error:
            told = "\n".join(f"  {number}: {step}" for number, step in enumerate(self.said))
            which = f"seed {self.seed}, {self.kind}, version {self.version}, Apache Hudi {self.release}"
            more = ", secondary index" * self.has_secondary + ", expression index" * self.has_expression
            raise AssertionError(f"{which}{more}:\n{told}\n{error}") from error

    def _add_indexes(self) -> None:
        """Indexes that creation does not make."""
        if self.has_secondary:
            self._table().metadata.create_index("by_note", "secondary_index", "note")
        if self.has_expression:
            self._table().metadata.create_index("up", "column_stats", "note", expression="upper")

    def _steps(self, steps: int) -> Iterator[tuple[str, bool]]:
        ours = self.random.random() < 0.5
        yield "insert", ours
        for _ in range(steps):
            step = self.random.choice(WRITES if self.random.random() < 0.7 else SERVICES)
            ours = not ours if self.random.random() < 0.8 else ours
            if step == "compact" and self.kind == "COPY_ON_WRITE":
                step = "clean"
            yield step, (ours or self._hudi_cannot(step)) and step not in BY_HUDI

    def _hudi_cannot(self, step: str) -> bool:
        """Whether the release fails at a step on tables that it alone wrote, too.

        1.2.0 overwrites no partition that holds rows where there is a metadata table: its tasks list files from slices of the
        driver's, and the path of a base file (`BaseFile.pathInfo`) is transient, so it is null in a task. 1.0.2 refuses to
        replace file groups beside a secondary index.
        """
        replaces = step in ("insert_overwrite", "delete_partition")
        return (self.release == "1.2.0" and step == "insert_overwrite") or (
            self.release == "1.0.2" and self.has_secondary and replaces
        )

    def _do(self, step: str, ours: bool) -> None:
        self.now += 1
        if step in SERVICES:
            self._serve(step, ours)
            return
        if step == "delete_partition":
            partition = self.random.choice(PARTITIONS)
            if any(row["part"] == partition for row in self.rows.values()):
                self._delete_partition(partition, ours)
            return
        rows = self._rows(step)
        if step == "new column":
            name, step = f"c{self.now}", "upsert"
            self.schema = self.schema.append(pa.field(name, pa.int64()))
            for number, row in enumerate(rows):
                row[name] = self.now * 10 + number
            for row in self.rows.values():
                row.setdefault(name, None)
        table = pa.Table.from_pylist(rows, self.schema)
        if not rows:
            return
        if ours:
            getattr(self._table(), step)(table)
        else:
            self.hudi.write(self.path, table, self._theirs(), operation=step)
        if step == "insert_overwrite":
            touched = {row["part"] for row in rows}
            self.rows = {key: row for key, row in self.rows.items() if row["part"] not in touched}
        for row in rows:
            if step == "delete":
                del self.rows[row["id"]]
            else:
                self.rows[row["id"]] = row

    def _serve(self, step: str, ours: bool) -> None:
        if ours:
            options = {"clean": CLEAN, "archive": ARCHIVE}.get(step, {})
            getattr(self._table(options), step)()
        elif step == "restore":
            self._restore()
        else:
            more = {"clean": CLEAN, "archive": ARCHIVE}.get(step, ONCE)
            self.hudi.service(self.path, step, {**self._theirs(), **more})

    def _restore(self) -> None:
        """To the savepoint; where there is none, make one."""
        timeline = hudimeta.Table(self.path).timeline
        if self.saved is None or timeline.get(self.saved[0]) is None:
            newest = timeline.writes[-1].time
            self.hudi.service(self.path, "savepoint", self._theirs(), newest)
            self.saved = (newest, {key: dict(row) for key, row in self.rows.items()}, self.schema)
            return
        point, rows, schema = self.saved
        self.hudi.service(self.path, "restore", self._theirs(), point)
        for instant in hudimeta.Table(self.path).timeline.pending:
            if instant.action is Action.CLUSTERING:  # 1.2.0 leaves the plan of one that it took back, and then refuses updates
                self._table().services.clustering.execute(instant.time)
        self.rows, self.schema, self.restored = {key: dict(row) for key, row in rows.items()}, schema, True

    def _delete_partition(self, partition: str, ours: bool) -> None:
        if ours:
            self._table().delete_partition(partition)
        else:
            some = pa.Table.from_pylist([row for row in self.rows.values() if row["part"] == partition][:1], self.schema)
            more = {"hoodie.datasource.write.partitions.to.delete": partition}
            self.hudi.write(self.path, some, {**self._theirs(), **more}, operation="delete_partition")
        self.rows = {key: row for key, row in self.rows.items() if row["part"] != partition}

    def _rows(self, step: str) -> list[Row]:
        chance = self.random
        stored = sorted(self.rows.values(), key=lambda row: str(row["id"]))
        some = chance.sample(stored, min(len(stored), 1 + len(stored) // 4)) if stored else []
        if step == "delete":
            return [dict(row, ts=self.now) for row in some]
        if step == "insert_overwrite":
            partition = chance.choice(PARTITIONS)
            return [self._row(f"k{self.now:03d}{n}", partition) for n in range(4)]
        new = [self._row(f"k{self.now:03d}{n}", chance.choice(PARTITIONS)) for n in range(chance.choice((3, 12)))]
        return new if step == "insert" else [self._row(row["id"], row["part"]) for row in some] + new[:3]

    def _row(self, key: str, partition: str) -> Row:
        chance = self.random
        note = None if chance.random() < 0.1 else f"Note {chance.randrange(6)}"
        row = {"id": key, "part": partition, "note": note, "n": chance.randrange(1000), "x": chance.random(), "ts": self.now}
        return {**dict.fromkeys(self.schema.names), **row}

    def _table(self, more: dict[str, str] | None = None) -> hudimeta.Table:
        if not (self.path / ".hoodie").exists():
            options = {**self.options, "hoodie.write.table.version": self.version}
            hudimeta.Table.create(
                self.path, self.schema, "id", ["part"], ordering="ts", type=self.kind, options=options, name="alternation"
            )
        return hudimeta.Table(self.path, {**self.options, **(more or {})})

    def _theirs(self) -> dict[str, str]:
        return {
            "hoodie.table.name": "alternation",
            "hoodie.datasource.write.table.type": self.kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.write.table.version": self.version,
            "hoodie.write.auto.upgrade": "false",
            "hoodie.index.type": "SIMPLE",
            "hoodie.compact.inline": "false",
            **self.options,
        }

    def _agree(self) -> None:
        table = hudimeta.Table(self.path)
        asked = self.random.choice(list(self.rows.values())) if self.rows else self._row("absent", "p0")
        every = list(self.rows.values())
        wheres = {
            f"id = '{asked['id']}'": [row for row in every if row["id"] == asked["id"]],
            f"n >= {asked['n']}": [row for row in every if row["n"] >= asked["n"]],
            f"part = '{asked['part']}' AND ts >= {asked['ts']}": [
                row for row in every if row["part"] == asked["part"] and row["ts"] >= asked["ts"]
            ],
        }
        _same("hudimeta", None, table.scan().to_table(), every)
        for where, expected in wheres.items():
            _same("hudimeta", where, table.scan(where).to_table(), expected)
        _same("Apache Hudi", None, self.hudi.read(self.path).table, every)
        where = self.random.choice(list(wheres))
        _same("Apache Hudi", where, self.hudi.read(self.path, where=where).table, wheres[where])
        report = table.metadata.validate()
        wrong = {check.name: check.differences for check in report.checks if check.outcome is Outcome.DIFFERS}
        for name in set(wrong) - set(proven_indexes(table.snapshot().metadata)):
            # Nobody leaves out a row by what is not proven.
            if name == "partition_stats":
                wrong[name] = tuple(d for d in wrong[name] if not self._is_later_column(d.what))
            elif name in ("record_index", "secondary_index_by_note") and self.restored:
                del wrong[name]
        assert not any(wrong.values()), str(report)

    def _is_later_column(self, what: str) -> bool:
        """Hudi counts only the files with a record of a column that came later, on tables of its own too."""
        later = (name for name in self.schema.names if name not in SCHEMA.names)
        return any(what == f"column {name}: nulls, where none are stated" for name in later)


def _same(reader: str, where: str | None, found: pa.Table, expected: list[Row]) -> None:
    own = [name for name in found.column_names if not name.startswith("_hoodie_")]
    rows = {row["id"]: row for row in found.select(own).to_pylist()}
    assert len(rows) == found.num_rows, f"{reader}, {where}: a key came twice"
    wanted = {row["id"]: row for row in expected}
    # A column that a restore took back is in no schema any more.
    assert rows == wanted, f"{reader}, {where}: {sorted(set(rows) ^ set(wanted))[:5] or 'values differ'}"
