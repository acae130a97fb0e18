"""What both readers say of a random table, against its model and against each other."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudimeta
from hudimeta.metadata.completeness import proven_indexes
from hudimeta.services.validation.result import Outcome
from hudimeta.types import Action
from tests.interop.apache_hudi import ApacheHudi, HudiFailed
from tests.interop.random_changes import logs_no_changes, names_no_base_file, passes_over_logs
from tests.interop.random_columns import ON_READ, base, column_of
from tests.interop.random_model import RandomModel
from tests.interop.random_order import ORDERS
from tests.interop.random_rows import COLUMNS, Row, _number, _text, normal, not_less, same
from tests.interop.random_tables import Kind
from tests.interop.test_change_capture import told

LITERALS: dict[str, Callable[[object], str]] = {
    "k": _text,
    "Op": _text,
    "region": _text,
    "num": _number,
    "ms": _number,
    **dict.fromkeys(("ts", "big", "zone"), repr),
    "flag": lambda value: str(value).lower(),
    "day": lambda value: f"date'{value}'",
    **{name: column.literal for name, column in COLUMNS.items() if column.literal is not None},
}
_ONLY_NAN = re.compile(r"column [fx](__\d+)?: values, where only nulls are stated")
"""What Apache Hudi states of a partition with NaN, and of such a file where it makes the metadata table anew."""
Predicate = tuple[str, Callable[[Row], bool | None]]


@dataclass
class Answers:
    """Compares.

    Args:
        path: Of the table.
        kind: Of the table.
        hudi: The other reader.
        random: What is asked.
        alone: Whether only Apache Hudi is asked.
        wide: Whether changes are asked for from archived writes on, too.
        release: Of Apache Hudi.
    """

    path: Path
    kind: Kind
    hudi: ApacheHudi
    random: random.Random
    alone: bool = False
    wide: bool = False
    release: str = ""
    past: dict[str, tuple[list[Row], pa.Schema]] = field(default_factory=dict)
    schemas: list[pa.Schema] = field(default_factory=list)
    begins: dict[str, str] = field(default_factory=dict)
    later_columns: set[str] = field(default_factory=set)
    was_restored: bool = False
    was_planned: bool = False
    was_partial: bool = False

    @property
    def last_schema(self) -> pa.Schema:
        """Of before the newest write."""
        return self.schemas[-2]

    def restored(self, instant: str) -> None:
        """Forget what came after an instant."""
        self.past = {time: rows for time, rows in self.past.items() if time <= instant}
        self.begins = {time: begin for time, begin in self.begins.items() if time <= instant}
        self.was_restored = True

    def savepoints(self) -> list[str]:
        """Instants."""
        return [save.instant for save in hudimeta.Table(self.path).savepoints()]

    def predicate(self, schema: pa.Schema, row: Row) -> Predicate:
        """One that is true of a row, or is made of two of which one is."""
        where, holds = self._simple(schema, row)
        how = self.random.choice(("", "", "", "AND", "OR", "NOT"))
        if how == "NOT":
            return f"NOT ({where})", lambda other: _not(holds(other))
        if how:
            more, also = self._simple(schema, row)
            both = _and if how == "AND" else _or
            return f"({where}) {how} ({more})", lambda other: both(holds(other), also(other))
        return where, holds

    def _simple(self, schema: pa.Schema, row: Row) -> Predicate:
        """One that is true of a row, mostly."""
        struct = next((name for name in schema.names if base(name) == "st"), None)
        if struct is not None and row[struct] is not None and self.random.random() < 0.2:
            found = self._nested(struct, row[struct])
            if found is not None:
                return found
        name = self.random.choice([name for name in schema.names if base(name) in LITERALS])
        said = self._said(name, schema.field(name).type)
        value = row[name]
        if value is None:
            return f"{name} IS NULL", lambda other: other[name] is None
        if self.random.random() < 0.5:
            return f"{name} = {said(value)}", lambda other: same(other[name], value)
        if base(name) in ("b", "flag"):
            return f"{name} IS NOT NULL", lambda other: other[name] is not None
        return f"{name} >= {said(value)}", lambda other: not_less(other[name], value)

    def _said(self, name: str, type: pa.DataType) -> Callable[[Any], str]:
        """How Spark's SQL says a value of a column."""
        typed = {"ts": self.kind.order, "big": self.kind.big, "zone": self.kind.zone}
        if name in typed:
            return ORDERS[typed[name]].literal
        return _text if column_of(name, type) is COLUMNS["s"] else LITERALS[base(name)]

    def _nested(self, struct: str, point: Row) -> Predicate | None:
        """Of a field of a struct; none where those of one value are gone."""
        names = [name for name in point if base(name) in ("a", "b")]
        if not names:
            return None
        name = self.random.choice(names)
        value = point[name]

        def field(other: Row) -> object:
            return None if other[struct] is None else other[struct][name]

        if value is None:
            return f"{struct}.{name} IS NULL", lambda other: field(other) is None
        said = _number(value) if base(name) == "a" else _text(value)
        return f"{struct}.{name} <= {said}", lambda other: same(field(other), value) or _not(not_less(field(other), value))

    def compare(self, model: RandomModel, schema: pa.Schema) -> None:
        """Snapshots with and without predicates, and the metadata table."""
        self.schemas.append(schema)
        self.later_columns |= set(schema.names) - set(self.kind.schema.names)
        table = hudimeta.Table(self.path)
        every = model.all_rows()
        metadata = self.kind.shared["hoodie.metadata.enable"] == "true"
        if not self.alone:
            _same("hudimeta", table.scan().to_table(), every, schema)
        _same("Apache Hudi", self._theirs(metadata=metadata), every, schema)
        for number in range(4 if every else 0):
            where, holds = self.predicate(schema, self.random.choice(every))
            wanted = [row for row in every if holds(row)]
            if not self.alone:
                _same(f"hudimeta, {where}", table.scan(where).to_table(), wanted, schema)
            if number == 0 and self.random.random() < 0.5 and self.hudi_finds(where):
                _same(f"Apache Hudi, {where}", self._theirs(where=where, metadata=metadata), wanted, schema)
        if metadata and not self.alone:
            self._validate(table)
        if not self.alone and self.random.random() < 0.4:
            self._read_optimized(table, schema, metadata)
        self._look_back(table, every, schema, metadata)

    def _theirs(self, metadata: bool = True, options: dict[str, str] | None = None, **asked: str) -> pa.Table:
        """What Apache Hudi reads."""
        altered = ON_READ in self.kind.shared
        given = {**({ON_READ: "true"} if altered else {}), **(options or {})}
        nested = {"st", "ar2"} & {base(name) for name in self.kind.data}
        return self.hudi.read(self.path, metadata=metadata, options=given, vectorized=not (altered and nested), **asked).table

    def hudi_finds(self, where: str) -> bool:
        """Whether the other side finds the rows of a predicate.

        It leaves out files that hold NaN, which have no bounds, compares a number with the text of the partition that it names
        by time, and 1.0.2 takes an index of an expression for one of its column. Beside a planned compaction 1.0.2 leaves the
        rows below out of the statistics of partitions. Where paths are encoded, it fails to order the null of a partition
        (NullPointerException in `Predicates$BinaryComparison.eval`), which any query of a table of its own shows. Beside logs
        of some columns, its own too, a predicate ends the process of 1.2.0, which reads rows by another layout than they have.
        Statistics of before a column got another type 1.0.2 takes for ones of that type ("Integer cannot be cast to Double").
        """
        if self.was_partial:
            return False
        if self.was_planned and self.kind.shared["hoodie.metadata.index.partition.stats.enable"] == "true":
            return False
        names = {base(name) for name in re.findall(r"\w+", where)}
        encoded = "hoodie.datasource.write.partitionpath.urlencode" in self.kind.shared
        null = self.kind.nulls or None in self.kind.regions
        if encoded and null and ">=" in where and names & set(self.kind.place_columns):
            return False
        unfit = {"f", "x"} | {"ms"} & set(self.kind.place_columns)
        if self.release == "1.0.2" and self.kind.shared["hoodie.metadata.index.column.stats.enable"] == "true":
            unfit |= self._retyped
        return not names & unfit and not (self.kind.expression and "s" in names)

    @property
    def _retyped(self) -> set[str]:
        """What columns that have another type now were called at first."""
        now = ((base(column.name), column.type) for column in self.schemas[-1])
        return {name for name, type in now if name in COLUMNS and type != COLUMNS[name].type}

    def _read_optimized(self, table: hudimeta.Table, schema: pa.Schema, metadata: bool) -> None:
        """Both read the same base files. A number that names a partition by time Apache Hudi shows as text."""
        theirs = self._theirs(metadata=metadata, options={"hoodie.datasource.query.type": "read_optimized"})
        texts = {"ms"} & set(self.kind.place_columns)
        names = [name for name in schema.names if name in theirs.column_names and name not in texts]
        ours = table.scan(query_type="read_optimized").to_table()
        of_both = pa.schema([schema.field(name) for name in names])
        _same("read optimized, hudimeta (found) and Apache Hudi (wanted)", ours, theirs.select(names).to_pylist(), of_both)

    def validate_by_hudi(self) -> None:
        """Apache Hudi's own reader of the metadata table finds it sound; see `hudi_finds` for planned compactions.

        Of partition columns that no file holds it states nothing at times.
        """
        if "hoodie.datasource.write.drop.partition.columns" in self.kind.shared:
            return
        if self.was_planned and self.kind.shared["hoodie.metadata.index.partition.stats.enable"] == "true":
            return
        restored = self.was_restored and self.kind.version == "6"  # see `RandomTurns._do`
        if (restored or self._keeps_dead_keys) and self.kind.shared["hoodie.metadata.record.index.enable"] == "true":
            return
        if self.kind.shared["hoodie.metadata.enable"] == "true" and "hoodie.populate.meta.fields" not in self.kind.shared:
            self.hudi.validate(self.path)

    def _look_back(self, table: hudimeta.Table, every: list[Row], schema: pa.Schema, metadata: bool) -> None:
        """Time travel to an earlier write, and what has changed since one."""
        timeline = table.timeline
        newest = timeline.writes[-1]
        cleans = [instant for instant in timeline.completed if instant.action is Action.CLEAN]
        kept = (timeline.metadata(cleans[-1])["earliestCommitToRetain"] or "") if cleans else ""
        if cleans and self.kind.cleans_by_versions:
            kept = cleans[-1].time
        active = {instant.time: instant for instant in timeline.writes}
        self.past = {time: rows for time, rows in self.past.items() if time >= kept and time in active}
        if self.past and self.random.random() < 0.5:
            time = self.random.choice(sorted(self.past))
            rows, then = self.past[time]
            if not self.alone:
                _same(f"hudimeta as of {time}", table.scan(as_of=time).to_table(), rows, then)
            dead = [one.time for one in timeline.pending_writes if Action.COMPACTION not in (one.action, one.pending_action)]
            if time < min(dead, default="9"):  # it refuses other moments
                _same(f"Apache Hudi as of {time}", self._theirs(as_of=time, metadata=metadata), rows, then)
        if self.past and not self.alone and self.random.random() < 0.6:
            begin = active[self.random.choice(sorted(self.past))]
            # Positions in a table of version 6 are requested times.
            self._changes(table, begin.time if self.kind.version == "6" else begin.completion or "", schema)
        self.past[newest.time] = ([dict(row) for row in every], schema)
        archived = sorted(set(self.begins) - set(active))
        self.begins[newest.time] = newest.time if self.kind.version == "6" else newest.completion or ""
        # Of archived commits of version 6 Apache Hudi tells only rows in file groups to which later ones wrote.
        if self.wide and archived and self.kind.version != "6" and not self.alone and self.random.random() < 0.5:
            self._changes_since_archived(table, self.begins[self.random.choice(archived)], schema)

    def _changes_since_archived(self, table: hudimeta.Table, begin: str, schema: pa.Schema) -> None:
        """Rows as of others; where a clean took files of archived commits, Apache Hudi looks for them and fails.

        Captured changes of archived commits both refuse to tell.
        """
        try:
            self._changes(table, begin, schema, captured=False)
        except HudiFailed as failed:
            if "FileNotFound" not in str(failed) and "does not exist" not in str(failed):
                raise

    def _changes(self, table: hudimeta.Table, begin: str, schema: pa.Schema, captured: bool = True) -> None:
        """Both tell the same rows that came after a completion time.

        Not without stored keys, which Apache Hudi refuses. Its release 1.0.2 takes the beginning for a part of the range. Log
        files of which only some columns were logged it reads as if they had all, so that values get elsewhere. It finds
        no meta columns where columns of a table of version 6 have a history.
        """
        if "hoodie.populate.meta.fields" in self.kind.shared or self.was_partial:
            return
        if self.kind.version == "6" and ON_READ in self.kind.shared:
            return
        begin = str(int(begin) + 1)
        if self.release == "1.0.2" and self.kind.version != "6" and passes_over_logs(table, begin):
            return
        options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
        ours = table.scan(query_type="incremental", begin=begin).to_table()
        theirs = self._theirs(options=options)
        # Of partition columns Apache Hudi shows the text of an encoded path here, of tables of its own too.
        others = pa.schema([column for column in schema if column.name not in self.kind.place_columns])
        names = [name for name in others.names if name in theirs.column_names]
        wanted = theirs.select(names).to_pylist()
        _same(f"incremental from {begin}, hudimeta (found) and Apache Hudi (wanted)", ours, wanted, others)
        # Of tables of version 6 release 1.0.2 takes the metadata of commits, which is JSON there, for Avro. Where files hold no
        # partition columns, it mixes up columns of changes.
        dropped = "hoodie.datasource.write.drop.partition.columns" in self.kind.shared
        captured = captured and "hoodie.table.cdc.enabled" in self.kind.shared and self.kind.version != "6" and not dropped
        if not captured or logs_no_changes(table, begin):
            return
        if not names_no_base_file(table, begin):
            self._captured(table, begin, options, schema)

    def _captured(self, table: hudimeta.Table, begin: str, options: dict[str, str], schema: pa.Schema) -> None:
        """Both tell the same changes; release 1.0.2, which makes tables of version 8, passes over some of a file's first, and
        of an overwritten file it tells one row again and again.

        In images that come from data files Apache Hudi shows the insides of its own objects for decimals, structs, lists and
        maps: a decimal is `{"zero":false}`; 1.0.2 shows bytes as text where log files change a row. Of a row that stays in its
        partition they have the partition columns as stored.
        """
        read = {**options, "hoodie.datasource.query.incremental.format": "cdc"}
        unlike = {column.name for column in schema if pa.types.is_nested(column.type) or pa.types.is_decimal(column.type)}
        if self.kind.version == "8":
            unlike.update(column.name for column in schema if pa.types.is_binary(column.type))
        if self.kind.stays:
            unlike.update(self.kind.place_columns)
        # In images of change files it finds nothing in columns that were renamed since then.
        unlike.update(column.name for column in schema if column.name != base(column.name))

        def changes(answer: pa.Table) -> Counter[str]:
            images = [(op, at, *(_without(image, unlike) for image in both)) for op, at, *both in told(answer)]
            return Counter(map(str, images))

        theirs = changes(self._theirs(options=read))
        ours = changes(table.scan(query_type="cdc", begin=begin).to_table())
        more, fewer = ours - theirs, theirs - ours
        if self.kind.version == "8":
            fewer = Counter(theirs.keys() - ours.keys())
        assert not fewer, f"changes from {begin}: Apache Hudi alone tells {list(fewer)[:2]}, hudimeta alone {list(more)[:2]}"
        assert not more or self.kind.version == "8", f"changes from {begin}: hudimeta alone tells {list(more)[:2]}"

    def _validate(self, table: hudimeta.Table) -> None:
        report = table.metadata.validate()
        wrong = {check.name: check.differences for check in report.checks if check.outcome is Outcome.DIFFERS}
        for name in set(wrong) - set(proven_indexes(table.snapshot().metadata)):
            # Nobody leaves out a row by what is not proven.
            if "hoodie.datasource.write.drop.partition.columns" in self.kind.shared:
                # Of a column that no file holds Apache Hudi states only nulls, or nothing.
                wrong[name] = tuple(d for d in wrong[name] if not d.what.startswith("column region:"))
            if name == "column_stats":
                wrong[name] = tuple(d for d in wrong[name] if not _ONLY_NAN.fullmatch(d.what))
            elif name == "partition_stats":
                wrong[name] = tuple(d for d in wrong[name] if not self._is_known(d.what))
            elif name in ("record_index", "secondary_index_by_s") and (self.was_restored or self._keeps_dead_keys):
                del wrong[name]
        assert not any(wrong.values()), str(report)

    @property
    def _keeps_dead_keys(self) -> bool:
        """Whether release 1.0.2 leaves keys in the index whose deletes it logs behind other logs, beside change capture."""
        kind = self.kind
        return kind.type == "MERGE_ON_READ" and kind.version == "8" and "hoodie.table.cdc.enabled" in kind.shared

    def _is_known(self, what: str) -> bool:
        """Hudi counts only the files with a record of a column that came later, orders bytes by their signs, and states of a
        partition with NaN, which has no bounds in files, that it has only nulls.

        What a planned compaction shall take it leaves out.
        """
        if self.was_planned:
            return True
        later = any(what == f"column {name}: nulls, where none are stated" for name in self.later_columns)
        return later or _ONLY_NAN.fullmatch(what) is not None or what.startswith("column raw: a value")


def _without(image: tuple[tuple[str, object], ...], names: set[str]) -> tuple[tuple[str, object], ...]:
    return tuple(part for part in image if part[0] not in names)


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


def _and(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else None if one is None or other is None else True


def _or(one: bool | None, other: bool | None) -> bool | None:
    return _not(_and(_not(one), _not(other)))


def _same(reader: str, found: pa.Table, expected: Iterable[Row], schema: pa.Schema) -> None:
    names = schema.names
    missing = [name for name in names if name not in found.column_names]
    assert not missing or found.num_rows == 0, f"{reader}: no columns {missing}"
    if missing:
        assert not list(expected), f"{reader}: no rows"
        return
    wanted = Counter(_plain(row, names) for row in pa.Table.from_pylist(list(expected), schema).to_pylist())
    rows = Counter(_plain(row, names) for row in found.to_pylist())
    lost, more = list((wanted - rows).elements()), list((rows - wanted).elements())
    if not lost and not more:
        return
    told = [f"{reader}: {len(lost)} rows missing, {len(more)} too many, of {sum(wanted.values())}"]
    if lost and more:
        pairs = next(((a, b) for a in lost for b in more if a[:3] == b[:3]), (lost[0], more[0]))
        told += [f"{name}: wanted {a!r}, found {b!r}" for name, a, b in zip(names, *pairs, strict=True) if a != b]
        told.append(f"of {pairs[0][:3]}")
    else:
        told += [str(dict(zip(names, row, strict=True))) for row in (lost + more)[:3]]
    raise AssertionError("\n".join(told))


def _plain(row: Row, names: Iterable[str]) -> tuple[object, ...]:
    # Apache Hudi shows a number that names a partition by time as text in some queries, of tables of its own too.
    return tuple(int(row[name]) if name == "ms" and row[name] is not None else normal(row[name]) for name in names)
