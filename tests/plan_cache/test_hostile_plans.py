"""Kept plans that somebody else wrote, checksums and all: refused before anything is made of them, and the report says so."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import xxhash

from hudimeta.errors import CorruptFileError
from hudimeta.formats.seal import SEAL, sealed_json
from hudimeta.plan_cache.mapped import mapped_table
from hudimeta.storage import LocalStorage
from tests.plan_cache.test_kept_files import FROM_KEPT, a_table, kept_files, remarks
from tests.plan_cache.test_same_plans import keeping

TRIES = 400
HUGE = b"\xff\xff\xff\x7f"


class Spoilt:
    """A table with a kept plan, whose files are exchanged for others with right checksums."""

    def __init__(self, path: Path) -> None:
        self.path, self.options = a_table(path / "t").path, keeping(path / "plans")
        remarks(self.path, self.options)
        (self.entry,) = (file for file in kept_files(path / "plans") if file.suffix == ".json")

    def told(self) -> list[str]:
        return remarks(self.path, self.options)

    def rewrite(self, change: Callable[[dict[str, Any]], object]) -> None:
        values = json.loads(self.entry.read_bytes())
        del values[SEAL]
        change(values)
        self.entry.unlink()
        self.entry.write_bytes(sealed_json(json.dumps(values).encode(), self.entry.name))

    def exchange(self, part: str, data: bytes) -> None:
        file = self.entry.with_name(f"{self.entry.stem}.{part}.arrow")
        file.unlink()
        file.write_bytes(data)
        stamp = [file.name, len(data), xxhash.xxh3_64(data).hexdigest()]
        self.rewrite(lambda values: values["files"].update({part: stamp}))

    def bytes_of(self, part: str) -> bytes:
        return self.entry.with_name(f"{self.entry.stem}.{part}.arrow").read_bytes()


@pytest.fixture
def spoilt(tmp_path: Path) -> Spoilt:
    return Spoilt(tmp_path)


def as_file(table: pa.Table, **options: object) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(out.getvalue())


def test_a_plan_of_another_version_is_passed_over(spoilt: Spoilt) -> None:
    spoilt.rewrite(lambda values: values.update(format=2))
    data = spoilt.entry.read_bytes()
    assert spoilt.told() == [f"no kept plan: {spoilt.entry.name} is of another version of hudimeta", "the plan is kept"]
    assert spoilt.told() == FROM_KEPT
    assert spoilt.entry.read_bytes() == data, "the other version may use it still"


def test_an_entry_of_any_size_is_refused_unread(spoilt: Spoilt) -> None:
    with spoilt.entry.open("r+b") as file:
        file.truncate(1 << 33)
    tracemalloc.start()
    assert spoilt.told()[0] == f"no kept plan: {spoilt.entry.name} is damaged, and is made anew"
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert spoilt.told() == FROM_KEPT


@pytest.mark.parametrize("change", [{"content": [1]}, {"content": {"roots": []}}, {"files": []}, {"files": {"slices": []}}])
def test_entries_of_another_shape(spoilt: Spoilt, change: dict[str, object]) -> None:
    spoilt.rewrite(lambda values: values.update(change))
    assert any("damaged" in remark for remark in spoilt.told())
    assert spoilt.told() == FROM_KEPT


def test_tables_of_another_shape(spoilt: Spoilt) -> None:
    spoilt.exchange("slices", as_file(pa.table({"partition_path": ["p0"]})))
    assert "damaged" in spoilt.told()[0]
    assert spoilt.told() == FROM_KEPT


def test_offsets_beyond_the_end(spoilt: Spoilt) -> None:
    data = spoilt.bytes_of("slices")
    names = pa.ipc.open_file(data).read_all().column("base_file").chunk(0)
    offsets = bytes(names.buffers()[1])[: 4 * (len(names) + 1)]
    assert data.count(offsets) == 1
    spoilt.exchange("slices", data.replace(offsets, offsets[:4] + HUGE + offsets[8:]))
    assert "damaged" in spoilt.told()[0]
    assert spoilt.told() == FROM_KEPT


def test_lengths_that_no_memory_holds(spoilt: Spoilt) -> None:
    """A compressed buffer says itself how long it will be."""
    table = pa.ipc.open_file(spoilt.bytes_of("slices")).read_all()
    data = as_file(table, compression="lz4")
    length = bytes(table.column("base_file").chunk(0).buffers()[2])
    said = len(length).to_bytes(8, "little")
    assert said in data
    spoilt.exchange("slices", data.replace(said, (1 << 60).to_bytes(8, "little")))
    before = pa.total_allocated_bytes()
    assert "damaged" in spoilt.told()[0]
    assert pa.total_allocated_bytes() < before + 20e6
    assert spoilt.told() == FROM_KEPT


def test_any_bytes_where_arrays_are_told(spoilt: Spoilt, tmp_path: Path) -> None:
    """Either the file is refused, or all values are inside it: reading any other ends the process."""
    chance, refused = random.Random(1), 0
    storage, whole = LocalStorage(str(tmp_path), durable=False), spoilt.bytes_of("slices")
    schema = pa.ipc.open_file(whole).schema
    for number in range(TRIES):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        storage.put(f"{number}.arrow", bytes(data))
        try:
            table = mapped_table(storage, f"{number}.arrow", schema)
        except CorruptFileError:
            refused += 1
            continue
        for column in table.columns:
            values = pc.list_flatten(column) if pa.types.is_list(column.type) else column
            values = values.cast(pa.binary()) if values.type == pa.string() else values
            assert len(values.to_pylist()) == len(values)
    assert refused > TRIES // 20
