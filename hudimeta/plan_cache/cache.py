"""One table's kept plan at one moment: found, brought up to that moment, or made anew.

Whatever stands in the way of a kept plan leaves the table to be planned from its metadata table, and stands in `remarks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hudimeta.cached import cached_property
from hudimeta.config.options import PLAN_CACHE, PLAN_CACHE_BYTES, PLAN_CACHE_FROM
from hudimeta.errors import StorageError
from hudimeta.plan_cache.folder import Entry, PlanFolder
from hudimeta.plan_cache.kept import KeptPlan, KeptPlans
from hudimeta.plan_cache.manifest import Manifest, NotTold, log_instants
from hudimeta.plan_cache.places import limit_bytes, place_of
from hudimeta.plan_cache.roots import ColumnRoots, PlanRoots, Since, roots_of
from hudimeta.table.properties_file import PROPERTIES_PATH

if TYPE_CHECKING:
    from hudimeta.config import Options
    from hudimeta.metadata import MetadataTable
    from hudimeta.storage import CountingStorage
    from hudimeta.table.visibility import Visibility

__all__ = ["PlanCache"]

_FEW = 4096
_MERGED_FROM = 0.02
"""A delta of more rows than this share of its master's, and of more than a few, is merged with it."""


class PlanCache:
    """The kept plan of a table, for one snapshot of its newest moment.

    Args:
        storage: Rooted at the table.
        metadata: Its metadata table.
        options: Of the table.
        visibility: What the timeline says of files; asked only where commits came since.

    Attributes:
        remarks: What was used, or why nothing was; for reports.
    """

    def __init__(
        self, storage: CountingStorage, metadata: MetadataTable, options: Options, visibility: Callable[[], Visibility]
    ) -> None:
        self._storage, self._metadata, self._options, self._visibility = storage, metadata, options, visibility
        self.remarks: list[str] = []
        self._master: Entry | None = None
        self._reported: set[str] = set()

    def slices(self, partitions: Sequence[str] | None = None) -> pa.Table | None:
        """The slices of some partitions, or (None) of all, in no particular order; None when no kept plan tells them."""
        if partitions is None:
            return self.whole
        manifest = self.manifest
        return manifest.slices(partitions) if manifest is not None else None

    @cached_property
    def whole(self) -> pa.Table | None:
        """All slices, see `slices`: first the rows of the manifest that count, then the newer ones."""
        manifest = self.manifest
        return manifest.slices() if manifest is not None else None

    def partitions(self) -> pa.StringArray | None:
        """Paths of all partitions, sorted; None when no kept plan tells them."""
        manifest = self.manifest
        return manifest.paths if manifest is not None else None

    def bounds(self, column: str, kind: pa.DataType) -> pa.Table | None:
        """Bounds of a column in the files of the manifest's rows, all base files first; None where none are kept.

        Args:
            column: Its name.
            kind: Its type.

        Returns:
            min and max of the type, null_count and value_count int64, nan_aware bool: see `predicate.ColumnBounds`.
        """
        if self._kept is None or self._master is None:
            return None
        found = self._kept.bounds(self._master, column, str(kind), ColumnRoots.of(self._metadata))
        self._report_damaged(self._kept)
        return found

    def keep_bounds(self, column: str, kind: pa.DataType, bounds: pa.Table) -> None:
        """Keep what `bounds` returns from then on."""
        kept, master = self._kept, self._master
        if kept is not None and master is not None:
            roots, what = ColumnRoots.of(self._metadata), f" with bounds of {column}"
            self._write(kept, lambda name: kept.keep_bounds(name, master, column, str(kind), roots, bounds), what)

    # Finding

    @cached_property
    def _kept(self) -> KeptPlans | None:
        place = place_of(self._storage, self._options)
        if isinstance(place, str):
            self._unused(place)
            return None
        return KeptPlans(PlanFolder(place))

    @cached_property
    def manifest(self) -> Manifest | None:
        """The slices of this moment, as far as a kept plan tells them."""
        kept = self._kept
        if kept is None:
            return None
        if not self._metadata.listing_history.is_plain:
            self._unused("it does not hold tables of version 6, nor files that are cleaned")
            return None
        try:
            return self._found(kept)
        except StorageError as error:
            self._unused(error.message)
            return None
        finally:
            self._report_damaged(kept)

    def _report_damaged(self, kept: KeptPlans) -> None:
        for name in sorted(kept.damaged - self._reported):
            self._unused(f"{name} is damaged, and is made anew")
        self._reported |= kept.damaged

    def _found(self, kept: KeptPlans) -> Manifest | None:
        plans = [(plan, plan.roots.until(self._metadata)) for plan in kept.all()]
        usable = [(plan, since) for plan, since in plans if not since.reason]
        # The fewest commits since, of these the newest name.
        for plan, since in sorted(usable, key=lambda found: len(found[1].deltas)):
            manifest = kept.opened(plan)
            if manifest is None:
                continue
            self._master = plan.master
            if not since.deltas and not since.replacing:
                self.remarks.append("planned from a kept plan")
                return manifest
            return self._continued(kept, plan, manifest, since)
        if plans and not usable:
            self._unused(plans[0][1].reason)
        elif kept.foreign:
            self._unused(f"{min(kept.foreign)} is of another version of hudimeta")
        elif not kept.damaged:
            self._unused("none is kept")
        return None

    def _continued(self, kept: KeptPlans, plan: KeptPlan, manifest: Manifest, since: Since) -> Manifest | None:
        """A kept plan with what came since."""
        changes = self._metadata.listing_history.changes(since.deltas)
        if changes is None:
            self._unused("what came since stands in the logs of the metadata table only")
            return None
        try:
            now = manifest.after(changes, self._visibility(), since.replacing)
        except NotTold as error:
            self._unused(f"what came since is not plain: {error}")
            return None
        self.remarks.append(f"planned from a kept plan and {len(since.deltas)} commits that came since")
        came = _base_instants(now.newer)
        roots = plan.roots.later(self._metadata, came, log_instants(now.newer))
        if isinstance(roots, str):
            self.remarks.append(f"what came since is not kept: {roots}")
        elif len(now.gone) + len(now.newer) > max(_FEW, _MERGED_FROM * len(now.rows)):
            whole = Manifest.of(now.slices(), now.paths)
            self._write(kept, lambda name: kept.keep(name, whole, roots))
        else:
            self._write(kept, lambda name: kept.keep_delta(name, plan.master, now, roots))
        return now

    # Keeping

    def keep(self, slices: pa.Table, waiting: int) -> None:
        """Keep the slices of this moment, which were planned without a kept plan.

        Args:
            slices: All of them, columns of `table.slices.slices_schema()`.
            waiting: How many files wait for their commit.
        """
        kept = self._kept
        if kept is None or len(slices) < self._options.get(PLAN_CACHE_FROM):
            return
        roots = self._too_large(slices) or self._roots(slices, waiting)
        if isinstance(roots, str):
            self.remarks.append(f"the plan is not kept: {roots}")
            return
        try:
            manifest = Manifest.of(slices, self._metadata.partitions())
        except NotTold as error:
            self.remarks.append(f"the plan is not kept: {error}")
            return
        self._write(kept, lambda name: kept.keep(name, manifest, roots))

    def _too_large(self, slices: pa.Table) -> str:
        most = self._options.get(PLAN_CACHE_BYTES)
        if self._options.get(PLAN_CACHE) == "local" and slices.nbytes > most:
            return f"its {slices.nbytes:,} bytes are more than {PLAN_CACHE_BYTES.key} allows, {most:,}"
        return ""

    def _roots(self, slices: pa.Table, waiting: int) -> PlanRoots | str:
        if waiting:
            return f"{waiting} files wait for their commit"
        if not self._metadata.listing_history.is_plain:
            return "it does not hold tables of version 6, nor files that are cleaned"
        return roots_of(self._metadata, _base_instants(slices), log_instants(slices))

    def _write(self, kept: KeptPlans, write: Callable[[str], object], what: str = "") -> None:
        if not self._storage.inner.is_file(PROPERTIES_PATH):
            return  # the table is gone, and its folder is not made anew
        try:
            write(kept.new_name(self._metadata.data_timeline.last_time))
            kept.shrink()
            limit_bytes(self._options)
        except (StorageError, OSError) as error:
            self.remarks.append(f"the plan{what} is not kept: {error}")
            return
        self.remarks.append(f"the plan{what} is kept")

    def _unused(self, why: str) -> None:
        self.remarks.append(f"no kept plan: {why}")


def _base_instants(slices: pa.Table) -> list[str]:
    """The instants of base files, each once; of slices without one that of their first log."""
    return [str(text) for text in pc.unique(slices.column("base_instant")).to_pylist()]
