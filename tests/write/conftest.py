"""Which tests of writes go through all doors (the engine's verbs, routed writes here, those of Spark), and which cannot."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.write.door_choice import FULL, door, through_doors

__all__ = ["door"]

ALL_DOORS = (
    "test_expressions",
    "test_filters",
    "test_alter",
    "test_asking_key_indexes",
    "test_bad_keys",
    "test_carried_keys",
    "test_change_capture",
    "test_changing_rows",
    "test_conflicts",
    "test_creation",
    "test_deletes_by_rows",
    "test_evolution",
    "test_half_published",
    "test_index_differential",
    "test_index_types",
    "test_inserts",
    "test_key_indexes",
    "test_learned_keys",
    "test_log_writing",
    "test_making_key_indexes",
    "test_merging_of_writes",
    "test_merging_without_partition_columns",
    "test_overwrite_beside_insert",
    "test_partitions_of_a_write",
    "test_random_histories",
    "test_record_index_tagging",
    "test_refusals_of_writes",
    "test_report",
    "test_shapes_of_tables",
    "test_stored_columns",
    "test_streams",
)
"""Modules."""
FULL_ONLY = ("test_index_differential", "test_random_histories")
"""Modules whose random work goes through other doors than the engine's in full runs only, because it takes long."""
ENGINE_ONLY = {
    "test_a_failed_write_leaves_no_trace": "its storage fails in this process; tests/write/routed cancels jobs instead",
    "test_filters_leave_files_out": "counts the files of bulk inserts, of which every task begins its own",
    "test_generated_keys_count_the_rows_as_they_came": "every task counts its own rows",
    "test_a_stream_that_breaks_off_leaves_nothing": "its source fails in this process",
    "test_streams_that_do_not_keep_what_they_state": "its source fails in this process",
    "test_frames_and_scans_are_rows_too": "Spark has its own DataFrames",
    "test_memory_does_not_grow_with_the_stream": "runs in a process of its own; tests/spark/routed_large.py measures Spark's",
    "test_a_thousand_histories": "runs in processes of its own",
    "test_histories_of_a_new_seed": "the fixed seeds go through all doors",
    "test_an_upsert_asks_for_no_more_than_its_shards": "tasks hand rows to each other through files, which are requests too",
}
"""Their tests that hold for the engine's own door alone, and why."""


SMOKE = {
    "test_an_upsert_of_rows_that_were_read_changes_them": ("spark-MERGE_ON_READ",),
    "test_rows_that_were_there_before_the_overwrite_do_not_outlive_it": ("spark-Operation.BULK_INSERT",),
    "test_a_key_moves_between_partitions": ("spark-MERGE_ON_READ",),
    "test_every_operation_works": (
        "spark-simple-dropped-MERGE_ON_READ",
        "spark-complex and buckets-virtual-COPY_ON_WRITE",
    ),
    "test_every_clause_in_one_merge": ("spark-MERGE_ON_READ",),
    "test_update_sets_expressions_and_constants_where_a_predicate_is_true": ("spark-COPY_ON_WRITE",),
    "test_what_a_change_file_holds": ("spark-DATA_BEFORE_AFTER",),
    "test_rows_with_known_keys_are_dropped": ("spark-policy-MERGE_ON_READ",),
    "test_a_widened_column_keeps_its_values": ("spark-Operation.UPSERT-int64",),
    "test_rows_that_have_no_place_are_refused": ("spark-id-bad4-as a partition path in row [01]-upsert",),
}
"""What goes through the door of Spark in every run, on the oldest Spark too: every verb and operation, and most sorts of
index, on either type of table. None needs hudi-rs, which the environment of the oldest Spark has not.
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of some modules once for each door."""
    through_doors(metafunc, ALL_DOORS, ENGINE_ONLY, smoke=SMOKE, full_only=FULL_ONLY)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what goes through the door of Spark in full runs only."""
    asked, left = set(), []
    for item in items:
        call = getattr(item, "callspec", None)
        if not isinstance(item, pytest.Function) or call is None or call.params.get("door") != "spark":
            continue
        asked.add(item.originalname)
        if call.id in SMOKE.get(item.originalname, ()):
            item.add_marker("oldest")
        else:
            left.append(item)
    chosen = {item.originalname for item in items if isinstance(item, pytest.Function) and item.get_closest_marker("oldest")}
    if os.environ.get(FULL) or not left:
        return
    if asked - chosen:
        raise pytest.UsageError(f"{sorted(asked - chosen)} through Spark: take another of SMOKE, or export {FULL}=1")
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in that zone."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
