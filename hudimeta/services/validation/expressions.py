"""Do expression indexes enclose what their expressions come to, file by file?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.config.options import INDEX_TRUST
from hudimeta.errors import CorruptFileError, MetadataError, NotFound
from hudimeta.formats.bloom import BloomFilter
from hudimeta.formats.parquet import BoundsOfColumns
from hudimeta.indexes.expression_index.facts import index_timezone
from hudimeta.indexes.expression_index.matching import IndexedExpression, indexed_expression, widened
from hudimeta.metadata import answers
from hudimeta.metadata.expression_index import ExpressionKind
from hudimeta.predicate import Bound, bind_value, evaluate
from hudimeta.services.validation.filters import filter_at, filters_of, missed_by
from hudimeta.services.validation.result import CheckResult, Findings
from hudimeta.services.validation.statistics import breaches, gathered
from hudimeta.services.validation.subject import Subject, Unreadable
from hudimeta.slices.single_files import SingleFile

__all__ = ["Expressions"]

Filters = dict[tuple[str, str], tuple[str, bytes]]


@dataclass(frozen=True)
class _Stated:
    """One index whose records can be compared with the rows.

    Attributes:
        records: Bounds of files, or the bloom filters of files, or why they cannot be read.
    """

    indexed: IndexedExpression
    bound: Bound
    records: pa.Table | Filters | MetadataError | NotFound | CorruptFileError


@dataclass(frozen=True)
class _Found:
    """What one file holds: by index, the bounds of its values, or how many of them its filter denies."""

    bounds: Mapping[str, pa.Table]
    denied: Mapping[str, int]


class Expressions:
    """The checks of the partitions `expr_index_…`; the rows of each file are read once for all of them.

    Args:
        subject: The table.
        names: The indexes to check.
    """

    def __init__(self, subject: Subject, names: Sequence[str]) -> None:
        self._subject, self._names = subject, names

    def check(self, name: str) -> CheckResult:
        """One index: its expression is computed anew for every file of the latest slices."""
        findings, stated = Findings(), self._stated[name]
        if isinstance(stated, str):
            findings.unknown.append(stated)
        elif isinstance(stated.records, pa.Table):
            self._compare_bounds(name, stated.indexed.type, stated.records, findings)
        elif isinstance(stated.records, dict):
            self._compare_filters(name, stated.records, findings)
        else:
            raise stated.records
        return findings.result(name)

    # What the indexes say

    @cached_property
    def _stated(self) -> dict[str, _Stated | str]:
        """By index; a text says why one cannot be judged."""
        return {name: self._stated_by(name) for name in self._names}

    def _stated_by(self, name: str) -> _Stated | str:
        subject = self._subject
        definition, schema = subject.metadata.index_definitions.get(name), subject.snapshot.schema.arrow
        timezone = index_timezone(subject.snapshot.options, subject.snapshot.properties) or "UTC"
        indexed = None if definition is None else indexed_expression(definition, schema, timezone)
        if definition is None or indexed is None:
            return "its definition is missing, or names an expression that is not known here"
        history = subject.snapshot.history
        if history is not None and not all(map(history.keeps, definition.source_fields)):
            return "older files hold its column under another name or type"
        of_filters = definition.kind == ExpressionKind.BLOOM_FILTERS.value
        in_doubt = indexed.zoned and not subject.snapshot.options.get(INDEX_TRUST)
        if in_doubt and (of_filters or not indexed.can_be_widened):
            return f"its values depend on the time zone of who built it; see {INDEX_TRUST.key}"
        bound = bind_value(indexed.expr, schema, timezone=timezone)
        try:
            if of_filters:
                return _Stated(indexed, bound, filters_of(subject, self._base_files, name))
            records = answers.expression_stats(subject.metadata, name, indexed.type)
        except (NotFound, CorruptFileError, MetadataError) as error:
            return _Stated(indexed, bound, error)
        return _Stated(indexed, bound, widened(records, indexed) if in_doubt else records)

    @cached_property
    def _base_files(self) -> list[SingleFile]:
        return [part for part in self._subject.parts if not part.is_log]

    # What the files hold

    @cached_property
    def _found(self) -> list[_Found | Unreadable]:
        """Of each file of the latest slices."""
        subject = self._subject
        ready = {name: one for name, one in self._stated.items() if not isinstance(one, str)}
        task = subject.task(sorted({column.path[0] for one in ready.values() for column in one.bound.columns}))

        def read(part: SingleFile) -> _Found:
            bounds = {name: BoundsOfColumns([name]) for name, one in ready.items() if isinstance(one.records, pa.Table)}
            filters = {name: found for name, one in ready.items() if (found := _filter_of(part, name, one)) is not None}
            denied = dict.fromkeys(filters, 0)
            for rows in subject.rows(part.alone, task) if bounds or filters else ():
                for name, gathering in bounds.items():
                    gathering.add(pa.table({name: evaluate(ready[name].bound, rows)}))
                for name, bloom in filters.items():
                    denied[name] += missed_by(bloom, evaluate(ready[name].bound, rows).cast(pa.string()))
            return _Found({name: gathering.table() for name, gathering in bounds.items()}, denied)

        return subject.map(read, subject.parts)

    # The comparison

    def _compare_bounds(self, name: str, kind: pa.DataType, stated: pa.Table, findings: Findings) -> None:
        findings.compared = len(self._found)
        pairs = self._readable(self._subject.parts, findings)
        found = gathered([(part, one.bounds[name], 0) for part, one in pairs if len(one.bounds[name])], kind)
        for what, examples in breaches(found, stated.rename_columns(["name", *stated.column_names[1:]])).items():
            findings.wrong(what, examples)
        missing = set(found.rows["name"].to_pylist()) - set(stated["file_name"].to_pylist())
        if missing:
            findings.notes.append(f"{len(missing)} files without a record, such as {min(missing)}")

    def _compare_filters(self, name: str, stated: Filters, findings: Findings) -> None:
        findings.compared = len(self._base_files)
        pairs = self._readable(self._base_files, findings)
        denied = [f"{part.path}: {number:,} values" for part, one in pairs if (number := one.denied.get(name, 0))]
        findings.wrong("filters that deny values of their file", denied)
        missing = [part.name for part in self._base_files if (part.partition_path, part.name) not in stated]
        if missing:
            findings.notes.append(f"{len(missing)} files without a record, such as {missing[0]}")

    def _readable(self, parts: Sequence[SingleFile], findings: Findings) -> list[tuple[SingleFile, _Found]]:
        """What was found in some files; those that cannot be read are a finding."""
        wanted = {part.path for part in parts}
        pairs = [pair for pair in zip(self._subject.parts, self._found, strict=True) if pair[0].path in wanted]
        findings.wrong("files that cannot be read", [one.what for _, one in pairs if isinstance(one, Unreadable)])
        return [(part, one) for part, one in pairs if isinstance(one, _Found)]


def _filter_of(part: SingleFile, name: str, stated: _Stated) -> BloomFilter | None:
    given = stated.records.get((part.partition_path, part.name)) if isinstance(stated.records, dict) else None
    return None if given is None else filter_at(part, name, *given)
