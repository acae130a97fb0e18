"""Row groups that a write does not touch are in the next base file as they were, to the byte."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import CorruptFileError
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.write.test_rewritten_files import SCHEMA as EVERY_KIND
from tests.write.test_rewritten_files import (
    assert_filter_is_of,
    assert_statistics_are_exact,
    file_of,
    footer_of,
    groups_of,
    pages_of,
)

SCHEMA = pa.schema([field for field in EVERY_KIND if field.name not in ("words", "amount")])
NAMED = ("word", "kind", "ts")
FIRST = 20_000


def rows(ids: Iterable[int], ts: int = 1) -> pa.Table:
    own = list(ids)
    number = pa.array(own, pa.int64())
    point = pa.StructArray.from_arrays([number.cast(pa.float32()), pa.array([None if n % 5 else "b" for n in own])], ["a", "b"])
    columns = [
        pa.array([f"k{n:06d}" for n in own]),
        pa.array([ts] * len(own), pa.int64()),
        pa.array([f"word {n} of {ts}" for n in own]),
        pa.array(["abc"[n % 3] for n in own]),
        pa.array([float("nan") if n % 1000 == 1 else n / 7 for n in own]),
        point,
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


class Grown:
    """A table of one file that begins with one row group of `FIRST` rows; `held` says the `ts` of each of its rows."""

    def __init__(self, path: Path, **how: Any) -> None:
        indexes = ["column_stats", "bloom_filters", "record_index"]
        self.path = path
        self.table = hudimeta.Table.create(str(path), SCHEMA, "id", ordering=["ts"], **({"indexes": indexes} | how))
        self.table.bulk_insert(rows(range(FIRST)))
        self.held = dict.fromkeys(range(FIRST), 1)
        self.ts = 1

    def put(self, verb: str, ids: Iterable[int]) -> None:
        self.ts += 1
        batch = rows(ids, self.ts)
        numbers = [int(key[1:]) for key in batch["id"].to_pylist()]
        if verb == "delete":
            self.table.delete(batch.select(["id"]))
            for number in numbers:
                self.held.pop(number, None)
            return
        getattr(self.table, verb)(batch)
        self.held |= dict.fromkeys(numbers, self.ts)

    @property
    def file(self) -> Path:
        return file_of(self.path, self.table)

    @property
    def groups(self) -> list[int]:
        return groups_of(self.file)

    def pages(self, group: int) -> list[bytes]:
        """Of each column of a row group but that of the file's name."""
        return [pages for path, pages in pages_of(self.file, group).items() if path != "_hoodie_file_name"]

    def check(self) -> None:
        """Rows, invariants, and what the file says of itself."""
        found = hudimeta.Table(str(self.path)).scan(columns=SCHEMA.names).to_table().sort_by("id")
        numbers = sorted(self.held)
        wanted = pa.concat_tables([SCHEMA.empty_table(), *(rows([n], self.held[n]) for n in numbers if self.held[n] > 1)])
        old = rows([n for n in numbers if self.held[n] == 1])
        assert repr(found.to_pylist()) == repr(pa.concat_tables([old, wanted]).sort_by("id").to_pylist())
        check_all(open_storage(str(self.path)))
        stored, footer = pq.ParquetFile(self.file).read(), footer_of(self.file)
        assert stored["_hoodie_file_name"].unique().to_pylist() == [self.file.name]
        assert_filter_is_of(stored["_hoodie_record_key"], footer.bloom_text)
        if "column_stats" in self.table.properties.metadata_partitions:
            assert_statistics_are_exact(self.table, stored, self.file.name, NAMED)


def test_appended_rows_leave_the_others(tmp_path: Path) -> None:
    grown = Grown(tmp_path / "t")
    pages = grown.pages(0)
    grown.put("insert", range(FIRST, FIRST + 100))
    assert (grown.groups, grown.pages(0)) == ([FIRST, 100], pages)
    grown.check()
    grown.put("upsert", [FIRST + 3, FIRST + 200])
    assert (grown.groups, grown.pages(0)) == ([FIRST, 101], pages)
    grown.put("delete", [FIRST + 3])
    assert (grown.groups, grown.pages(0)) == ([FIRST, 100], pages)
    grown.check()


def test_reports_say_what_was_copied(tmp_path: Path) -> None:
    grown = Grown(tmp_path / "t", indexes=[])
    report = grown.table.insert(rows(range(FIRST, FIRST + 100)))
    assert (report.row_groups_kept, report.updated, report.inserted) == (1, 0, 100)
    assert "kept      1 row groups of superseded files, copied without decoding" in str(report)
    assert hudimeta.Table(str(grown.path)).report().row_groups_kept == 1
    assert grown.table.upsert(rows([7], 2)).row_groups_kept == 0


def test_rows_that_go_from_most_row_groups_put_them_together(tmp_path: Path) -> None:
    grown = Grown(tmp_path / "t")
    grown.put("insert", range(FIRST, FIRST + 100))
    grown.put("delete", [7])
    assert grown.groups == [FIRST + 99]
    grown.check()


def test_the_rows_of_a_group_in_the_middle_stay_there(tmp_path: Path) -> None:
    grown = Grown(tmp_path / "t")
    grown.put("insert", range(FIRST, FIRST + 9_900))
    grown.put("insert", range(FIRST + 9_900, FIRST + 10_000))
    assert grown.groups == [FIRST, 9_900, 100]
    first, last = grown.pages(0), grown.pages(2)
    grown.put("upsert", [FIRST + 5])
    assert (grown.groups, grown.pages(0), grown.pages(2)) == ([FIRST, 9_900, 100], first, last)
    grown.check()
    grown.put("delete", range(FIRST, FIRST + 9_900, 4))
    assert (grown.groups, grown.pages(0), grown.pages(2)) == ([FIRST, 7_425, 100], first, last)
    grown.check()


def test_a_row_group_without_rows_is_none(tmp_path: Path) -> None:
    grown = Grown(tmp_path / "t")
    grown.put("insert", range(FIRST, FIRST + 100))
    pages = grown.pages(0)
    grown.put("delete", range(FIRST, FIRST + 100))
    assert (grown.groups, grown.pages(0)) == ([FIRST], pages)
    grown.check()


def test_row_groups_stay_few(tmp_path: Path) -> None:
    grown = Grown(tmp_path / "t", indexes=[])
    pages, most = grown.pages(0), 0
    for number in range(20):
        grown.put("insert", range(FIRST + 600 * number, FIRST + 600 * number + 600))
        most = max(most, len(grown.groups))
    assert (most, grown.pages(0)) == (3, pages)
    assert sum(grown.groups) == FIRST + 20 * 600
    grown.check()


@pytest.mark.rotation(3)
@pytest.mark.parametrize("seed", range(3))
def test_random_writes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kept = {"hoodie.table.cdc.enabled": "true"} if seed == 1 else {}
    grown = Grown(tmp_path / "t", options=kept | ({"hoodie.write.table.version": "9"} if seed == 2 else {}))
    grown.table.indexes.create("by_kind", "secondary_index", columns=["kind"])
    for _ in range(12):
        top, verb = max(grown.held), chance.choice(("insert", "upsert", "upsert", "delete"))
        first = chance.choice((top + 1, top - 50, top - 5_000, chance.randrange(top)))
        first = top + 1 if verb == "insert" else first
        grown.put(verb, range(first, first + chance.choice((1, 40, 400, 9_000 if verb == "insert" else 60))))
    grown.check()
    if seed == 1:
        since, top = grown.table.timeline.writes[-1].completed_at, max(grown.held)
        grown.put("upsert", [top, top + 1])
        told = grown.table.scan(query_type="cdc", begin=since).to_table()
        assert sorted(told["op"].to_pylist()) == ["i", "u"]


def test_moments_that_python_has_no_word_for(tmp_path: Path) -> None:
    far, kinds = 8 * 10**18, {"at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"), "day": pa.date32()}
    farthest = {"at": far, "local": far, "day": 10**8}

    def of(ids: Iterable[int]) -> pa.Table:
        own = list(ids)
        numbers = {name: [most, -most, *own][: len(own)] for name, most in farthest.items()}
        columns = [pa.array(numbers[name], number_of[name]).cast(kind) for name, kind in kinds.items()]
        return pa.table([pa.array([f"k{n:06d}" for n in own], pa.string()), *columns], names=["id", *kinds])

    number_of = {"at": pa.int64(), "local": pa.int64(), "day": pa.int32()}
    table = hudimeta.Table.create(str(tmp_path / "t"), of([]).schema, "id", indexes=["column_stats"])
    table.bulk_insert(of(range(FIRST)))
    table.insert(of(range(FIRST, FIRST + 100)))
    file = file_of(tmp_path / "t", table)
    assert pq.read_metadata(file).num_row_groups == 2
    for name, stats in table.metadata.column_stats(kinds).items():
        own = stats.filter(pc.equal(stats["file_name"], file.name))
        assert own["min"].cast(number_of[name]).to_pylist() == [-farthest[name]]
        assert own["max"].cast(number_of[name]).to_pylist() == [farthest[name]]


def test_a_damaged_page_index_is_not_copied(tmp_path: Path) -> None:
    grown = Grown(tmp_path / "t")
    file, writes = grown.file, grown.table.timeline.writes
    content, last = bytearray(file.read_bytes()), pq.read_metadata(file).row_group(0)
    chunk = last.column(last.num_columns - 1)
    content[chunk.data_page_offset + chunk.total_compressed_size + 20] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorruptFileError, match="page indexes"):
        grown.put("insert", [FIRST])
    assert hudimeta.Table(str(grown.path)).timeline.writes == writes


def test_a_damaged_page_is_not_copied(tmp_path: Path) -> None:
    grown = Grown(tmp_path / "t", options={"hoodie.parquet.compression.codec": "uncompressed"})
    file, writes = grown.file, grown.table.timeline.writes
    file.write_bytes(file.read_bytes().replace(b"word 42 of", b"wOrd 42 of"))
    with pytest.raises(CorruptFileError, match=file.name):
        grown.put("insert", [FIRST])
    assert hudimeta.Table(str(grown.path)).timeline.writes == writes
    assert grown.file == file
