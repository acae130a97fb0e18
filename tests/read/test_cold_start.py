"""What the first plan of a process imports, which takes most of its time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hudimeta.testing.builders import ModelledTable, simple_rows
from hudimeta.types import Operation

PLANS = """
table = hudimeta.Table(sys.argv[1])
assert (table.scan().plan().slices.num_rows, table.snapshot().slices().num_rows) == (2, 2)
"""
NO_LOGS = """
from hudimeta.formats.plain_arrays import single_array
assert len(single_array(pyarrow.chunked_array([], pyarrow.string()))) == 0
"""


@pytest.mark.parametrize("what", [PLANS, NO_LOGS], ids=["a plan", "the keys of no logs"])
def test_it_imports_no_pandas(tmp_path: Path, what: str) -> None:
    """Arrow would, to make an array of a list of Python's: 360 modules, 40 MB, and a third of a second."""
    table = ModelledTable(str(tmp_path / "t"))
    table.write(Operation.INSERT, simple_rows(range(8), 1))
    table.write(Operation.UPSERT, simple_rows(range(4), 2))
    code = f"import sys, pyarrow, hudimeta{what}print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, table.path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
