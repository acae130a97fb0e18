"""Plans of one table as they are kept: a master, and deltas that bring it to later moments.

A master has the parts `slices` and `partitions`; a delta has `newer`, `gone` and `paths`, all that changed since its master,
so that two entries at most make a plan. Beside them stand the bounds of columns, one entry a column, of the files of a master.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudimeta.engine.machine import machine, now_ms
from hudimeta.errors import CorruptFileError, NotFound
from hudimeta.formats.plain_arrays import integers, no_rows, numbers, single_array
from hudimeta.plan_cache.folder import Entry, PlanFolder
from hudimeta.plan_cache.manifest import RANGES, Manifest
from hudimeta.plan_cache.roots import ColumnRoots, PlanRoots
from hudimeta.table.slices import slices_schema

__all__ = ["KeptPlan", "KeptPlans"]

_OF_DELTAS = {"gone": pa.schema([("id", pa.int64())]), "paths": pa.schema([("path", pa.string())])}
_BOUNDS = ["min", "max", "null_count", "value_count", "nan_aware"]
"""Columns of bounds: min and max of the column's type, counts int64, a flag."""
_MASTERS, _DELTAS = 2, 2
_LEFT_BEHIND_MS = 3_600_000
"""Files that no entry names may still be written; after so long their writer is dead."""


@dataclass(frozen=True)
class KeptPlan:
    """A plan that was kept.

    Attributes:
        roots: What it rests on.
        master: The entry of its slices.
        delta: What changed since; None for nothing.
    """

    roots: PlanRoots
    master: Entry
    delta: Entry | None = None


class KeptPlans:
    """The kept plans of one table.

    Args:
        folder: Where they are.
    """

    def __init__(self, folder: PlanFolder) -> None:
        self._folder = folder
        self.damaged: set[str] = set()
        self.foreign: set[str] = set()

    def all(self) -> list[KeptPlan]:
        """Those that are whole as far as their entries tell, the newest first."""
        entries = self._folder.entries()
        self.damaged.update(self._folder.damaged)
        self.foreign.update(self._folder.foreign)
        masters = {entry.name: entry for entry in entries if "of" not in entry.content}
        found = []
        for entry in entries:
            master = masters.get(str(entry.content.get("of", entry.name)))
            if master is None or "column" in entry.content:
                continue
            try:
                roots = PlanRoots.from_json(entry.content["roots"])
            except (KeyError, TypeError, ValueError, AttributeError):
                self.damaged.add(entry.name)
                continue
            found.append(KeptPlan(roots, master, None if master is entry else entry))
        return found

    def opened(self, plan: KeptPlan) -> Manifest | None:
        """The slices of a plan; None when one of its files is damaged (see `damaged`) or was removed."""
        entry = plan.master
        try:
            rows = self._folder.table(entry.files["slices"], slices_schema())
            ranges = self._folder.table(entry.files["partitions"], RANGES)
            paths = single_array(ranges.column("path"))
            gone, newer = np.empty(0, np.int64), no_rows(rows.schema)
            if plan.delta is not None:
                entry = plan.delta
                newer = self._folder.table(entry.files["newer"], slices_schema())
                removed, listed = (self._folder.table(entry.files[part], _OF_DELTAS[part]) for part in _OF_DELTAS)
                gone, paths = numbers(single_array(removed.column("id"))), single_array(listed.column("path"))
        except NotFound:
            return None
        except (CorruptFileError, KeyError):
            self.damaged.add(entry.name)
            return None
        return Manifest(rows, ranges, gone, newer, paths)

    def keep(self, name: str, manifest: Manifest, roots: PlanRoots) -> KeptPlan:
        """Write a plan as a master. Raises StorageError."""
        tables = {"slices": manifest.rows, "partitions": manifest.ranges}
        return KeptPlan(roots, self._folder.keep(name, {"roots": roots.to_json()}, tables))

    def keep_delta(self, name: str, master: Entry, manifest: Manifest, roots: PlanRoots) -> KeptPlan:
        """Write what changed since a master. Raises StorageError."""
        gone, paths = pa.table({"id": integers(manifest.gone)}), pa.table({"path": manifest.paths})
        tables = {"newer": manifest.newer, "gone": gone, "paths": paths}
        content = {"roots": roots.to_json(), "of": master.name}
        return KeptPlan(roots, master, self._folder.keep(name, content, tables))

    def bounds(self, master: Entry, column: str, kind: str, roots: ColumnRoots) -> pa.Table | None:
        """What `keep_bounds` kept; None where it is not there, is damaged, or rests on what is not there any more.

        Args:
            master: The entry of the slices.
            column: Its name.
            kind: Its Arrow type, as text.
            roots: The metadata table of now.
        """
        for entry in self._folder.entries():
            content = entry.content
            if [content.get(name) for name in ("of", "column", "kind")] != [master.name, column, kind]:
                continue
            try:
                if ColumnRoots.from_json(content["roots"]).hold_in(roots):
                    table = self._folder.table(entry.files["bounds"])
                    if table.column_names == _BOUNDS:
                        return table
                    self.damaged.add(entry.name)
            except NotFound:
                continue
            except (CorruptFileError, KeyError, TypeError, ValueError, AttributeError):
                self.damaged.add(entry.name)
        return None

    def keep_bounds(self, name: str, master: Entry, column: str, kind: str, roots: ColumnRoots, bounds: pa.Table) -> None:
        """Write the bounds of a column in the files of a master, in the order of these files. Raises StorageError."""
        content = {"of": master.name, "column": column, "kind": kind, "roots": roots.to_json()}
        self._folder.keep(name, content, {"bounds": bounds})

    def shrink(self) -> None:
        """Remove damaged plans, all but the newest, and what dead processes left."""
        for name in self.damaged:
            self._folder.remove(name.removesuffix(".json"))
        entries = {entry.name: entry for entry in self._folder.entries()}
        by_age = sorted(self._folder.sizes().values(), key=lambda info: (info.modified_ms, info.path), reverse=True)
        masters = [info.path for info in by_age if info.path in entries and "of" not in entries[info.path].content]
        kept = set(masters[:_MASTERS])
        above = [info.path for info in by_age if info.path in entries and entries[info.path].content.get("of") in kept]
        kept.update([name for name in above if "column" not in entries[name].content][:_DELTAS])
        newest: dict[tuple[str, ...], str] = {}
        for name in above:
            newest.setdefault(tuple(str(entries[name].content.get(part)) for part in ("of", "column", "kind")), name)
        kept.update(name for what, name in newest.items() if what[1] != "None")
        now = now_ms()
        for info in by_age:
            if info.path not in kept and (info.path in entries or now - info.modified_ms > _LEFT_BEHIND_MS):
                self._folder.remove(info.path)

    @staticmethod
    def new_name(last_time: str) -> str:
        """A name that nobody else has; names of later moments sort after it."""
        return f"{last_time or '0'}-{machine().new_id().hex[:16]}"
