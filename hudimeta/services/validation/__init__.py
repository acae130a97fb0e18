"""Validation of a metadata table against the table that it describes, one check a partition.

    files, file slices     listing.py       storage is listed, which nothing else does
    column_stats,
    partition_stats        statistics.py    bounds against the values of every file
    bloom_filters          filters.py       against footers and keys
    record_index,
    secondary_index_*      keyed.py         against all live rows, both ways
    record_window          window.py        of the slices that it knows, both ways
    expr_index_*           expressions.py   computed anew

The table is looked at as of one snapshot. When something differs and the timeline, listed again at the end, has moved, nothing
can be known: a writer or a cleaner may have been faster than the validator.
"""

from __future__ import annotations

from hudimeta.services.validation.result import CheckResult, Difference, Outcome, ValidationReport
from hudimeta.services.validation.run import validate

__all__ = ["CheckResult", "Difference", "Outcome", "ValidationReport", "validate"]
