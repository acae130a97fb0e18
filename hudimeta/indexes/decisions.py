"""For each file of a plan: whether it is read, and if not, which knowledge and which part of the predicate decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudimeta.formats.plain_arrays import array_of, no_rows, scalar_of
from hudimeta.indexes.pruning import Verdicts
from hudimeta.predicate import Expr

__all__ = ["DECISIONS", "Decisions", "LeftOut"]

DECISIONS = pa.schema(
    [
        ("partition_path", pa.string()),
        ("file_name", pa.string()),
        ("size", pa.int64()),
        ("kept", pa.bool_()),
        ("decided_by", pa.string()),
        ("conjunct", pa.string()),
    ]
)
"""Columns of `Decisions.to_arrow`."""


@dataclass(frozen=True)
class LeftOut:
    """Slices that something left out.

    Attributes:
        whole: The slices before, columns of `table.slices.slices_schema()`.
        verdicts: Which of them are left.
        by: What decided.
        because: The parts of the predicate that `verdicts` counts.
    """

    whole: pa.Table
    verdicts: Verdicts
    by: str
    because: Sequence[Expr]

    @property
    def slices(self) -> pa.Table:
        """The slices that are left out."""
        return self.whole.filter(array_of(~self.verdicts.keep))

    @property
    def texts(self) -> pa.Array:
        """For each of them the part of the predicate why."""
        return self.verdicts.texts(self.because)


@dataclass(frozen=True)
class Decisions:
    """What was decided while planning; becomes a table when it is asked for.

    Attributes:
        kept: Slices that are read.
        slices: Slices left out.
        partitions: Paths of partitions left out whole, likewise.
        ruled_out: By path those base files of `kept` of which no row was read, and the part of the predicate why.
    """

    kept: pa.Table | None = None
    slices: Sequence[LeftOut] = ()
    partitions: Sequence[tuple[pa.Array, str, pa.Array]] = ()
    ruled_out: Mapping[str, str] = field(default_factory=dict)

    def to_arrow(self) -> pa.Table:
        """One row a file, base or log.

        Returns:
            partition_path string; file_name string, None for a partition that was left out whole, whose files were not looked
            up; size int64; kept bool; decided_by string and conjunct string, None where kept. A base file that was opened, and
            of which then no row was read, is kept, decided by `footers`.
        """
        parts = [no_rows(DECISIONS)]
        for paths, by, texts in self.partitions:
            nothing = [pa.nulls(len(paths), pa.string()), pa.nulls(len(paths), pa.int64())]
            parts.append(_rows([paths, *nothing], by, texts))
        parts += [_of_slices(gone.slices, gone.by, gone.texts) for gone in self.slices]
        if self.kept is not None:
            parts.append(self._read(_of_slices(self.kept, None, pa.nulls(self.kept.num_rows, pa.string()))))
        return pa.concat_tables(parts)

    def _read(self, kept: pa.Table) -> pa.Table:
        """Kept files with what their footers said."""
        import pyarrow.compute as pc

        if not self.ruled_out:
            return kept
        paths = pc.utf8_ltrim(pc.binary_join_element_wise(kept["partition_path"], kept["file_name"], scalar_of("/")), "/")
        at = pc.index_in(paths, value_set=array_of(list(self.ruled_out), pa.string()))
        texts = array_of(list(self.ruled_out.values()), pa.string()).take(at.combine_chunks())
        by = pc.if_else(at.is_valid(), scalar_of("footers"), scalar_of(None, pa.string()))
        return pa.table([*kept.columns[:4], by, texts], schema=DECISIONS)


def _of_slices(slices: pa.Table, by: str | None, texts: pa.Array) -> pa.Table:
    import pyarrow.compute as pc

    if not slices.num_rows:
        return no_rows(DECISIONS)
    columns = {name: slices.column(name).combine_chunks() for name in slices.column_names}
    with_base = columns["base_file"].is_valid()
    paths = columns["partition_path"]
    base = [c.filter(with_base) for c in (paths, columns["base_file"], columns["base_size"])]
    of_logs = pc.list_parent_indices(columns["log_files"])
    logs = [paths.take(of_logs), pc.list_flatten(columns["log_files"]), pc.list_flatten(columns["log_sizes"])]
    return pa.concat_tables([_rows(base, by, texts.filter(with_base)), _rows(logs, by, texts.take(of_logs))])


def _rows(columns: Sequence[pa.Array], by: str | None, texts: pa.Array) -> pa.Table:
    count = len(texts)
    kept = pa.repeat(scalar_of(by is None), count)
    return pa.table([*columns, kept, pa.repeat(scalar_of(by, pa.string()), count), texts], schema=DECISIONS)
