"""Small tables for tests: rows of one shape, and a table that keeps its own model beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from hudimeta.api.table import Table
from hudimeta.commit.report import CommitReport
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS, Options
from hudimeta.engine import Engine, LocalEngine
from hudimeta.storage import Storage, open_storage
from hudimeta.testing.model import ModelTable, Place
from hudimeta.types import Operation
from hudimeta.write.creation import create_table
from hudimeta.write.table_writer import write_rows

__all__ = ["SIMPLE_OPTIONS", "ModelledTable", "simple_place", "simple_rows"]

SIMPLE_OPTIONS: Mapping[str, str] = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
"""Options of a table of `simple_rows`."""


def simple_rows(ids: Iterable[int], ts: int, value: float | None = None, *, partitions: int = 2) -> pa.Table:
    """Rows `id string, part string, ts int64, x double`; the partition follows from the id."""
    numbers = list(ids)
    count = len(numbers)
    return pa.table(
        {
            "id": pa.array([f"k{n:04d}" for n in numbers], pa.string()),
            "part": pa.array([f"p{n % partitions}" for n in numbers], pa.string()),
            "ts": pa.array([ts] * count, pa.int64()),
            "x": pa.array([float(ts) if value is None else value] * count, pa.float64()),
        }
    )


def simple_place(row: Mapping[str, Any]) -> Place:
    """Partition path and key of one of `simple_rows`."""
    return row["part"], row["id"]


class ModelledTable:
    """A table and the model of it, written side by side.

    Args:
        path: Where; the table is created unless `exists`.
        options: Of the table and of every write.
        schema: Of the rows.
        model: Empty model with the table's keys; of `simple_rows` when None.
    """

    def __init__(
        self,
        path: str,
        options: Mapping[str, Any] = SIMPLE_OPTIONS,
        schema: pa.Schema | None = None,
        model: ModelTable | None = None,
        *,
        exists: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self.path, self.options = path, OPTIONS.read(options)
        self.engine = engine or LocalEngine(1)
        self.model = model or ModelTable(simple_place, "ts")
        if not exists:
            create_table(open_storage(path), schema if schema is not None else simple_rows([], 0).schema, self.options)

    def copy(self, path: str) -> ModelledTable:
        """The table and its model once more at another place, to spoil."""
        shutil.copytree(self.path, path, symlinks=True)
        return ModelledTable(path, self.options.given, model=self.model.copy(), exists=True, engine=self.engine)

    @property
    def storage(self) -> Storage:
        """Rooted at the table."""
        return open_storage(self.path)

    def session(self, storage: Storage | None = None, options: Options | None = None) -> WriteSession:
        """A session for one write, over another storage or with other options where given."""
        return WriteSession(storage or self.storage, options or self.options, engine=self.engine)

    def write(self, operation: Operation, rows: pa.Table, storage: Storage | None = None) -> CommitReport:
        """Write to the table, then to the model, which remembers the instant."""
        report = write_rows(self.session(storage), operation, rows)
        self.model.write(operation, rows)
        if report.completion is not None:
            self.model.remember(report.instant)
        return report

    def read(self, as_of: str | None = None) -> pa.Table:
        """All rows, of now or as of an instant."""
        return Table(self.path).scan(as_of=as_of).to_table()

    def check(self) -> None:
        """Compare the present and every remembered instant with the model."""
        self.model.check(self.read())
        for instant in self.model.past:
            self.model.check(self.read(instant), instant)
