"""Slices whose log does not fit memory: the same rows as in memory, bounded memory, and nothing left on disk."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudimeta
from hudimeta.errors import CorruptFileError, StorageError
from hudimeta.formats.avro.container import sealed_container
from hudimeta.formats.log import (
    BlockType,
    HeaderKey,
    LogBlock,
    LogScan,
    encode_block,
    encode_command_block,
    encode_parquet_content,
    frame_block,
    outline,
    outline_blocks,
    read_block,
    read_blocks,
    seal_blocks,
)
from hudimeta.schema import arrow_to_avro
from hudimeta.slices.bounded_merge import MergeMemory, merged_rows
from hudimeta.slices.log_parts import DeletePart, LogPart, data_part
from hudimeta.slices.merge_rules import MergeRules, PartialUpdateMode
from hudimeta.types import MergeMode
from tests.examples import at_most

ROOT = Path(__file__).resolve().parents[2]
EVENT, COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("qty", pa.int64()), ("note", pa.string())])
AVRO = arrow_to_avro(SCHEMA, "stock", "hoodie.stock")
RULES = {
    "commit time": MergeRules(COMMIT),
    "event time": MergeRules(EVENT, ("ts",)),
    "defaults ignored": MergeRules(EVENT, ("ts",), partial_mode=PartialUpdateMode.IGNORE_DEFAULTS),
    "merger": MergeRules(EVENT, ("ts",), merger="tests.slices.mergers:add_quantities"),
}


def log_of(draws: list[Any], rules: MergeRules) -> list[LogPart]:
    parts: list[LogPart] = []
    for number, (is_delete, partial, records) in enumerate(draws):
        keys = [f"key {key}" for key, _, _ in records]
        if is_delete:
            natural = np.array([ts is None for _, ts, _ in records], bool)
            ordering = (pa.chunked_array([pa.array([ts for _, ts, _ in records], pa.int64())]),) if rules.by_event_time else ()
            parts.append(DeletePart(pa.chunked_array([pa.array(keys, pa.string())]), natural, ordering))
            continue
        columns = [keys, [ts or 0 for _, ts, _ in records], [qty for *_, qty in records], [f"part {number}"] * len(records)]
        rows = pa.table(columns, schema=SCHEMA)
        partial = partial and rules.merger is None
        raw = rows.drop_columns("note") if partial else rows
        parts.append(data_part(raw, SCHEMA, lambda table, schema: table.select(schema.names), rules, partial))
    return parts


RECORDS = st.lists(st.tuples(st.integers(0, 60), st.none() | st.integers(0, 4), st.none() | st.integers(0, 3)), max_size=30)
LOG = st.lists(st.tuples(st.booleans(), st.booleans(), RECORDS), max_size=8)


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", RULES)
@settings(max_examples=20, deadline=None)
@given(base=st.lists(st.integers(0, 80), max_size=60), log=LOG)
def test_spilled_and_unspilled_give_the_same_rows(name: str, base: list[int], log: list[Any]) -> None:
    rules, spills = RULES[name], []
    columns = [[f"key {k}" for k in base], [2] * len(base), list(range(len(base))), ["base"] * len(base)]
    rows = pa.table(columns, schema=SCHEMA)
    pieces = [rows.slice(0, 25), rows.slice(25)]

    def merged(limit: int) -> pa.Table:
        found = merged_rows(log_of(log, rules), pieces, SCHEMA, rules, MergeMemory(limit), spills.append)
        return pa.concat_tables([SCHEMA.empty_table(), *found]).sort_by([(n, "ascending") for n in SCHEMA.names])

    whole = merged(1 << 30)
    assert not spills
    assert merged(0).equals(whole)
    assert bool(spills) == any(records for *_, records in log)


def test_one_key_with_more_versions_than_fit_is_merged_all_the_same() -> None:
    rules = RULES["event time"]
    log = [(False, False, [(7, n % 5, n)] * 3) for n in range(100)]
    rows = pa.concat_tables(merged_rows(log_of(log, rules), (), SCHEMA, rules, MergeMemory(64)))
    assert rows.select(["ts", "qty"]).to_pylist() == [{"ts": 4, "qty": 99}]


# Tables


def stock(path: Path, **options: str) -> hudimeta.Table:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
    given = {"hoodie.metadata.enable": "false", **options}
    return hudimeta.Table.create(path / "stock", schema, key="id", ordering="ts", type="MERGE_ON_READ", options=given)


def of_instant(content: bytes, name: str, time: str, new_name: str) -> bytes:
    """A log file as another write would have written it."""
    framed = []
    for block in read_blocks(content, name).blocks:
        header = {key: text for key, text in block.header.items() if key is not HeaderKey.TARGET_INSTANT_TIME}
        framed.append(frame_block(block.type, header | {HeaderKey.INSTANT_TIME: time}, block.content))
    seal_blocks(framed, new_name)
    return b"".join(framed)


def test_a_slice_of_500_log_files_reads(tmp_path: Path) -> None:
    """Copies of one log file, each of an instant of its own."""
    table = stock(tmp_path)
    table.insert({"id": [f"k{n}" for n in range(300)], "ts": [0] * 300, "note": ["base"] * 300})
    table.upsert({"id": [f"k{n}" for n in range(100)], "ts": [1] * 100, "note": ["log"] * 100})
    (log,) = Path(table.path).glob(".*.log.*")
    write, content = table.timeline.writes[-1], log.read_bytes()
    timeline = Path(table.path) / ".hoodie" / "timeline"
    for number in range(499):
        time = str(int(write.time) + 1000 + number)
        done = timeline / f"{time}_{int(write.completion or 0) + 1000 + number}.deltacommit"
        done.write_bytes(sealed_container((timeline / write.file_name).read_bytes(), done.name))
        copy = log.with_name(log.name.replace(write.time, time))
        copy.write_bytes(of_instant(content, log.name, time, copy.name))
    expected = sorted((f"k{n}", "log" if n < 100 else "base") for n in range(300))
    for limit in (1 << 28, 1 << 18):
        scan = hudimeta.Table(table.path, {"hudimeta.merge.memory.bytes": limit}).scan(columns=["id", "note"])
        rows = scan.to_table()
        assert sorted(zip(*(c.to_pylist() for c in rows.columns), strict=True)) == expected
        assert scan.report.log_blocks == 500
        assert bool(scan.report.spilled) == (limit == 1 << 18)
        assert ("temporary files" in str(scan.report)) == (limit == 1 << 18)


@pytest.mark.parametrize("room", [0, 2000], ids=["no folder", "no room"])
def test_a_folder_for_temporary_files_that_takes_none_is_told_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # what is imported first in here would be cut off for all processes
    table = stock(tmp_path)
    rows = {"id": [f"k{n}" for n in range(900)], "ts": [0] * 900, "note": [f"note {n * n}" for n in range(900)]}
    table.insert(rows)
    table.upsert(rows)
    folder = tmp_path / "spill"
    if room:
        folder.mkdir()
    options = {"hudimeta.merge.memory.bytes": "1000", "hudimeta.spill.folder": str(folder)}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room or limits[0], limits[1]))
        with pytest.raises(
            StorageError, match=r"spill: temporary files cannot be written there .* Set hudimeta\.spill\.folder"
        ):
            hudimeta.Table(table.path, options).scan().to_table()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    folder.mkdir(exist_ok=True)
    assert hudimeta.Table(table.path, options).scan().to_table().num_rows == 900
    assert not list(folder.iterdir())


CHILD = """
import resource, sys
import pyarrow as pa, numpy as np
import hudimeta
from hudimeta.snapshot.file_slice import FileSlice
from hudimeta.slices.read_task import ReadTask, VisibleInstants
from hudimeta.slices.reader import SliceReader
from hudimeta.storage import open_storage
from tests.slices.test_bounded_merge import SCHEMA, log_names

folder, limit = sys.argv[1:]
names, sizes = log_names(folder)
options = {"hudimeta.merge.memory.bytes": limit, "hudimeta.spill.folder": folder + "/spill"}
task = ReadTask(folder, {"hoodie.table.version": "8", "hoodie.table.precombine.field": "ts"}, SCHEMA, SCHEMA,
                tuple(SCHEMA.names), None, VisibleInstants(frozenset(), "9"), merge_options=options)
reader = SliceReader(task, open_storage(folder))
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
import pyarrow.parquet, pyarrow.compute
before, rows, total = peak(), 0, 0
for piece in reader.tables(FileSlice("", "f", "1", None, 0, names, sizes)):
    rows += piece.num_rows
    total += sum(map(int, piece["qty"].to_pylist()))
    del piece
print(rows, total, peak() - before, reader.counts.spilled)
"""


def log_names(folder: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Log files of the slice, the way a plan lists them."""
    files = sorted(Path(folder).glob(".f_*"))
    return tuple(f.name for f in files), tuple(f.stat().st_size for f in files)


def read_in_child(folder: Path, limit: int) -> list[int]:
    command = [sys.executable, "-c", CHILD, str(folder), str(limit)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(map(int, done.stdout.split()))


def test_memory_stays_bounded_however_much_log_there_is(tmp_path: Path) -> None:
    """Some 190 MB of Arrow rows in 20 log files of a slice without a base file, read by a process of its own."""
    (tmp_path / "spill").mkdir()
    dice = np.random.default_rng(1)
    for number in range(20):
        count = 30_000
        keys = pa.array([f"{number % 10:02}-{n:08}" for n in range(count)])
        notes = pa.array([dice.bytes(128).hex() for _ in range(1000)]).take(pa.array(dice.integers(0, 1000, count)))
        rows = pa.table([keys, pa.repeat(number, count), pa.repeat(1, count), notes], schema=SCHEMA)
        header = {HeaderKey.INSTANT_TIME: f"{number + 1:017}", HeaderKey.SCHEMA: AVRO}
        block = encode_block(BlockType.PARQUET_DATA, header, encode_parquet_content(rows))
        (tmp_path / f".f_{number + 1:017}.log.1_0-0-0").write_bytes(block)
    rows, total, spilling_peak, spilled = read_in_child(tmp_path, 16 << 20)
    assert (rows, total) == (300_000, 300_000)
    assert spilled > 150 << 20
    assert not list((tmp_path / "spill").iterdir()), "the files are gone, and never had a name"
    *same, _, nothing = read_in_child(tmp_path, 1 << 30)
    assert (same, nothing) == ([rows, total], 0)
    assert spilling_peak < 130 << 20


# Log files block by block


def blocks_of(count: int) -> bytes:
    rows = pa.table([["a"], [1], [2], ["x" * 200_000]], schema=SCHEMA)
    content, blocks = encode_parquet_content(rows), []
    for number in range(1, count + 1):
        header = {HeaderKey.INSTANT_TIME: f"{number:017}", HeaderKey.SCHEMA: AVRO}
        blocks.append(encode_block(BlockType.PARQUET_DATA, header, content, seal=number % 2 == 0))
    return b"".join([*blocks, encode_command_block("00000000000000099", "00000000000000001")])


def read_all(data: bytes, found: LogScan) -> list[LogBlock]:
    return [read_block(data[b.offset : b.offset + b.size], b) for b in found.blocks]


def fault(read: Callable[[], object]) -> int | None:
    """Where reading says that the damage is."""
    try:
        read()
    except CorruptFileError as error:
        return error.offset
    return None


def walked(data: bytes) -> Any:
    asked: list[int] = []

    def read_range(offset: int, length: int) -> bytes:
        asked.append(length)
        return data[offset : offset + length]

    return outline_blocks(read_range, len(data), "p/x.log"), asked


def test_a_log_file_is_walked_without_its_contents() -> None:
    data = blocks_of(4)
    found, asked = walked(data)
    whole = read_blocks(data, "p/x.log")
    assert found == outline(whole)
    assert len(asked) == len(whole.blocks) + 1
    assert read_all(data, found) == whole.blocks


@given(st.data())
@settings(max_examples=at_most(300), deadline=None)
def test_a_damaged_log_file_is_not_walked_into_other_blocks(draw: st.DataObject) -> None:
    """What a walk finds is what reading the whole file finds; the same damage is found at the latest with the block's bytes."""
    data = bytearray(blocks_of(2))
    at = draw.draw(st.integers(0, len(data) - 1) | st.integers(0, 300))
    data[at] ^= 1 << draw.draw(st.integers(0, 7))
    damaged = bytes(data)
    found, _ = walked(damaged)
    if found is None:
        return
    where = fault(lambda: read_blocks(damaged, "p/x.log"))
    assert fault(lambda: read_all(damaged, found)) == where
    assert where is not None or found == outline(read_blocks(damaged, "p/x.log"))


def test_a_block_that_changed_meanwhile_is_refused() -> None:
    data = blocks_of(2)
    first, second, _ = read_blocks(data, "p/x.log").blocks
    with pytest.raises(CorruptFileError, match=r"p/x\.log"):
        read_block(data[second.offset : second.offset + second.size], outline(read_blocks(data, "p/x.log")).blocks[0])
    with pytest.raises(CorruptFileError):
        read_block(data[: first.size - 1], first)
