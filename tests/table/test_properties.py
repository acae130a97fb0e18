"""A table's properties: what they mean, and which tables are refused."""

from __future__ import annotations

import json
import pickle
import zipfile
from datetime import timezone
from pathlib import Path

import pytest

from hudimeta.errors import HudiError, TableError, UnsupportedFeature, UnsupportedTableVersion
from hudimeta.storage import open_storage
from hudimeta.table import properties as table_properties
from hudimeta.table.key_generator import KeyGeneratorType
from hudimeta.table.merge_settings import PartialUpdateMode
from hudimeta.table.properties import CdcMode, TableProperties
from hudimeta.types import MergeMode, TableType
from tests.conftest import Unpack
from tests.recorded_tables import CONFORMANCE, RICH
from tests.table.minimal import MINIMAL, no_waiting

# Meaning


@pytest.mark.parametrize("name", CONFORMANCE.names())
def test_conformance_tables(conformance_table: Unpack, name: str) -> None:
    answer = CONFORMANCE.answer(name)
    found = table_properties.load(open_storage(conformance_table(name)), no_waiting)
    assert found.version == answer["table_version"]
    assert found.layout == answer["timeline_layout"]
    assert found.type is TableType(answer["type"])
    assert list(found.record_keys) == answer["record_key_fields"]
    assert list(found.partition_fields) == answer["partition_fields"]
    assert found.is_partitioned == bool(answer["partition_fields"])
    assert found.ordering_fields == ((answer["ordering_field"],) if answer["ordering_field"] else ())
    assert found.hive_style is answer["hive_style_partitioning"]
    assert found.populate_meta is answer["populate_meta_fields"]
    assert list(found.metadata_partitions) == answer["metadata_partitions"]
    assert found.checksum == found.right_checksum
    recorded = answer["key_generator"]
    assert recorded in (found.keygen.value, (found.keygen_class or "").rpartition(".")[2])
    assert (found.payload_class or "").rpartition(".")[2] == (answer["payload_class"] or "")
    if answer["merge_mode"]:
        assert found.merge_mode is MergeMode(answer["merge_mode"])


@pytest.mark.parametrize("name", RICH.names())
def test_rich_tables(rich_table: Unpack, name: str) -> None:
    answer = RICH.answer(name)
    path = rich_table(name)
    found = table_properties.load(open_storage(path), no_waiting)
    assert (found.version, found.layout, found.type.value) == (
        answer["table_version"],
        answer["timeline_layout"],
        answer["type"],
    )
    assert sorted(found.metadata_partitions) == sorted(answer["metadata_partitions"])
    assert (path / found.timeline_folder).is_dir()
    assert found.timezone == "LOCAL"
    assert found.zone is None
    assert len(found.load_timeline(open_storage(path)).completed) > 0
    if found.has_metadata_table:
        of_metadata = table_properties.load(open_storage(path).sub(".hoodie/metadata"), no_waiting)
        assert of_metadata.is_metadata_table
        assert of_metadata.base_file_format == "HFILE"
        assert of_metadata.name == found.name + "_metadata"


def of_rich_table(rich_table: Unpack, name: str) -> TableProperties:
    return table_properties.load(open_storage(rich_table(name)))


@pytest.mark.parametrize(
    ("name", "mode", "partial", "delete"),
    [
        ("dms_payload_mor8", MergeMode.COMMIT_TIME_ORDERING, PartialUpdateMode.NONE, ("Op", "D")),
        ("non_defaults_mor8", MergeMode.COMMIT_TIME_ORDERING, PartialUpdateMode.IGNORE_DEFAULTS, (None, None)),
        ("partial_payload_mor9", MergeMode.EVENT_TIME_ORDERING, PartialUpdateMode.IGNORE_DEFAULTS, (None, None)),
        ("delete_marker_cow9", MergeMode.EVENT_TIME_ORDERING, PartialUpdateMode.NONE, ("op", "D")),
        ("first_event_custom_mor", MergeMode.EVENT_TIME_ORDERING, PartialUpdateMode.NONE, (None, None)),
        ("v6_mor_written_by_12", MergeMode.EVENT_TIME_ORDERING, PartialUpdateMode.NONE, (None, None)),
        ("commit_order_mor", MergeMode.COMMIT_TIME_ORDERING, PartialUpdateMode.NONE, (None, None)),
    ],
)
def test_merge_rules_of_real_tables(
    rich_table: Unpack, name: str, mode: MergeMode, partial: PartialUpdateMode, delete: tuple[str | None, str | None]
) -> None:
    rules = of_rich_table(rich_table, name).merge_settings
    assert (rules.mode, rules.partial_update, (rules.delete_field, rules.delete_marker)) == (mode, partial, delete)
    rules.check_known()


LATEST = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
SOMEBODY = "5ac0b4d0-6e0c-4b2a-9d0a-0d9d3f0c7a11"
SOMEBODYS = {"hoodie.record.merge.strategy.id": SOMEBODY}
"""Of a merger of somebody's own; Apache Hudi stores a payload class beside it."""


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({}, MergeMode.COMMIT_TIME_ORDERING),
        ({"hoodie.table.precombine.field": "ts"}, MergeMode.EVENT_TIME_ORDERING),
        ({"hoodie.table.ordering.fields": "a,b"}, MergeMode.EVENT_TIME_ORDERING),
        (
            {"hoodie.table.precombine.field": "ts", "hoodie.compaction.payload.class": LATEST},
            MergeMode.COMMIT_TIME_ORDERING,
        ),
        ({"hoodie.record.merge.mode": "event_time_ordering"}, MergeMode.EVENT_TIME_ORDERING),
        ({"hoodie.record.merge.mode": "CUSTOM"}, MergeMode.CUSTOM),
        ({"hoodie.compaction.payload.class": "com.acme.MyPayload"}, MergeMode.CUSTOM),
        ({"hoodie.compaction.payload.class": "com.acme.OverwriteWithLatestAvroPayload"}, MergeMode.CUSTOM),
        ({"hoodie.record.merge.mode": "CUSTOM", "hoodie.compaction.payload.class": LATEST}, MergeMode.COMMIT_TIME_ORDERING),
        ({**SOMEBODYS, "hoodie.record.merge.mode": "CUSTOM", "hoodie.compaction.payload.class": LATEST}, MergeMode.CUSTOM),
        ({**SOMEBODYS, "hoodie.record.merge.mode": "CUSTOM", "hoodie.table.legacy.payload.class": LATEST}, MergeMode.CUSTOM),
        ({"hoodie.compaction.record.merger.strategy": SOMEBODY, "hoodie.table.precombine.field": "ts"}, MergeMode.CUSTOM),
        (
            {
                "hoodie.compaction.record.merger.strategy": "ce9acb64-bde0-424c-9b91-f6ebba25356d",
                "hoodie.table.ordering.fields": "a",
            },
            MergeMode.COMMIT_TIME_ORDERING,
        ),
    ],
)
def test_merge_mode_follows_the_hints_that_are_there(texts: dict[str, str], expected: MergeMode) -> None:
    assert TableProperties({**MINIMAL, **texts}).merge_mode is expected


def test_java_code_that_merges_is_named_in_the_refusal() -> None:
    found = TableProperties({**MINIMAL, "hoodie.compaction.payload.class": "com.acme.MyPayload"})
    with pytest.raises(UnsupportedFeature, match=r"com\.acme\.MyPayload.*hudimeta\.merger"):
        found.merge_settings.check_known()
    custom = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.compaction.payload.class": LATEST}
    with pytest.raises(UnsupportedFeature, match=rf"custom record merger \(strategy {SOMEBODY}\)"):
        TableProperties({**MINIMAL, **SOMEBODYS, **custom}).merge_settings.check_known()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"hoodie.table.keygenerator.type": "SIMPLE_AVRO"}, KeyGeneratorType.SIMPLE),
        ({"hoodie.table.keygenerator.type": "custom"}, KeyGeneratorType.CUSTOM),
        ({"hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA"}, KeyGeneratorType.METADATA_TABLE),
        ({"hoodie.table.keygenerator.type": "SPARK_SQL_UUID"}, KeyGeneratorType.USER_PROVIDED),
        ({"hoodie.table.keygenerator.class": "com.acme.Keys"}, KeyGeneratorType.USER_PROVIDED),
        ({"hoodie.table.keygenerator.class": "com.acme.SimpleKeyGenerator"}, KeyGeneratorType.USER_PROVIDED),
        (
            {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
            KeyGeneratorType.NON_PARTITION,
        ),
        ({}, KeyGeneratorType.NON_PARTITION),
        ({"hoodie.table.partition.fields": "p", "hoodie.table.recordkey.fields": "id"}, KeyGeneratorType.SIMPLE),
        ({"hoodie.table.partition.fields": "p,q", "hoodie.table.recordkey.fields": "id"}, KeyGeneratorType.COMPLEX),
    ],
)
def test_key_generators(texts: dict[str, str], expected: KeyGeneratorType) -> None:
    assert TableProperties({**MINIMAL, **texts}).keygen is expected


def test_partition_fields_of_a_custom_key_generator(rich_table: Unpack) -> None:
    found = of_rich_table(rich_table, "custom_keygen_mixed")
    assert found.keygen is KeyGeneratorType.CUSTOM
    assert found.partition_fields == ("reg", "at")
    assert found.partition_field_types == ("SIMPLE", "TIMESTAMP")


def test_change_capture_index_definitions_and_bootstrap(rich_table: Unpack) -> None:
    captured = of_rich_table(rich_table, "cdc_cow_keyonly")
    assert captured.cdc_enabled
    assert captured.cdc_mode is CdcMode.OP_KEY_ONLY
    assert of_rich_table(rich_table, "mdt_all_v8").index_defs_path == ".hoodie/.index_defs/index.json"
    assert of_rich_table(rich_table, "bootstrap_meta").bootstrap_base_path == "/tmp/hudi_bootstrap/bootstrap_meta_source"
    assert of_rich_table(rich_table, "drop_partition_cols").drop_partition_columns
    assert not of_rich_table(rich_table, "virtual_keys_cow").populate_meta
    assert of_rich_table(rich_table, "multi_order_mor").ordering_fields == ("qty", "ts")


def test_defaults() -> None:
    found = TableProperties(MINIMAL)
    assert (found.database, found.record_keys, found.partition_fields, found.ordering_fields) == ("", (), (), ())
    assert (found.populate_meta, found.hive_style, found.url_encode, found.cdc_enabled) == (True, False, False, False)
    assert (found.base_file_format, found.timezone, found.cdc_mode) == ("PARQUET", "LOCAL", CdcMode.DATA_BEFORE_AFTER)
    assert (found.has_metadata_table, found.index_defs_path, found.create_schema) == (False, None, None)
    assert (found.timeline_folder, found.history_folder) == (".hoodie/timeline", ".hoodie/timeline/history")
    assert found.initial_version is None


def test_version_6_has_its_timeline_in_the_folder_itself() -> None:
    """Hudi 1.2 writes `hoodie.timeline.path` into tables of version 6 and does not use it there."""
    found = TableProperties({**MINIMAL, "hoodie.timeline.layout.version": "1", "hoodie.timeline.path": "timeline"})
    assert (found.timeline_folder, found.history_folder) == (".hoodie", ".hoodie/archived")


def test_the_mapping_is_a_value() -> None:
    found = TableProperties(MINIMAL)
    assert dict(found) == MINIMAL
    assert pickle.loads(pickle.dumps(found)) == found
    changed = found.with_changes({"x": "1", "hoodie.table.checksum": None})
    assert "x" not in found
    assert (changed["x"], changed.checksum) == ("1", None)
    assert TableProperties({**MINIMAL, "hoodie.table.timeline.timezone": "utc"}).zone == timezone.utc


# Refusals


@pytest.mark.parametrize("version", ["0", "5", "7", "10"])
def test_other_versions_are_refused_by_number(version: str) -> None:
    with pytest.raises(UnsupportedTableVersion, match="6, 8, 9") as caught:
        TableProperties({**MINIMAL, "hoodie.table.version": version}).check_readable()
    assert caught.value.found == int(version)


def test_version_6_is_read_only() -> None:
    six = TableProperties({**MINIMAL, "hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"})
    six.check_readable()
    with pytest.raises(UnsupportedTableVersion, match="cannot be written, versions that can: 8, 9"):
        six.check_writable()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hoodie.timeline.layout.version": "1"}, "has timeline layout 2, hoodie.timeline.layout.version says 1"),
        ({"hoodie.timeline.layout.version": None}, "lacks hoodie.timeline.layout.version"),
        ({"hoodie.table.type": None}, "lacks hoodie.table.type"),
        ({"hoodie.table.name": None}, "lacks hoodie.table.name"),
        ({"hoodie.table.version": None}, "lacks hoodie.table.version"),
        ({"hoodie.table.format": "iceberg"}, "iceberg"),
        ({"hoodie.table.type": "cow"}, "COPY_ON_WRITE or MERGE_ON_READ"),
        ({"hoodie.table.version": "baz"}, "a number"),
        ({"hoodie.table.base.file.format": "foo"}, "PARQUET"),
        ({"hoodie.datasource.write.hive_style_partitioning": "0"}, "true or false"),
        ({"hoodie.record.merge.mode": "LAST"}, "EVENT_TIME_ORDERING"),
        ({"hoodie.table.timeline.timezone": "CET"}, "UTC or LOCAL"),
    ],
)
def test_tables_that_contradict_themselves_are_refused(changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(HudiError, match=message):
        TableProperties(MINIMAL).with_changes(changes).check_readable()


def test_property_files_of_the_fixture_set(shared: Path, tmp_path: Path) -> None:
    """What another reader opens we open, unless Hudi itself refuses it (a checksum of another table)."""
    expected = json.loads((shared / "conformance/expected_fixtures/table_props.json").read_text())
    with zipfile.ZipFile(shared / "conformance/fixtures/core_tests_data_open.zip") as packed:
        packed.extractall(tmp_path)
    refused = {
        "table_props_invalid": TableError,
        "table_props_partial": TableError,
        "table_props_valid": TableError,
    }
    for name, facts in expected.items():
        if name in refused:
            with pytest.raises(refused[name]):
                table_properties.load(open_storage(tmp_path / name), lambda seconds: None)
        else:
            found = table_properties.load(open_storage(tmp_path / name), no_waiting)
            assert dict(found) == facts["properties"]
            assert found.name == facts["hudi_rs_open"]["table_name"]
