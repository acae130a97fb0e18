"""Hostile table folders of which something takes endless memory or time, or is no name."""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudimeta.formats.parquet.thrift import Fields, decode_struct, encode_struct
from hudimeta.table.properties_file import PROPERTIES_PATH
from tests.hostile.folders import Folders, data_file, newest, rewrite_commit, timeline
from tests.hostile.trial import PARTS

FOLDERS = Folders()


@FOLDERS.add("properties of many keys")
def _(table: Path) -> None:
    with (table / PROPERTIES_PATH).open("a") as file:
        file.writelines(f"k{i}={'v' * 80}\n" for i in range(30_000))


@FOLDERS.add("properties of a gigabyte")
def _(table: Path) -> None:
    os.truncate(table / PROPERTIES_PATH, 1 << 30)


# Bombs and endless counts


def _zeros(size: int, wbits: int) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


def _varint(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@FOLDERS.add("a commit of a deflated gigabyte")
def _(table: Path) -> None:
    text = json.dumps({"type": "record", "name": "HoodieCommitMetadata", "fields": [{"name": "a", "type": "bytes"}]}).encode()
    block = _zeros(1 << 30, -15)
    head = b"Obj\x01" + _varint(2) + b"\x16avro.schema" + _varint(len(text)) + text + b"\x14avro.codec\x0edeflate\x00"
    sync = bytes(16)
    newest(table).write_bytes(head + sync + _varint(1) + _varint(len(block)) + block + sync)


@FOLDERS.add("a commit with a schema of endless columns")
def _(table: Path) -> None:
    kind: object = "int"
    for i in range(40):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": "int" if i == 0 else f"R{i - 1}"}]
        kind = {"type": "record", "name": f"R{i}", "fields": fields}
    rewrite_commit(table, lambda record: record["extraMetadata"].update(schema=json.dumps(kind)))


@FOLDERS.add("a commit with a schema of endless depth")
def _(table: Path) -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":' * 20_000
    rewrite_commit(table, lambda record: record["extraMetadata"].update(schema=text))


@FOLDERS.add("a commit with endless groups of the metadata table")
def _(table: Path) -> None:
    def change(record: dict[str, Any]) -> None:
        for key in record["extraMetadata"]:
            if key.startswith("hudimeta."):
                record["extraMetadata"][key] = '{"files":1000000000,"column_stats":1e999,"record_index":-5}'

    rewrite_commit(table, change)


@FOLDERS.add("a commit of brackets")
def _(table: Path) -> None:
    newest(table).write_bytes(b"[" * 1_000_000)


@FOLDERS.add("a commit of an endless list")
def _(table: Path) -> None:
    data = newest(table).read_bytes()
    head = data[: data.index(data[-16:]) + 16]
    block = b"\x02\x02a\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    newest(table).write_bytes(head + _varint(1) + _varint(len(block)) + block + data[-16:])


@FOLDERS.add("index definitions of brackets")
def _(table: Path) -> None:
    (table / ".hoodie/.index_defs/index.json").write_text('{"indexDefinitions":' * 100_000)


@FOLDERS.add("a history of an endless version")
def _(table: Path) -> None:
    history = timeline(table) / "history"
    history.mkdir(exist_ok=True)
    (history / "_version_").write_text("9" * 10_000)


@FOLDERS.add("a lock of brackets")
def _(table: Path) -> None:
    (table / ".hoodie/.locks/table_lock.json").write_text("[" * 100_000)


@FOLDERS.add("a log block of endless length")
def _(table: Path) -> None:
    path = data_file(table, ".log.")
    data = bytearray(path.read_bytes())
    struct.pack_into(">q", data, 6, 1 << 62)
    path.write_bytes(data)


def _refooted(table: Path, change: Callable[[Fields], None]) -> None:
    """Change the footer of a base file."""
    path = data_file(table, ".parquet")
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    fields, _ = decode_struct(data[start:-8])
    change(fields)
    footer = encode_struct(fields)
    path.write_bytes(data[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1")


@FOLDERS.add("a Parquet footer of endless rows")
def _(table: Path) -> None:
    def change(fields: Fields) -> None:
        fields[3] = (fields[3][0], 1 << 60)
        for group in fields[4][1].values:
            group[3] = (group[3][0], 1 << 60)

    _refooted(table, change)


@FOLDERS.add("a Parquet footer of endless depth")
def _(table: Path) -> None:
    def change(fields: Fields) -> None:
        schema = fields[2][1].values
        schema[1:1] = [{3: (5, 0), 4: (8, b"a"), 5: (5, 1)} for _ in range(50_000)]

    _refooted(table, change)


@FOLDERS.add("a Parquet footer of endless pages")
def _(table: Path) -> None:
    def change(fields: Fields) -> None:
        for group in fields[4][1].values:
            for column in group[1][1].values:
                column[3][1][6], column[3][1][7] = (6, 1 << 40), (6, 1 << 40)

    _refooted(table, change)


@FOLDERS.add("names with control characters")
def _(table: Path) -> None:
    for name in ("new\nline", "tab\t", "\x1b[31mred", "\u202eright to left", "'quote\"", "back\\slash", "a=b:c"):
        (table / PARTS[0] / name).write_bytes(b"x")
        (table / name).mkdir()
        (table / name / ".hoodie_partition_metadata").write_bytes(b"commitTime=0\npartitionDepth=1\n")


@FOLDERS.add("names that are no text")
def _(table: Path) -> None:
    with open(os.fsencode(table / PARTS[0]) + b"/\xff\xfe", "wb"):
        pass


@FOLDERS.add("instants of odd names")
def _(table: Path) -> None:
    for name in ("99999999999999999_99999999999999999.deltacommit", f"{'9' * 200}.commit.requested", "..commit", "\n.commit"):
        (timeline(table) / name).write_bytes(b"")


@FOLDERS.add("a metadata HFile of zeros")
def _(table: Path) -> None:
    for path in (table / ".hoodie/metadata").rglob("*.hfile"):
        data = path.read_bytes()
        path.write_bytes(re.sub(rb"DATABLK\*........", b"DATABLK*\x7f\xff\xff\xff\x7f\xff\xff\xff", data, flags=re.DOTALL))
