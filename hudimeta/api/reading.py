"""From the arguments of `Table.scan` and the options of a table to a scan. Nothing is read here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hudimeta.config import Options
from hudimeta.config.options import COLUMNS, FILTER, INCREMENTAL_FORMAT, QUERY_TYPE, READ_CORRUPT
from hudimeta.read.incremental import Moment, ReadMoment, range_of, refuse_range
from hudimeta.read.request import ScanRequest
from hudimeta.read.scan import Scan
from hudimeta.redaction import redacted
from hudimeta.types import QueryType

if TYPE_CHECKING:
    from hudimeta.predicate import Expr, Where
    from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["ReadRequest", "scan_of"]

_BEFORE_ALL = "19700101000000000"
_OF_CHANGES = (QueryType.INCREMENTAL, QueryType.CDC)


@redacted
@dataclass(frozen=True)
class ReadRequest:
    """What `Table.scan` was asked for; see there."""

    where: Where | None = None
    columns: str | Sequence[str] | None = None
    as_of: str | None = None
    query_type: str | QueryType | None = None
    begin: str | None = None
    end: str | None = None
    limit: int | None = None
    timezone: str = "UTC"

    def kind(self, options: Options) -> QueryType:
        """The query type that is asked for, by the argument or else by the option."""
        asked = self.query_type.value if isinstance(self.query_type, QueryType) else self.query_type
        return QueryType((options if asked is None else options.having({QUERY_TYPE.key: asked})).get(QUERY_TYPE))


@redacted
@dataclass(frozen=True)
class _AskedMoment(ReadMoment):
    """The moment that a read asks for; goes to other processes with the table.

    Attributes:
        request: The arguments.
        find: Finds the snapshot of a moment, and the mark of its request log.
        of_changes: A range of commits is read.
        of_files: Of the range, the files that the commits wrote are needed.
    """

    request: ReadRequest
    find: Callable[[str | None], tuple[Snapshot, int]]
    of_changes: bool
    of_files: bool

    def __call__(self) -> Moment:
        snapshot, mark = self.find(self.request.as_of)
        begin, end = self.request.begin, self.request.end
        return Moment(snapshot, range_of(snapshot, begin, end, of_files=self.of_files) if self.of_changes else None, mark)

    def settled(self, found: Moment) -> _AskedMoment:
        if found.changes is None:  # by its newest write: what was asked for may be still to come
            return replace(self, request=replace(self.request, as_of=found.snapshot.latest_write or _BEFORE_ALL))
        written = max((write.completed_at for write in found.snapshot.timeline.writes), default=_BEFORE_ALL)
        return replace(self, request=replace(self.request, end=min(found.changes.end or written, written)))


def scan_of(request: ReadRequest, options: Options, moment: Callable[[str | None], tuple[Snapshot, int]]) -> Scan:
    """The scan that is asked for.

    Args:
        request: The arguments.
        options: Of the table; arguments go before them, but a predicate and columns choose within what the options leave.
        moment: Finds the snapshot of a moment, and the mark of its request log; called when the scan is first used.

    Raises:
        ConfigError: What cannot be right in any table.
    """
    kind = request.kind(options)
    refuse_range(kind, options, request.begin, request.end, request.as_of)
    given = request.columns
    columns = options.having({COLUMNS.key: given}).get(COLUMNS) if isinstance(given, str) else given
    among = options.get(COLUMNS) or None
    columns = columns if columns is not None else among
    where, kept = _read(request.where), _kept(options.get(FILTER))

    of_changes = kind in _OF_CHANGES
    as_changes = kind is QueryType.CDC or (of_changes and options.get(INCREMENTAL_FORMAT) == QueryType.CDC.value)

    opened = _AskedMoment(request, moment, of_changes, as_changes)
    skip_damage = options.get(READ_CORRUPT) == "skip"
    asked = ScanRequest(where, columns, kept, among, kind, request.timezone, skip_damage, request.limit)
    if as_changes:
        from hudimeta.read.cdc_scan import ChangeScan

        return ChangeScan(opened, asked)
    return Scan(opened, asked)


def _kept(text: str | None) -> Expr | None:
    if text is None:
        return None
    from hudimeta.predicate import parse

    return parse(text)


def _read(where: Where | None) -> Where | None:
    """A predicate as a tree, so that a mistake in its text is an error at once; an expression of PyArrow's stays one."""
    if where is None:
        return None
    from hudimeta.predicate import is_arrow_expression, parse

    return where if is_arrow_expression(where) else parse(where)
