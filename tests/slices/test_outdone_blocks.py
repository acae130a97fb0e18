"""Blocks of logs of which later ones have all keys: they are not unpacked, and nobody notices but by the time it takes."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.formats.log import (
    BlockType,
    HeaderKey,
    LogBlock,
    LogFileKeys,
    encode_block,
    encode_key_index,
    encode_parquet_content,
    read_blocks,
)
from hudimeta.slices.merge_rules import MergeRules, PartialUpdateMode
from hudimeta.slices.outdone_blocks import without_outdone
from hudimeta.types import MergeMode

SCHEMA = pa.schema([("id", pa.string()), ("x", pa.int64()), ("ts", pa.int32()), ("_hoodie_is_deleted", pa.bool_())])
MODES = ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")


def rows(ids: list[int], ts: list[int], x: int, gone: bool = False) -> pa.Table:
    keys = [f"k{number:03d}" for number in ids]
    return pa.table([keys, [x] * len(ids), ts, [gone] * len(ids)], schema=SCHEMA)


def made(path: Path, mode: str) -> hudimeta.Table:
    options = {"hoodie.index.type": "SIMPLE", "hoodie.compact.inline": "false", "hoodie.record.merge.mode": mode}
    table = hudimeta.Table.create(path, SCHEMA, key="id", ordering="ts", type="MERGE_ON_READ", options=options)
    table.bulk_insert(rows(list(range(20)), [0] * 20, 0))
    return table


def outdone(path: Path) -> int:
    """How many blocks a read left packed; its rows are those of a read that unpacks all."""
    scan = hudimeta.Table(path).scan(columns=["id", "x", "ts"])
    everything = hudimeta.Table(path, {"hudimeta.log.keys": "false"}).scan(columns=["id", "x", "ts"])
    found = scan.to_table().sort_by("id")
    assert found.equals(everything.to_table().sort_by("id"))
    assert everything.report.blocks_outdone == 0
    return scan.report.blocks_outdone


@pytest.mark.parametrize("mode", MODES)
def test_the_last_of_blocks_with_the_same_keys_is_unpacked(tmp_path: Path, mode: str) -> None:
    table = made(tmp_path / "t", mode)
    for turn in range(1, 6):
        table.upsert(rows([1, 2, 3], [turn] * 3, turn))
    assert outdone(tmp_path / "t") == 4
    table.upsert(rows([3, 4], [6, 6], 6))
    assert outdone(tmp_path / "t") == 4, "the block before has other keys"
    table.upsert(rows([1, 2], [7, 7], 7))
    assert outdone(tmp_path / "t") == 5, "two later ones have them together"
    scan = hudimeta.Table(tmp_path / "t").scan()
    scan.to_table()
    assert "5 of them not unpacked" in str(scan.report)
    assert hudimeta.Table(tmp_path / "t", {"hoodie.compact.inline.max.delta.commits": "1"}).compact()
    assert {row["id"]: row["x"] for row in hudimeta.Table(tmp_path / "t").scan().to_table().to_pylist()}["k003"] == 6


def test_a_later_row_of_an_earlier_event_outdoes_nothing(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "EVENT_TIME_ORDERING")
    table.upsert(rows([1, 2], [5, 5], 1))
    table.upsert(rows([1, 2], [6, 4], 2))
    assert outdone(tmp_path / "t") == 0
    table.upsert(rows([2], [5], 3))
    assert outdone(tmp_path / "t") == 1, "of the same time the later one wins"


def block_of(number: int, ts: int, gone: bool) -> LogBlock:
    """A block of one row of the same key, as it stands in a file of its own."""
    name = f".{uuid.UUID(int=1)}-0_2026010100000000{number}.log.1_0-0-0"
    own = pa.table({"_hoodie_record_key": ["k1"], "ts": pa.array([ts], pa.int32()), "_hoodie_is_deleted": [gone]})
    entries = encode_key_index(LogFileKeys.of(name, 0, own["_hoodie_record_key"].combine_chunks(), 1e-9), (), 0)
    header = {HeaderKey.INSTANT_TIME: str(number)}
    data = encode_block(BlockType.PARQUET_DATA, header, encode_parquet_content(own, entries=entries), seal=True)
    (block,) = read_blocks(data, name).blocks
    return block


def test_a_block_that_deletes_stays_under_event_time() -> None:
    """A delete without an ordering value ends what was before it: without it, the first of three rows would win."""
    blocks = [block_of(1, 9, False), block_of(2, 0, True), block_of(3, 3, False)]
    rules = MergeRules(MergeMode.EVENT_TIME_ORDERING, ("ts",))
    assert without_outdone(blocks, rules) == blocks
    assert without_outdone([block_of(1, 2, False), blocks[2]], rules) == blocks[2:]
    assert without_outdone(blocks, MergeRules(MergeMode.COMMIT_TIME_ORDERING)) == blocks[2:]
    partial = replace(rules, partial_mode=PartialUpdateMode.IGNORE_DEFAULTS)
    assert len(without_outdone([block_of(1, 2, False), blocks[2]], partial)) == 2
    assert len(without_outdone([block_of(1, 2, False), blocks[2]], replace(rules, merger="mine:merge"))) == 2


@pytest.mark.parametrize("mode", MODES)
def test_any_history_reads_the_same(tmp_path: Path, mode: str) -> None:
    left, chance = 0, random.Random(5)
    for number in range(4):
        path = tmp_path / str(number)
        table = made(path, mode)
        for turn in range(1, 9):
            ids = chance.sample(range(5), chance.randint(1, 5))
            if chance.random() < 0.15:
                table.delete(keys=[f"k{one:03d}" for one in ids[:2]])
            else:
                gone = chance.random() < 0.2
                table.upsert(rows(ids, [chance.choice([0, turn, turn, turn + 3]) for _ in ids], turn, gone))
        left += outdone(path)
    assert left
