"""Avro container files: Java's bytes reproduced, damage refused."""

from __future__ import annotations

import contextlib
import io
import json
import tracemalloc
import zlib
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import CorruptFileError
from hudimeta.formats.avro import container
from hudimeta.formats.avro.container import decode_container, decode_container_schema, encode_container
from hudimeta.formats.avro.schemas import INDEX_PLAN, SAVEPOINT_METADATA

SYNC = bytes(range(16))
SAVEPOINT = {
    "savepointedBy": "",
    "savepointedAt": 1795229348658,
    "comments": "vor dem Umzug – nötig",
    "partitionMetadata": {"p=1": {"partitionPath": "p=1", "savepointDataFile": ["a.parquet", ".a.log.1_0-0-0"]}},
    "version": 1,
}
SIMPLE = {"type": "record", "name": "R", "fields": [{"name": "s", "type": "string"}]}


def raw_container(schema: Any, count: int, block: bytes, codec: bytes | None = None, sync: bytes = SYNC) -> bytes:
    """A container made by hand, so that each part can be wrong."""
    entries = {b"avro.schema": json.dumps(schema).encode()} | ({} if codec is None else {b"avro.codec": codec})
    out = io.BytesIO(b"Obj\x01")
    out.seek(4)
    fastavro.schemaless_writer(out, {"type": "map", "values": "bytes"}, {k.decode(): v for k, v in entries.items()})
    out.write(SYNC)
    fastavro.schemaless_writer(out, "long", count)
    fastavro.schemaless_writer(out, "bytes", block)
    return out.getvalue() + sync


def test_java_files_are_reproduced_byte_for_byte(recorded_containers: dict[str, bytes]) -> None:
    assert len(recorded_containers) > 1000
    for name, data in recorded_containers.items():
        sync = data[-16:]
        again = encode_container(decode_container_schema(data, name), decode_container(data, name), sync)
        assert again[again.index(sync) :] == data[data.index(sync) :], name  # the schema's text may be spelled otherwise


def test_header_has_one_entry_and_no_codec() -> None:
    data = encode_container(SAVEPOINT_METADATA, [SAVEPOINT], SYNC)
    assert data.startswith(b"Obj\x01\x02\x16avro.schema")
    assert b"avro.codec" not in data
    assert data.count(SYNC) == 2
    assert data.endswith(SYNC)
    assert list(fastavro.reader(io.BytesIO(data))) == [SAVEPOINT]


def test_absent_fields_take_the_schemas_defaults() -> None:
    assert decode_container(encode_container(INDEX_PLAN, [{}])) == [{"version": 1, "indexPartitionInfos": None}]


def test_no_records_make_no_block() -> None:
    data = encode_container(INDEX_PLAN, [], SYNC)
    assert data.endswith(b"\x00" + SYNC)
    assert decode_container(data) == []


def test_markers_are_random_by_default() -> None:
    assert encode_container(INDEX_PLAN, [{}])[-16:] != encode_container(INDEX_PLAN, [{}])[-16:]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_files_of_other_writers_are_read(codec: str) -> None:
    out = io.BytesIO()
    fastavro.writer(out, SAVEPOINT_METADATA, [SAVEPOINT] * 300, codec=codec, sync_interval=1000)
    assert decode_container(out.getvalue()) == [SAVEPOINT] * 300


def test_encoding_refuses_what_the_schema_lacks() -> None:
    with pytest.raises(ValueError, match="savepointedBye"):
        encode_container(SAVEPOINT_METADATA, [{**SAVEPOINT, "savepointedBye": ""}])
    with pytest.raises(ValueError, match="savepointedAt"):
        encode_container(SAVEPOINT_METADATA, [{k: v for k, v in SAVEPOINT.items() if k != "savepointedAt"}])
    with pytest.raises(ValueError, match="16 bytes"):
        encode_container(SAVEPOINT_METADATA, [SAVEPOINT], b"short")


def test_every_truncation_is_noticed() -> None:
    data = encode_container(SAVEPOINT_METADATA, [SAVEPOINT], SYNC)
    header_end = data.index(SYNC) + 16
    for length in range(len(data)):
        if length != header_end:  # there the file is whole, and says that it has no records
            with pytest.raises(CorruptFileError):
                decode_container(data[:length], "x.savepoint")


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_flipped_bits_never_escape_as_other_errors(position: int, mask: int) -> None:
    data = bytearray(encode_container(SAVEPOINT_METADATA, [SAVEPOINT], SYNC))
    data[position % len(data)] ^= mask
    with contextlib.suppress(CorruptFileError):
        decode_container(bytes(data))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "magic"),
        (b"{}", "magic"),
        (b"Obj\x01", "varint"),
        (b"Obj\x01" + b"\xff" * 20, "varint"),
        (b"Obj\x01\x02\xfe\xff\xff\xff\x0f", "length"),
        (raw_container(SIMPLE, 1, b"\x02a") + b"garbage", "length|varint|sync"),
        (raw_container(SIMPLE, 1, b"\x02a", sync=b"\x00" * 16), "sync marker"),
        (raw_container(SIMPLE, 1, b"\x02ab"), "ends with its last record"),
        (raw_container(SIMPLE, 1 << 60, b"\x02a"), "0 to 2 records"),
        (raw_container(SIMPLE, -1, b"\x02a"), "0 to 2 records"),
        (raw_container(SIMPLE, 1, b"\xfe\xff\xff\xff\x0fa"), "1 records of R"),
        (raw_container(SIMPLE, 1, b"\x02\xff"), "1 records of R"),
        (raw_container(SIMPLE, 1, b"\x02a", codec=b"snappy"), "codec"),
        (raw_container(SIMPLE, 1, b"no stream", codec=b"deflate"), "deflate"),
        (raw_container("string", 1, b"\x02a"), "schema of a record"),
        (raw_container({"type": "record", "name": "R"}, 1, b"\x02a"), "Avro schema"),
        (raw_container({"type": "record", "name": "R", "fields": [{"name": "s", "type": "no"}]}, 1, b"\x02a"), "Avro schema"),
    ],
)
def test_damage_is_named(data: bytes, expected: str) -> None:
    with pytest.raises(CorruptFileError, match=expected) as caught:
        decode_container(data, "a/b.commit")
    assert caught.value.path == "a/b.commit"


def test_endless_arrays_and_types_are_refused_before_reading() -> None:
    nulls = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}
    with pytest.raises(CorruptFileError, match="take no bytes"):
        decode_container(raw_container(nulls, 1, b"\xfe\xff\xff\xff\xff\xff\xff\x7f\x00"))
    chain = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
    with pytest.raises(CorruptFileError, match="contains itself"):
        decode_container(raw_container(chain, 1, b"\x02" * 100_000 + b"\x00"))


def test_deflate_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "MAX_INFLATED", 0)
    deflate = zlib.compressobj(wbits=-15)
    packed = deflate.compress(b"\x02a" * 1000) + deflate.flush()
    data = raw_container(SIMPLE, 1000, packed, codec=b"deflate")
    with pytest.raises(CorruptFileError, match=f"at most {4 * len(data)} bytes"):
        decode_container(data)


def test_a_deflate_bomb_takes_no_memory() -> None:
    packer = zlib.compressobj(9, wbits=-15)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
    data = raw_container(SIMPLE, 1, packed, codec=b"deflate")
    tracemalloc.start()
    try:
        with pytest.raises(CorruptFileError, match="deflate"):
            decode_container(data)
        assert tracemalloc.get_traced_memory()[1] < (64 << 20) + 4 * len(data)
    finally:
        tracemalloc.stop()


def test_records_of_which_a_byte_makes_thousands_of_fields_are_refused() -> None:
    nothing = [{"name": f"n{i}", "type": "null"} for i in range(1000)]
    schema = {"type": "record", "name": "R", "fields": [*nothing, {"name": "one", "type": "int"}]}
    with pytest.raises(CorruptFileError, match="takes no bytes"):
        decode_container(raw_container(schema, 5000, b"\x02" * 5000))


def test_nested_json_bomb_is_refused() -> None:
    bomb = b"[" * 200_000
    data = b"Obj\x01\x02\x16avro.schema" + container._bytes(bomb) + b"\x00" + SYNC
    with pytest.raises(CorruptFileError, match="Avro schema"):
        decode_container(data)
