"""What could be built for the noted reads: every index that their predicates could use and the table lacks.

What each would leave a read to read is judged on the slices that were drawn, by the rules that skipping goes by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.commit.session import WriteSession
from hudimeta.errors import ConfigError, HudiError
from hudimeta.indexes.column_stats.skip import statistic_columns
from hudimeta.indexes.expression_index.matching import ARGUMENTS, IndexedExpression, indexed_expression, stated_options
from hudimeta.indexes.plan import plan_index
from hudimeta.indexes.planned import secondary_index_definition
from hudimeta.metadata import column_stats, record_index
from hudimeta.metadata.expression_index import PREFIX, ExpressionKind
from hudimeta.metadata.index_definitions import IndexDefinition
from hudimeta.metadata.indexed_columns import has_statistics
from hudimeta.predicate import Expr, to_sql
from hudimeta.services.advice.asked import AskedQuery, TableSlices
from hudimeta.services.advice.report import Measure
from hudimeta.services.advice.samples import Samples
from hudimeta.slices.record_keys import wanted_keys
from hudimeta.snapshot.partition_columns import stated_columns
from hudimeta.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from hudimeta.predicate import Bound

__all__ = ["Candidate", "Expressible", "Facts", "index_candidates", "wanted_expressions"]


@dataclass(frozen=True)
class Expressible:
    """An expression of the noted predicates that an index can be over."""

    definition: IndexDefinition
    indexed: IndexedExpression

    @property
    def sql(self) -> str:
        """The expression."""
        return to_sql(self.indexed.expr)


@dataclass(frozen=True)
class Facts:
    """What all candidates are judged by.

    Attributes:
        session, snapshot: The table.
        slices: All that it has.
        queries: The noted reads.
        samples: What some slices hold.
        expressible: Expressions that an index can be over.
    """

    session: WriteSession
    snapshot: Snapshot
    slices: TableSlices
    queries: Sequence[AskedQuery]
    samples: Samples
    expressible: Sequence[Expressible] = ()

    @property
    def ready(self) -> tuple[str, ...]:
        """Metadata partitions of the table."""
        metadata = self.snapshot.metadata
        return metadata.ready if metadata is not None else ()

    @property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """Of its indexes."""
        metadata = self.snapshot.metadata
        return metadata.index_definitions if metadata is not None else {}

    @property
    def with_statistics(self) -> frozenset[str]:
        """Columns whose bounds are known of each file."""
        found = self.definitions.get(column_stats.PARTITION)
        return frozenset(found.source_fields) if found is not None and column_stats.PARTITION in self.ready else frozenset()

    def left(self, number: int, keep: npt.NDArray[np.bool_]) -> float:
        """Bytes that a query would read, if of the slices that were drawn only some were kept."""
        query, sizes = self.queries[number], self.slices.sizes[self.samples.places].astype(np.float64)
        asked = np.isin(self.samples.places, query.kept)
        whole = float(sizes[asked].sum())
        return query.bytes * float(sizes[asked & keep].sum()) / whole if whole else float(query.bytes)

    def without_statistics(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Those of some columns that bounds would have to be gathered of."""
        return tuple(name for name in columns if name not in self.with_statistics)


@dataclass(frozen=True)
class Candidate:
    """Something that could be built.

    Attributes:
        measure, columns, expression, index, layout: See `Recommendation`.
        kept: Bytes that each query would read with it.
        statistics: Columns whose bounds must be gathered too.
        record_index: A record index must be built too.
        definition: Of an expression index.
    """

    measure: Measure
    columns: tuple[str, ...]
    kept: npt.NDArray[np.float64]
    expression: str = ""
    index: str = ""
    layout: str = ""
    statistics: tuple[str, ...] = ()
    record_index: bool = False
    definition: IndexDefinition | None = field(default=None, compare=False)

    @property
    def first(self) -> tuple[str, ...]:
        """What is built along, in words."""
        stats = (f"column_stats({', '.join(self.statistics)})",) if self.statistics else ()
        return stats + ((record_index.PARTITION,) if self.record_index else ())


def wanted_expressions(snapshot: Snapshot, queries: Sequence[AskedQuery]) -> list[Expressible]:
    """The expressions over one column in some predicates that Hudi's expression indexes can be over."""
    from hudimeta.predicate.tree import Call, walk

    known: dict[Expr, Expressible] = {}
    for query in queries:
        for node in walk(query.bound.expr):
            if isinstance(node, Call) and node not in known:
                found = _expressible(node, query.bound, snapshot)
                if found is not None:
                    known[node] = found
    return list(known.values())


def _expressible(node: Expr, bound: Bound, snapshot: Snapshot) -> Expressible | None:
    from hudimeta.predicate.tree import Call, Column, Literal

    assert isinstance(node, Call)
    if not node.args or not isinstance(node.args[0], Column) or len(node.args[0].path) != 1:
        return None
    column, rest = node.args[0], node.args[1:]
    names = ARGUMENTS.get(node.name, ())
    if len(rest) > len(names) or not all(isinstance(arg, Literal) and not arg.is_null for arg in rest):
        return None
    if column.name in stated_columns(snapshot):
        return None
    given = {name: str(arg.scalar.as_py()) for name, arg in zip(names, rest, strict=False) if isinstance(arg, Literal)}
    definition = IndexDefinition("", ExpressionKind.COLUMN_STATS.value, node.name, (column.name,), {"expr": node.name, **given})
    indexed = indexed_expression(definition, bound.schema, bound.timezone)
    return Expressible(definition, indexed) if indexed is not None and indexed.expr == node else None


def index_candidates(facts: Facts) -> Iterator[Candidate]:
    """Every index that some noted predicate could use, and the table lacks."""
    if facts.snapshot.metadata is None:
        return
    yield from _statistics(facts)
    yield from _expressions(facts)
    yield from _record(facts)
    yield from _secondary(facts)


def _statistics(facts: Facts) -> Iterator[Candidate]:
    looked_at = list(dict.fromkeys(n for q in facts.queries for n in statistic_columns(facts.snapshot, q.bound)))
    schema = facts.snapshot.schema.arrow
    regime = "V2" if facts.snapshot.properties.version >= 9 else "V1"
    for name in facts.without_statistics(looked_at):
        at = schema.get_field_index(name)
        if at >= 0 and not has_statistics(schema.field(at).type, regime):
            continue
        kept = [facts.left(n, facts.samples.by_bounds(q.bound, [name])) for n, q in enumerate(facts.queries)]
        yield Candidate(Measure.COLUMN_STATS, (name,), np.array(kept), index=column_stats.PARTITION, statistics=(name,))


def _expressions(facts: Facts) -> Iterator[Candidate]:
    have = {_shape(definition) for definition in facts.definitions.values()}
    for one in facts.expressible:
        indexed, definition = one.indexed, one.definition
        if not indexed.zoned or indexed.can_be_widened:
            known = [facts.samples.by_bounds(q.bound, (), [indexed.expr]) for q in facts.queries]
            yield from _over(facts, one, definition, have, [facts.left(n, keep) for n, keep in enumerate(known)])
        if pa.types.is_string(indexed.type) and not indexed.zoned:
            filters = replace(definition, kind=ExpressionKind.BLOOM_FILTERS.value)
            yield from _over(facts, one, filters, have, _matching(facts, indexed.expr))


def _over(
    facts: Facts, one: Expressible, definition: IndexDefinition, have: set[tuple[object, ...]], kept: Sequence[float]
) -> Iterator[Candidate]:
    if _shape(definition) in have:
        return
    short = f"{definition.source_fields[0]}_{definition.function}".lower()
    if definition.kind == ExpressionKind.BLOOM_FILTERS.value:
        short += "_bloom"
    name = _free_name("".join(c if c.isalnum() else "_" for c in short), facts.ready)
    yield Candidate(
        Measure.EXPRESSION_INDEX,
        definition.source_fields,
        np.array(kept),
        expression=one.sql,
        index=PREFIX + name,
        definition=replace(definition, name=PREFIX + name),
    )


def _shape(definition: IndexDefinition) -> tuple[object, ...]:
    given = stated_options(definition.function, definition.options)
    return definition.kind, definition.function, definition.source_fields, tuple(sorted(given.items()))


def _free_name(short: str, ready: Sequence[str]) -> str:
    names = (short, *(f"{short}_{number}" for number in range(2, len(ready) + 3)))
    return next(name for name in names if PREFIX + name not in ready)


def _matching(facts: Facts, key: str | Expr) -> list[float]:
    """Bytes that each query would read of slices with one of the values that it fixes a column or expression to."""
    every = np.ones(len(facts.samples.places), np.bool_)
    return [facts.left(n, facts.samples.matching.get((n, key), every)) for n in range(len(facts.queries))]


def _record(facts: Facts) -> Iterator[Candidate]:
    if record_index.PARTITION in facts.ready or not _can_build(facts, record_index.PARTITION):
        return
    kept, columns, every = [], [], np.ones(len(facts.samples.places), np.bool_)
    for number, query in enumerate(facts.queries):
        asked = wanted_keys(query.bound, facts.snapshot.properties, by_fields=facts.snapshot.history is None)
        keep = every
        if not isinstance(asked, str):
            names = [name for (n, name) in facts.samples.matching if n == number and isinstance(name, str)]
            used = [name for name in (*facts.snapshot.properties.record_keys, "_hoodie_record_key") if name in names]
            columns += used
            for name in used:
                keep = keep & facts.samples.matching[number, name]
        kept.append(facts.left(number, keep))
    if columns:
        found = tuple(dict.fromkeys(columns))
        yield Candidate(Measure.RECORD_INDEX, found, np.array(kept), index=record_index.PARTITION)


def _secondary(facts: Facts) -> Iterator[Candidate]:
    properties, schema = facts.snapshot.properties, facts.session.snapshot_now().file_schema
    lacks = record_index.PARTITION not in facts.ready
    if lacks and not _can_build(facts, record_index.PARTITION):
        return
    known = facts.definitions.get(record_index.PARTITION)
    if known is not None and known.is_partitioned:
        return
    indexed = {d.source_fields for d in facts.definitions.values() if d.kind == "secondary_index"}
    names = dict.fromkeys(name for _, name in facts.samples.matching if isinstance(name, str))
    for name in names:
        if (name,) in indexed or name in properties.record_keys or name in stated_columns(facts.snapshot):
            continue
        try:
            definition = secondary_index_definition(schema, name, properties.version)
        except ConfigError:  # a column of a type that Hudi does not index
            continue
        yield Candidate(
            Measure.SECONDARY_INDEX, (name,), np.array(_matching(facts, name)), index=definition.name, record_index=lacks
        )


def _can_build(facts: Facts, kind: str) -> bool:
    try:
        schema = facts.session.snapshot_now().file_schema
        plan_index(facts.snapshot.properties, schema, facts.session.options, facts.definitions, kind=kind)
    except HudiError:
        return False
    return True
