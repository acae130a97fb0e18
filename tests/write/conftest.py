"""Which tests of writes go through both doors, the engine's verbs and routed writes, and which cannot."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.write.doors import by_tasks
from tests.write.spark_door import by_spark

DOORS = ("engine", "routed")
BOTH_DOORS = (
    "test_expressions",
    "test_filters",
    "test_bad_keys",
    "test_change_capture",
    "test_changing_rows",
    "test_deletes_by_rows",
    "test_evolution",
    "test_index_types",
    "test_inserts",
    "test_key_indexes",
    "test_log_writing",
    "test_merging_of_writes",
    "test_overwrite_beside_insert",
    "test_partitions_of_a_write",
    "test_refusals_of_writes",
    "test_report",
    "test_shapes_of_tables",
    "test_stored_columns",
)
"""Modules."""
ENGINE_ONLY = {
    "test_a_failed_write_leaves_no_trace": "its storage fails in this process; tests/write/routed cancels jobs instead",
    "test_filters_leave_files_out": "counts the files of bulk inserts, of which every task begins its own",
    "test_bulk_inserts_store_rows_in_the_order_of_the_mode": "every task sorts the rows that it was given, into files of its own",
    "test_bulk_inserts_sort_by_columns_of_the_user": "as above",
    "test_generated_keys_count_the_rows_as_they_came": "every task counts its own rows",
    "test_an_upsert_asks_for_no_more_than_its_shards": "tasks hand rows to each other through files, which are requests too",
}
"""Their tests that hold for the engine's own door alone, and why."""


SMOKE: dict[str, tuple[str, ...]] = {}
FULL = "HUDIMETA_DOORS_FULL"


@pytest.fixture(autouse=True)
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The door that the verbs of all tables go through in this test."""
    found: str = getattr(request, "param", "engine")
    if found == "routed":
        by_tasks(monkeypatch, request.module)
    elif found == "spark":
        by_spark(monkeypatch, request.module, request.getfixturevalue("spark"))
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of some modules once for each door."""
    module, test = metafunc.module.__name__.rpartition(".")[2], metafunc.function.__name__
    if module not in BOTH_DOORS or test in ENGINE_ONLY:
        return
    doors: list[Any] = list(DOORS)
    if os.environ.get(FULL) or test in SMOKE:
        doors.append(pytest.param("spark", marks=pytest.mark.spark))
    metafunc.parametrize("door", doors, indirect=True)
