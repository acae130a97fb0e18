"""Rows for the benchmarks of reading and writing: a quarter of TPC-H's lineitem at scale factor 1, about 1.5 million rows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.case import Settings
from benchmarks.job import Absent

PARTS = 4
PIECES = 7
"""Of `piece_file`: 10.5 million rows together."""

KEY, PARTITION, ORDERING = "key", "ship_year", "l_linenumber"
SELECTIVE = 0.01


def rows_file(settings: Settings) -> Path:
    """A Parquet file with the rows, their key (order key and line number, padded with zeros) and their ship year."""
    parts = max(PARTS, round(PARTS / settings.scale))
    return _kept(settings, f"lineitem-1of{parts}", ["-s", "1", f"--parts={parts}", "--part=1"])


def piece_file(settings: Settings, number: int, factor: int = 2) -> Path:
    """One of many files of 1.5 million other rows each, of a scale factor with four times as many; at small scales of more."""
    parts = round(PARTS * factor / settings.scale)
    chosen = ["-s", str(factor), f"--parts={parts}", f"--part={number}"]
    return _kept(settings, f"lineitem-sf{factor}-{number}of{parts}", chosen)


def _kept(settings: Settings, name: str, arguments: list[str]) -> Path:
    path = settings.data / f"{name}.parquet"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        pq.write_table(_with_key(_generate(settings.data / "tpch", arguments)), unfinished, row_group_size=1 << 17)
        unfinished.rename(path)
    return path


def rows(settings: Settings) -> pa.Table:
    """The same, in memory."""
    return pq.read_table(rows_file(settings))


def _generate(folder: Path, arguments: list[str]) -> pa.Table:
    program = shutil.which("tpchgen-cli") or str(Path(sys.executable).with_name("tpchgen-cli"))
    if not Path(program).exists():
        raise Absent("tpchgen-cli is not installed: pip install 'hudimeta[bench]'")
    command = [program, "parquet", *arguments, "--tables=lineitem", f"--output-dir={folder}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    try:
        return pq.read_table(next(folder.rglob("*.parquet")))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _with_key(table: pa.Table) -> pa.Table:
    order = pc.utf8_lpad(table["l_orderkey"].cast(pa.string()), 10, "0")
    key = pc.binary_join_element_wise(order, table["l_linenumber"].cast(pa.string()), "-")
    year = pc.year(table["l_shipdate"]).cast(pa.string())
    plain = pa.schema([pa.field(f.name, pa.string() if _is_text(f.type) else f.type) for f in table.schema])
    return table.cast(plain).append_column(KEY, key).append_column(PARTITION, year).combine_chunks()


def _is_text(kind: pa.DataType) -> bool:
    return bool(kind == pa.string_view() or pa.types.is_large_string(kind) or pa.types.is_string(kind))


def narrow_span(settings: Settings) -> tuple[int, int]:
    """The order keys, first and one after the last, of a hundredth of the rows: they rise through the source."""
    keys = pc.min_max(pq.read_table(rows_file(settings), columns=["l_orderkey"])["l_orderkey"]).as_py()
    span = keys["max"] - keys["min"]
    start = keys["min"] + span // 2
    return start, start + int(span * SELECTIVE)


def narrow(settings: Settings) -> str:
    """The condition that these rows meet."""
    first, end = narrow_span(settings)
    return f"l_orderkey >= {first} AND l_orderkey < {end}"
