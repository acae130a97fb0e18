"""The fourth step of a routed write: a task reads what is laid aside for its file groups and writes their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hudimeta.engine import LocalEngine
from hudimeta.indexes.written_file import WrittenFile
from hudimeta.keys import generated_keys
from hudimeta.table.file_names import WriteToken
from hudimeta.types import Operation
from hudimeta.write.bulk_sort import sorted_for_bulk_insert
from hudimeta.write.execution import FileWriters, execute_plan
from hudimeta.write.operations import GroupRewrite, NewGroup, WritePlan
from hudimeta.write.routed.context import OpenedTable, RoutedWrite
from hudimeta.write.routed.exchange import read_spans, rows_of
from hudimeta.write.routed.files import FactsSpec, RoutedFiles, handed_back
from hudimeta.write.routed.pieces import Piece
from hudimeta.write.routed.places import Role
from hudimeta.write.row_buckets import batch_of

__all__ = ["PieceWriter", "shared_out"]

_TASK_BYTES = 32 << 20


@dataclass(frozen=True)
class PieceWriter:
    """The task, on some pieces.

    Attributes:
        write: The write.
        facts: What the indexes want of files.
        only: Columns that log files store; None for all.
    """

    write: RoutedWrite
    facts: FactsSpec
    only: frozenset[str] | None = None

    def __call__(self, pieces: Sequence[Piece], attempt: int) -> RoutedFiles:
        """Write the files of the pieces, one after the other."""
        opened = self.write.opened()
        files = [file for piece in pieces for file in self._written(opened, piece, attempt)]
        return handed_back(opened, self.write, self.facts, files, pieces[0].number, attempt)

    def _written(self, opened: OpenedTable, piece: Piece, attempt: int) -> list[WrittenFile]:
        session, table, write = opened.session, opened.table, self.write
        roles = sorted(piece.spans)
        batch = batch_of(read_spans(opened.storage, [span for role in roles for span in piece.spans[role]]))
        if piece.file is None and write.open_write.operation is Operation.BULK_INSERT:
            batch = sorted_for_bulk_insert(batch, session.options)
        if batch.keys is None:
            batch = replace(batch, keys=generated_keys(len(batch), write.instant, piece.number))
        writers = FileWriters.of(session, table, write.open_write, write.schema, self.only)
        return execute_plan(_plan(piece, len(batch)), batch, writers, LocalEngine(1), WriteToken(piece.number, attempt))


def _plan(piece: Piece, rows: int) -> WritePlan:
    """The piece over its rows, which stand in the order of their roles."""
    if piece.file is None:
        return WritePlan(new_groups=[NewGroup(piece.partition_path, np.arange(rows), piece.file_id, piece.as_log)])
    at, where = 0, {role: np.zeros(0, np.int64) for role in Role}
    for role in sorted(piece.spans):
        count = rows_of(piece.spans[role])
        where[role] = np.arange(at, at + count)
        at += count
    changed, fresh, removed, unresolved = (where[r] for r in (Role.CHANGED, Role.FRESH, Role.REMOVED, Role.UNRESOLVED))
    return WritePlan([GroupRewrite(piece.partition_path, piece.file, changed, fresh, removed, unresolved, piece.as_log)])


def shared_out(pieces: Sequence[Piece], parallelism: int) -> list[list[Piece]]:
    """Pieces shared out among tasks, small ones together; the numbers of the pieces make the tasks' names."""
    tasks: list[list[Piece]] = []
    size = 0
    limit = min(_TASK_BYTES, sum(piece.size for piece in pieces) // max(1, parallelism))
    for piece in pieces:
        if not tasks or size + piece.size > limit:
            tasks.append([])
            size = 0
        tasks[-1].append(piece)
        size += piece.size
    return tasks
