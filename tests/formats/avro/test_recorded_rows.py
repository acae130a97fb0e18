"""Rows in the log files that Apache Hudi wrote: read as the Avro library reads them, and written back to the same bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from hudimeta.formats.avro import schemas
from hudimeta.formats.avro.rows import decode_rows, encode_rows
from hudimeta.formats.log.data_blocks import avro_datums
from hudimeta.formats.log.framing import BlockType, LogBlock, read_blocks

TABLES = ["all_types_mor", "cdc_mor_full8", "evolve_write_mor", "multi_block_avro", "partial_merge_mor"]
CHANGE_TABLES = ["cdc_cow_full", "cdc_cow_keyonly", "cdc_mor_before", "cdc_mor_full8"]


def avro_blocks(table: Path) -> Iterator[LogBlock]:
    """All blocks of Avro rows in a table's log and change files."""
    for path in sorted(table.rglob(".*.log.*")):
        if not path.name.endswith(".crc"):
            for block in read_blocks(path.read_bytes(), path.name).blocks:
                if block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                    yield block


def comparable(value: Any) -> Any:
    """One form for both readers: maps are dicts, floats are texts (NaN, -0.0), what is empty is an empty list."""
    if isinstance(value, dict) and value:
        return {k: comparable(v) for k, v in value.items()}
    if isinstance(value, list) and value and all(isinstance(v, tuple) for v in value):
        return {k: comparable(v) for k, v in value}
    if isinstance(value, (list, dict)):
        return [comparable(v) for v in value]
    return repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("name", sorted({*TABLES, *CHANGE_TABLES}))
def test_recorded_rows_agree_with_the_avro_library(name: str, rich_table: Callable[..., Path]) -> None:
    seen = 0
    for block in avro_blocks(rich_table(name)):
        datums = avro_datums(block)
        table = decode_rows(block.schema_json, datums.data, datums.offsets, datums.lengths)
        parsed = fastavro.parse_schema(json.loads(block.schema_json))
        pieces = [bytes(datums.data[o : o + n]) for o, n in zip(datums.offsets, datums.lengths, strict=True)]
        rows = [fastavro.schemaless_reader(io.BytesIO(piece), parsed) for piece in pieces]
        assert [comparable(r) for r in table.to_pylist()] == [comparable(r) for r in rows]
        content, borders = encode_rows(table, block.schema_json)
        assert bytes(content) == b"".join(pieces)
        assert np.diff(borders).tolist() == datums.lengths.tolist()
        seen += len(rows)
    assert seen > 0


@pytest.mark.parametrize("name", CHANGE_TABLES)
def test_change_blocks_carry_the_schema_that_is_built(name: str, rich_table: Callable[..., Path]) -> None:
    texts = {b.schema_json for b in avro_blocks(rich_table(name)) if b.type is BlockType.CDC_DATA}
    assert texts
    for text in texts:
        recorded = json.loads(text)
        fields = {field.pop("name"): field["type"] for field in json.loads(text)["fields"]}
        if "before" not in fields:
            assert recorded == schemas.CDC_KEY_ONLY
            continue
        row = {**fields["before"][1], "namespace": recorded["namespace"]}
        build = schemas.cdc_with_before_and_after if "after" in fields else schemas.cdc_with_before
        for field in recorded["fields"]:
            assert field.pop("doc") == ""
        assert build(row) == recorded
