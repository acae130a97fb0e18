"""hudimeta as `pip install` leaves it, in an environment of its own, and through Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("sessions of their own")]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an environment that holds an ordinary installation, and takes dependencies from the one of this run."""
    folder = tmp_path_factory.mktemp("installed") / "env"
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    (packages,) = folder.glob("lib/python*/site-packages")
    _run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages), str(ROOT))
    # A line of a .pth file extends the path; .pth files that lie there, as of an editable install, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def seen(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `connect_session.py` saw."""
    folder = tmp_path_factory.mktemp("connect")
    python = str(environment / "bin" / "python")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK")) and k != "VIRTUAL_ENV"}
    variables = {**inherited, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    told = _run(python, str(HERE / "connect_session.py"), str(folder), cwd=folder, env=variables)
    line = next(line for line in told.splitlines() if line.startswith("SEEN "))
    found: dict[str, Any] = json.loads(line.removeprefix("SEEN "))
    return found


def _run(*command: str, **more: Any) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    return ran.stdout


def test_an_installation_is_discovered(environment: Path, seen: dict[str, Any]) -> None:
    assert seen["hudimeta"].startswith(str(environment))
    assert [path.startswith(str(environment)) for path in seen["discovered"]] == [True]


def test_connect_reads_and_writes(seen: dict[str, Any]) -> None:
    assert seen["session"].startswith("pyspark.sql.connect")
    assert (seen["written"], seen["filtered"], seen["inserted"]) == (100, 5, 105)


def test_connect_hears_why_something_is_refused(seen: dict[str, Any]) -> None:
    assert seen["itself"].startswith("HUDIMETA_TABLE: Spark does not say which table this write means")
    for statement in ("relative", "relative write"):
        assert seen[statement].startswith("HUDIMETA_CONFIG: argument 'path'")
        assert "Through Spark Connect, write the whole path." in seen[statement]
