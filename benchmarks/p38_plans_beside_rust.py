"""P38: plans of tables of 100,000 files that nobody wrote, beside pyiceberg and delta-rs: all files, or those of a range of c0.

All three tables name the same files with the same bounds of c0; pyiceberg's are in one manifest, as after one append, those of
delta-rs in a checkpoint. Each plan opens its table anew.
"""

from __future__ import annotations

import importlib
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import beside, ours, synthetic
from benchmarks.beside import DELTA, ICEBERG
from benchmarks.case import OURS, Case, Settings, Side
from benchmarks.job import Job
from benchmarks.p04_column_stats import clustered, sql

ROUNDS = 5
SIZE = 1_200_000
SCHEMA = pa.schema([("id", pa.string()), ("day", pa.string()), ("c0", pa.int64())])
COLUMN_ID = 3
"""Of c0 in pyiceberg's schema, which numbers from one."""

Plan = Callable[[Path, str | None], int]


def _entries(settings: Settings) -> Iterator[tuple[str, str, int, int]]:
    """Partition, path, smallest and greatest c0 of each file."""
    shape = synthetic.small(settings)
    days, lows = synthetic.partition_names(shape), synthetic.bounds(shape)["c0"].tolist()
    for number, (file_id, low) in enumerate(zip(synthetic.file_ids(shape).astype(str).tolist(), lows, strict=True)):
        day = days[number // shape.files]
        yield day, f"day={day}/{file_id}.parquet", low, low + synthetic.bounds_width("c0")


def _made(settings: Settings, name: str, make: Callable[[Settings, Path], None]) -> Path:
    path = settings.data / f"{synthetic.small(settings).name}-{name}"
    whole = path / "whole"
    if not whole.is_file():  # pyiceberg writes absolute paths, so that a table cannot be renamed when it is done
        shutil.rmtree(path, ignore_errors=True)
        make(settings, path)
        whole.touch()
    return path


def delta_table(settings: Settings) -> Path:
    """The table of delta-rs; kept between runs."""
    return _made(settings, DELTA, _make_delta)


def _make_delta(settings: Settings, path: Path) -> None:
    transactions = importlib.import_module("deltalake.transaction")
    added = []
    for day, file, low, high in _entries(settings):
        nothing = {"id": 0, "c0": 0}
        bounds = {
            "numRecords": synthetic.ROWS_PER_FILE,
            "minValues": {"c0": low},
            "maxValues": {"c0": high},
            "nullCount": nothing,
        }
        added.append(transactions.AddAction(file, SIZE, {"day": day}, 0, True, json.dumps(bounds)))
    schema = importlib.import_module("deltalake").Schema.from_arrow(SCHEMA)
    transactions.create_table_with_add_actions(str(path), schema, added, partition_by=["day"])
    beside.delta_open(path).create_checkpoint()


def iceberg_table(settings: Settings) -> Path:
    """The table of pyiceberg; kept between runs."""
    return _made(settings, ICEBERG, _make_iceberg)


def _make_iceberg(settings: Settings, path: Path) -> None:
    manifests, typedef = importlib.import_module("pyiceberg.manifest"), importlib.import_module("pyiceberg.typedef")
    table = beside.Iceberg(path).create(SCHEMA, "day")
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for day, file, low, high in _entries(settings):
            append.append_data_file(
                manifests.DataFile.from_args(
                    content=manifests.DataFileContent.DATA,
                    file_path=f"{path}/{file}",
                    file_format=manifests.FileFormat.PARQUET,
                    partition=typedef.Record(day),
                    record_count=synthetic.ROWS_PER_FILE,
                    file_size_in_bytes=SIZE,
                    column_sizes={COLUMN_ID: 8_000},
                    value_counts={COLUMN_ID: synthetic.ROWS_PER_FILE},
                    null_value_counts={COLUMN_ID: 0},
                    nan_value_counts={},
                    lower_bounds={COLUMN_ID: struct.pack("<q", low)},
                    upper_bounds={COLUMN_ID: struct.pack("<q", high)},
                    key_metadata=None,
                    split_offsets=None,
                    equality_ids=None,
                    sort_order_id=None,
                )
            )


def _our_plan(path: Path, where: str | None) -> int:
    return ours.count_planned(ours.open_table(path), where)


def _delta_plan(path: Path, where: str | None) -> int:
    table = beside.delta_open(path)
    return len(table.file_uris() if where is None else table.file_uris(file_pruning_predicate=where))


def _iceberg_plan(path: Path, where: str | None) -> int:
    table: Any = beside.Iceberg(path).open()
    return len(list((table.scan() if where is None else table.scan(row_filter=where)).plan_files()))


def _side(table: Callable[[Settings], Path], plan: Plan, narrow: bool) -> Side:
    def run(job: Job) -> None:
        path, files = table(job.settings), 0
        where = sql(clustered(job.settings)) if narrow else None
        for _ in range(job.rounds):
            with job.timed():
                files = plan(path, where)
        job.fact("files", files)

    return run


def our_table(settings: Settings) -> Path:
    """Our table, which is that of P4."""
    return synthetic.make(settings, synthetic.small(settings))


def prepare(settings: Settings) -> None:
    """Make all tables."""
    for table, _ in SIDES.values():
        table(settings)


SIDES: dict[str, tuple[Callable[[Settings], Path], Plan]] = {
    OURS: (our_table, _our_plan),
    DELTA: (delta_table, _delta_plan),
    ICEBERG: (iceberg_table, _iceberg_plan),
}

CASES = [
    Case(
        f"P38-{name}",
        f"a plan of 100,000 files, {title}",
        {who: _side(table, plan, narrow) for who, (table, plan) in SIDES.items()},
        rounds=ROUNDS,
        prepare=prepare,
    )
    for name, title, narrow in (("all", "all of them", False), ("range", "those of 1 % of a column", True))
]
