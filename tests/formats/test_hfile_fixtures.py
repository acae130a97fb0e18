"""HFiles that HBase wrote for Hudi: every recorded fact holds."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hudimeta.formats.hfile import Compression, HFileReader
from hudimeta.formats.hfile.checksum import checksum_bytes
from hudimeta.formats.hfile.layout import BLOCK_HEADER_SIZE, BlockHeader, ChecksumType

NAMES = [
    "hudi_1_0_hbase_2_4_13_16KB_GZ_20000_fake_first_key.hfile",
    "hudi_1_0_hbase_2_4_13_1KB_GZ_20000_large_keys.hfile",
    "hudi_1_0_hbase_2_4_9_16KB_GZ_20000.hfile",
    "hudi_1_0_hbase_2_4_9_16KB_NONE_5000.hfile",
    "hudi_1_0_hbase_2_4_9_512KB_GZ_20000.hfile",
    "hudi_1_0_hbase_2_4_9_no_entry.hfile",
]

Recorded = tuple[bytes, dict[str, Any]]


@pytest.fixture(params=NAMES)
def recorded(request: pytest.FixtureRequest, shared: Path) -> Recorded:
    """A file's bytes and its facts."""
    facts = json.loads((shared / "conformance/expected_fixtures/hfile.json").read_text())
    assert sorted(facts) == sorted(NAMES)
    with zipfile.ZipFile(shared / "conformance/fixtures/core_tests_data_open.zip") as archive:
        return archive.read(f"hfile/{request.param}"), facts[request.param]


def test_the_file_says_what_is_recorded(recorded: Recorded) -> None:
    data, facts = recorded
    reader = HFileReader(data)
    trailer = reader.trailer
    assert len(data) == facts["size"]
    assert (trailer.major, trailer.minor) == (facts["major"], facts["minor"])
    assert trailer.codec is Compression[facts["compression"]]
    assert reader.entry_count == facts["entry_count"]
    assert trailer.index_levels == facts["index_levels"]
    assert trailer.comparator == facts["comparator"]
    assert len(reader.root_index) == facts["n_root_index_entries"]
    assert len(reader.data_index()) == facts["n_data_blocks"]
    assert {name: len(reader.meta_block(name) or b"") for name in reader.meta_names} == facts["meta_blocks"]
    assert reader.blocks_opened == 0


def test_the_file_info_is_what_is_recorded(recorded: Recorded) -> None:
    data, facts = recorded
    found = HFileReader(data).file_info
    assert sorted(found) == sorted(facts["file_info"])
    for name, expected in facts["file_info"].items():
        readable = found[name].decode("utf-8", "replace")
        assert expected in (found[name].hex(), readable), name


def test_the_records_are_what_is_recorded(recorded: Recorded) -> None:
    data, facts = recorded
    reader = HFileReader(data)
    found = reader.scan()
    keys, values = found.keys.to_pylist(), found.values.to_pylist()
    assert reader.blocks_opened == facts["n_data_blocks"]
    digest = hashlib.sha256(b"".join(k + b"\t" + v + b"\n" for k, v in zip(keys, values, strict=True)))
    assert digest.hexdigest() == facts["sha256_of_key_tab_value_newline"]
    assert len(set(keys)) == facts.get("distinct_keys", 0)
    for position, (key, value) in facts.get("samples", {}).items():
        assert (keys[int(position)].decode(), values[int(position)].decode()) == (key, value)


def test_index_keys_and_first_keys(recorded: Recorded) -> None:
    data, facts = recorded
    reader = HFileReader(data)
    index = reader.data_index()
    firsts = [cells.keys()[0].as_py() for cells in reader.scan_cell_batches(1)]  # a batch has one block at least
    assert all(a <= b for a, b in zip(index.keys, firsts, strict=True))
    expected = facts.get("first_blocks_index_key_vs_first_real_key", [])
    leading = [[a.decode(), b.decode()] for a, b in zip(index.keys, firsts, strict=True)][: len(expected)]
    assert leading == expected
    differ = any(index_key != first for index_key, first in leading)
    assert differ == facts.get("index_keys_differ_from_real_first_keys", False)


def test_look_ups_answer_as_recorded(recorded: Recorded) -> None:
    data, facts = recorded
    asked = facts.get("lookups")
    if asked is None:
        assert len(HFileReader(data).lookup([b"a"])) == 0
        return
    for name in ("missing_before_first", "missing_between", "missing_after_last"):
        reader = HFileReader(data)
        assert len(reader.lookup([asked[name].encode()])) == 0
        assert reader.blocks_opened == (0 if name == "missing_before_first" else 1)
    for prefix, count in asked["prefix_count"].items():
        reader = HFileReader(data)
        assert len(reader.prefix([prefix.encode()])) == count
        assert reader.blocks_opened <= count // 6 + 2
    for key, value in facts["samples"].values():
        reader = HFileReader(data)
        assert reader.lookup([key.encode()]).values.to_pylist() == [value.encode()]
        assert reader.blocks_opened == 1
    if asked["values_of_duplicate_key"] is not None:
        for key, expected in asked["values_of_duplicate_key"].items():
            assert HFileReader(data).lookup([key.encode()]).values.to_pylist() == [v.encode() for v in expected]


def test_the_checksums_of_hbase_are_ours(recorded: Recorded) -> None:
    data, _ = recorded
    index = HFileReader(data).data_index()
    for offset, size in zip(index.offsets[:40].tolist(), index.sizes[:40].tolist(), strict=True):
        block = data[offset : offset + size]
        header = BlockHeader.decode(block[:BLOCK_HEADER_SIZE])
        assert header.checksum_type == ChecksumType.CRC32C
        body, sums = block[: header.on_disk_data_size], block[header.on_disk_data_size :]
        assert checksum_bytes(ChecksumType.CRC32C, body, header.bytes_per_checksum) == sums


def test_files_of_real_metadata_tables(shared: Path) -> None:
    """Base files of both writers: all records and look-ups, and the bloom filter rebuilt bit for bit from the keys."""
    from hudimeta.formats.bloom import BloomFilter

    minors = set()
    for archive in sorted((shared / "conformance/zips").glob("*.zip")):
        with zipfile.ZipFile(archive) as table:
            for name in table.namelist():
                if not name.endswith(".hfile") or name.startswith("__MACOSX"):
                    continue
                reader = HFileReader(table.read(name), name)
                minors.add(reader.trailer.minor)
                found = reader.scan()
                assert len(found) == reader.entry_count
                assert '"HoodieMetadataRecord"' in (reader.schema_text or "")
                keys = found.keys.to_pylist()
                assert keys == sorted(set(keys))
                assert reader.lookup(keys).values == found.values
                assert (reader.min_record_key, reader.max_record_key) == ((keys[0], keys[-1]) if keys else (b"", b""))
                stored = reader.bloom_filter()
                assert stored is not None
                rebuilt = BloomFilter.create_dynamic(keys, keys_per_row=stored.keys_per_row)
                assert rebuilt.to_base64().encode() == reader.meta_block("bloomFilter")
    assert minors == {0, 3}
