"""What a Python user would take instead: delta-rs, pyiceberg, and readers of plain Parquet, each called as its documents say.

The writers get the codec of our side, zstd, unless they are asked for their default; all of them use every core.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from benchmarks import lineitem
from benchmarks.case import Settings

DELTA, DELTA_DEFAULT, ICEBERG = "delta-rs", "delta-rs default", "pyiceberg"
ARROW, DUCKDB, POLARS = "PyArrow", "DuckDB", "Polars"
DEFAULT_CODEC = ""


def _delta() -> Any:
    """The package. Raises ModuleNotFoundError where it is not installed."""
    return importlib.import_module("deltalake")


def _delta_codec(codec: str) -> dict[str, Any]:
    return {"writer_properties": _delta().WriterProperties(compression=codec)} if codec else {}


def delta_load(path: Path, rows: pa.Table, partition_by: Sequence[str], codec: str = "ZSTD") -> None:
    """Append rows to a table of delta-rs; a new one where there is none."""
    how = {"partition_by": list(partition_by), "mode": "append", **_delta_codec(codec)}
    _delta().write_deltalake(str(path), rows, **how)


def delta_merge(path: Path, rows: pa.Table, codec: str = "ZSTD") -> None:
    """Update lineitem's rows that are there, insert the others."""
    same = f"old.{lineitem.KEY} = new.{lineitem.KEY} AND old.{lineitem.PARTITION} = new.{lineitem.PARTITION}"
    names = {"source_alias": "new", "target_alias": "old"}
    merge = _delta().DeltaTable(str(path)).merge(rows, same, **names, **_delta_codec(codec))
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def delta_uris(path: Path) -> list[str]:
    """The files that a scan of the whole table reads: what a plan finds out."""
    return list(delta_open(path).file_uris())


def delta_open(path: Path) -> Any:
    """The table, for plans of it."""
    return _delta().DeltaTable(str(path))


def delta_refreshed(table: Any) -> list[str]:
    """The files that a scan of an open table reads by now."""
    table.update_incremental()
    return list(table.file_uris())


def delta_files(path: Path) -> int:
    """How many they are."""
    return len(delta_uris(path))


def delta_update(path: Path, where: str, codec: str = "ZSTD") -> None:
    """Change a text of lineitem's rows that meet a condition."""
    delta_open(path).update({"l_shipinstruct": "'LEAVE AT THE DOOR'"}, predicate=where, **_delta_codec(codec))


def delta_delete(path: Path, where: str, codec: str = "ZSTD") -> None:
    """Delete rows that meet a condition."""
    delta_open(path).delete(where, **_delta_codec(codec))


def delta_optimize(path: Path, codec: str = "ZSTD") -> None:
    """Put small files together."""
    delta_open(path).optimize.compact(**_delta_codec(codec))


def delta_vacuum(path: Path, codec: str = "") -> None:
    """Remove the files of all moments but the newest; no codec matters."""
    delta_open(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def delta_table(settings: Settings) -> Path:
    """Lineitem's rows in a table of delta-rs, with its default codec; kept between runs."""
    path = settings.data / f"{lineitem.rows_file(settings).stem}-delta"
    if not path.is_dir():
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        delta_load(unfinished, lineitem.rows(settings), [lineitem.PARTITION], DEFAULT_CODEC)
        unfinished.rename(path)
    return path


class Iceberg:
    """A table of pyiceberg, in a catalog of its own.

    Args:
        folder: For catalog and files; those that are there already are opened.
    """

    def __init__(self, folder: Path) -> None:
        catalogs = importlib.import_module("pyiceberg.catalog.sql")
        folder.mkdir(parents=True, exist_ok=True)
        self.catalog = catalogs.SqlCatalog("own", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        self.catalog.create_namespace_if_not_exists("b")

    def open(self) -> Any:
        """The table that is there."""
        return self.catalog.load_table("b.t")

    def create(self, schema: pa.Schema, partition: str) -> Any:
        """A new table, partitioned by a column; its default codec is zstd."""
        transforms = importlib.import_module("pyiceberg.transforms")
        table = self.catalog.create_table("b.t", schema)
        with table.update_spec() as spec:
            spec.add_field(partition, transforms.IdentityTransform(), f"{partition}_part")
        return table

    def load(self, rows: pa.Table, partition: str) -> Any:
        """The same with these rows."""
        table = self.create(rows.schema, partition)
        table.append(rows)
        return table


def read_delta(path: Path, columns: Sequence[str], where: tuple[int, int] | None) -> int:
    """Rows of a table of delta-rs by its own engine, batch by batch; of a range of order keys, or all."""
    chosen = None if where is None else f"l_orderkey >= {where[0]} AND l_orderkey < {where[1]}"
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(delta_open(path).scan(list(columns), chosen)))


def read_hudi_rs(path: Path, columns: Sequence[str], where: tuple[int, int] | None) -> int:
    """The same of a table of Hudi's, by hudi-rs."""
    hudi = importlib.import_module("hudi")
    chosen = [] if where is None else [("l_orderkey", ">=", str(where[0])), ("l_orderkey", "<", str(where[1]))]
    options = hudi.HudiReadOptions(filters=chosen, projection=list(columns))
    table = hudi.HudiTableBuilder.from_base_uri(str(path)).build()
    return sum(batch.num_rows for batch in table.read_stream(options))


def read_arrow(files: Sequence[str], columns: Sequence[str], where: tuple[int, int] | None) -> int:
    """Rows of Parquet files by PyArrow, batch by batch; of a range of order keys, or all."""
    order = ds.field("l_orderkey")
    chosen = None if where is None else (order >= where[0]) & (order < where[1])
    scanner = ds.dataset(list(files)).scanner(columns=list(columns), filter=chosen)
    return sum(batch.num_rows for batch in scanner.to_batches())


def read_duckdb(files: Sequence[str], columns: Sequence[str], where: tuple[int, int] | None) -> int:
    """The same by DuckDB."""
    names, condition = (
        ", ".join(columns),
        "" if where is None else f" WHERE l_orderkey >= {where[0]} AND l_orderkey < {where[1]}",
    )
    with importlib.import_module("duckdb").connect() as connection:
        found = connection.sql(f"SELECT {names} FROM read_parquet(?){condition}", params=[list(files)])
        return sum(batch.num_rows for batch in found.to_arrow_reader(1 << 17))


def read_polars(files: Sequence[str], columns: Sequence[str], where: tuple[int, int] | None) -> int:
    """The same by Polars."""
    polars = importlib.import_module("polars")
    frame = polars.scan_parquet(list(files))
    if where is not None:
        frame = frame.filter((polars.col("l_orderkey") >= where[0]) & (polars.col("l_orderkey") < where[1]))
    return int(frame.select(list(columns)).collect().height)


def count_arrow(files: Sequence[str]) -> int:
    """How many rows Parquet files have, by PyArrow."""
    return int(ds.dataset(list(files)).count_rows())


def count_duckdb(files: Sequence[str]) -> int:
    """The same by DuckDB."""
    with importlib.import_module("duckdb").connect() as connection:
        return int(connection.execute("SELECT count(*) FROM read_parquet(?)", [list(files)]).fetchone()[0])


def count_polars(files: Sequence[str]) -> int:
    """The same by Polars."""
    polars = importlib.import_module("polars")
    return int(polars.scan_parquet(list(files)).select(polars.len()).collect().item())
