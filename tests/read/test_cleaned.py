"""Moments between cleans that keep file versions: read whole, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.errors import TableError
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.types import Operation


def written(path: Path, writes: int) -> ModelledTable:
    """A table of two partitions whose every row was written `writes` times."""
    table = ModelledTable(str(path), dict(SIMPLE_OPTIONS))
    for ts in range(1, writes + 1):
        table.write(Operation.UPSERT, simple_rows(range(10), ts))
    return table


def test_moments_whose_file_versions_are_gone_are_refused(tmp_path: Path) -> None:
    """Such a cleaner names no earliest commit, and a moment without its files must not look like an empty table."""
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"}
    table = written(tmp_path / "t", 3)
    table.write(Operation.UPSERT, simple_rows([0], 4))  # one file group alone has a fourth version
    Table(table.path, options).clean()
    first, second, third, fourth = sorted(table.model.past)
    for moment in (first, second):
        with pytest.raises(TableError, match="cleaning removed"):
            table.read(moment)
    for moment in (third, fourth):
        table.model.check(table.read(moment), moment)


def test_moments_after_a_replacement_stay_readable_once_its_file_groups_are_gone(tmp_path: Path) -> None:
    options = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table = written(tmp_path / "t", 1)
    table.write(Operation.INSERT_OVERWRITE_TABLE, simple_rows(range(20, 24), 2))
    Table(table.path, options).clean()
    table.write(Operation.INSERT, simple_rows([30], 3))
    first, *later = sorted(table.model.past)
    with pytest.raises(TableError, match="cleaning removed"):
        table.read(first)
    for moment in later:
        table.model.check(table.read(moment), moment)
