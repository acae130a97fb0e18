"""Rows of base files that a predicate may keep, for slices that nothing is merged into.

What the end of a file says rules out row groups and pages: their bounds, and range and bloom filter of the file's record keys.
Of what is left the columns of the predicate are read first, and the others only of pages with a match.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.formats.plain_arrays import array_of, fill_null, numpy_of, scalar_of
from hudimeta.schema.conform import conform
from hudimeta.slices.file_bounds import BoundsOfPages, bounded_leaves, bounds_of_groups, bounds_of_pages
from hudimeta.slices.projection import leaf_paths

if TYPE_CHECKING:
    from hudimeta.formats.base_file import BaseFile
    from hudimeta.formats.parquet import ParquetFooter
    from hudimeta.formats.parquet.page_index import PageIndex
    from hudimeta.predicate import Bound, ColumnBounds
    from hudimeta.slices.read_task import ReadTask
    from hudimeta.slices.reader import ReadCounts
    from hudimeta.slices.record_keys import WantedKeys

__all__ = ["JudgedRows", "MatchingRows", "filled_with", "judged_rows", "with_constants"]

Mask = npt.NDArray[np.bool_]
_FEW_ROWS = 1 << 14
"""On so many rows, two of our pages, a predicate is evaluated after all columns were read."""

Piece = Callable[["BaseFile", int, pa.Schema, str], pa.Table]
"""A row group's rows: the file, its number, the columns of today, and the instant of the file."""


@dataclass(frozen=True)
class JudgedRows:
    """Where a base file may hold a row that a predicate keeps.

    Attributes:
        groups: One bool a row group.
        because: Where no row group is left, the part of the predicate that rules out the first; else "".
        rows: For each row of a row group whether its pages may hold one; a row group that is not here has no bounds of pages.
    """

    groups: Mask
    because: str
    rows: Mapping[int, Mask]


def judged_rows(
    footer: ParquetFooter, index: PageIndex | None, bound: Bound, stated: Collection[str], keys: WantedKeys | None
) -> JudgedRows:
    """Find where a file may hold a row which a predicate keeps; only for rows that nothing is merged into.

    Args:
        footer: Of the file.
        index: Of its pages, if it can be relied on.
        bound: The predicate.
        stated: Columns whose values are not taken from the file.
        keys: Record keys that the predicate asks for; None when it does not.
    """
    from hudimeta.predicate import to_sql

    if keys is not None and not _may_hold(footer, keys.texts):
        return JudgedRows(np.zeros(footer.metadata.num_row_groups, np.bool_), to_sql(keys.because), {})
    wanted = {c.name: c.type for c in bound.columns if c.path[0] not in stated and c.type is not None}
    leaves = list(bounded_leaves(footer, wanted))
    pages = None if index is None else bounds_of_pages(footer, index, leaves)
    if pages is not None:
        return _judged_pages(bound, pages)
    bounds = {leaf.path: found for leaf in leaves if (found := bounds_of_groups(footer, leaf)) is not None}
    keep, because = _judged(bound, footer.metadata.num_row_groups, bounds)
    return JudgedRows(keep, because, {})


def _judged(bound: Bound, count: int, bounds: Mapping[str, ColumnBounds]) -> tuple[Mask, str]:
    """Which of so many parts of a file are left; where none is, the part of the predicate that rules out the first."""
    from hudimeta.predicate import FileStats, may_match, to_sql

    verdict = may_match(bound, FileStats(count, bounds))
    none_left = count and not verdict.keep.any()
    return verdict.keep, to_sql(bound.conjuncts[int(verdict.decided_by[0])]) if none_left else ""


def _judged_pages(bound: Bound, pages: BoundsOfPages) -> JudgedRows:
    keep, because = _judged(bound, sum(len(first) - 1 for first in pages.first), pages.bounds)
    rows: dict[int, Mask] = {}
    before = 0
    for group, first in enumerate(pages.first):
        rows[group] = np.repeat(keep[before : before + len(first) - 1], np.diff(first))
        before += len(first) - 1
    return JudgedRows(np.array([mask.any() for mask in rows.values()], np.bool_), because, rows)


def _may_hold(footer: ParquetFooter, texts: pa.StringArray) -> bool:
    """Whether a file may hold any of some record keys."""
    import pyarrow.compute as pc

    low, high = footer.min_key, footer.max_key
    if low is None or high is None:
        return True  # whoever wrote it recorded no keys
    # Java orders texts by UTF-16 units, which is the order of characters here as long as all are ASCII.
    if low.isascii() and high.isascii() and len(texts):
        inside = pc.and_(pc.greater_equal(texts, scalar_of(low)), pc.less_equal(texts, scalar_of(high)))
        texts = texts.filter(pc.or_(inside, pc.invert(pc.string_is_ascii(texts))))
    if not len(texts):
        return False
    bloom = footer.bloom
    return bloom is None or bloom.might_contain_any(texts)


class MatchingRows:
    """Reads of base files the rows that a predicate may keep.

    Args:
        task: What to read of each slice, with a predicate.
        counts: To add to.
        piece: Reads whole row groups.
    """

    def __init__(self, task: ReadTask, counts: ReadCounts, piece: Piece) -> None:
        assert task.predicate is not None
        self.task, self.predicate, self.counts, self._piece = task, task.predicate, counts, piece

    @cached_property
    def wanted_keys(self) -> WantedKeys | None:
        """The record keys that the predicate asks for, if it does."""
        from hudimeta.slices.record_keys import wanted_keys

        found = wanted_keys(self.predicate, self.task.properties)
        return None if isinstance(found, str) else found

    def pieces(
        self, file: BaseFile, groups: Sequence[int], wanted: pa.Schema, instant: str, constants: pa.Table
    ) -> Iterator[pa.Table]:
        """Rows of some row groups, in the order of the file.

        Args:
            file: Open.
            groups: Numbers of the row groups.
            wanted: What comes out.
            instant: Of the file.
            constants: What the path states, one row; it goes before what the file says.
        """
        footer = file.footer if self.task.footers and self.task.history is None else None
        if footer is None:
            judged = JudgedRows(np.ones(file.row_groups, np.bool_), "", {})
        else:
            judged = judged_rows(footer, file.page_index, self.predicate, constants.column_names, self.wanted_keys)
            if not judged.groups.any():
                self.counts.ruled_out[file.path] = judged.because
            self.counts.row_groups += len(groups)
            self.counts.row_groups_skipped += sum(not judged.groups[number] for number in groups)
        looked_at = {column.path[0] for column in self.predicate.columns}
        columns = _Columns(
            pa.schema([f for f in wanted if f.name in looked_at]),
            pa.schema([f for f in wanted if f.name not in looked_at]),
            constants.select([name for name in constants.column_names if name in looked_at]),
        )
        for number in groups:
            if judged.groups[number]:
                maybe = judged.rows.get(number)
                few = None if maybe is None else self._few(file, number, wanted, maybe)
                if few is not None:
                    yield few
                    continue
                head = self._head(file, number, columns.first, instant, maybe)
                if not len(columns.others):
                    yield head.rows
                else:
                    yield from self._whole(file, number, columns, instant, head)

    def _few(self, file: BaseFile, number: int, wanted: pa.Schema, maybe: Mask) -> pa.Table | None:
        """All columns of the pages that may hold a match, if these are so few that reading them by parts takes longer."""
        if np.count_nonzero(maybe) > _FEW_ROWS or not len(wanted):
            return None
        return self._some(file, number, wanted, maybe)

    def _some(self, file: BaseFile, number: int, columns: pa.Schema, maybe: Mask) -> pa.Table | None:
        """Some rows of a row group; None where reading all takes hardly longer."""
        found = file.matching(number, leaf_paths(columns), maybe)
        if found is None:
            return None
        self.counts.rows_ruled_out += len(maybe) - found[0].num_rows
        return conform(found[0], columns)

    def _head(self, file: BaseFile, number: int, columns: pa.Schema, instant: str, maybe: Mask | None) -> _Head:
        """The columns of the predicate, of the pages that may hold a match."""
        rows = None if maybe is None or not len(columns) else self._some(file, number, columns, maybe)
        return _Head(self._piece(file, number, columns, instant), None) if rows is None else _Head(rows, maybe)

    def _whole(self, file: BaseFile, number: int, columns: _Columns, instant: str, head: _Head) -> Iterator[pa.Table]:
        """The other columns beside those of the predicate, if any row matches; of its pages only, where that can be."""

        from hudimeta.predicate import evaluate

        matches = fill_null(evaluate(self.predicate, with_constants(head.rows, columns.stated)), False)
        mask = numpy_of(matches)
        if not mask.any():
            self.counts.rows_read += head.rows.num_rows
            return
        found = None
        if self.task.history is None:
            found = file.matching(number, leaf_paths(columns.others), head.of_group(mask))
        first = head.rows
        if found is not None:
            rest = conform(found[0], columns.others)
            self.counts.rows_passed_by += max(0, first.num_rows - found[1])
            self.counts.rows_read += first.num_rows - rest.num_rows
            first = first.filter(matches)
        else:
            rest = self._piece(file, number, columns.others, instant)
            if head.maybe is not None:
                rest = rest.filter(array_of(head.maybe))
        read = [*first.columns, *rest.columns] if len(columns.first) else rest.columns
        yield pa.table(read, schema=pa.schema([*columns.first, *columns.others]))


@dataclass(frozen=True)
class _Columns:
    """Attributes: first: Those of the predicate. others: The others. stated: Of the former what the path states, one row."""

    first: pa.Schema
    others: pa.Schema
    stated: pa.Table


@dataclass(frozen=True)
class _Head:
    """The columns of the predicate in a row group. Attributes: rows: Of them. maybe: Which of the row group; None for all."""

    rows: pa.Table
    maybe: Mask | None

    def of_group(self, mask: Mask) -> Mask:
        """Some of the rows, as rows of the row group."""
        if self.maybe is None:
            return mask
        found = np.zeros(len(self.maybe), np.bool_)
        found[np.flatnonzero(self.maybe)[mask]] = True
        return found


def filled_with(piece: pa.Table, constants: pa.Table) -> pa.Table:
    """Rows with columns that have one value where the rows say nothing."""
    import pyarrow.compute as pc

    for name in constants.column_names:
        value = constants.column(name)[0]
        if value.is_valid and name in piece.column_names:
            at, column = piece.column_names.index(name), piece.column(name)
            piece = piece.set_column(at, name, pc.if_else(column.is_valid(), column, value.cast(column.type)))
        elif name not in piece.column_names:
            piece = piece.append_column(name, pa.repeat(value, piece.num_rows))
    return piece


def with_constants(piece: pa.Table, constants: pa.Table) -> pa.Table:
    """Rows with columns that have one value; they go before what the rows say."""
    for name in constants.column_names:
        values = pa.repeat(constants.column(name)[0], piece.num_rows)
        at = piece.schema.get_field_index(name)
        piece = piece.append_column(name, values) if at < 0 else piece.set_column(at, name, values)
    return piece
