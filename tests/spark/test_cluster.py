"""A standalone cluster loses workers at work: the demo, writes, a service and streams end as if it had not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.elsewhere import only_when

ROOT = Path(__file__).resolve().parents[2]
ACTS = 7


@only_when("HUDIMETA_CLUSTER" in os.environ, "make cluster-full: ten processes for minutes")
def test_a_killed_worker_changes_no_result(tmp_path: Path) -> None:
    # A session of the cluster cannot be made in the process of the session that other tests have.
    command = [sys.executable, "-m", "tests.spark.cluster_acts", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-6000:]
    assert ran.stdout.count("ACT ") == ACTS
