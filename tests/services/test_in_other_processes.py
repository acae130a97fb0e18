"""Services hand out tasks that can travel: an engine of other processes gives what threads give."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from hudimeta import Table
from hudimeta.engine import LocalEngine
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation


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
