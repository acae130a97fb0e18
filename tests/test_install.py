"""What an installed hudimeta looks like from outside the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def elsewhere(program: str, folder: Path) -> str:
    """Run a program in a fresh interpreter that knows nothing of this repository's folder."""
    ran = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_spark_discovers_the_source_by_its_name(tmp_path: Path) -> None:
    """Spark walks path entries for top-level `pyspark_*` modules; an import hook of an editable install is invisible to it."""
    listing = "import pkgutil; print([m.name for m in pkgutil.iter_modules() if m.name.startswith('pyspark_')])"
    assert "pyspark_hudimeta" in elsewhere(listing, tmp_path)


def test_the_engine_imports_without_spark(tmp_path: Path) -> None:
    program = "import sys, hudimeta; print([m for m in sys.modules if m.split('.')[0] in ('pyspark', 'py4j', 'pandas')])"
    assert elsewhere(program, tmp_path) == "[]"
