"""Recorded files with flipped bits, cut ends and lying lengths: the value, or an error that says where; nothing else.

Nor does any of them take long, or more than ten times the file's size in memory, however well it is compressed. Whoever asks
for all records of an HFile at once gets them, and pays no more for a damaged one than for a sound one.
HUDIMETA_DAMAGE says how many damages each format meets (10,000 for a search).
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.avro.container import decode_container
from hudimeta.formats.hfile import HFileInfo, HFileReader, write_hfile
from hudimeta.formats.log.block import BlockType
from hudimeta.formats.log.data_blocks import decode_data_block
from hudimeta.formats.log.delete_block import decode_delete_block
from hudimeta.formats.log.framing import read_blocks
from hudimeta.formats.parquet.footer import read_footer
from hudimeta.formats.properties import decode_properties
from hudimeta.storage import open_storage
from hudimeta.timeline.content import decode_instant
from hudimeta.timeline.history import History, decode_manifest

assert pq, "imported here: what that takes is not of the file that is first read with it"
DAMAGES = int(os.environ.get("HUDIMETA_DAMAGE", "2000"))
LONGEST_S = 5.0
MEMORY_FACTOR, MEMORY_FLOOR = 10, 1 << 19
"""Bytes for each byte of the file; and what reading the smallest file may take: caches, buffers of Arrow and of codecs."""
WEIGHED_EVERY = 8
"""One damage of so many is weighed: tracing Python's memory makes reading several times slower."""
POOLS: list[pa.MemoryPool] = []
"""Arrow frees a buffer through the pool that it came from, whenever that is."""
_DATA = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA)


def read_log(data: bytes) -> None:
    for block in read_blocks(data, "damaged").blocks:
        if block.type in _DATA:
            decode_data_block(block)
        elif block.type is BlockType.DELETE:
            decode_delete_block(block)


def read_hfile(data: bytes) -> None:
    reader = HFileReader(data, "damaged")
    with contextlib.suppress(UnsupportedFeature):
        reader.bloom_filter()
    for records in reader.scan_batches():
        assert len(records)


def read_hfile_at_once(data: bytes) -> None:
    HFileReader(data, "damaged").scan()


def read_base_footer(data: bytes) -> None:
    footer = read_footer(data, "damaged")
    _ = footer.avro_schema, footer.min_key, footer.max_key, footer.bloom, footer.arrow_schema, footer.statistics


def read_history(data: bytes) -> None:
    """Rows of an archive file, and the commits and plans in them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "damaged").write_bytes(data)
        rows = History(open_storage(folder), "", 2).read_file("damaged").to_pylist()
    for row in rows:
        if row["metadata"]:
            decode_instant(row["metadata"], "damaged", row["action"] in ("commit", "deltacommit", "replacecommit"))


READERS: dict[str, tuple[str, Callable[[bytes], object]]] = {
    "HFile": ("**/*.hfile", read_hfile),
    "HFile at once": ("**/*.hfile", read_hfile_at_once),
    "log": ("**/.*.log.*", read_log),
    "timeline": (".hoodie/timeline/*.*", lambda data: decode_container(data, "damaged")),
    "history": (".hoodie/timeline/history/*.parquet", read_history),
    "history manifest": (".hoodie/timeline/history/manifest_*", lambda data: decode_manifest(data, "damaged")),
    "footer": ("*/*.parquet", read_base_footer),
    "properties": (".hoodie/hoodie.properties", lambda data: decode_properties(data, "damaged")),
}
WELL_PACKED = write_hfile([b"key-%06d" % i for i in range(40_000)], [bytes(60)] * 40_000, HFileInfo('"bytes"'), bloom=True)
"""An HFile whose records are many times its size, more than recorded ones are."""
TABLES = ["mdt_all_v8", "all_types_mor", "archived_lsm", "deletes_mor"]


def damaged(data: bytes, dice: random.Random) -> bytes:
    """One damage: a few flipped bits, a cut, a run of bytes that claims a length, bytes that are missing or twice there."""
    content = bytearray(data)
    at = dice.randrange(len(content))
    kind = dice.randrange(5)
    if kind == 0:
        for _ in range(dice.choice([1, 1, 1, 4, 64])):
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    elif kind == 1:
        del content[at:]
    elif kind == 2:
        content[at : at + 4] = dice.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"])
    elif kind == 3:
        del content[at : at + dice.randrange(1, 40)]
    else:
        content[at:at] = content[at : at + dice.randrange(1, 40)]
    return bytes(content)


@contextlib.contextmanager
def weighed() -> Iterator[list[int]]:
    """Gives a list that has the most bytes of Python's and Arrow's that the block took, when it has ended."""
    before, pool, peak = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool()), []
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield peak
    finally:
        peak.append(tracemalloc.get_traced_memory()[1] + pool.max_memory())
        tracemalloc.stop()
        pa.set_memory_pool(before)


def memory_for(name: str, read: Callable[[bytes], object], content: bytes) -> int:
    """The most bytes that a damaged copy of the content may take."""
    share = MEMORY_FACTOR * len(content)
    return MEMORY_FLOOR + (max(share, peak_of(read, content)) if name == "HFile at once" else share)


def peak_of(read: Callable[[bytes], object], content: bytes) -> int:
    """What reading the whole file takes, once everything is imported."""
    with weighed() as peak:
        read(content)
    return peak[0]


@contextlib.contextmanager
def within(memory: int | None) -> Iterator[None]:
    """Fails when the block takes longer than LONGEST_S, or more bytes than `memory`, where given."""
    begin = time.perf_counter()
    with weighed() if memory is not None else contextlib.nullcontext([0]) as peak:
        yield
    took = time.perf_counter() - begin
    assert took < LONGEST_S, f"{took:.1f} s"
    assert memory is None or peak[0] <= memory, f"{peak[0]:,} bytes instead of {memory:,}"


@pytest.mark.rotation(3)
@pytest.mark.parametrize("name", READERS)
def test_damage_is_reported_or_harmless(name: str, rich_table: Callable[..., Path]) -> None:
    pattern, read = READERS[name]
    files = [f for table in TABLES for f in sorted(rich_table(table).glob(pattern)) if f.is_file() and f.stat().st_size]
    contents = []
    for content in {file.read_bytes() for file in files}:
        with contextlib.suppress(CorruptFileError, UnsupportedFeature):  # JSON plans beside Avro ones
            read(content)
            contents.append(content)
    contents.sort(key=lambda content: (len(content), content))
    small = contents[: max(3, len(contents) // 2)]
    assert small, f"no file of the recorded tables matches {pattern}"
    dice, paths = random.Random(name), []
    small += [WELL_PACKED] * 3 if name.startswith("HFile") else []
    limits = {content: memory_for(name, read, content) for content in small}
    for number in range(DAMAGES):
        content = dice.choice(small)
        data = damaged(content, dice)
        with within(limits[content] if number % WEIGHED_EVERY == 0 else None), contextlib.suppress(UnsupportedFeature):
            try:
                read(data)
            except CorruptFileError as error:
                paths.append(error.path)
    assert all(path.startswith("damaged") for path in paths)
    assert paths or name == "properties"  # almost any text is a properties file
