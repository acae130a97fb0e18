"""The same with a record index: keys of rows that nobody wrote, in a record index that our writers made, shard by shard."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import synthetic
from benchmarks.case import Settings

SHARDS = 10
"""Apache Hudi's number of file groups for up to some 20 million keys."""

PIECE = 1_000_000
"""So many keys are made at a time."""

HELD = 10_000_000
"""So many are in memory; of more, the shards are made in several turns, each of which makes all keys anew."""

UUID_LENGTH = 36


def million(settings: Settings) -> synthetic.Shape:
    """1 million random UUIDs as keys, in 100 files of 7 partitions."""
    return _shape(settings, "k1m", 1_000_000)


def ten_million(settings: Settings) -> synthetic.Shape:
    """10 million random UUIDs as keys, in 100 files of 7 partitions."""
    return _shape(settings, "k10m", 10_000_000)


def of_size(settings: Settings, keys: int) -> synthetic.Shape:
    """So many random UUIDs as keys, in 105 files of 7 partitions."""
    return _shape(settings, f"k{keys / 1e6:g}m", keys)


def _shape(settings: Settings, name: str, keys: int) -> synthetic.Shape:
    count = settings.scaled(keys, least=1000)
    return synthetic.Shape(f"{name}-{count}", 7, 15, keys=count)


def keys(first: int, count: int) -> pa.Array:
    """Keys number `first` and on: version 4 UUIDs, random but the same in every run."""
    pieces, end = [], first + count
    for piece in range(first // PIECE, -(-end // PIECE)):
        bits = np.random.default_rng([13, piece]).integers(0, 256, (PIECE, 16), np.uint8)
        rows = bits[max(first - piece * PIECE, 0) : min(end - piece * PIECE, PIECE)]
        pieces.append(_spelled(rows))
    return pa.concat_arrays(pieces)


def _spelled(rows: np.ndarray[Any, Any]) -> pa.Array:
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.full((len(rows), UUID_LENGTH), ord("-"), np.uint8)
    at = [i for i in range(UUID_LENGTH) if i not in (8, 13, 18, 23)]
    text[:, at] = digits[np.stack([rows >> 4, rows & 15], axis=2).reshape(len(rows), 32)]
    text[:, 14] = ord("4")
    borders = np.arange(len(rows) + 1, dtype=np.int32) * UUID_LENGTH
    return pa.Array.from_buffers(pa.string(), len(rows), [None, pa.py_buffer(borders), pa.py_buffer(text.tobytes())])


def sample(shape: synthetic.Shape, count: int) -> pa.Array:
    """Keys that are there, spread over all of them at random."""
    chosen = np.sort(np.random.default_rng(17).choice(shape.keys, min(count, shape.keys), replace=False))
    found, at = [], 0
    for piece in range(-(-shape.keys // PIECE)):
        end = int(np.searchsorted(chosen, (piece + 1) * PIECE))
        if end > at:
            all_keys = keys(piece * PIECE, min(PIECE, shape.keys - piece * PIECE))
            found.append(all_keys.take(pa.array(chosen[at:end] - piece * PIECE)))
            at = end
    return pa.concat_arrays(found)


def shards(shape: synthetic.Shape, partitions: pa.Array, instant_ms: int) -> Iterator[tuple[int, pa.Table]]:
    """Each shard's rows of `record_index.SCHEMA`; key number n lives in file n modulo the number of files."""
    at_once = max(1, SHARDS * HELD // max(HELD, shape.keys))
    for begin in range(0, SHARDS, at_once):
        yield from _some_shards(shape, partitions, instant_ms, range(begin, min(begin + at_once, SHARDS)))


def _some_shards(
    shape: synthetic.Shape, partitions: pa.Array, instant_ms: int, chosen: range
) -> Iterator[tuple[int, pa.Table]]:
    from hudimeta.metadata.keys import shard

    piles: dict[int, list[pa.Table]] = {group: [] for group in chosen}
    ids = pa.array(synthetic.file_ids(shape).astype(str))
    for first in range(0, shape.keys, PIECE):
        some = keys(first, min(PIECE, shape.keys - first))
        groups, file = shard(some, SHARDS), (first + np.arange(len(some))) % shape.total
        for group, pile in piles.items():
            rows = np.flatnonzero(groups == group)
            at = pa.array(file[rows].astype(np.int32))
            pile.append(
                pa.table(
                    {
                        "record_key": some.take(pa.array(rows)),
                        "partition_path": partitions.take(at),
                        "file_id": pa.DictionaryArray.from_arrays(at, ids),
                        "instant_ms": pa.repeat(pa.scalar(instant_ms, pa.int64()), len(rows)),
                    }
                )
            )
    for group in chosen:
        yield group, pa.concat_tables(piles.pop(group)).combine_chunks()


def write_index(path: Path, writer: Any, shape: synthetic.Shape, partitions: pa.Array, instant: str, number: int) -> None:
    """The partition `record_index` of a metadata table that has `number` partitions already.

    Args:
        path: Of the table.
        writer: Its `MetadataWriter`.
        shape: How many rows and files the table has.
        partitions: Of each file.
        instant: That wrote the rows.
        number: Of partitions that are there.
    """
    from hudimeta.formats.avro.commit_metadata import encode_commit_metadata, write_stat
    from hudimeta.metadata import record_index
    from hudimeta.storage import open_storage
    from hudimeta.timeline.clock import InstantGenerator, SystemClock, parse_instant
    from hudimeta.timeline.transitions import TimelineWriter
    from hudimeta.types import Action

    storage, created = open_storage(str(path)).sub(".hoodie/metadata"), f"{number:017d}"
    folder, stats = record_index.PARTITION, []
    for group, rows in shards(shape, partitions, parse_instant(instant, datetime.timezone.utc)):
        records = record_index.encode_values(rows, writer.layout)
        file_id = f"record-index-{group:04d}-0"
        name = f"{file_id}_0-0-0_{created}.hfile"
        data, _ = writer.base_file(name, [records])
        storage.put(f"{folder}/{name}", data)
        sizes = {"fileSizeInBytes": len(data), "numWrites": len(rows), "numInserts": len(rows)}
        stats.append(write_stat(fileId=file_id, path=f"{folder}/{name}", partitionPath=folder, **sizes))
    timeline = TimelineWriter(storage)
    timeline.create_requested(created, Action.DELTA_COMMIT)
    timeline.create_inflight(created, Action.DELTA_COMMIT)
    metadata = {"partitionToWriteStats": {folder: stats}, "operationType": "BULK_INSERT", "extraMetadata": {}}
    completed = InstantGenerator(SystemClock()).next()
    timeline.complete(created, Action.DELTA_COMMIT, completed, encode_commit_metadata(metadata))


def index_bytes(path: Path) -> int:
    """Size of the record index."""
    return sum(f.stat().st_size for f in (path / ".hoodie" / "metadata" / "record_index").glob("*.hfile"))
