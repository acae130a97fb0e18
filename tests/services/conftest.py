"""Services see to what routed writes left as to what the engine left; in full runs only, writes have their own tests."""

from __future__ import annotations

import pytest

from tests.write.door_choice import door, through_doors

__all__ = ["door"]

MODULES = (
    "test_archival",
    "test_clean",
    "test_cleans_beside_others",
    "test_compaction",
    "test_compaction_strategy",
    "test_create_and_drop",
    "test_failed_writes",
    "test_rebuild",
    "test_validation",
)
ENGINE_ONLY = {
    "test_files_are_left_out_by_an_expression": "counts the files of bulk inserts, of which every task begins its own",
}
"""Their tests that hold for the engine's own door alone, and why."""
IN_THIS_PROCESS = ("test_what_the_write_before_an_inline_compaction_left_is_removed",)
"""Whose storage fails in this process, where no task of Spark runs."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of some modules once for each door."""
    through_doors(metafunc, MODULES, ENGINE_ONLY, not_through_spark=IN_THIS_PROCESS, full_only=MODULES)
