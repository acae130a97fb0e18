"""What histories from seed 3000 on do besides: writes that die, compactions that stay planned, and other ways of both.

A MERGE deletes some rows, the metadata table goes and comes back, the table changes its type, and services choose files in more
ways. Columns are of more types. Of all histories: rows are written back as they were read.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudimeta
from hudimeta.timeline.naming import completed_name
from hudimeta.types import META_COLUMNS, Action, Instant
from tests.interop.random_ages import INLINE
from tests.interop.random_answers import Answers
from tests.interop.random_columns import ON_READ
from tests.interop.random_given import GivenRows
from tests.interop.random_indexes import PARTITIONED
from tests.interop.random_rows import MORE_COLUMNS
from tests.interop.random_sides import Ours, Theirs
from tests.interop.random_tables import Kind

ALIKE = {"merge delete": "merge", "died": "upsert", "leave": "compaction", "run left": "compaction", "no metadata": "upsert"}
"""What releases of Apache Hudi fail at like another step."""
PLAN = "hoodie.clustering.plan.strategy."
WAYS: Mapping[str, tuple[str, ...]] = {
    "hoodie.compaction.strategy": tuple(
        f"org.apache.hudi.table.action.compact.strategy.{name}CompactionStrategy"
        for name in ("LogFileSizeBased", "LogFileNumBased", "UnBounded", "BoundedIO")
    ),
    "hoodie.compaction.logfile.num.threshold": ("2",),
    "hoodie.compact.inline.trigger.strategy": ("NUM_COMMITS_AFTER_LAST_REQUEST", "NUM_OR_TIME"),
    f"{PLAN}target.file.max.bytes": ("20000",),
    f"{PLAN}small.file.limit": ("15000",),
    f"{PLAN}max.num.groups": ("1",),
    f"{PLAN}single.group.clustering.enabled": ("false",),
    f"{PLAN}daybased.lookback.partitions": ("1",),
    "hoodie.clustering.plan.partition.filter.mode": ("RECENT_DAYS",),
    "hoodie.combine.before.insert": ("true",),
}


def served_kind(chance: random.Random, kind: Kind) -> Kind:
    """A kind with more choices."""
    shared = dict(kind.shared)
    for name, values in WAYS.items():
        if chance.random() < 0.2:
            shared[name] = chance.choice(values)
    shared.pop(INLINE, None)  # 1.2.0 goes by the files of before a write at times, and takes out what that renewed
    more = chance.sample(sorted(MORE_COLUMNS), chance.choice((0, 2, 4)))
    # Decimals and structs in lists Apache Hudi gives one name in files, and reads none of those ("Can't redefine: array").
    more = [name for name in more if name != "ld" or "ar2" not in kind.data]
    data = kind.data if ON_READ in shared else (*kind.data, *more)
    return dataclasses.replace(kind, shared=shared, data=data)


class ServedTurns(GivenRows):
    """The steps; see `RandomTurns`."""

    path: Path
    said: list[str]
    answers: Answers
    ours: Ours
    theirs: Theirs
    _become: Callable[[Kind], None]
    _side: Callable[[str, bool], bool]

    def served(self) -> dict[str, Callable[[Any, str], None]]:
        """By the name of the step."""
        return {
            "carried": self._carry,
            "merge delete": self._merge_delete,
            "died": self._die,
            "leave": self._leave,
            "run left": self._run_left,
            "no metadata": self._lose_metadata,
            "type": self._change_type,
        }

    def served_instead(self, step: str) -> str:
        """The step that is done where another makes no sense."""
        left = bool(self._left_plans())
        shared = self.kind.shared
        keyed = (
            shared["hoodie.metadata.enable"] == "false" or self.kind.secondary or self.kind.expression or PARTITIONED in shared
        )
        senseless = (
            (step == "run left" and not left)
            or (step in ("delete_partition", "ttl", "version", "rollback", "alter") and left)
            # In buckets 1.0.2 takes new keys for ones that it finds, and deletes them.
            or (step == "merge delete" and self.kind.indexes == ("BUCKET",))
            # Log files of version 6 bear the time of their base file: nothing in their names says that a writer died.
            or (step == "died" and self.kind.version == "6" and self.kind.type == "MERGE_ON_READ")
            or (step == "leave" and (self.kind.type != "MERGE_ON_READ" or self.kind.version == "6" or not self.said[1:]))
            or (step == "no metadata" and (keyed or self.kind.version == "6" or "hoodie.populate.meta.fields" in shared))
            or (step == "type" and (left or self.kind.version == "6" or not self._may_change_type))
        )
        return "upsert" if senseless else step

    @property
    def _may_change_type(self) -> bool:
        """Apache Hudi has more faults of its own in copy-on-write tables of some, and in merge-on-read ones of others."""
        kind = self.kind
        return (
            kind.order != "date"
            and not kind.payload
            and kind.indexes != ("BUCKET",)
            and "hoodie.logfile.data.block.format" in kind.shared
        )

    def _left_plans(self) -> list[Instant]:
        if not self.said:
            return []
        pending = hudimeta.Table(self.path).timeline.pending
        return [one for one in pending if Action.COMPACTION in (one.action, one.pending_action)]

    def _carry(self, side: Ours | Theirs, index: str) -> None:
        """Write rows back as they were read, with the keys that their writers made up."""
        rows = hudimeta.Table(self.path).scan().to_table().to_pylist()
        chosen = self.random.sample(sorted(rows, key=lambda row: row["num"]), len(rows) // 3)
        self.said[-1] += f" {len(chosen)} {index}"
        if not chosen:
            return
        meta = [(name, pa.string()) for name in META_COLUMNS]
        new = [{**row, "s": self.random.choice((None, "carried"))} for row in chosen]
        side.write("upsert", pa.Table.from_pylist(new, pa.schema([*meta, *self.schema])), index)
        for row in pa.Table.from_pylist(new, self.schema).to_pylist():
            self.model.rows[self.kind.identity(row)] = row

    def _merge_delete(self, side: Ours | Theirs, index: str) -> None:
        """A MERGE that deletes rows with even numbers, and writes the others and new ones."""
        rows = pa.Table.from_pylist(self._rows("merge"), self.schema)
        self.said[-1] += f" {rows.num_rows} {index}"
        side.merge_delete(rows, index)
        given = rows.to_pylist()
        dead = [row for row in given if row["num"] % 2 == 0 and self.kind.identity(row) in self.model.rows]
        gone = {self.kind.identity(row) for row in dead}
        self.model.delete(dead)
        self.model.upsert(row for row in given if self.kind.identity(row) not in gone)

    def _die(self, side: Ours | Theirs, index: str) -> None:
        """A write that all but completes: its completed file goes, as if the writer had died before. Some services keep it."""
        operation = "upsert" if self.kind.key else "insert"
        rows = pa.Table.from_pylist(self._rows(operation), self.schema)
        known = {one.time for one in hudimeta.Table(self.path).timeline.completed}
        self.said[-1] += f" {operation} {rows.num_rows} {index}"
        side.write(operation, rows, index)
        table = hudimeta.Table(self.path)
        new = [one for one in table.timeline.completed if one.time not in known]
        metadata = table.snapshot().metadata
        newest = metadata.timeline.completed[-1].time if metadata is not None else None
        if len(new) == 1 and newest in (None, new[0].time):
            self._mark_again(new[0], table.timeline.metadata(new[0]))
            folder = self.path / ".hoodie" / ("" if self.kind.version == "6" else "timeline")
            name = completed_name(new[0].time, new[0].action, new[0].completion if self.kind.version != "6" else None)
            for file in (folder / name, folder / f".{name}.crc"):
                file.unlink(missing_ok=not file.name.startswith("2"))
            self.said[-1] += f": died at {new[0].time}"
            return
        given = rows.to_pylist()
        if operation == "upsert":
            self.model.upsert(given)
        else:
            self.model.insert(given)

    def _mark_again(self, instant: Instant, metadata: dict[str, Any]) -> None:
        """Put the markers back that were there before the write was completed: rollbacks find its files by them."""
        logged = "APPEND" if self.kind.version == "6" else "CREATE"
        for stat in (stat for stats in metadata["partitionToWriteStats"].values() for stat in stats):
            merged = stat.get("prevCommit") not in (None, "null")
            marks = {stat["path"]: logged if ".log." in stat["path"] else "MERGE" if merged else "CREATE"}
            marks |= dict.fromkeys(stat.get("cdcStats") or (), logged)
            for path, kind in marks.items():
                marker = self.path / ".hoodie" / ".temp" / instant.time / f"{path}.marker.{kind}"
                marker.parent.mkdir(parents=True, exist_ok=True)
                marker.touch()

    def _leave(self, side: Ours | Theirs, index: str) -> None:
        planned = side.plan("compaction", {})
        self.answers.was_planned = self.answers.was_planned or planned is not None
        self.said[-1] += f": compaction {planned}"

    def _run_left(self, side: Ours | Theirs, index: str) -> None:
        plan = self._left_plans()[0]
        self.said[-1] += f": compaction {plan.time}"
        side.execute("compaction", plan.time)

    def _lose_metadata(self, side: Ours | Theirs, index: str) -> None:
        """A writer of Apache Hudi's without the metadata table removes it; the next writer makes it anew."""
        without = dataclasses.replace(self.theirs, more={**self.theirs.more, "hoodie.metadata.enable": "false"})
        operation = "upsert" if self.kind.key else "insert"
        for writer in (without, side):
            rows = pa.Table.from_pylist(self._rows(operation), self.schema)
            writer.write(operation, rows, self.kind.indexes[0])
            given = rows.to_pylist()
            if operation == "upsert":
                self.model.upsert(given)
            else:
                self.model.insert(given)

    def _change_type(self, side: Ours | Theirs, index: str) -> None:
        """By hudimeta alone; Apache Hudi has a tool that is no part of its writers."""
        to = "MERGE_ON_READ" if self.kind.type == "COPY_ON_WRITE" else "COPY_ON_WRITE"
        self.said[-1] += f" {to}"
        self.ours.table().services.change_type(to)
        self._become(dataclasses.replace(self.kind, type=to))
