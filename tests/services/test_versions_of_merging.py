"""What a change of a table's version makes of how its rows are merged: payload classes, merge modes, marks of deletes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError, UnsupportedFeature
from hudimeta.services.versions.property_changes import property_changes
from hudimeta.storage import open_storage
from hudimeta.table.properties import TableProperties, update
from hudimeta.testing.builders import simple_rows
from tests.conftest import Unpack
from tests.edited_properties import forget_properties

PACKAGE = "org.apache.hudi.common.model."
EVENT, COMMIT, CUSTOM = (
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "ce9acb64-bde0-424c-9b91-f6ebba25356d",
    "00000000-0000-0000-0000-000000000000",
)


@pytest.mark.parametrize(
    ("payload", "type", "ordering", "mode", "strategy", "written"),
    [
        ("OverwriteWithLatestAvroPayload", "COPY_ON_WRITE", "ts", "COMMIT_TIME_ORDERING", COMMIT, None),
        ("OverwriteWithLatestAvroPayload", "MERGE_ON_READ", "ts", "EVENT_TIME_ORDERING", EVENT, "DefaultHoodieRecordPayload"),
        ("OverwriteWithLatestAvroPayload", "MERGE_ON_READ", "", "COMMIT_TIME_ORDERING", COMMIT, None),
        ("DefaultHoodieRecordPayload", "COPY_ON_WRITE", "ts", "EVENT_TIME_ORDERING", EVENT, None),
        ("EventTimeAvroPayload", "COPY_ON_WRITE", "ts", "EVENT_TIME_ORDERING", EVENT, "DefaultHoodieRecordPayload"),
        ("EventTimeAvroPayload", "COPY_ON_WRITE", "", "COMMIT_TIME_ORDERING", COMMIT, "OverwriteWithLatestAvroPayload"),
        ("PartialUpdateAvroPayload", "MERGE_ON_READ", "ts", "CUSTOM", CUSTOM, None),
    ],
)
def test_payload_classes_of_version_6_become_merge_modes(
    payload: str, type: str, ordering: str, mode: str, strategy: str, written: str | None
) -> None:
    """As Apache Hudi's own upgrade decides, RFC-78."""
    texts = {
        "hoodie.table.name": "t",
        "hoodie.table.type": type,
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.compaction.payload.class": PACKAGE + payload,
        "hoodie.table.precombine.field": ordering,
    }
    changes = property_changes(TableProperties(texts), 8, {})
    assert changes["hoodie.record.merge.mode"] == mode
    assert changes["hoodie.record.merge.strategy.id"] == strategy
    assert changes["hoodie.compaction.payload.class"] == PACKAGE + (written or payload)


def test_an_upgrade_is_told_the_class_that_the_table_had(recorded_table: Unpack) -> None:
    """A job names the payload class with every write; the step to version 8 merges these rows by another one."""
    path = recorded_table("v6_mor_written_by_12", fresh=True)
    told = {"hoodie.datasource.write.payload.class": PACKAGE + "OverwriteWithLatestAvroPayload"}
    update(open_storage(path), {"hoodie.compaction.payload.class": told["hoodie.datasource.write.payload.class"]})
    Table(path, told).upgrade(8)
    assert (Table(path).version, Table(path).properties.metadata_partitions) == (8, ("files",))
    assert Table(path).properties.payload_class == PACKAGE + "DefaultHoodieRecordPayload"
    Table(path).metadata.validate().raise_if_differs()


@pytest.mark.parametrize("dry_run", [True, False])
def test_options_of_another_table_are_refused_before_the_step(recorded_table: Unpack, dry_run: bool) -> None:
    path = recorded_table("v6_mor_written_by_12", fresh=True)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with pytest.raises(ConfigError, match=r"hoodie\.table\.name.*'v6_mor_written_by_12'"):
        Table(path, {"hoodie.table.name": "trips"}).upgrade(dry_run=dry_run)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before


MARKS = {"hoodie.payload.delete.field": "part", "hoodie.payload.delete.marker": "gone"}


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_version_9_keeps_the_marks_of_deletes_that_an_upgrade_is_told(tmp_path: Path, type: str) -> None:
    """As Apache Hudi has it; version 8 has no property for them, and each of its writers is told anew."""
    made = Table.create(tmp_path / "t", simple_rows(range(1), 1).schema, key="id", ordering="ts", type=type, options=MARKS)
    made.upsert(simple_rows(range(4), 1))
    Table(tmp_path / "t", MARKS).upgrade()
    gone = simple_rows(range(2), 2)
    gone = gone.set_column(gone.schema.get_field_index("part"), "part", pa.array(["gone"] * 2))
    Table(tmp_path / "t").upsert(gone)
    assert sorted(Table(tmp_path / "t").scan().to_table()["id"].to_pylist()) == ["k0002", "k0003"]
    with pytest.raises(ConfigError, match="what the table has: 'gone'"):
        Table(tmp_path / "t", {**MARKS, "hoodie.payload.delete.marker": "off"}).upsert(gone)
    with pytest.raises(ConfigError, match=r"delete\.field together with"):
        property_changes(TableProperties(dict(made.properties)), 9, {"hoodie.payload.delete.field": "part"})


@pytest.mark.parametrize(
    ("payload", "stored", "mode", "strategy"),
    [
        ("EventTimeAvroPayload", "EVENT_TIME_ORDERING", "CUSTOM", CUSTOM),
        ("PartialUpdateAvroPayload", "EVENT_TIME_ORDERING", "CUSTOM", CUSTOM),
        ("DefaultHoodieRecordPayload", "EVENT_TIME_ORDERING", "EVENT_TIME_ORDERING", EVENT),
        ("OverwriteWithLatestAvroPayload", "COMMIT_TIME_ORDERING", "COMMIT_TIME_ORDERING", COMMIT),
    ],
)
def test_payload_classes_that_version_9_remembers_come_back(payload: str, stored: str, mode: str, strategy: str) -> None:
    """Apache Hudi 1.0.2 refuses to merge by EventTimeAvroPayload where the mode beside it is not CUSTOM."""
    texts = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "9",
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.legacy.payload.class": PACKAGE + payload,
        "hoodie.record.merge.mode": stored,
        "hoodie.table.ordering.fields": "ts",
    }
    changes = property_changes(TableProperties(texts), 8, {})
    assert changes["hoodie.compaction.payload.class"] == PACKAGE + payload
    assert changes["hoodie.record.merge.mode"] == mode
    assert changes["hoodie.record.merge.strategy.id"] == strategy


MERGER = "5ac0b4d0-6e0c-4b2a-9d0a-0d9d3f0c7a11"
CUSTOM_MERGER = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": MERGER}


def test_a_merger_of_somebodys_own_decides_in_every_version(tmp_path: Path) -> None:
    """Apache Hudi stores DefaultHoodieRecordPayload beside its strategy, and does not go by it."""
    made = Table.create(tmp_path / "t", simple_rows([], 1).schema, key="id", ordering="ts", type="MERGE_ON_READ")
    made.upsert(simple_rows(range(3), 1))
    made.upsert(simple_rows(range(2), 2))
    forget_properties(tmp_path / "t")
    update(open_storage(str(tmp_path / "t")), CUSTOM_MERGER)
    keep_older = {"hudimeta.merger": "tests.slices.mergers:keep_older"}
    for move in (lambda t: t, lambda t: t.upgrade(), lambda t: t.downgrade()):
        move(Table(tmp_path / "t", keep_older))
        Table(tmp_path / "t", keep_older).upsert(simple_rows(range(2), 3))
        stated = Table(tmp_path / "t").properties
        assert {key: stated[key] for key in CUSTOM_MERGER} == CUSTOM_MERGER
        with pytest.raises(UnsupportedFeature, match=f"strategy {MERGER}.*hudimeta\\.merger"):
            Table(tmp_path / "t").scan().to_table()
        with pytest.raises(UnsupportedFeature, match=f"strategy {MERGER}"):
            Table(tmp_path / "t").upsert(simple_rows(range(1), 3))
        assert Table(tmp_path / "t").scan(query_type="read_optimized").to_table().num_rows == 3
        assert Table(tmp_path / "t", keep_older).scan().to_table()["ts"].to_pylist() == [1, 1, 1]


def test_version_6_with_a_merger_of_somebodys_own_is_not_upgraded() -> None:
    texts = {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "6"}
    texts |= {"hoodie.timeline.layout.version": "1", "hoodie.compaction.record.merger.strategy": MERGER}
    with pytest.raises(UnsupportedFeature, match=MERGER):
        property_changes(TableProperties(texts), 8, {})
