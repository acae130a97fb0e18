"""Random turns of hudimeta and Apache Hudi on one table of a random kind (`random_tables.py`), compared after each of them."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import hudimeta
from hudimeta.errors import UndoError
from hudimeta.types import COPYING_OPERATIONS, Operation
from tests.interop.apache_hudi import ApacheHudi
from tests.interop.random_ages import INLINE, POLICIES, POLICY, AfterWrite, expired, places_of
from tests.interop.random_answers import Answers
from tests.interop.random_columns import ON_READ, column_change, column_of, is_data
from tests.interop.random_indexes import hudi_cannot_say, hudi_fails_beside, index_changes
from tests.interop.random_kinds import choose_kind, expiring_kind, latest_kind
from tests.interop.random_limits import KEYLESS, hudi_cannot, hudi_reads_dropped, nobody_can
from tests.interop.random_model import RandomModel
from tests.interop.random_rows import Row
from tests.interop.random_served import ALIKE, ServedTurns, served_kind
from tests.interop.random_sides import OF_PLANS, Ours, Theirs
from tests.interop.random_steps import (
    EXPIRING_FROM,
    KEYED_FROM,
    LATEST_FROM,
    LOOKING,
    SERVED_FROM,
    SERVICES,
    TYPED_FROM,
    WIDE_FROM,
    WRITES,
    choices,
)
from tests.interop.random_tables import FILLING, Kind
from tests.interop.random_typed import keyed_kind, typed_kind

SIZES = ("500", "1073741824")
"""Of files: the first splits buckets of a ring, the other merges them."""
NEWEST = {"1.0.2": "8", "1.2.0": "9"}
"""The version to which a release upgrades tables."""
UPGRADE = {"hoodie.write.auto.upgrade": "true"}


@dataclass
class RandomTurns(ServedTurns):
    """One history, which follows from its seed.

    Args:
        path: Of the table.
        hudi: Writes the other turns.
        release: Of Apache Hudi.
        seed: Of all choices.
        alone: True lets Apache Hudi do everything, which tells its own faults from ours.
    """

    path: Path
    hudi: ApacheHudi
    release: str
    seed: int
    alone: bool | None = None
    said: list[str] = field(default_factory=list)
    now: int = 0
    number: int = 0
    saved: tuple[str, dict[tuple[object, ...], Row], pa.Schema] | None = None
    folders: dict[tuple[object, ...], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed} {self.release}")
        self.wide = self.seed >= WIDE_FROM
        self.kind = choose_kind(self.random, self.release, self.wide)
        self.latest = self.seed >= LATEST_FROM
        if self.latest:
            self.kind = latest_kind(self.random, self.kind, self.release)
        if self.seed >= EXPIRING_FROM:
            self.kind = expiring_kind(self.random, self.release, self.kind)
        if self.seed >= TYPED_FROM:
            self.kind = typed_kind(self.random, self.release, self.kind)
        if self.seed >= KEYED_FROM:
            self.kind = keyed_kind(self.random, self.kind)
        if self.seed >= SERVED_FROM:
            self.kind = served_kind(self.random, self.kind)
        self.model = RandomModel(self.kind)
        self.schema = self.kind.schema
        self.ours, self.theirs = Ours(self.path, self.kind), Theirs(self.path, self.kind, self.hudi)
        asked, alone = random.Random(self.seed), self.alone is True
        self.answers = Answers(self.path, self.kind, self.hudi, asked, alone, self.wide, self.release)
        self.before: dict[tuple[object, ...], Row] = {}
        self.undoable = False

    def run(self, steps: int) -> None:
        """Begin a table, then so many steps; raises AssertionError with the history up to the first difference."""
        try:
            for step, ours in self._steps(steps):
                self.said.append(f"{step} by {'us' if ours else 'Apache Hudi'}")
                known = self.model.copy()
                self._do(step, ours)
                self.answers.was_partial |= self.wide and step in ("update", "merge some") and self.kind.logs_parts
                self.undoable, self.before = step in WRITES and known != self.model.rows, known
                self.answers.compare(self.model, self.schema)
                if len(self.said) == 1:
                    self.ours.add_indexes()
            self.said.append("at the end")
            self.answers.validate_by_hudi()
        except Exception as error:
            told = "\n".join(f"  {number}: {step}" for number, step in enumerate(self.said))
            raise AssertionError(f"seed {self.seed}, Apache Hudi {self.release}, {self.kind}:\n{told}\n{error}") from error

    def _steps(self, steps: int) -> Iterator[tuple[str, bool]]:
        ours = self.random.random() < 0.5
        yield "insert", self._side("insert", ours)
        writes, services = choices(self.seed)
        for _ in range(steps):
            step = self.random.choice(writes if self.random.random() < 0.75 else services)
            ours = not ours if self.random.random() < 0.8 else ours
            if self.wide and step == "restore" and self.saved is None:
                step = "savepoint"
            if self.wide and step == "late" and self.kind.payload in FILLING:
                # What fills what then depends on where files of logs and of rows begin, in Apache Hudi as here.
                step = "upsert"
            step = self.served_instead(step) if self.seed >= SERVED_FROM else step
            if self._nobody_can(ALIKE.get(step, step)):
                step = "upsert"
            if not self.kind.key:
                step = KEYLESS.get(step, step)
            yield step, self._side(step, ours)

    def _side(self, step: str, ours: bool) -> bool:
        if self.kind.aged and not self.said:
            return True  # nobody else can write rows of some days ago
        if self.alone is not None:
            return not self.alone
        newest = NEWEST[self.release]
        may = self.seed >= EXPIRING_FROM and not (newest == "9" and self.kind.spells_keys_anew)
        may = may and self.kind.payload != "EventTimeAvroPayload"  # see `Kind.in_version`
        upgrades = step == "version" and may and self.kind.version < newest
        if self.kind.version == "6":
            return step == "version" and (ours or not upgrades)
        return ours or (step == "version" and not upgrades) or hudi_cannot(self.kind, self.release, ALIKE.get(step, step))

    def _nobody_can(self, step: str) -> bool:
        return (
            nobody_can(self.kind, self.release, step)
            or (step == "rollback" and (not self.undoable or len(self.said) < 2))
            or (step == "wider column" and not self._narrow())
        )

    def _do(self, step: str, ours: bool) -> None:
        with self._looking() if step in LOOKING else contextlib.nullcontext():
            self._act(step, ours)

    @contextlib.contextmanager
    def _looking(self) -> Iterator[None]:
        """Something that looks for partitions that have outlived their time, where that is asked for."""
        if INLINE not in self.kind.shared or not self.said[1:]:
            yield
            return
        self.folders |= places_of(self.path, self.kind)
        after = AfterWrite.of(self.path, self.kind.shared[POLICY])
        yield
        taken = after.checked()
        self.said[-1] += f", which took out {sorted(taken)}" if taken else ""
        self.model.drop(lambda row: self.folders.get(self.kind.place_of(row)) in taken)

    def _act(self, step: str, ours: bool) -> None:
        self.now += 10
        side: Ours | Theirs = self.ours if ours else self.theirs
        if isinstance(side, Ours) and not self.said[1:]:
            side.create(self.schema)
        index = self.random.choice(self.kind.indexes)
        if index == "RECORD_INDEX" and self.kind.version == "6" and self.answers.was_restored:
            # A restore by 1.0.2 takes keys of kept rows out of the index, and it writes those twice then.
            index = "GLOBAL_SIMPLE"
        if step in OF_PLANS:
            self._plan(step, side)
            return
        others = {
            "version": self._change_version,
            "index": self._change_index,
            "merge some": self._merge_some,
            "alter": self._alter,
            "ttl": self._expire,
            **self.served(),
        }
        if step in others:
            others[step](side, index)
            return
        if step in SERVICES:
            self._serve(step, side)
            return
        if step in ("delete_partition", "update", "delete where"):
            self._change(step, side, index)
            return
        rows = self._rows(step)
        if step == "new column":
            name = f"c{self.now}"
            self.schema = self.schema.append(pa.field(name, pa.int64()))
            self.model.add_column(name)
            rows = [dict(row, **{name: self.random.choice((None, self.now))}) for row in rows]
        elif step == "wider column":
            name = self.random.choice(self._narrow())
            wider = column_of(name).wider
            self.schema = self.schema.set(self.schema.get_field_index(name), pa.field(name, wider))
        table = pa.Table.from_pylist(rows, self.schema)
        if not (rows := table.to_pylist()):
            return
        operation = step if step in ("insert", "delete", "bulk_insert", "merge") or "overwrite" in step else "upsert"
        self.said[-1] += f" {len(rows)} {index}"
        side.write(operation, table, index)
        if "overwrite" in step:
            touched = {self.kind.place_of(row) for row in rows}
            self.model.drop(lambda row: step == "insert_overwrite_table" or self.kind.place_of(row) in touched)
        if operation == "delete":
            self.model.delete(rows)
        elif operation in ("upsert", "merge"):
            self.model.upsert(rows)
        else:
            self.model.insert(rows)

    def _change(self, step: str, side: Ours | Theirs, index: str) -> None:
        if not self.model.rows:
            return
        row = self.random.choice(self.model.all_rows())
        if step == "delete_partition":
            side.delete_partition(self._folder(row))
            self.model.drop(lambda other: self.kind.place_of(other) == self.kind.place_of(row))
            return
        where, holds = self.answers.predicate(self.schema, row)
        if side is self.theirs and not self.answers.hudi_finds(where):
            where, holds = f"num >= {row['num']}", lambda other: bool(other["num"] >= row["num"])
            side = side if self.answers.hudi_finds(where) else self.ours
            if side is self.ours and self.kind.version == "6":
                return
        self.said[-1] += f" {where} {index}"
        if step == "delete where":
            side.delete_where(where, index)
            self.model.drop(holds)
        else:
            values = {"s": self.random.choice((None, "set", "it is"))}
            side.update(values, where, index)
            self.model.change(holds, values)

    def _folder(self, row: Row) -> str:
        found = hudimeta.Table(self.path).scan().to_table()
        places = found.select(["num", "_hoodie_partition_path", *self.kind.place_columns]).to_pylist()
        names = ("num", *self.kind.place_columns)
        return next(str(place["_hoodie_partition_path"]) for place in places if all(place[n] == row[n] for n in names))

    def _plan(self, service: str, side: Ours | Theirs) -> None:
        """Of a compaction that one side planned the other writes before anybody runs it."""
        planned = side.plan(service, {"hoodie.parquet.max.file.size": self.random.choice(SIZES)} if self.kind.has_rings else {})
        self.said[-1] += f" {planned}"
        if planned is None:
            return
        self.answers.compare(self.model, self.schema)
        if service != "clustering":
            self.answers.was_planned = self.answers.was_planned or service == "compaction"
            step = "upsert" if self.kind.key else "insert"
            self.said.append(f"{step} by {'us' if side is self.theirs and self.kind.version != '6' else 'Apache Hudi'}")
            self._do(step, self.said[-1].endswith("us"))
            self.answers.compare(self.model, self.schema)
        if any(i.time == planned and i.is_completed for i in hudimeta.Table(self.path).timeline.instants):
            self.said[-1] += ", which ran it"
            return
        # Logs of some columns Apache Hudi 1.2.0 does not merge into logs ("Partial merging logic is not implemented").
        cannot = service == "log_compaction" and self.answers.was_partial and self.alone is None
        ours = self._side(service, self.random.random() < 0.5) or cannot
        self.said.append(f"run {service} by {'us' if ours else 'Apache Hudi'}")
        (self.ours if ours else self.theirs).execute(service, planned)

    def _change_version(self, side: Ours | Theirs, index: str) -> None:
        """6 becomes 8; 8 and 9 become each other, where Apache Hudi knows both. It upgrades tables by its next write."""
        version = "9" if self.kind.version == "8" else "8"
        by_write = side is self.theirs
        if by_write:
            version = NEWEST[self.release]
        self.said[-1] += f" {version}"
        if not by_write:
            self.ours.change_version(int(version))
        self.saved = None
        self._become(self.kind.in_version(version))
        if by_write:
            self.theirs = dataclasses.replace(self.theirs, more=UPGRADE)
            self._do("upsert" if self.kind.key else "insert", ours=False)
            self._become(self.kind)

    def _become(self, kind: Kind) -> None:
        """Go on with a table that has changed."""
        self.model.kind = self.answers.kind = self.kind = kind
        self.ours, self.theirs = Ours(self.path, kind), Theirs(self.path, kind, self.hudi)

    def _become_of(self, schema: pa.Schema) -> None:
        """Go on with other columns."""
        self.schema = schema
        if self.latest:
            self._become(dataclasses.replace(self.kind, data=tuple(n for n in schema.names if is_data(n) and n[0] != "c")))

    def _alter(self, side: Ours | Theirs, index: str) -> None:
        drops = hudi_reads_dropped(self.kind, self.release)
        change = column_change(self.random, self.schema, self.now, ON_READ in self.kind.shared, drops, self.kind.indexed)
        if not change.ours and hudi_cannot(self.kind, self.release, "alter"):
            return
        if not change.ours:
            side = self.theirs
        self.said[-1] += f" {change.statement}" + (", by Apache Hudi" if not change.ours else "")
        # Apache Hudi's ALTER has the options of its session, which say nothing of this.
        with self._looking() if side is self.ours else contextlib.nullcontext():
            side.alter(change, index)
        self.model.rows = {place: change.row(row) for place, row in self.model.rows.items()}
        self._become_of(change.schema)

    def _expire(self, side: Ours | Theirs, index: str) -> None:
        policy = self.random.choice(POLICIES)
        folders = expired(self.path, policy, ours=side is self.ours)
        self.said[-1] += f" {policy} {sorted(folders)}"
        if not folders and side is self.theirs:
            # Apache Hudi completes an action that it has not begun then, and fails ("replacecommit.inflight does not exist").
            return
        places = places_of(self.path, self.kind)
        self.folders |= places
        side.expire(policy, index)
        self.model.drop(lambda row: places[self.kind.place_of(row)] in folders)

    def _change_index(self, side: Ours | Theirs, index: str) -> None:
        """Make or drop an index; Apache Hudi does so beside its next write, where an option says it."""
        changes = index_changes(self.kind, self.release)
        if not changes:
            return
        change = self.random.choice(changes)
        self.said[-1] += f" {change}"
        if hudi_fails_beside(change, self.release):
            self.said[-1] += ": not done"
            return
        side = self.ours if hudi_cannot_say(change, self.release) else side
        by_write = isinstance(side, Theirs) and change.by_switch
        if not by_write:
            side.change_index(change)
        self._become(change.kind)
        if by_write:
            self._do("upsert" if self.kind.key else "insert", ours=False)

    def _merge_some(self, side: Ours | Theirs, index: str) -> None:
        """Some columns of some rows, and their order."""
        rows = [row for row in self._rows("upsert") if self.kind.identity(row) in self.model.rows]
        names = self.random.sample(self.kind.data, 1 + self.random.randrange(2))
        columns = [*names, *(self.kind.ordering or ["ts"])]
        self.said[-1] += f" {len(rows)} {columns} {index}"
        if not rows:
            return
        given = pa.Table.from_pylist(rows, self.schema)
        side.merge_some(columns, given, index)
        new = [
            {**self.model.rows[self.kind.identity(row)], **{name: row[name] for name in columns}} for row in given.to_pylist()
        ]
        self.model.upsert(new)

    def _serve(self, step: str, side: Ours | Theirs) -> None:
        timeline = hudimeta.Table(self.path).timeline
        newest = timeline.writes[-1].time
        if step == "savepoint":
            if newest not in {str(save) for save in self.answers.savepoints()}:
                side.serve("savepoint", newest)
                self.saved = (newest, self.model.copy(), self.schema)
        elif step == "restore":
            if self.saved is None or timeline.get(self.saved[0]) is None:
                self.said[-1] += ", of which there is none"
                return
            point, rows, schema = self.saved
            side.serve("restore", point)
            self._become_of(schema)
            self.model.rows = {place: dict(row) for place, row in rows.items()}
            self.answers.restored(point)
        elif step == "rollback":
            expiry = {Operation.DELETE_PARTITION.value} if INLINE in self.kind.shared else set()
            if timeline.metadata(timeline.writes[-1])["operationType"] in COPYING_OPERATIONS | expiry:
                self.said[-1] += ", of a service: not done"
                return
            try:
                side.serve("rollback", newest)
            except UndoError as error:
                self.said[-1] += f", refused: {error}"
                return
            self.model.rows = self.before
            self._become_of(self.answers.last_schema)
            self.answers.restored(str(int(newest) - 1))
        else:
            side.serve(step, None)
