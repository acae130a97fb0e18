"""What clustering would make of reads, tried on rows of the slices that were drawn.

The groups are those that a plan of clustering would take of the table; the rows drawn of each are sorted and cut into as many
parts as the group gets files, so that each part has the bounds that a file would have.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudimeta.cached import cached_property
from hudimeta.commit.session import WriteSession
from hudimeta.config import Options
from hudimeta.config import options as keys
from hudimeta.errors import HudiError
from hudimeta.formats.plain_arrays import single_array
from hudimeta.indexes.column_stats.skip import statistic_columns
from hudimeta.predicate import ColumnBounds, FileStats, may_match
from hudimeta.read.query_notes import FilterShape, filters_of
from hudimeta.services import clustering
from hudimeta.services.advice.candidates import Candidate, Facts
from hudimeta.services.advice.report import Measure
from hudimeta.services.advice.samples import bounds_of
from hudimeta.services.clustering_rows import RowOrder
from hudimeta.services.space_curves import ordinals

__all__ = ["clustering_options", "order_candidates"]

_MOST_COLUMNS = 3
_MOST_ORDERS = 8
_ROWS_OF_A_PART = 8
_EVERY_FILE = 1 << 60
_MOST_GROUPS = 100_000


def clustering_options(options: Options, columns: Sequence[str], layout: str, mean_bytes: int) -> Options:
    """Options of a clustering of all files, into as many as there are.

    Args:
        options: Of the table.
        columns: To sort by.
        layout: `linear`, `zorder` or `hilbert`.
        mean_bytes: Of the base files that are there.
    """
    asked = {
        keys.CLUSTER_SORT.key: ",".join(columns),
        keys.LAYOUT_STRATEGY.key: layout,
        keys.CLUSTER_SMALL.key: str(_EVERY_FILE),
        keys.CLUSTER_TARGET.key: str(max(1, mean_bytes)),
        keys.CLUSTER_MOST_GROUPS.key: str(_MOST_GROUPS),
    }
    return options.having(asked)


def order_candidates(facts: Facts, mean_bytes: int) -> tuple[list[Candidate], list[str]]:
    """Orders of rows for the noted reads, and why there is none."""
    orders = list(dict.fromkeys(_orders(facts)))[:_MOST_ORDERS]
    if not orders or facts.snapshot.metadata is None:
        return [], []
    options = clustering_options(facts.session.options, orders[0][0], orders[0][1], mean_bytes)
    try:
        session = WriteSession(facts.session.storage, options, engine=facts.session.engine)
        plan = clustering.plan(session, session.snapshot_now())
    except HudiError as error:
        return [], [f"no clustering was considered: {error.message}"]
    if not plan.groups or plan.rings:
        return [], ["no clustering was considered: there is nothing that it could sort anew"]
    groups = _groups(facts, plan)
    return [_judged(facts, groups, columns, layout) for columns, layout in orders], []


def _orders(facts: Facts) -> Iterator[tuple[tuple[str, ...], str]]:
    """By one column, and along curves by several that are asked for together."""
    sortable = (FilterShape.EQUALITY.value, FilterShape.RANGE.value)
    every: dict[str, float] = {}
    for query in sorted(facts.queries, key=lambda one: -one.weight * one.bytes):
        plain = statistic_columns(facts.snapshot, query.bound)
        names = tuple(dict.fromkeys(f.on for f in filters_of(query.bound) if f.shape in sortable and f.on in plain))
        for name in names:
            every[name] = every.get(name, 0.0) + query.weight * query.bytes
            yield (name,), "linear"
        if 1 < len(names) <= _MOST_COLUMNS:
            yield names, "hilbert"
            yield names, "zorder"
    together = tuple(sorted(every, key=lambda name: -every[name]))[:_MOST_COLUMNS]
    if len(together) > 1:
        yield tuple(sorted(together)), "hilbert"


@dataclass(frozen=True)
class _Group:
    """Slices that a clustering sorts together.

    Attributes:
        path: Of their partition.
        bytes: Of them all.
        files: That come of them.
        pieces: Rows that were drawn of them.
    """

    path: str
    bytes: int
    files: int
    pieces: tuple[pa.Table, ...]

    @cached_property
    def rows(self) -> pa.Table:
        """Together."""
        return pa.concat_tables(self.pieces)


def _groups(facts: Facts, plan: clustering.ClusteringPlan) -> list[_Group]:
    at_place = {int(place): rows for place, rows in zip(facts.samples.places, facts.samples.rows, strict=True)}
    found = []
    for slices, files in plan.groups:
        own = facts.slices.places_in(slices[0].partition_path, [one.file_id for one in slices])
        pieces = tuple(at_place[place] for place in own.tolist() if place in at_place)
        found.append(_Group(slices[0].partition_path, int(facts.slices.sizes[own].sum()), files, pieces))
    return found


def _judged(facts: Facts, groups: Sequence[_Group], columns: tuple[str, ...], layout: str) -> Candidate:
    shares: list[npt.NDArray[np.float64] | None] = [_shares(facts, group, columns, layout) for group in groups]
    known = [one for one in shares if one is not None]
    usual = np.mean(known, axis=0) if known else np.ones(len(facts.queries))
    kept = []
    for number, query in enumerate(facts.queries):
        paths = facts.slices.partitions(query.kept)
        read = sum(
            group.bytes * float((usual if share is None else share)[number])
            for group, share in zip(groups, shares, strict=True)
            if group.path in paths
        )
        kept.append(min(float(query.bytes), read))
    lacking = facts.without_statistics(columns)
    return Candidate(Measure.CLUSTERING, columns, np.array(kept), layout=layout, statistics=lacking)


def _shares(facts: Facts, group: _Group, columns: tuple[str, ...], layout: str) -> npt.NDArray[np.float64] | None:
    """For each query the share of a group's new files that it reads; None where no row of the group is known."""
    if not group.pieces or not group.rows.num_rows:
        return None
    sorted_by = [group.rows[name] for name in columns]
    files = max(1, min(group.files, group.rows.num_rows // _ROWS_OF_A_PART))
    cuts = np.linspace(0, group.rows.num_rows, files + 1).astype(np.int64)
    order = RowOrder(columns, layout.upper()).of(sorted_by, [ordinals(one) for one in sorted_by], np.diff(cuts).tolist())
    rows = group.rows if order is None else group.rows.take(pa.array(order))
    bounds = {
        name: _cut_bounds(rows[name], cuts) for name in rows.column_names if name in columns or name in facts.with_statistics
    }
    stats = FileStats(files, bounds)
    return np.array([float(may_match(query.bound, stats).keep.mean()) for query in facts.queries])


def _cut_bounds(values: pa.ChunkedArray, cuts: npt.NDArray[np.int64]) -> ColumnBounds:
    whole = single_array(values)
    parts = [bounds_of(whole[int(low) : int(high)]) for low, high in itertools.pairwise(cuts)]
    low, high = (pa.concat_arrays([getattr(part, name) for part in parts]) for name in ("min", "max"))
    nulls = pa.concat_arrays([part.null_count for part in parts if part.null_count is not None])
    rows = pa.concat_arrays([part.value_count for part in parts if part.value_count is not None])
    return ColumnBounds(low, high, nulls, rows, nan_aware=True)
