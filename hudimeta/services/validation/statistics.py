"""Do column and partition statistics enclose every value of the files that readers open?

Each file of the latest slices is read once and its bounds are computed; what the records say is then compared with that, column
by column, as array work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.formats.parquet import BoundsOfColumns, typed_scalar
from hudimeta.metadata import answers, column_stats
from hudimeta.metadata.indexed_columns import column_type
from hudimeta.schema.moment_text import text_of_date, text_of_timestamp
from hudimeta.services.validation.result import SHOWN, CheckResult, Findings
from hudimeta.services.validation.subject import Subject, Unreadable
from hudimeta.slices.ordering import field_type
from hudimeta.slices.single_files import SingleFile

__all__ = ["FoundBounds", "Statistics", "breaches", "gathered"]


@dataclass(frozen=True)
class FoundBounds:
    """Bounds of one column, as the rows of many files or partitions have them.

    Attributes:
        rows: name string, partition_path string, min, max of the column's type, null_count, value_count int64, is_log bool.
    """

    rows: pa.Table

    @property
    def kind(self) -> pa.DataType:
        """Type of the bounds."""
        return self.rows.schema.field("min").type

    def by_partition(self) -> FoundBounds:
        """Bounds of whole partitions."""
        rows = self.rows
        if pa.types.is_floating(self.kind):
            rows = rows.append_column("nan", pc.fill_null(pc.is_nan(rows["max"]), False))
        else:
            rows = rows.append_column("nan", pa.repeat(False, len(rows)))
        groups = rows.group_by("partition_path", use_threads=False).aggregate(
            [("min", "min"), ("max", "max"), ("null_count", "sum"), ("value_count", "sum"), ("nan", "any")]
        )
        high = groups["max_max"].cast(self.kind)
        if pa.types.is_floating(self.kind):
            high = pc.if_else(groups["nan_any"], pa.scalar(float("nan"), self.kind), high)
        columns = {
            "name": groups["partition_path"],
            "partition_path": groups["partition_path"],
            "min": groups["min_min"].cast(self.kind),
            "max": high,
            "null_count": groups["null_count_sum"],
            "value_count": groups["value_count_sum"],
            "is_log": pa.repeat(True, len(groups)),
        }
        return FoundBounds(pa.table(columns))


class Statistics:
    """The checks of `column_stats` and `partition_stats`, which look at the same values."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def check_files(self) -> CheckResult:
        """Statistics of each file."""
        findings = self._findings()
        stated = answers.column_stats(self._subject.metadata, self.columns) if self.columns else {}
        for name, found in self._bounds.items():
            wrong = breaches(found, stated[name].rename_columns(["name", *stated[name].column_names[1:]]))
            for what, examples in wrong.items():
                findings.wrong(f"column {name}: {what}", examples)
            _note_missing(findings, name, found, stated[name])
        return findings.result("column_stats")

    def check_partitions(self) -> CheckResult:
        """Statistics of each partition. Hudi's readers pass over one without a record where others have one.

        They lose no row where the column is null in the whole partition, as Hudi leaves one that did not get a column's rows.
        """
        findings = self._findings()
        known = answers.partition_stats(self._subject.metadata, self.columns) if self.columns else {}
        partitions: set[str] = set()
        for name, found in self._bounds.items():
            whole = found.by_partition()
            partitions |= set(whole.rows["name"].to_pylist())
            stated = known[name].rename_columns(["name", *known[name].column_names[1:]])
            for what, examples in breaches(whole, stated).items():
                findings.wrong(f"column {name}: {what}", examples)
            _tell_partitions_without(findings, name, whole.rows, stated)
            _tell_denied_nulls(findings, name, found.rows, stated, self._in_slices_with_logs)
        findings.compared = len(partitions)
        return findings.result("partition_stats", "partitions")

    def _findings(self) -> Findings:
        findings = Findings(compared=len(self._subject.parts))
        definition = self._subject.metadata.index_definitions.get(column_stats.PARTITION)
        history = self._subject.snapshot.history
        if definition is not None and history is not None:
            renamed = [name for name in definition.source_fields if not history.keeps(name)]
            findings.unknown += [f"older files hold {name} under another name or type" for name in renamed]
        if not self.columns and not findings.unknown:
            findings.unknown.append("the definition that names the columns is missing")
        findings.wrong("files that cannot be read", [one.what for one in self._files if isinstance(one, Unreadable)])
        return findings

    @cached_property
    def columns(self) -> Mapping[str, pa.DataType]:
        """Indexed columns that the table has, with the types in which they were recorded."""
        snapshot, definition = self._subject.snapshot, self._subject.metadata.index_definitions.get(column_stats.PARTITION)
        if definition is None:
            return {}
        found, history = {}, snapshot.history
        for name in definition.source_fields:
            if history is not None and not history.keeps(name):
                continue
            kind = column_type(snapshot.schema.arrow, name)
            if kind is not None and pa.types.is_timestamp(kind):
                kind = field_type(snapshot.schema.stored, name) or kind
            if kind is not None and not pa.types.is_nested(kind):
                found[name] = kind
        return found

    @cached_property
    def _in_slices_with_logs(self) -> pa.Array:
        """Names of the files of slices that have log files, whose rows may be superseded."""
        slices = (one for one in self._subject.slices if one.log_files)
        return pa.array([name for one in slices for name in (one.base_file, *one.log_files)], pa.string())

    @cached_property
    def _files(self) -> list[pa.Table | Unreadable]:
        """Bounds of each file's columns."""
        subject, columns = self._subject, self.columns
        task = subject.task([name.split(".")[0] for name in columns]) if columns else None

        def read(part: SingleFile) -> pa.Table:
            found = BoundsOfColumns(list(columns))
            for piece in subject.rows(part.alone, task) if task is not None else ():
                found.add(piece)
            return found.table()

        return subject.map(read, subject.parts)

    @cached_property
    def _bounds(self) -> dict[str, FoundBounds]:
        """By column."""
        by_column: dict[str, list[tuple[SingleFile, pa.Table, int]]] = {name: [] for name in self.columns}
        for part, table in zip(self._subject.parts, self._files, strict=True):
            if not isinstance(table, Unreadable):
                for at, name in enumerate(table["column"].to_pylist()):
                    by_column[name].append((part, table, at))
        return {name: gathered(rows, self.columns[name]) for name, rows in by_column.items()}


def gathered(found: list[tuple[SingleFile, pa.Table, int]], kind: pa.DataType) -> FoundBounds:
    sides = {
        side: pa.array([typed_scalar(t[side], at).cast(kind, safe=False) for _, t, at in found], kind)
        for side in ("min", "max")
    }
    columns = {
        "name": pa.array([part.name for part, _, _ in found], pa.string()),
        "partition_path": pa.array([part.partition_path for part, _, _ in found], pa.string()),
        **sides,
        **{c: pa.array([t[c][at].as_py() for _, t, at in found], pa.int64()) for c in ("null_count", "value_count")},
        "is_log": pa.array([part.is_log for part, _, _ in found], pa.bool_()),
    }
    return FoundBounds(pa.table(columns))


def breaches(found: FoundBounds, stated: pa.Table) -> dict[str, list[str]]:
    """In what ways statistics are not true.

    Args:
        found: What the rows say.
        stated: name, min, max, null_count, value_count as the metadata table has them; None is "unknown", which is never wrong.

    Returns:
        Names of files or partitions by what is wrong of them.
    """
    at = pc.index_in(found.rows["name"].combine_chunks(), value_set=stated["name"].combine_chunks())
    said = {c: stated[c].combine_chunks().take(at) for c in ("min", "max", "null_count", "value_count")}
    rows = {c: found.rows[c].combine_chunks() for c in found.rows.column_names}
    values = pc.greater(rows["value_count"], rows["null_count"])
    no_values = pc.and_(values, pc.equal(said["null_count"], said["value_count"]))
    # The rows of a log file that are seen are the newest of each key, so counts tell less there.
    no_nulls = pc.and_(pc.and_(pc.equal(said["null_count"], 0), pc.greater(rows["null_count"], 0)), pc.invert(rows["is_log"]))
    tests = {
        "a value below the minimum": _less(rows["min"], said["min"]),
        "a value above the maximum": _less(said["max"], rows["max"]),
        "values, where only nulls are stated": no_values,
        "nulls, where none are stated": no_nulls,
    }
    wrong = {}
    for what, test in tests.items():
        places = pc.fill_null(test, False)
        if pc.any(places).as_py():
            wrong[what] = [
                f"{name}: found {low} to {high}, stated {least} to {most}"
                for name, low, high, least, most in zip(
                    *(_told(a.filter(places)) for a in (rows["name"], rows["min"], rows["max"], said["min"], said["max"])),
                    strict=True,
                )
            ]
    return wrong


def _told(values: pa.Array) -> list[Any]:
    """Values for people; days and moments as text, since Python has none before the year 1 and after 9999."""
    if pa.types.is_date(values.type):
        return list(text_of_date(values).to_pylist())
    if pa.types.is_timestamp(values.type):
        return list(text_of_timestamp(values.view(pa.timestamp(values.type.unit))).to_pylist())
    return list(values.to_pylist())


def _less(one: pa.Array, other: pa.Array) -> pa.Array:
    """One < other, NaN the greatest of all."""
    if not pa.types.is_floating(one.type):
        return pc.less(one, other)
    return pc.or_(pc.less(one, other), pc.and_(pc.invert(pc.is_nan(one)), pc.is_nan(other)))


def _tell_partitions_without(findings: Findings, column: str, whole: pa.Table, stated: pa.Table) -> None:
    """Partitions of which nothing is stated: a difference where they hold values and others have a record."""
    silent = whole.filter(pc.invert(pc.is_in(whole["name"], value_set=stated["name"].combine_chunks())))
    with_values = pc.greater(silent["value_count"], silent["null_count"])
    if len(stated):
        passed_over = sorted(silent.filter(with_values)["name"].to_pylist())
        findings.wrong(f"column {column}: partitions without a record, which readers of Apache Hudi pass over", passed_over)
        silent = silent.filter(pc.invert(with_values))
    names = sorted(silent.filter(pc.greater(silent["value_count"], 0))["name"].to_pylist())
    if names:
        nulls = ", where it is null" if len(stated) else ""
        findings.notes.append(f"column {column}: {len(names)} partitions without a record{nulls}, such as {names[0]}")


def _tell_denied_nulls(findings: Findings, column: str, files: pa.Table, stated: pa.Table, with_logs: pa.Array) -> None:
    """Partitions that are said to hold no null and do: Hudi counts only files with a record of the column, which came later.

    Nulls of a slice with log files may be superseded by them: then nothing is compared.
    """
    full = pc.and_(pc.equal(stated["null_count"], 0), pc.greater(stated["value_count"], 0))
    denied = stated["name"].filter(pc.fill_null(full, False)).combine_chunks()
    nulls = files.filter(pc.and_(pc.greater(files["null_count"], 0), pc.is_in(files["partition_path"], value_set=denied)))
    superseded = pc.is_in(nulls["name"], value_set=with_logs)
    wrong = sorted(set(nulls["partition_path"].filter(pc.invert(superseded)).to_pylist()))
    findings.wrong(f"column {column}: nulls, where none are stated", wrong)
    doubtful = sorted(set(nulls["partition_path"].to_pylist()) - set(wrong))
    if doubtful:
        findings.unknown.append(f"column {column}: whether {', '.join(doubtful[:SHOWN])} hold nulls, where none are stated")


def _note_missing(findings: Findings, column: str, found: FoundBounds, stated: pa.Table) -> None:
    """A file without statistics costs a reader time and no row."""
    known = pc.is_in(found.rows["name"], value_set=stated["file_name"].combine_chunks())
    missing = pc.and_(pc.invert(known), pc.greater(found.rows["value_count"], 0))
    names = found.rows["name"].filter(missing).to_pylist()
    if names:
        findings.notes.append(f"column {column}: {len(names)} files without a record, such as {', '.join(names[:SHOWN][:1])}")
