"""The third step of a routed write, on the driver: from counts of rows to pieces of work, one a file group.

New rows fill small files first and begin file groups then, exactly as `plan_inserts` has it; only that here they are spans of
staged files, of which the driver knows the numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hudimeta.table.key_file import KeyFile
from hudimeta.write.operations import GroupRewrite, WritePlan
from hudimeta.write.placement import FileSizing, SmallFile, shares_of
from hudimeta.write.routed.exchange import Span, cut, rows_of
from hudimeta.write.routed.places import Place, PlacedRows, Role

__all__ = ["Piece", "Pieces", "ages_of", "pieces_of"]


@dataclass(frozen=True)
class Piece:
    """The work on one file group.

    Attributes:
        number: For write tokens.
        partition_path: Where.
        file: Its slice; None for one that is begun.
        file_id: Of one that is begun; None for any.
        as_log: It begins with a log file; of one that is there, rows to append go to its log.
        spans: Its rows, by what they are to it.
        read: About how many bytes of its slice are read.
    """

    number: int
    partition_path: str
    file: KeyFile | None
    file_id: str | None
    as_log: bool
    spans: Mapping[Role, Sequence[Span]]
    read: int = 0

    @property
    def size(self) -> int:
        """About how many bytes pass through memory."""
        staged = sum(span.size for spans in self.spans.values() for span in spans)
        return staged + self.read


@dataclass
class Pieces:
    """All pieces. Attributes: pieces: Without numbers yet. grown: Partitions that get new rows."""

    pieces: list[Piece] = field(default_factory=list)
    grown: set[str] = field(default_factory=set)


def pieces_of(
    placed: Sequence[PlacedRows],
    small: Mapping[str, Sequence[KeyFile]],
    sizing: FileSizing,
    one_bucket: bool,
    read_for_log: float | None = None,
) -> Pieces:
    """Cut the work.

    Args:
        placed: What the tasks found.
        small: File groups by partition that may receive new rows; {} for none.
        sizing: Sizes.
        one_bucket: File ids name buckets, of which each is begun once whatever ids the tasks made up.
        read_for_log: Share of a slice that is read to lay a log file over it; None where none are written.
    """
    spans, files = _together(placed, one_bucket)
    as_log = sizing.into_logs or any(one.as_logs for one in placed)
    found = Pieces()
    groups: dict[tuple[str, str], dict[Role, list[Span]]] = {}
    for place, own in spans.items():
        if place.role is Role.FRESH:
            continue
        groups.setdefault((place.partition_path, place.file_id), {})[place.role] = own
        if place.role is Role.BEGINNING:
            found.grown.add(place.partition_path)
    begun: list[tuple[str, list[Span]]] = []
    for place, own in spans.items():
        if place.role is not Role.FRESH:
            continue
        path = place.partition_path
        found.grown.add(path)
        open_files = sizing.open_files(small.get(path, ()))
        for file_id, start, stop in shares_of(rows_of(own), [SmallFile.of(f) for f in open_files.values()], sizing):
            if file_id is None:
                begun.append((path, cut(own, start, stop)))
            else:
                files[path, file_id] = open_files[file_id]
                groups.setdefault((path, file_id), {})[Role.FRESH] = cut(own, start, stop)
    for (path, file_id), roles in groups.items():
        file = None if Role.BEGINNING in roles else files[path, file_id]
        rewritten = read_for_log is None or (Role.FRESH in roles and not sizing.into_logs)
        share = 1 if rewritten or read_for_log is None else read_for_log
        read = 0 if file is None else round(file.size * share)
        found.pieces.append(Piece(len(found.pieces), path, file, file_id, as_log, roles, read))
    for path, own in begun:
        found.pieces.append(Piece(len(found.pieces), path, None, None, as_log, {Role.FRESH: own}))
    return found


def _together(placed: Sequence[PlacedRows], one_bucket: bool) -> tuple[dict[Place, list[Span]], dict[tuple[str, str], KeyFile]]:
    """The spans of each place from all tasks, and the file groups that are there."""
    spans: dict[Place, list[Span]] = {}
    files: dict[tuple[str, str], KeyFile] = {}
    ids: dict[tuple[str, str], str] = {}
    for one in placed:
        files |= one.files
        for place, own in one.spans.items():
            if place.role is Role.BEGINNING and one_bucket:
                bucket = place.file_id.partition("-")[0]
                known = ids.setdefault((place.partition_path, bucket), place.file_id)
                place = Place(place.role, place.partition_path, known)
            spans.setdefault(place, []).extend(own)
    return spans, files


def ages_of(pieces: Sequence[Piece]) -> WritePlan:
    """The file groups that the pieces rewrite, as a plan that `check_ages` can look at."""
    none = np.zeros(0, np.int64)
    return WritePlan([GroupRewrite(p.partition_path, p.file, none, none) for p in pieces if p.file is not None])
