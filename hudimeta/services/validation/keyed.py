"""Do the record index and the secondary indexes know every live row, where it is, and nothing else?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.facts import texts_of_values
from hudimeta.metadata import record_index
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.keys import secondary_keys
from hudimeta.services.validation.result import SHOWN, CheckResult, Findings
from hudimeta.services.validation.subject import Subject, Unreadable
from hudimeta.slices.read_task import ReadTask
from hudimeta.snapshot.file_slice import FileSlice

__all__ = ["KeyedIndexes"]

_PLACED = pa.schema([("record_key", pa.string()), ("place", pa.int32())])


class KeyedIndexes:
    """The checks of the indexes that speak of single rows; the rows are read once for all of them.

    Args:
        subject: The table.
        secondary: Names of the secondary indexes to check.
    """

    def __init__(self, subject: Subject, secondary: Sequence[str]) -> None:
        self._subject = subject
        self._columns = {name: column for name in secondary if (column := self._column_of(name)) is not None}

    def check_records(self) -> CheckResult:
        """The record index both ways: every live row where it is said to be, every record a live row."""
        findings = self._findings()
        live, stated = self._located, self._stated
        if stated is not None:
            findings.compared = len(live)
            places = pa.array(self._places, pa.string())
            _compare_places(live, stated, places, findings)
            doubled = len(live) - len(live["record_key"].unique())
            if doubled:
                findings.notes.append(f"{doubled:,} rows share their key with another row, of which the index knows one")
        return findings.result(record_index.PARTITION, "rows")

    def check_secondary(self, name: str) -> CheckResult:
        """A secondary index against a scan of its column."""
        findings = self._findings()
        definition = self._subject.metadata.index_definitions.get(name)
        column = self._columns.get(name)
        if definition is None or column is None:
            findings.unknown.append("its definition is missing, or names a column that the table does not have")
            return findings.result(name, "entries")
        values = self._rows[name]
        texts = secondary_texts(values)
        if texts is None:
            findings.unknown.append(f"values of type {values.type} are not compared")
            return findings.result(name, "entries")
        keys = self._rows["record_key"]
        records = self._subject.metadata.records(name)
        if not definition.is_v2:
            # In the first form nobody asks for null. Apache Hudi writes entries of it since 1.2, earlier releases do not.
            filled = texts.is_valid()
            texts, keys = texts.filter(filled), keys.filter(filled)
            records = records.filter(records["secondary"].is_valid())
        wanted = secondary_keys(single_array(texts), single_array(keys))
        found = secondary_keys(single_array(records["secondary"]), single_array(records["record_key"]))
        findings.compared = len(wanted)
        missing = pc.invert(pc.is_in(wanted, value_set=found))
        extra = pc.invert(pc.is_in(found, value_set=wanted))
        findings.wrong("rows that the index lacks", _shown(wanted, missing), _count(missing))
        findings.wrong("entries of no row", _shown(found, extra), _count(extra))
        return findings.result(name, "entries")

    # What the table holds

    def _column_of(self, name: str) -> str | None:
        definition: IndexDefinition | None = self._subject.metadata.index_definitions.get(name)
        if definition is None or len(definition.source_fields) != 1:
            return None
        (column,) = definition.source_fields
        return column if column.split(".")[0] in self._subject.snapshot.schema.arrow.names else None

    def _findings(self) -> Findings:
        findings = Findings()
        findings.wrong("files that cannot be read", [one.what for one in self._read if isinstance(one, Unreadable)])
        return findings

    @cached_property
    def _task(self) -> ReadTask:
        return self._subject.task([*self._subject.key_columns, *(c.split(".")[0] for c in self._columns.values())])

    @cached_property
    def _read(self) -> list[pa.Table | Unreadable]:
        """Of each slice: record_key, and each secondary index' column under the index' name."""
        subject, task = self._subject, self._task

        def read(one: FileSlice) -> pa.Table | Unreadable:
            try:
                pieces = [self._keyed(piece) for piece in subject.rows(one, task)]
            except (NotFound, CorruptFileError) as error:
                return Unreadable(error.message)
            return pa.concat_tables(pieces) if pieces else self._keyed(task.output_schema.empty_table())

        return subject.engine.map(read, subject.slices)

    def _keyed(self, rows: pa.Table) -> pa.Table:
        columns = {"record_key": self._subject.keys(rows)}
        for name, column in self._columns.items():
            top, *rest = column.split(".")
            columns[name] = pc.struct_field(rows[top], rest) if rest else rows[top]
        return pa.table(columns)

    @property
    def keys_of_slices(self) -> Sequence[pa.Table | Unreadable]:
        """Of each slice of the table the column record_key, and others."""
        return self._read

    @cached_property
    def _rows(self) -> pa.Table:
        """All live rows: record_key, place (number of its slice), and the columns of the secondary indexes."""
        tables = []
        for number, table in enumerate(self._read):
            if not isinstance(table, Unreadable):
                place = pa.array(np.full(len(table), number, np.int32))
                tables.append(table.append_column("place", place))
        none = self._keyed(self._task.output_schema.empty_table()).append_column("place", pa.array([], pa.int32()))
        return pa.concat_tables(tables) if tables else none

    @cached_property
    def _places(self) -> list[str]:
        """What each place is called; those that only the index knows come after the slices."""
        return [f"{one.partition_path}\0{one.file_id}" for one in self._subject.slices]

    @cached_property
    def _by_partition(self) -> bool:
        """True for an index whose keys are unique in their partition only."""
        definition = self._subject.metadata.index_definitions.get(record_index.PARTITION)
        return definition is not None and definition.is_partitioned

    @cached_property
    def _located(self) -> pa.Table:
        """record_key and place of all live rows."""
        rows = self._rows.select(_PLACED.names)
        if not self._by_partition:
            return rows
        paths = pa.array([one.partition_path for one in self._subject.slices], pa.string()).take(single_array(rows["place"]))
        return rows.set_column(0, "record_key", pc.binary_join_element_wise(paths, single_array(rows["record_key"]), "\0"))

    @cached_property
    def _stated(self) -> pa.Table:
        """record_key and place as the record index has them."""
        records = self._subject.metadata.records(record_index.PARTITION)
        coded = records["file_id"].cast(pa.string())
        named = pc.binary_join_element_wise(records["partition_path"], coded, "\0")
        place = pc.index_in(single_array(named), value_set=pa.array(self._places, pa.string()))
        keys = single_array(records["record_key"])
        if self._by_partition:
            keys = pc.binary_join_element_wise(single_array(records["partition_path"]), keys, "\0")
        return pa.table({"record_key": keys, "place": place, "named": named})


def _compare_places(live: pa.Table, stated: pa.Table, places: pa.Array, findings: Findings) -> None:
    here, there = single_array(live["record_key"]), single_array(stated["record_key"])
    missing = pc.invert(pc.is_in(here, value_set=there))
    lacking = _shown(here, missing, single_array(live["place"]), places)
    findings.wrong("live keys that the index lacks", lacking, _count(missing))
    extra = pc.invert(pc.is_in(there, value_set=here))
    findings.wrong("records of no live key", _shown(there, extra), _count(extra))
    at = pc.index_in(there, value_set=here)
    same = pc.fill_null(pc.equal(single_array(live["place"]).take(at), stated["place"].combine_chunks()), False)
    doubtful = pc.and_(at.is_valid(), pc.invert(same))
    if not _count(doubtful):
        return
    # A key that several rows have may be said to live where any of them does.
    keys, named = there.filter(doubtful), single_array(stated["named"]).filter(doubtful).to_pylist()
    rows = live.filter(pc.is_in(here, value_set=keys))
    homes: dict[str, set[str]] = {}
    for key, place in zip(rows["record_key"].to_pylist(), places.take(single_array(rows["place"])).to_pylist(), strict=True):
        homes.setdefault(key, set()).add(place)
    wrong = [
        f"{_plain(key)} is in {_plain(min(homes[key]))}, not in {_plain(said)}"
        for key, said in zip(keys.to_pylist(), named, strict=True)
        if said not in homes[key]
    ]
    findings.wrong("keys that live elsewhere than the index says", wrong)


def secondary_texts(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Values as a secondary index spells them; None for types that are not compared."""
    tests = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating, pa.types.is_date32)
    if not any(fits(values.type) for fits in (*tests, pa.types.is_timestamp)):
        return None
    return pa.chunked_array([texts_of_values(single_array(values))], pa.string())


def _shown(keys: pa.Array, chosen: pa.Array, place: pa.Array | None = None, places: pa.Array | None = None) -> list[str]:
    some = keys.filter(chosen).slice(0, SHOWN).cast(pa.string()).to_pylist()
    if place is None or places is None:
        return [_plain(key) for key in some]
    homes = places.take(place.filter(chosen).slice(0, SHOWN)).to_pylist()
    return [f"{_plain(key)} in {_plain(home)}" for key, home in zip(some, homes, strict=True)]


def _plain(text: str) -> str:
    return text.replace("\0", "/")


def _count(chosen: pa.Array) -> int:
    return pc.sum(chosen).as_py() or 0
