"""What an installed hudimeta looks like from outside the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation


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


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_is_read_without_pandas(tmp_path: Path, kind: str) -> None:
    """Which `pyarrow.array` and `pyarrow.scalar` load where it is installed: longer than all else that a first read takes."""
    pytest.importorskip("pandas")
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind})
    for ts in (1, 2, 3):  # from three logs on, entries of the listing are folded one by one
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
    program = f"""
import sys, hudimeta
table = hudimeta.Table({table.path!r})
print(len(table.metadata.partitions()), table.scan().to_table().num_rows, "pandas" in sys.modules)
"""
    assert elsewhere(program, tmp_path) == "2 4 False"
