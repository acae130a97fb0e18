"""Columns of which a write changes no cell are in the next base file to the byte, if all rows keep their places."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import CorruptFileError
from hudimeta.storage import open_storage
from hudimeta.storage.local import LocalStorage
from hudimeta.testing.invariants import check_all
from tests.write.test_rewritten_files import (
    SCHEMA,
    assert_filter_is_of,
    assert_statistics_are_exact,
    file_of,
    footer_of,
    groups_of,
    pages_of,
)

ROWS = 9_000
ALWAYS = {"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"}
"""Columns that change with every write."""


def row(number: int) -> dict[str, Any]:
    return {
        "id": f"k{number:06d}",
        "ts": 1,
        "word": f"word {number * 7919 % 104_729}",
        "kind": "abc"[number % 3],
        "x": float("nan") if number % 1000 == 1 else number / 7,
        "point": {"a": number / 2, "b": None if number % 5 else "b"},
        "words": ["t"] * (number % 3) if number % 7 else None,
        "amount": None if number % 11 == 0 else number % 900,
    }


class Held:
    """A table of one file, and what its rows are."""

    def __init__(self, path: Path, count: int = ROWS, **how: Any) -> None:
        indexes = ["column_stats", "bloom_filters", "record_index"]
        self.path, self.rows = path, {number: row(number) for number in range(count)}
        self.table = hudimeta.Table.create(str(path), SCHEMA, "id", ordering=["ts"], **({"indexes": indexes} | how))
        self.table.bulk_insert(self.batch(range(count)))

    def batch(self, numbers: Iterable[int]) -> pa.Table:
        return pa.Table.from_pylist([self.rows[number] for number in numbers], SCHEMA)

    def change(self, numbers: Iterable[int], **cells: Callable[[int], Any]) -> Any:
        own = list(numbers)
        for number in own:
            self.rows[number] = self.rows.get(number, row(number)) | {name: make(number) for name, make in cells.items()}
        return self.table.upsert(self.batch(own))

    @property
    def file(self) -> Path:
        return file_of(self.path, self.table)

    @property
    def groups(self) -> list[int]:
        return groups_of(self.file)

    def pages(self, group: int = 0) -> dict[str, bytes]:
        return pages_of(self.file, group)

    def changed_since(self, before: dict[str, bytes], group: int = 0) -> set[str]:
        after = self.pages(group)
        assert before.keys() == after.keys()
        return {path for path, pages in after.items() if pages != before[path]}

    def check(self) -> None:
        """Rows, invariants, and what the file says of itself."""
        table = hudimeta.Table(str(self.path))
        found = table.scan(columns=SCHEMA.names).to_table().sort_by("id").to_pylist()
        assert repr(found) == repr(self.batch(sorted(self.rows)).to_pylist())  # by text: -0.0 is not 0.0, and NaN is NaN
        check_all(open_storage(str(self.path)))
        file = self.file
        stored = pq.ParquetFile(file, page_checksum_verification=True).read()
        assert stored["_hoodie_file_name"].unique().to_pylist() == [file.name]
        assert_filter_is_of(stored["_hoodie_record_key"], footer_of(file).bloom_text)
        if "column_stats" in table.properties.metadata_partitions:
            assert_statistics_are_exact(table, stored, file.name)


def test_an_update_of_one_column_copies_the_others(tmp_path: Path) -> None:
    held = Held(tmp_path / "t")
    before, every = held.pages(), range(0, ROWS, 100)
    report = held.change(every, word=lambda n: f"other {n}")
    assert held.changed_since(before) == {*ALWAYS, "word"}
    assert report.column_chunks_kept == len(before) - 4
    assert f"copied    {len(before) - 4} column chunks of superseded files, of which no cell changes" in str(report)
    held.check()
    before = held.pages()
    held.change(every, point=lambda n: {"a": -0.0, "b": None}, ts=lambda n: 2)
    assert held.changed_since(before) == {*ALWAYS, "point.a", "point.b", "ts"}
    held.check()


def test_statements_copy_what_they_do_not_set(tmp_path: Path) -> None:
    held = Held(tmp_path / "t")
    before = held.pages()
    report = held.table.update({"kind": "'z'"}, "amount < 1.00")
    assert (report.updated, report.column_chunks_kept) == (9, len(before) - 4)
    assert held.changed_since(before) == {*ALWAYS, "kind"}
    for one in held.rows.values():
        one["kind"] = "z" if one["amount"] is not None and one["amount"] < 1 else one["kind"]
    held.check()


@pytest.mark.parametrize(("old", "new"), [(0.0, -0.0), (float("nan"), 1.0), (2.5, None), (2.5, 2.5)])
def test_floating_numbers_are_compared_by_their_bits(tmp_path: Path, old: float, new: float | None) -> None:
    held = Held(tmp_path / "t")
    held.change([7], x=lambda n: old)
    before = held.pages()
    held.change([7], x=lambda n: new, kind=lambda n: "q")
    assert held.changed_since(before) == {*ALWAYS, "kind", *(["x"] if repr(old) != repr(new) else [])}
    held.check()


def test_appended_rows_get_a_row_group_after_those_that_stay(tmp_path: Path) -> None:
    held = Held(tmp_path / "t")
    before = held.pages()
    held.change([5, ROWS + 1, ROWS + 2], word=lambda n: f"other {n}")
    assert held.groups == [ROWS, 2]
    assert held.changed_since(before) == {*ALWAYS, "word"}
    held.check()
    held.change([6, ROWS + 1, ROWS + 3], word=lambda n: f"third {n}")
    assert held.groups == [ROWS, 3], "the small row group is written together with what is appended"
    held.check()


def test_row_groups_that_stay_lie_between_those_that_change(tmp_path: Path) -> None:
    held = Held(tmp_path / "t", 40_000, indexes=["column_stats", "bloom_filters"])
    for first, count in ((40_000, 19_000), (59_000, 8_500)):
        held.change(range(first, first + count))
    assert held.groups == [40_000, 19_000, 8_500]
    before = [held.pages(number) for number in range(3)]
    report = held.change([40_007, 58_000], kind=lambda n: "y")
    assert (report.row_groups_kept, report.column_chunks_kept) == (2, len(before[0]) - 4)
    name = {"_hoodie_file_name"}
    assert [held.changed_since(before[number], number) for number in range(3)] == [name, {*ALWAYS, "kind"}, name]
    held.check()


def test_rows_that_go_write_all_columns(tmp_path: Path) -> None:
    held = Held(tmp_path / "t")
    report = held.table.delete(held.batch([3, 4]).select(["id"]))
    assert (report.deleted, report.column_chunks_kept) == (2, 0)
    del held.rows[3], held.rows[4]
    held.check()


def test_another_layout_writes_all_columns(tmp_path: Path) -> None:
    held = Held(tmp_path / "t")
    for name, value in (("compression.codec", "gzip"), ("page.size", "4096"), ("dictionary.enabled", "false")):
        held.table = hudimeta.Table(str(held.path), {f"hoodie.parquet.{name}": value})
        assert held.change([7], word=lambda n, value=value: value).column_chunks_kept == 0
    assert {pq.read_metadata(held.file).row_group(0).column(at).compression for at in range(4)} == {"ZSTD"}
    held.check()


def test_captured_changes_and_all_kinds_of_index_follow(tmp_path: Path) -> None:
    held = Held(tmp_path / "t", options={"hoodie.table.cdc.enabled": "true"})
    held.table.indexes.create("by_kind", "secondary_index", columns=["kind"])
    held.table.indexes.create("lower_word", "column_stats", columns=["word"], expression="lower")
    since, before = held.table.timeline.writes[-1].completed_at, held.pages()
    assert held.change([7, 8], kind=lambda n: "new", word=lambda n: "ZZZ").column_chunks_kept == len(before) - 5
    told = held.table.scan(query_type="cdc", begin=since).to_table()
    assert told["op"].to_pylist() == ["u", "u"]
    assert sorted(held.table.scan("kind = 'new'", columns=["id"]).to_table()["id"].to_pylist()) == ["k000007", "k000008"]
    assert held.table.scan("lower(word) = 'zzz'").count() == 2
    held.check()


@pytest.mark.rotation(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_changes_of_some_columns(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    texts = ["", "ä" * 40, "z" * 2_000, None, "word"]
    kinds: dict[str, Callable[[int], Any]] = {
        "word": lambda n: chance.choice(texts),
        "kind": lambda n: chance.choice("abcd"),
        "x": lambda n: chance.choice([0.0, -0.0, float("nan"), float("inf"), None, n / 3]),
        "point": lambda n: chance.choice([None, {"a": None, "b": "c"}, {"a": float("nan"), "b": None}]),
        "words": lambda n: chance.choice([None, [], ["u", None]]),
        "amount": lambda n: chance.choice([None, n % 1000]),
    }
    held = Held(tmp_path / "t", options={"hoodie.write.table.version": "9"} if seed % 2 else {})
    kept = 0
    for turn in range(10):
        top = max(held.rows)
        numbers = set(chance.sample(range(top + 1), chance.choice((1, 30, 900))))
        numbers |= set(range(top + 1, top + 1 + chance.choice((0, 0, 1, 3_000))))
        some = chance.sample(sorted(kinds), chance.randrange(1, 4))
        cells = {name: kinds[name] for name in some}
        kept += held.change(sorted(numbers), ts=lambda _, turn=turn: turn + 2, **cells).column_chunks_kept
    assert kept
    held.check()


def test_a_damaged_page_of_a_column_that_stays_is_not_copied(tmp_path: Path) -> None:
    held = Held(tmp_path / "t", options={"hoodie.parquet.compression.codec": "uncompressed"})
    file, writes = held.file, held.table.timeline.writes
    damaged = file.read_bytes().replace(b"word 7919", b"wOrd 7919")
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    with pytest.raises(CorruptFileError, match=file.name):
        held.change([7], kind=lambda n: "q")
    assert hudimeta.Table(str(held.path)).timeline.writes == writes
    assert pc.any(pc.equal(held.table.scan(columns=["kind"]).to_table()["kind"], "q")).as_py() is False


MERGE_ON_READ: dict[str, Any] = {"type": "MERGE_ON_READ"}


def compacted(held: Held) -> Any:
    (report,) = held.table.compact()
    return report


def test_a_compaction_copies_columns_that_no_log_changes(tmp_path: Path) -> None:
    held = Held(tmp_path / "t", **MERGE_ON_READ)
    before = held.pages()
    held.change(range(0, ROWS, 100), word=lambda n: f"other {n}")
    held.change([3, 200], kind=lambda _: "q")
    assert compacted(held).column_chunks_kept == len(before) - 5
    assert held.changed_since(before) == {*ALWAYS, "word", "kind"}
    held.check()


def test_a_compaction_appends_what_only_logs_have(tmp_path: Path) -> None:
    held = Held(tmp_path / "t", options={"hudimeta.log.inserts": "true"}, **MERGE_ON_READ)
    before = held.pages()
    held.change([5, ROWS + 1, ROWS + 2], x=lambda _: -0.0)
    assert (compacted(held).column_chunks_kept, held.groups) == (len(before) - 4, [ROWS, 2])
    assert held.changed_since(before) == {*ALWAYS, "x"}
    held.check()


@pytest.mark.parametrize("why", ["a row goes", "merged on disk"])
def test_a_compaction_writes_all_columns_where_any_may_differ(tmp_path: Path, why: str) -> None:
    limit = {"hudimeta.merge.memory.bytes": "1"} if why == "merged on disk" else {}
    held = Held(tmp_path / "t", options=limit, **MERGE_ON_READ)
    held.change([7], amount=lambda _: 77)
    if why == "a row goes":
        held.table.delete(held.batch([4]).select(["id"]))
        del held.rows[4]
    assert compacted(held).column_chunks_kept == 0
    held.check()


def test_a_compaction_writes_all_columns_of_an_altered_table(tmp_path: Path) -> None:
    held = Held(tmp_path / "t", **MERGE_ON_READ)
    held.table.alter(rename={"word": "label"})
    held.table.update({"kind": "'q'"}, "id = 'k000007'")
    assert compacted(held).column_chunks_kept == 0
    found = held.table.scan("id = 'k000007'", columns=["label", "kind"]).to_table().to_pylist()
    assert found == [{"label": held.rows[7]["word"], "kind": "q"}]
    assert pq.read_schema(held.file).names[7] == "label"


class Fetched(io.FileIO):
    """A file of a far-away store; counts the bytes that are read of it."""

    bytes_of: ClassVar[Counter[str]] = Counter()

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(-1 if size is None else size) or b""
        self.bytes_of[Path(str(self.name)).name] += len(found)
        return found


def test_a_file_of_a_far_away_store_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(tmp_path / "t")

    def opened(storage: LocalStorage, path: str, _: int = 0) -> pa.PythonFile:
        return pa.PythonFile(Fetched(storage.place_of(path)), mode="r")

    monkeypatch.setattr(LocalStorage, "open_input", opened)
    for numbers, kept in (([ROWS + 1], (1, 0)), ([7], (0, 20))):
        Fetched.bytes_of.clear()
        file, size = held.file.name, held.file.stat().st_size
        report = held.change(numbers, word=lambda n: f"other {n}")
        assert (report.row_groups_kept, report.column_chunks_kept) == kept
        assert Fetched.bytes_of == {file: size}
    monkeypatch.undo()
    held.check()
