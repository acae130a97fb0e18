"""The same tests through Spark Connect: half of a small set in every run, all and the shapes of queries by `make connect`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.elsewhere import REMOTE, only_when
from tests.rotation import in_turn

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "spark/test_sql_door.py",
    "spark/test_table_functions.py",
    "spark/test_hudi_table.py",
    "spark/test_streams.py",
    "docs/test_spark.py",
    "write/test_changing_rows.py",
    "write/test_key_indexes.py",
    "write/test_stored_columns.py",
)


@pytest.mark.spark
@pytest.mark.xdist_group("sessions of their own")
@pytest.mark.timeout(600)
@only_when(not REMOTE, "classic sessions: it starts the run through Connect")
def test_a_connect_session_passes_the_tests_of_a_classic_one() -> None:
    # A process of its own, because a process holds either a classic session or a Connect session.
    command = [sys.executable, "-m", "pytest", "-q", "-m", "oldest", "-p", "no:cacheprovider", "--timeout=300"]
    modules = [str(ROOT / "tests" / name) for name in in_turn(MODULES, 2)]
    variables = {**os.environ, "HUDIMETA_TEST_REMOTE": "local[2]"}
    ran = subprocess.run([*command, *modules], cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert "passed" in ran.stdout
    assert "skipped" not in ran.stdout
