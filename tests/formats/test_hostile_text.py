"""Texts that somebody else wrote, too deep, too wide or senseless: a typed error at once, whatever reads them."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable

import pytest

from hudimeta.errors import HudiError
from hudimeta.formats.avro.commit_metadata import decode_commit_metadata
from hudimeta.formats.avro.nodes import parse_record
from hudimeta.formats.json_text import parse_json
from hudimeta.formats.log.positions import decode_positions
from hudimeta.formats.properties import MAX_PROPERTIES_BYTES, decode_properties
from hudimeta.indexes.bucket.consistent_hashing import decode_ring
from hudimeta.metadata.index_definitions import decode_definitions
from hudimeta.metadata.record import layout_of
from hudimeta.schema.avro_arrow import avro_to_arrow
from hudimeta.schema.internal_schema import SchemaHistory
from hudimeta.timeline.history import decode_manifest


def _doubling(depth: int) -> str:
    """Records of which each mentions the next twice: 2^depth columns in a text of a few kilobytes."""
    kind: object = "int"
    for i in range(depth):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": "int" if i == 0 else f"R{i - 1}"}]
        kind = {"type": "record", "name": f"R{i}", "fields": fields}
    return json.dumps(kind)


DEEP = '{"type":"record","name":"R","fields":[{"name":"a","type":' * 30_000
ARRAYS = '{"type":"array","items":' * 900 + '"int"' + "}" * 900
TEXTS = {
    "brackets": "[" * 100_000,
    "objects": '{"files":' * 100_000,
    "a schema": DEEP,
    "doubling": _doubling(50),
    "arrays": '{"type":"record","name":"R","fields":[{"name":"a","type":' + ARRAYS + "}]}",
    "infinity": '{"fields":[{"name":"a","type":{"type":"fixed","name":"f","size":1e999}}],"type":"record","name":"R"}',
    "not a number": '{"nodes":[{"value":NaN}],"files":[{"fileName":"1_2_0.parquet","fileLen":Infinity}]}',
    "half a pair": '{"indexDefinitions":{"\\ud800":{"indexName":"\\ud800","indexType":"x"}},"files":[],"nodes":[]}',
    "a long number": '{"nodes":[{"value":' + "9" * 10_000 + "}]}",
}
READERS: dict[str, Callable[[str], object]] = {
    "commit": lambda text: decode_commit_metadata(text.encode()),
    "record": parse_record,
    "schema": avro_to_arrow,
    "ring": lambda text: decode_ring(text.encode()),
    "definitions": lambda text: decode_definitions(text.encode()),
    "layout": layout_of,
    "history": lambda text: SchemaHistory.decode(text.encode()),
    "manifest": lambda text: decode_manifest(text.encode()),
}


SOUND = {("commit", "doubling"), ("commit", "arrays"), ("manifest", "half a pair")}
"""Of these the reader sees nothing that it looks at."""
ODD = sorted({(reader, text) for reader in READERS for text in TEXTS} - SOUND)


@pytest.mark.parametrize(("reader", "text"), ODD)
def test_every_reader_refuses_it(reader: str, text: str) -> None:
    with pytest.raises(HudiError):
        READERS[reader](TEXTS[text])


def test_what_means_something_is_read() -> None:
    text = '{"a":[1,-2.5,1e3,"\\ud83d\\ude00",null,true]}'
    assert parse_json(text) == parse_json(text.encode()) == {"a": [1, -2.5, 1000.0, "😀", None, True]}


def test_few_bytes_of_runs_do_not_claim_millions_of_rows() -> None:
    containers = 128
    head = struct.pack("<QI", 1, 0) + struct.pack("<I", 12347 | (containers - 1) << 16) + b"\xff" * (containers // 8)
    described = b"".join(struct.pack("<HH", i, 65535) for i in range(containers))
    runs = struct.pack("<HHH", 1, 0, 65535)
    offsets = b"".join(struct.pack("<I", 0) for _ in range(containers))
    with pytest.raises(HudiError, match="at most"):
        decode_positions(base64.b64encode(head + described + offsets + runs * containers).decode())


def test_endless_properties_are_refused() -> None:
    with pytest.raises(HudiError, match="at most"):
        decode_properties(b"a=b\n" * (MAX_PROPERTIES_BYTES // 4 + 1))
