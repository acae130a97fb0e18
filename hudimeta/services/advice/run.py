"""Advice: from the notes of reads to what is worth building, and building it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hudimeta.commit.session import WriteSession
from hudimeta.engine.machine import now_ms
from hudimeta.indexes.plan import dependents
from hudimeta.metadata import column_stats, files, partition_stats, record_index
from hudimeta.predicate import Expr
from hudimeta.read.noting import NOTES_PATH, merge_now, stored_notes
from hudimeta.read.query_notes import QueryNotes
from hudimeta.redaction import hidden
from hudimeta.services import clustering
from hudimeta.services.advice.asked import TableSlices, asked_queries
from hudimeta.services.advice.candidates import Candidate, Facts, index_candidates, wanted_expressions
from hudimeta.services.advice.costs import Cost, Costs
from hudimeta.services.advice.orders import clustering_options, order_candidates
from hudimeta.services.advice.report import Advice, Measure, Recommendation, UnusedIndex
from hudimeta.services.advice.samples import drawn, sampled
from hudimeta.services.indexing import create_index, drop_index
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage

__all__ = ["advise"]

_LEAST_SHARE = 0.1
"""Of what noted reads read: what saves less is not recommended."""
_NEARLY_AS_GOOD = 0.05
"""Of what noted reads read: of two that save the same but for so much, the cheaper is chosen."""
_PAYS_WITHIN = 10
"""What takes more reads to pay than so many times those that are noted is not recommended."""
_MOST = 3
_DAY_MS = 86_400_000
_KEPT_BY_HUDI = (
    "Apache Hudi's writers drop record indexes that their options do not enable: set "
    "hoodie.metadata.record.index.enable=true (from 1.1 on hoodie.metadata.global.record.level.index.enable=true) there"
)


def advise(session: WriteSession, *, apply: bool = False, unused_days: int = 30) -> Advice:
    """What would make the noted reads of a table cheaper.

    Args:
        session: The table.
        apply: Build what is recommended, one after the other.
        unused_days: Name indexes that left nothing out for so long.
    """
    storage = session.storage
    lost = [] if merge_now(storage.root) else [f"the store refuses {NOTES_PATH}: what this process has read is not noted"]
    stored = stored_notes(storage)
    if stored is None:
        lost.append(f"{NOTES_PATH} cannot be understood: noting begins anew with the next read")
    notes = stored or QueryNotes()
    snapshot = Snapshot.open(CountingStorage(storage), session.options)
    advice = Advice(hidden(storage.root), notes.since_ms, notes.queries, unused=tuple(_unused(snapshot, notes, unused_days)))
    slices = TableSlices(snapshot.slices(None))
    queries, remarks = asked_queries(snapshot, notes, slices)
    remarks = [*lost, *remarks]
    days = (now_ms() - notes.since_ms) // _DAY_MS if notes.since_ms else 0
    if days < unused_days:
        remarks.append(f"reads are noted for {days:,} days: unused indexes are named after {unused_days:,}")
    if snapshot.metadata is None:
        remarks.append(f"no index can be built: {snapshot.listing_reason}")
    advice = replace(advice, notes=tuple(remarks))
    if not queries:
        return advice
    places = drawn(queries, slices)
    if not len(places):
        return replace(advice, notes=(*remarks, "the noted reads read nothing any more"))
    expressible = wanted_expressions(snapshot, queries)
    exprs: list[Expr] = [one.indexed.expr for one in expressible]
    facts = Facts(session, snapshot, slices, queries, sampled(snapshot, slices, places, queries, exprs), expressible)
    mean = -(-int(slices.sizes.sum()) // max(1, slices.rows.num_rows))
    orders, why = order_candidates(facts, mean)
    found = [*index_candidates(facts), *orders]
    chosen, rest = _chosen(facts, found)
    if any(one.record_index or one.measure is Measure.RECORD_INDEX for one, _ in chosen):
        why = [*why, _KEPT_BY_HUDI]
    if len(places) < len(np.unique(np.concatenate([query.kept for query in queries]))):
        why = [*why, f"judged by {len(places):,} file slices, drawn at random"]
    advice = replace(
        advice,
        bytes_read=int(sum(query.weight * query.bytes for query in queries)),
        recommended=tuple(one for _, one in chosen),
        considered=tuple(rest),
        notes=(*remarks, *why),
    )
    return replace(advice, applied=tuple(_built(session, chosen, mean))) if apply else advice


def _chosen(
    facts: Facts, candidates: Sequence[Candidate]
) -> tuple[list[tuple[Candidate, Recommendation]], list[Recommendation]]:
    """What is worth building, each beside those before it; and what else there was, each by itself."""
    costs = Costs(facts)
    weights = np.array([query.weight for query in facts.queries])
    today = np.array([query.bytes for query in facts.queries], np.float64)
    whole = float((weights * today).sum())
    chosen: list[tuple[Candidate, Recommendation]] = []
    passed: list[Candidate] = []
    left, remaining = today, list(candidates)
    while remaining and len(chosen) < _MOST:
        gains = [float((weights * np.maximum(0.0, left - one.kept)).sum()) for one in remaining]
        best = max(gains)
        if best < _LEAST_SHARE * whole or best <= 0:
            break
        near = [n for n, gain in enumerate(gains) if gain >= best - _NEARLY_AS_GOOD * whole]
        at = min(near, key=lambda n: (costs.of(remaining[n]).weight, -gains[n]))
        one = remaining.pop(at)
        found = _recommended(facts, one, costs.of(one), left)
        if found.pays_after > _PAYS_WITHIN * found.queries:
            passed.append(one)
            continue
        chosen.append((one, found))
        left = np.minimum(left, one.kept)
        if one.measure is Measure.CLUSTERING:  # rows have one order, so a second one would undo it
            passed += [other for other in remaining if other.measure is Measure.CLUSTERING]
            remaining = [other for other in remaining if other.measure is not Measure.CLUSTERING]
    remaining += passed
    rest = [_recommended(facts, one, costs.of(one), today) for one in remaining]
    rest = [one for one in rest if one.bytes_saved > 0]
    return chosen, sorted(rest, key=lambda one: -one.bytes_saved)


def _recommended(facts: Facts, one: Candidate, cost: Cost, left: npt.NDArray[np.float64]) -> Recommendation:
    weights = np.array([query.weight for query in facts.queries])
    saved = np.maximum(0.0, left - one.kept)
    return Recommendation(
        one.measure,
        one.columns,
        one.expression,
        one.index,
        one.layout,
        one.first if one.measure is not Measure.COLUMN_STATS else (),
        queries=round(float(weights[saved > 0].sum())),
        bytes_before=round(float((weights * left).sum())),
        bytes_saved=round(float((weights * saved).sum())),
        build_reads=cost.reads,
        build_writes=cost.writes,
        upkeep=cost.upkeep,
    )


def _unused(snapshot: Snapshot, notes: QueryNotes, days: int) -> Iterator[UnusedIndex]:
    """Indexes that left nothing out for some days, unless others need them that did."""
    if snapshot.metadata is None or not notes.since_ms:
        return
    now = now_ms()
    limit, ready = now - days * _DAY_MS, snapshot.metadata.ready

    def last_of(name: str) -> int:
        return max(notes.used_ms.get(one, 0) for one in (name, *dependents(name, ready)))

    for name in ready:
        last = last_of(name)
        if name == files.PARTITION or notes.since_ms > limit or last > limit:
            continue
        note = "writes may find their rows by it" if name == record_index.PARTITION else ""
        yield UnusedIndex(name, (now - (last or notes.since_ms)) // _DAY_MS, bool(last), note)


# Building


def _built(session: WriteSession, chosen: Sequence[tuple[Candidate, Recommendation]], mean: int) -> Iterator[str]:
    for one, _ in chosen:
        if one.statistics:
            yield from _with_statistics(session, one.statistics)
        session.reload()
        asked = one.record_index or one.measure is Measure.RECORD_INDEX
        # One that was chosen before may have brought it along.
        if asked and record_index.PARTITION not in session.properties.metadata_partitions:
            yield str(create_index(session, kind=record_index.PARTITION))
        if one.measure is Measure.CLUSTERING:
            options = clustering_options(session.options, one.columns, one.layout, mean)
            reports = clustering.cluster(WriteSession(session.storage, options, engine=session.engine))
            yield from (str(report) for report in reports)
        elif one.definition is not None:
            yield str(_expression(session, one))
        elif one.measure is Measure.SECONDARY_INDEX:
            yield str(create_index(session, kind="secondary_index", columns=one.columns))


def _expression(session: WriteSession, one: Candidate) -> object:
    definition = one.definition
    assert definition is not None
    return create_index(
        session,
        kind=definition.kind,
        name=one.index.removeprefix("expr_index_"),
        columns=one.columns,
        expression=definition.function,
        index_options={key: text for key, text in definition.options.items() if key != "expr"},
    )


def _with_statistics(session: WriteSession, columns: Sequence[str]) -> Iterator[str]:
    """Statistics of more columns: the partition is built anew over those that it has and these."""
    session.reload()
    ready = session.properties.metadata_partitions
    known: list[str] = []
    if column_stats.PARTITION in ready:
        metadata = Snapshot.open(CountingStorage(session.storage), session.options).metadata
        found = metadata.index_definitions.get(column_stats.PARTITION) if metadata is not None else None
        known = [name for name in found.source_fields if not name.startswith("_hoodie_")] if found is not None else []
        for name in (partition_stats.PARTITION, column_stats.PARTITION):
            if name in ready:
                drop_index(session.storage, session.options, name)
        session.reload()
    yield str(create_index(session, kind=column_stats.PARTITION, columns=list(dict.fromkeys([*known, *columns]))))
    if partition_stats.PARTITION in ready:
        yield str(create_index(session, kind=partition_stats.PARTITION))
