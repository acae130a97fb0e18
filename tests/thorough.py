"""What `make test-fast` leaves out, beside Spark: tests that look for what is rare, and take most of the time of `make test`.

They break work off at every step, damage bytes, run generated histories and random queries, start servers and other processes,
go through many kinds of tables, or repeat through the tasks of a routed write what was asked of the engine. What is slow by its
nature gets a line here. Of property tests a fast run takes few examples: `HYPOTHESIS_PROFILE=quick`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = (
    "tests/acceptance/test_skipping.py",
    "tests/concurrency/test_dynamodb_lock.py",
    "tests/concurrency/test_fencing.py",
    "tests/concurrency/test_random_pairs.py",
    "tests/concurrency/test_s3.py",
    "tests/concurrency/test_sigstop.py",
    "tests/concurrency/test_stale_lists.py",
    "tests/concurrency/test_storm.py",
    "tests/concurrency/test_zookeeper_lock.py",
    "tests/conformance",
    "tests/crash",
    "tests/damage",
    "tests/formats/test_damaged_recordings.py",
    "tests/formats/test_hfile_hostile.py",
    "tests/hostile",
    "tests/indexes/skipping/test_switching_indexes.py",
    "tests/indexes/test_differential.py",
    "tests/plan_cache/test_hostile_plans.py",
    "tests/plan_cache/test_processes.py",
    "tests/predicate/test_random_predicates.py",
    "tests/predicate/test_skipping_is_safe.py",
    "tests/read/test_large_row_groups.py",
    "tests/services/indexing/test_rebuild.py",
    "tests/services/repair",
    "tests/services/test_advice.py",
    "tests/services/test_bootstrapping.py",
    "tests/services/test_in_other_processes.py",
    "tests/services/test_in_thread.py",
    "tests/services/test_log_compaction.py",
    "tests/services/test_restore.py",
    "tests/services/test_table_type.py",
    "tests/services/validation/test_every_byte.py",
    "tests/slices/test_base_file_damage.py",
    "tests/slices/test_bounded_merge.py",
    "tests/slices/test_log_damage.py",
    "tests/testing/simulation",
    "tests/write/routed",
    "tests/write/test_altered_histories.py",
    "tests/write/test_index_differential.py",
    "tests/write/test_jumping_clocks.py",
    "tests/write/test_random_histories.py",
    "tests/write/test_shapes_of_tables.py",
)
"""Modules and folders, from the root of the project."""
_PLACES = frozenset(ROOT / place for place in PLACES)
DOOR_OF_THE_ENGINE = "engine"


def is_thorough(item: pytest.Item) -> bool:
    """Whether a test lies in one of the places, or goes through another door than the engine's."""
    call = getattr(item, "callspec", None)
    if call is not None and call.params.get("door", DOOR_OF_THE_ENGINE) != DOOR_OF_THE_ENGINE:
        return True
    return _lies_in_a_place(item.path)


@cache
def _lies_in_a_place(path: Path) -> bool:
    return not _PLACES.isdisjoint((path, *path.parents))
