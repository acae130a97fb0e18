"""A process that plans a table again and again with kept plans, and compares each plan with one without.

    python planner.py TABLE OPTIONS KEPT [DIE_AT]

OPTIONS is JSON. It ends when so many plans were made of kept ones, and prints, as JSON, how often the report said what. With
DIE_AT it ends itself with SIGKILL before that request which changes the folder of kept plans.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from typing import Any
from unittest import mock

from hudimeta.config import OPTIONS
from hudimeta.plan_cache import places
from hudimeta.snapshot.snapshot import Snapshot
from hudimeta.storage import CountingStorage, LocalStorage, open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage

USED = "planned from a kept plan"
PATIENCE = 50
"""So many remarks for each plan that is made of a kept one; a writer that is much faster leaves few of them fit for use."""


def snapshot_of(path: str, options: dict[str, str]) -> Snapshot:
    return Snapshot.open(CountingStorage(open_storage(path)), OPTIONS.read(options))


def run(path: str, options: dict[str, str], kept: int) -> Counter[str]:
    told: Counter[str] = Counter()
    while sum(count for remark, count in told.items() if remark.startswith(USED)) < kept:
        if told.total() > PATIENCE * kept:
            sys.exit(f"kept plans are hardly used: {told}")
        while True:
            plain, found = snapshot_of(path, {}), snapshot_of(path, options)
            if plain.timeline.instants == found.timeline.instants:  # else somebody wrote between the two
                break
        expected, slices = (sorted(map(repr, one.slices().to_pylist())) for one in (plain, found))
        if slices != expected or not found.partitions().equals(plain.partitions()):
            sys.exit(f"another plan: {slices} instead of {expected}")
        assert found.kept_plan is not None
        told.update(re.sub(r"\d+", "N", remark) for remark in found.kept_plan.remarks)
    return told


if __name__ == "__main__":
    table, given, number, *die_at = sys.argv[1:]
    if die_at:
        plan = FaultPlan(int(die_at[0]), Fault.KILL)

        def dying(root: str, durable: bool = True) -> Any:
            return FaultyStorage(LocalStorage(root, durable), plan)

        mock.patch.object(places, "LocalStorage", dying).start()
    print(json.dumps(run(table, json.loads(given), int(number))))
