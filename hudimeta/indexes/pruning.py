"""Which partitions and file slices can hold a row that a predicate keeps, and by which part of it the others are left out.

Everything here answers with masks over Arrow rows, True meaning "may match". Unknown means may match, and is noted. Slices with
log files need care, because a merged row may take one column from the base file and another from a log: conjuncts over one
column may exclude file by file, others only over the bounds of all files of the slice together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, single_array
from hudimeta.indexes.names_by_hash import NamesByHash
from hudimeta.predicate import Bound, ColumnBounds, Expr, FileStats, evaluate, is_total, may_match, to_sql
from hudimeta.predicate.tree import Column, IsNull, any_of, walk

__all__ = ["FileBounds", "FilesOfSlices", "Verdicts", "by_path_values", "by_statistics"]

Mask = npt.NDArray[np.bool_]

_MANY = 1 << 16
"""Of more names a dictionary takes more memory than all else that is known of their files."""


@dataclass(frozen=True)
class Verdicts:
    """Which rows are left.

    Attributes:
        keep: One bool per row.
        reason: Per row the index of the conjunct that excludes it, -1 where kept.
    """

    keep: Mask
    reason: npt.NDArray[np.int64]

    def counts(self, conjuncts: Sequence[Expr], weights: npt.NDArray[np.int64] | None = None) -> list[tuple[str, int, int]]:
        """Per conjunct that excluded something: its SQL, the rows excluded, and the sum of their weights."""
        found = []
        for number, conjunct in enumerate(conjuncts):
            rows = self.reason == number
            if rows.any():
                found.append((to_sql(conjunct), int(rows.sum()), int(weights[rows].sum()) if weights is not None else 0))
        return found

    def texts(self, conjuncts: Sequence[Expr]) -> pa.Array:
        """For each row excluded the SQL of the conjunct that excludes it."""
        spelled = array_of([to_sql(conjunct) for conjunct in conjuncts], pa.string())
        return spelled.take(array_of(self.reason[~self.keep]))


def _nothing_excluded(rows: int) -> Verdicts:
    return Verdicts(np.ones(rows, np.bool_), np.full(rows, -1, np.int64))


def by_path_values(bound: Bound, values: pa.Table) -> Verdicts:
    """Partitions by the values that their paths state.

    Null can stand for a value of Spark's: without ANSI mode numbers wrap around and texts are cut off that are refused with it,
    and the parser of before Spark 3 takes more texts. So a partition stays where a part is null that could have a value.

    Args:
        bound: The predicate; conjuncts that look at other columns exclude nothing.
        values: One row per partition.
    """
    verdicts = _nothing_excluded(values.num_rows)
    for number, conjunct in enumerate(bound.conjuncts):
        columns = [node for node in walk(conjunct) if isinstance(node, Column)]
        if not columns or any(c.name not in values.column_names for c in columns):
            continue
        unsure = [IsNull(node, type=pa.bool_()) for node in walk(conjunct) if not is_total(node)]
        true = evaluate(bound.with_conjuncts([any_of([conjunct, *unsure])]), values)
        passes: Mask = numpy_of(fill_null(true, False))
        verdicts.reason[verdicts.keep & ~passes] = number
        verdicts.keep[~passes] = False
    return verdicts


class FileBounds:
    """Brings statistics into the order of some files (or partitions).

    Args:
        names: The files wanted.
        name_column: The column of statistics that names the file.
    """

    def __init__(self, names: pa.StringArray, name_column: str = "file_name") -> None:
        self._names, self._name_column = names, name_column
        self._last: tuple[pa.ChunkedArray, pa.Array, pa.DictionaryArray | None] | None = None

    def of(self, stats: pa.Table) -> ColumnBounds:
        """Bounds of one column, as `MetadataTable.column_stats` gives them, one element per file.

        Files without statistics are unknown. Where two partitions hold files of one name (bucketed tables do), their statistics
        are united.
        """
        at, coded = self._places(stats.column(self._name_column))
        low, high, nulls, rows = (single_array(stats.column(c)) for c in ("min", "max", "null_count", "value_count"))
        # Bounds of the metadata table say what they mean of NaN (see `column_stats.typed`), other than those of footers.
        bounds = ColumnBounds(low, high, nulls, rows, np.ones(stats.num_rows, np.bool_))
        if coded is not None:
            bounds = bounds.union(numpy_of(coded.indices).astype(np.int64), len(coded.dictionary))
        counts = [values.take(at) if values is not None else None for values in (bounds.null_count, bounds.value_count)]
        aware = _taken_flags(bounds.nan_aware, at)
        return ColumnBounds(bounds.min.take(at), bounds.max.take(at), counts[0], counts[1], aware)

    def _places(self, given: pa.ChunkedArray) -> tuple[pa.Array, pa.DictionaryArray | None]:
        """Per file wanted its place among the files given, null where absent; most columns are known for the same files.

        Where some are given several times, the place among the distinct ones, and each as its number among these.
        """
        if self._last is None or not self._last[0].equals(given):
            self._last = given, *self._found(given)
        return self._last[1], self._last[2]

    def _found(self, given: pa.ChunkedArray) -> tuple[pa.Array, pa.DictionaryArray | None]:
        import pyarrow.compute as pc

        if len(given) > _MANY and (places := self._by_hash.places_in(given)) is not None:
            return places, None
        coded = single_array(given).dictionary_encode()
        repeated = len(coded.dictionary) < len(coded)
        return pc.index_in(self._names, value_set=coded.dictionary), coded if repeated else None

    @cached_property
    def _by_hash(self) -> NamesByHash:
        return NamesByHash(self._names)


def _taken_flags(flags: bool | npt.NDArray[Any], at: pa.Array) -> bool | npt.NDArray[Any]:
    """False, or a flag per file, False where unknown."""
    if isinstance(flags, bool):
        return flags
    places = numpy_of(fill_null(at, -1))
    taken: npt.NDArray[Any] = np.where(places >= 0, flags[places], False)
    return taken


@dataclass(frozen=True)
class FilesOfSlices:
    """The files of many slices, one row a file.

    Attributes:
        slices: Columns of `table.slices.slices_schema()`.
        with_base: Numbers of the slices that have a base file.
        of_slice: For each file the number of its slice: all base files, then all log files.
    """

    slices: pa.Table
    with_base: npt.NDArray[np.int64]
    of_slice: npt.NDArray[np.int64]

    @classmethod
    def of(cls, slices: pa.Table) -> FilesOfSlices:
        """The files of a slice listing: all base files, then all log files."""
        import pyarrow.compute as pc

        if not slices.column("base_file").null_count and not any(map(_has_values, slices.column("log_files").chunks)):
            every = np.arange(slices.num_rows, dtype=np.int64)
            return cls(slices, every, every)
        with_base = np.flatnonzero(numpy_of(slices.column("base_file").is_valid())).astype(np.int64)
        logs = single_array(slices.column("log_files"))
        log_slices = numpy_of(pc.list_parent_indices(logs)).astype(np.int64)
        return cls(slices, with_base, np.concatenate([with_base, log_slices]))

    @cached_property
    def names(self) -> pa.StringArray:
        """Names of the files."""
        import pyarrow.compute as pc

        base = single_array(self.slices.column("base_file"))
        if self.are_lone:
            return base
        logs = single_array(self.slices.column("log_files"))
        return pa.concat_arrays([base.take(array_of(self.with_base)), pc.list_flatten(logs)])

    @property
    def are_lone(self) -> bool:
        """True when every slice is one base file."""
        return self.of_slice is self.with_base

    @property
    def count(self) -> int:
        """Number of slices."""
        return int(self.slices.num_rows)

    def __len__(self) -> int:
        return len(self.of_slice)

    def all_of(self, per_file: Mask) -> Mask:
        """Per slice, whether something holds for every file of it."""
        failing = np.bincount(self.of_slice[~per_file], minlength=self.count)
        whole: Mask = failing == 0
        return whole

    @cached_property
    def files_per_slice(self) -> npt.NDArray[np.int64]:
        """Number of files of each slice."""
        if self.are_lone:
            return np.ones(self.count, np.int64)
        return np.bincount(self.of_slice, minlength=self.count).astype(np.int64)


def _has_values(lists: pa.ListArray) -> bool:
    """Whether any of the lists holds something; looks at two numbers."""
    return len(lists) > 0 and lists.offsets[0] != lists.offsets[-1]


def by_statistics(
    bound: Bound,
    files: FilesOfSlices,
    bounds: Mapping[str, ColumnBounds],
    expressions: Mapping[Expr, ColumnBounds] | None = None,
) -> Verdicts:
    """Slices by the bounds of their files.

    Args:
        bound: The predicate.
        files: The slices' files.
        bounds: By dotted column name, one element per file.
        expressions: Likewise by bound expression, each over one column.
    """
    stats = FileStats(len(files), bounds, expressions or {})
    per_file = may_match(bound, stats)
    if files.are_lone:
        return Verdicts(per_file.keep, per_file.decided_by.astype(np.int64))
    lone = files.files_per_slice[files.of_slice] == 1
    verdicts = _nothing_excluded(files.count)
    single = np.flatnonzero(lone)
    verdicts.keep[files.of_slice[single]] = per_file.keep[single]
    verdicts.reason[files.of_slice[single]] = per_file.decided_by[single]
    if not lone.all():
        _exclude_merged(bound, files, stats, verdicts, ~lone)
    return verdicts


def _exclude_merged(bound: Bound, files: FilesOfSlices, stats: FileStats, verdicts: Verdicts, merged: Mask) -> None:
    """Exclude slices of several files, in `verdicts`; `merged` says which files belong to such."""
    is_merged = np.zeros(files.count, np.bool_)
    is_merged[files.of_slice[merged]] = True
    bounds, united = stats.columns, dict[str, ColumnBounds]()
    of_expressions = {e: b.union(files.of_slice, files.count) for e, b in stats.expressions.items()}
    for numbers in _by_columns(bound.conjuncts):
        part = bound.with_conjuncts([bound.conjuncts[n] for n in numbers])
        names = {c.name for c in part.columns}
        if len(names) == 1:
            verdict = may_match(part, stats)
            excluded = files.all_of(~verdict.keep)
            first = np.full(files.count, len(numbers), np.int64)
            np.minimum.at(first, files.of_slice, np.where(verdict.keep, len(numbers), verdict.decided_by))
        else:
            for name in names & set(bounds):
                if name not in united:
                    united[name] = bounds[name].union(files.of_slice, files.count)
            verdict = may_match(part, FileStats(files.count, united, of_expressions))
            excluded, first = ~verdict.keep, verdict.decided_by.astype(np.int64)
        gone = excluded & is_merged & verdicts.keep
        verdicts.reason[gone] = np.array(numbers, np.int64)[first[gone]]
        verdicts.keep[gone] = False


def _by_columns(conjuncts: Sequence[Expr]) -> list[list[int]]:
    """Numbers of conjuncts: those over one and the same column together, every other one alone."""
    groups: dict[object, list[int]] = {}
    for number, conjunct in enumerate(conjuncts):
        names = {node.name for node in walk(conjunct) if isinstance(node, Column)}
        groups.setdefault(next(iter(names)) if len(names) == 1 else number, []).append(number)
    return list(groups.values())
