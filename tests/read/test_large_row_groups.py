"""Row groups that are small in the file and large in memory: they come in portions, with every row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import CorruptFileError
from hudimeta.formats.base_file import open_base_file
from hudimeta.storage import open_storage

ROWS = 600_000
PROGRAM = """
import sys
from hudimeta.formats.base_file import open_base_file
from hudimeta.storage import open_storage
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
with open_base_file(open_storage(sys.argv[1]), "a.parquet") as file:
    file.piece(1, file.names)
    before, rows = peak(), 0
    for portion in file.portions(0, file.names):
        rows += portion.num_rows
print(rows, peak() - before)
"""


def constant(folder: Path) -> Path:
    """A file of two row groups, of which the first has a text of 600 letters 600,000 times."""
    rows = pa.table({"x": pa.repeat(pa.scalar("v" * 600), 1), "n": pa.array([1])})
    with pq.ParquetWriter(folder / "a.parquet", rows.schema, write_page_checksum=True) as file:
        file.write_table(rows.take(pa.array([0] * ROWS, pa.int32())), row_group_size=ROWS)
        file.write_table(rows)
    return folder / "a.parquet"


def test_what_repeats_takes_no_more_memory_than_a_portion(tmp_path: Path) -> None:
    assert constant(tmp_path).stat().st_size < 100_000
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True)
    rows, kilobytes = map(int, done.stdout.split())
    assert rows == ROWS
    assert kilobytes < 160 << 10, "700 MB when it is read whole"


def test_portions_are_the_rows_of_the_group_in_order(tmp_path: Path) -> None:
    rows = pa.table({"n": pa.array(range(ROWS)), "deep": pa.array([{"a": n} for n in range(ROWS)])})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=ROWS)
    with open_base_file(open_storage(tmp_path), "a.parquet") as file:
        portions = list(file.portions(0, ["n", "deep.a", "absent"]))
        assert len(portions) > 1
        assert pa.concat_tables(portions).equals(file.piece(0, ["n", "deep.a", "absent"]))
        assert sum(portion.num_rows for portion in file.portions(0, [])) == ROWS


def test_a_damaged_page_is_found_in_a_portion(tmp_path: Path) -> None:
    path = constant(tmp_path)
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(1)
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    path.write_bytes(bytes(data))
    with open_base_file(open_storage(tmp_path), "a.parquet") as file, pytest.raises(CorruptFileError, match=r"a\.parquet"):
        list(file.portions(0, file.names))
