"""Running the checks: which there are for a table, and what became of the table meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from hudimeta.engine import Engine, LocalEngine
from hudimeta.errors import ConfigError, CorruptFileError, IndexNotReady, MetadataError, NotFound
from hudimeta.indexes.record_window.settings import WindowSettings
from hudimeta.metadata import (
    bloom_filters,
    column_stats,
    expression_index,
    files,
    partition_stats,
    record_index,
    secondary_index,
)
from hudimeta.redaction import hidden
from hudimeta.services.validation.every_byte import EveryByte
from hudimeta.services.validation.expressions import Expressions
from hudimeta.services.validation.filters import check_filters
from hudimeta.services.validation.keyed import KeyedIndexes
from hudimeta.services.validation.listing import Listings
from hudimeta.services.validation.result import CheckResult, Difference, ValidationReport
from hudimeta.services.validation.statistics import Statistics
from hudimeta.services.validation.subject import Subject
from hudimeta.services.validation.window import RECORD_WINDOW, check_window
from hudimeta.snapshot.snapshot import Snapshot

__all__ = ["validate"]

Check = tuple[str, Callable[[], CheckResult]]


def validate(
    snapshot: Snapshot, partitions: Sequence[str] | None = None, engine: Engine | None = None, *, deep: bool = False
) -> ValidationReport:
    """Compare a table's metadata table with the table.

    Args:
        snapshot: The newest moment of the table.
        partitions: Metadata partitions to check, and `record_window`; None for all that are ready.
        engine: Where files are read.
        deep: Read every byte of the table as well, with or without a metadata table.

    Returns:
        What holds, what differs, and what cannot be known.

    Raises:
        IndexNotReady: The table has no metadata table, or not that partition.
        ConfigError: A name that is no metadata partition of the table.
    """
    every = EveryByte(snapshot, engine or LocalEngine()) if deep else None
    try:
        metadata = snapshot.metadata
    except (NotFound, CorruptFileError, MetadataError) as error:
        if every is None:
            raise
        opened = CheckResult("metadata table", differences=(Difference("cannot be read", 1, (error.message,)),))
        return _report(snapshot, (opened, *_timed(every.checks())))
    if metadata is None:
        if every is not None:
            return _report(snapshot, tuple(_timed(every.checks())))
        raise IndexNotReady(files.PARTITION, f"not there: {snapshot.listing_reason}")
    window = () if WindowSettings.of(snapshot.properties) is None else (RECORD_WINDOW,)
    there = (*metadata.ready, *window)
    for name in partitions or ():
        if name not in there:
            raise ConfigError("partitions", name, ", ".join(there))
    subject = Subject(snapshot, metadata, engine or LocalEngine())
    wanted = there if partitions is None else tuple(partitions)
    results = tuple(_run(name, check) for kind in CHECKS for name, check in kind(subject, wanted))
    return _report(snapshot, results if every is None else (*results, *_timed(every.checks())))


def _report(snapshot: Snapshot, results: tuple[CheckResult, ...]) -> ValidationReport:
    return ValidationReport(hidden(snapshot.storage.root), snapshot.latest_write, results, _moved(snapshot))


def _timed(results: Iterator[CheckResult]) -> Iterator[CheckResult]:
    begin = time.perf_counter()
    for found in results:
        yield replace(found, seconds=time.perf_counter() - begin)
        begin = time.perf_counter()


def _of_listings(subject: Subject, wanted: Sequence[str]) -> Iterator[Check]:
    if files.PARTITION in wanted:
        listings = Listings(subject)
        yield files.PARTITION, listings.check_files
        yield "file slices", listings.check_slices


def _of_statistics(subject: Subject, wanted: Sequence[str]) -> Iterator[Check]:
    statistics = Statistics(subject)
    if column_stats.PARTITION in wanted:
        yield column_stats.PARTITION, statistics.check_files
    if partition_stats.PARTITION in wanted:
        yield partition_stats.PARTITION, statistics.check_partitions


def _of_filters(subject: Subject, wanted: Sequence[str]) -> Iterator[Check]:
    if bloom_filters.PARTITION in wanted:
        yield bloom_filters.PARTITION, partial(check_filters, subject)


def _of_keys(subject: Subject, wanted: Sequence[str]) -> Iterator[Check]:
    secondary = [name for name in wanted if name.startswith(secondary_index.PREFIX)]
    keyed = KeyedIndexes(subject, secondary)
    if record_index.PARTITION in wanted:
        yield record_index.PARTITION, keyed.check_records
    for name in secondary:
        yield name, partial(keyed.check_secondary, name)
    if RECORD_WINDOW in wanted:
        yield RECORD_WINDOW, partial(check_window, subject, keyed)


def _of_expressions(subject: Subject, wanted: Sequence[str]) -> Iterator[Check]:
    named = [name for name in wanted if name.startswith(expression_index.PREFIX)]
    expressions = Expressions(subject, named)
    for name in named:
        yield name, partial(expressions.check, name)


CHECKS: tuple[Callable[[Subject, Sequence[str]], Iterable[Check]], ...] = (
    _of_listings,
    _of_statistics,
    _of_filters,
    _of_keys,
    _of_expressions,
)
"""From the metadata partitions that are wanted to what to check, cheapest first. A new kind is one line here."""


def _run(name: str, check: Callable[[], CheckResult]) -> CheckResult:
    """A result also of a partition that cannot be read: that is what validation is there to find."""
    begin = time.perf_counter()
    try:
        found = check()
    except (NotFound, CorruptFileError, MetadataError) as error:
        found = CheckResult(name, differences=(Difference("cannot be read", 1, (error.message,)),))
    return replace(found, name=name, seconds=time.perf_counter() - begin)


def _moved(snapshot: Snapshot) -> tuple[str, ...]:
    """Instants that are on the timeline now in another state than the snapshot shows."""
    now = snapshot.properties.load_timeline(snapshot.storage)
    changed = {*now.instants} ^ {*snapshot.timeline.instants}
    return tuple(sorted({instant.time for instant in changed}))
