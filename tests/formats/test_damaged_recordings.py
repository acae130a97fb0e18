"""Recorded files with flipped bits, cut ends and lying lengths: the value, or an error that says where; nothing else.

HUDIMETA_DAMAGE says how many damages each format meets (10,000 for a search).
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hudimeta.errors import CorruptFileError, UnsupportedFeature
from hudimeta.formats.avro.container import decode_container
from hudimeta.formats.hfile import HFileReader
from hudimeta.formats.log.block import BlockType
from hudimeta.formats.log.data_blocks import decode_data_block
from hudimeta.formats.log.delete_block import decode_delete_block
from hudimeta.formats.log.framing import read_blocks
from hudimeta.formats.parquet.footer import read_footer
from hudimeta.formats.properties import decode_properties

DAMAGES = int(os.environ.get("HUDIMETA_DAMAGE", "2000"))
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
    reader.scan()


def read_base_footer(data: bytes) -> None:
    footer = read_footer(data, "damaged")
    _ = footer.avro_schema, footer.min_key, footer.max_key, footer.bloom, footer.arrow_schema, footer.statistics


READERS: dict[str, tuple[str, Callable[[bytes], object]]] = {
    "HFile": ("**/*.hfile", read_hfile),
    "log": ("**/.*.log.*", read_log),
    "timeline": (".hoodie/timeline/*.*", lambda data: decode_container(data, "damaged")),
    "history": (".hoodie/timeline/history/*.parquet", read_base_footer),
    "footer": ("*/*.parquet", read_base_footer),
    "properties": (".hoodie/hoodie.properties", lambda data: decode_properties(data, "damaged")),
}
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
    for _ in range(DAMAGES):
        with contextlib.suppress(UnsupportedFeature):
            try:
                read(damaged(dice.choice(small), dice))
            except CorruptFileError as error:
                paths.append(error.path)
    assert all(path.startswith("damaged") for path in paths)
    assert paths or name == "properties"  # almost any text is a properties file
