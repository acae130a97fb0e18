"""Log files that Apache Hudi wrote, against what is known to be in them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudimeta.formats.avro.ordering import ordering_values
from hudimeta.formats.log import (
    BlockType,
    HeaderKey,
    LogBlock,
    decode_data_block,
    decode_delete_block,
    decode_positions,
    encode_avro_content,
    encode_block,
    encode_positions,
    read_blocks,
)
from tests.recorded_tables import CONFORMANCE, RICH

Unpack = Callable[..., Path]


def with_log_blocks() -> list[str]:
    return [name for name in CONFORMANCE.names() if CONFORMANCE.answer(name).get("log_blocks")]


def deletes_of(block: LogBlock) -> list[list[Any]]:
    """Key, partition path and the int or long that orders the delete."""
    deletes = decode_delete_block(block)
    value = [row["int"] if row["int"] is not None else row["long"] for row in deletes["ordering"].to_pylist()]
    columns = (deletes["record_key"].to_pylist(), deletes["partition_path"].to_pylist(), value)
    return [list(record) for record in zip(*columns, strict=True)]


def data_logs(table: Path) -> list[Path]:
    return sorted(path for path in table.rglob(".*.log.*") if ".hoodie" not in path.parts and path.suffix != ".crc")


def test_single_log_files_hold_what_is_known_of_them(shared: Path) -> None:
    folder = shared / "conformance"
    expected = json.loads((folder / "expected_fixtures" / "log_files.json").read_text())
    with zipfile.ZipFile(folder / "fixtures" / "core_tests_data_open.zip") as archive:
        for name, facts in expected.items():
            path = next(
                entry for entry in archive.namelist() if entry.endswith(f"log_files/{name}") and "__MACOSX" not in entry
            )
            scan = read_blocks(archive.read(path), name)
            assert scan.corrupt == []
            for block, known in zip(scan.blocks, facts["blocks"], strict=True):
                check_block(block, known)


def check_block(block: LogBlock, known: dict[str, Any]) -> None:
    assert block.type.name.lower() == known["type"]
    assert (block.offset, block.size, len(block.content)) == (known["offset"], known["length"], known["content_length"])
    assert block.size - 8 == known["reverse_pointer"]
    assert {key.name: value for key, value in block.header.items()} == known["header"]
    assert block.footer == known["footer"]
    if "deletes" in known:
        assert deletes_of(block) == known["deletes"]
    if "rows" in known:
        rows = decode_data_block(block)
        assert rows.column_names == known["rows"]["columns"]
        assert [list(row.values()) for row in rows.to_pylist()] == known["rows"]["rows"]


@pytest.mark.parametrize("name", with_log_blocks())
def test_every_visible_block_of_a_recorded_table_is_found(name: str, conformance_table: Unpack) -> None:
    table = conformance_table(name)
    for path, known in CONFORMANCE.answer(name)["log_blocks"].items():
        blocks = read_blocks((table / path).read_bytes(), path).blocks
        found = [
            {
                "type": block.type.name.lower(),
                "instant": block.instant,
                "has_schema": HeaderKey.SCHEMA in block.header,
                **contents_of(block),
            }
            for block in blocks
        ]
        assert found == known


def contents_of(block: LogBlock) -> dict[str, Any]:
    if block.type is BlockType.DELETE:
        return {"deletes": deletes_of(block)}
    if block.type is BlockType.COMMAND:
        return {}
    return {"keys": decode_data_block(block, ["_hoodie_record_key"])["_hoodie_record_key"].to_pylist()}


@pytest.mark.parametrize("name", RICH.names())
def test_what_is_read_from_a_recorded_log_is_written_back_byte_for_byte(name: str, rich_table: Unpack) -> None:
    for path in data_logs(rich_table(name)):
        data = path.read_bytes()
        scan = read_blocks(data, path.name)
        assert scan.corrupt == [] or name == "corrupt_tail_log"
        for block in scan.blocks:
            assert encode_block(block.type, block.header, block.content) == data[block.offset : block.offset + block.size]
            positions = block.header.get(HeaderKey.RECORD_POSITIONS)
            if positions is not None:
                assert encode_positions(decode_positions(positions)) == positions
            if block.type is BlockType.AVRO_DATA:
                rows = decode_data_block(block)
                assert encode_avro_content(rows, block.schema_json) == block.content
                assert positions is None or len(decode_positions(positions)) == rows.num_rows
            elif block.type is BlockType.DELETE:
                assert decode_delete_block(block).num_rows > 0


def test_a_torn_block_leaves_the_blocks_before_it(rich_table: Unpack) -> None:
    scans = [read_blocks(path.read_bytes(), path.name) for path in data_logs(rich_table("corrupt_tail_log"))]
    spans = [span for scan in scans for span in scan.corrupt]
    assert [(span.offset, span.size) for span in spans] == [(2095, 1396)]
    assert "runs 699 bytes past the end" in spans[0].reason
    assert all(scan.blocks for scan in scans)


def test_a_typed_delete_value_reads_as_the_column_s_type(rich_table: Unpack) -> None:
    blocks = [b for path in data_logs(rich_table("multi_block_avro")) for b in read_blocks(path.read_bytes()).blocks]
    deletes = [decode_delete_block(block) for block in blocks if block.type is BlockType.DELETE]
    (values,), natural = ordering_values(pa.concat_tables(deletes), [pa.timestamp("us", "UTC")])
    assert not natural.any()
    assert values.null_count == 0
