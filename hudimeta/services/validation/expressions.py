"""Do expression indexes enclose what their expressions come to, file by file?"""

from __future__ import annotations

import pyarrow as pa

from hudimeta.config.options import INDEX_TIMEZONE, INDEX_TRUST
from hudimeta.formats.bloom import BloomFilter
from hudimeta.formats.parquet.bounds import BoundsOfColumns
from hudimeta.metadata.expression_index import ExpressionKind
from hudimeta.read.predicate import Bound, bind_value, evaluate
from hudimeta.read.single_files import FilePart
from hudimeta.read.skipping.expressions import IndexedExpression, indexed_expression, widened
from hudimeta.services.validation.filters import filters_of, missed_by
from hudimeta.services.validation.result import CheckResult, Findings
from hudimeta.services.validation.statistics import breaches, gathered
from hudimeta.services.validation.subject import Subject, Unreadable

__all__ = ["check_expressions"]

_VALUE = "value"


def check_expressions(subject: Subject, name: str) -> CheckResult:
    """One partition `expr_index_…`: its expression is computed anew for every file of the latest slices."""
    findings = Findings()
    definition = subject.metadata.index_definitions.get(name)
    schema = subject.snapshot.schema.arrow
    timezone = subject.snapshot.options.get(INDEX_TIMEZONE) or "UTC"
    indexed = None if definition is None else indexed_expression(definition, schema, timezone)
    if definition is None or indexed is None:
        findings.unknown.append("its definition is missing, or names an expression that is not known here")
    elif subject.snapshot.history is not None:
        findings.unknown.append("the table was altered, and the index goes by the columns' former names")
    else:
        bound = bind_value(indexed.expr, schema, timezone=timezone)
        if definition.kind == ExpressionKind.BLOOM_FILTERS.value:
            _check_filters(subject, name, indexed, bound, findings)
        else:
            _check_bounds(subject, name, indexed, bound, findings)
    return findings.result(name)


def _check_bounds(subject: Subject, name: str, indexed: IndexedExpression, bound: Bound, findings: Findings) -> None:
    stated = subject.metadata.expression_stats(name, indexed.type)
    if indexed.zoned and not subject.snapshot.options.get(INDEX_TRUST):
        if not indexed.can_be_widened:
            findings.unknown.append(f"its values depend on the time zone of who built it; see {INDEX_TRUST.key}")
            return
        stated = widened(stated, indexed)
    task = subject.task(sorted({column.path[0] for column in bound.columns}))

    def read(part: FilePart) -> pa.Table:
        found = BoundsOfColumns([_VALUE])
        for rows in subject.rows(part.alone, task):
            found.add(pa.table({_VALUE: evaluate(bound, rows)}))
        return found.table()

    results = subject.map(read, subject.parts)
    findings.compared = len(results)
    findings.wrong("files that cannot be read", [one.what for one in results if isinstance(one, Unreadable)])
    pairs = zip(subject.parts, results, strict=True)
    found = gathered([(p, t, 0) for p, t in pairs if not isinstance(t, Unreadable) and len(t)], indexed.type)
    for what, examples in breaches(found, stated.rename_columns(["name", *stated.column_names[1:]])).items():
        findings.wrong(what, examples)
    missing = set(found.rows["name"].to_pylist()) - set(stated["file_name"].to_pylist())
    if missing:
        findings.notes.append(f"{len(missing)} files without a record, such as {min(missing)}")


def _check_filters(subject: Subject, name: str, indexed: IndexedExpression, bound: Bound, findings: Findings) -> None:
    if indexed.zoned and not subject.snapshot.options.get(INDEX_TRUST):
        findings.unknown.append(f"its values depend on the time zone of who built it; see {INDEX_TRUST.key}")
        return
    parts = [part for part in subject.parts if not part.is_log]
    stated = filters_of(subject, parts, name)
    task = subject.task(sorted({column.path[0] for column in bound.columns}))

    def read(part: FilePart) -> int:
        given = stated.get((part.partition_path, part.name))
        if given is None:
            return 0
        bloom = BloomFilter.from_base64(given[1], given[0], part.name)
        return sum(missed_by(bloom, evaluate(bound, rows).cast(pa.string())) for rows in subject.rows(part.alone, task))

    results = subject.map(read, parts)
    findings.compared = len(results)
    findings.wrong("files that cannot be read", [one.what for one in results if isinstance(one, Unreadable)])
    denied = [f"{p.path}: {n:,} values" for p, n in zip(parts, results, strict=True) if not isinstance(n, Unreadable) and n]
    findings.wrong("filters that deny values of their file", denied)
    missing = [p.name for p in parts if (p.partition_path, p.name) not in stated]
    if missing:
        findings.notes.append(f"{len(missing)} files without a record, such as {missing[0]}")
