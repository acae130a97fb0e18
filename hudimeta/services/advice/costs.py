"""What building and keeping something takes, about: by the slices that were drawn and by what commits have written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudimeta.commit.table_history import history_of
from hudimeta.metadata.expression_index import ExpressionKind
from hudimeta.services.advice.candidates import Candidate, Facts
from hudimeta.services.advice.report import Measure

__all__ = ["Cost", "Costs"]

_BOUNDS = 150
"""Bytes of the bounds of a column in a file."""
_FILTER, _OF_VALUE = 330_000, 62
"""Bytes of a full bloom filter of Hudi's usual size, and of one value in an emptier one, packed."""
_LOCATION = 16
"""Bytes of a record of the record index, packed."""
_PACKED = 0.5
"""What values and keys in a secondary index shrink to."""
_GROUPS = 50_000
"""Bytes of file groups without a record."""
_KEY = 24
"""Bytes of a record key."""
_LATEST = 20
"""Instants that say what a commit is like."""


@dataclass(frozen=True)
class Cost:
    """Bytes."""

    reads: int
    writes: int
    upkeep: int

    @property
    def weight(self) -> int:
        """For choosing between two that save the same."""
        return self.reads + self.writes + 10 * self.upkeep


class Costs:
    """Of one table.

    Args:
        facts: What was found of it.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        drawn = int(facts.slices.sizes[facts.samples.places].sum())
        self._bytes = int(facts.slices.sizes.sum())
        self._of_drawn = self._bytes / drawn if drawn else 1.0
        self._rows = int(facts.samples.row_counts.sum()) * self._of_drawn
        self._files = facts.slices.rows.num_rows
        rows = history_of(facts.snapshot.timeline, _LATEST).to_pylist()
        wrote = [row for row in rows if row["completion"] and row["bytes"]] or [{"files": 1, "bytes": 0, "rows_inserted": 0}]
        self._commit_files = sum(row["files"] or 0 for row in wrote) / len(wrote)
        self._commit_bytes = sum(row["bytes"] or 0 for row in wrote) / len(wrote)
        self._commit_rows = sum(row["rows_inserted"] or 0 for row in wrote) / len(wrote)

    def of(self, candidate: Candidate) -> Cost:
        """What one takes."""
        reads = self._values(candidate.columns)
        parts = [self._statistics(candidate.statistics)] if candidate.statistics else []
        if candidate.record_index or candidate.measure is Measure.RECORD_INDEX:
            parts.append(self._rows_of(_LOCATION, 0))
        if candidate.measure is Measure.SECONDARY_INDEX:
            value = self._facts.samples.value_bytes.get(candidate.columns[0], float(_KEY))
            parts.append(self._rows_of((_KEY + value) * _PACKED, reads))
        elif candidate.measure is Measure.EXPRESSION_INDEX:
            blooms = candidate.definition is not None and candidate.definition.kind == ExpressionKind.BLOOM_FILTERS.value
            each = min(_FILTER, int(self._rows / self._files * _OF_VALUE)) if blooms else _BOUNDS
            parts.append(Cost(reads, self._files * each, int(self._commit_files * each)))
        elif candidate.measure is Measure.CLUSTERING:
            parts.append(Cost(self._bytes, self._bytes, int(self._commit_bytes)))
        return Cost(*(sum(getattr(part, name) for part in parts) for name in ("reads", "writes", "upkeep")))

    def _statistics(self, columns: Sequence[str]) -> Cost:
        each = _BOUNDS * len(columns)
        return Cost(0, self._files * each, int(self._commit_files * each))  # their footers know

    def _rows_of(self, each: float, reads: int) -> Cost:
        return Cost(reads + int(self._rows * _KEY), _GROUPS + int(self._rows * each), int(self._commit_rows * each))

    def _values(self, columns: Sequence[str]) -> int:
        """Of some columns in all files, not packed."""
        return int(self._rows * sum(self._facts.samples.value_bytes.get(name, float(_KEY)) for name in columns))
