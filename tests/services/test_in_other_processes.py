"""Services hand out tasks that can travel: an engine of other processes gives what threads give."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.engine import LocalEngine
from hudimeta.metadata import compaction
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import write_rows


def sent(value: Any) -> Any:
    return pickle.loads(cloudpickle.dumps(value))


class TravellingEngine:
    """Sends tasks, items and results through bytes, as an engine of other processes does: nothing can be shared."""

    def __init__(self) -> None:
        self.ran = 0

    def map(self, task: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        arrived = sent(task)
        results = [sent(arrived(sent(item))) for item in items]
        self.ran += len(results)
        return results

    def __reduce__(self) -> tuple[type[LocalEngine], tuple[int]]:
        return LocalEngine, (1,)


def test_large_merges_of_the_metadata_table_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but that of the listing, of which the writer knows more than files say."""
    indexes = {"hoodie.metadata.record.index.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    model = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **indexes})
    model.write(Operation.UPSERT, simple_rows(range(30), 1, partitions=3))
    monkeypatch.setattr(compaction, "MERGED_BEFORE_BYTES", 0)
    engine = TravellingEngine()
    options = OPTIONS.read({**model.options.given, "hoodie.metadata.compact.max.delta.commits": "1"})
    session = WriteSession(model.storage, options, engine=engine)
    rows = simple_rows(range(20, 40), 2, partitions=3)
    model.model.write(Operation.UPSERT, rows)
    write_rows(session, Operation.UPSERT, rows)
    assert session.coordinator.compacted_metadata
    groups = [group for name in ("column_stats", "record_index") for group in Table(model.path).metadata.file_groups(name)]
    merged = [group for group in groups if group.base is not None]
    assert engine.ran >= len(merged) > 4
    model.model.check(model.read())
    check_all(model.storage)


def test_every_service_travels(tmp_path: Path) -> None:
    model = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    for ts in range(1, 4):
        model.write(Operation.UPSERT, simple_rows(range(30), ts, partitions=3))
    engine = TravellingEngine()
    table = Table(model.path, {"hoodie.clean.commits.retained": "1"}, engine=engine)

    def did_travel(of: str) -> None:
        assert engine.ran, of
        engine.ran = 0

    for build in (
        {"type": "record_index"},
        {"type": "bloom_filters"},
        {"name": "upper_id", "type": "column_stats", "columns": "id", "expression": "upper"},
        {"name": "of_ts", "type": "secondary_index", "columns": "ts"},
    ):
        table.metadata.create_index(**build)
        did_travel(build["type"])
    assert table.metadata.validate().outcome.value == "holds"
    did_travel("validation")
    (report,) = table.compact()
    assert report.files_written == 3
    did_travel("compaction")
    model.write(Operation.UPSERT, simple_rows(range(30), 9, partitions=3))
    table.compact()
    engine.ran = 0
    assert table.clean().deleted
    did_travel("cleaning")
    table.metadata.rebuild()
    did_travel("rebuilding")
    model.model.check(model.read())
    check_all(model.storage)
