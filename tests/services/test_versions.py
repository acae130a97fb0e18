"""Upgrades and downgrades: no row, moment or index is lost, nothing that fails on the way leaves anything in between."""

from __future__ import annotations

import copy
import io
import json
import struct
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, CorruptFileError, StorageError, TableError, UnsupportedFeature
from hudimeta.formats.avro.commit_metadata import decode_commit_metadata, encode_commit_metadata
from hudimeta.formats.avro.schemas import CLEAN_METADATA, COMMIT_METADATA
from hudimeta.formats.log import BlockType, HeaderKey, encode_block
from hudimeta.metadata.compaction import replacement_plan
from hudimeta.services.versions import change_version
from hudimeta.services.versions.property_changes import property_changes
from hudimeta.storage import open_storage
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.table.properties import TableProperties, update
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.transitions import TimelineWriter
from hudimeta.types import Action, Operation
from tests.conftest import Unpack
from tests.rotation import in_turn

INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.secondary.column": "ts",
}
PARTS = 16
"""Of the requests at which something fails each run takes one part, by turns."""

UNINDEXED = {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"}


def written(path: Path, version: int, type: str, options: dict[str, str]) -> ModelledTable:
    table = ModelledTable(str(path), {**options, "hoodie.table.type": type, "hoodie.write.table.version": str(version)})
    table.write(Operation.UPSERT, simple_rows(range(8), 1))
    table.write(Operation.UPSERT, simple_rows(range(4, 12), 2))
    table.options = OPTIONS.read(options)
    return table


def answers(path: Path) -> dict[str, list[dict[str, object]]]:
    """The rows of now and of every moment, without meta columns."""
    table = Table(path)
    moments = [None, *(i.time for i in table.timeline.writes)]
    found = {}
    for moment in moments:
        rows = table.scan(as_of=moment).to_table()
        plain = rows.select([name for name in rows.schema.names if not name.startswith("_hoodie")])
        found[moment or "now"] = sorted(plain.to_pylist(), key=str)
    return found


@pytest.mark.parametrize("name", ["v6_mor_written_by_12"])
def test_version_6_becomes_9(recorded_table: Unpack, name: str) -> None:
    path = recorded_table(name, fresh=True)
    before = answers(path)
    indexes = Table(path).properties.metadata_partitions
    with pytest.raises(TableError, match="upgrade"):
        Table(path).upsert(Table(path).scan(limit=1).to_table())
    plan = Table(path).upgrade(dry_run=True)
    assert str(plan).startswith("version 6 -> 8 -> 9\n  write the timeline anew")
    assert Table(path).version == 6
    archived = Table(path).properties.history_folder
    (path / archived).mkdir(parents=True, exist_ok=True)
    (path / archived / ".commits_.archive.1_1-0-1").write_bytes(b"#HUDI#")
    report = Table(path).upgrade()
    assert f"1 damaged stretches of {archived} were left out" in str(report)
    assert "set the properties of version 8" in str(report)
    assert Table(path).version == 9
    assert Table(path).properties.metadata_partitions == indexes
    after = answers(path)
    assert {moment: after[moment] for moment in before} == before
    Table(path).metadata.validate(deep=True).raise_if_differs()
    assert not [f.name for f in (path / ".hoodie").iterdir() if f.name[0].isdigit()]
    assert not (path / ".hoodie/.aux/hudimeta/version_change.json").exists()
    row = Table(path).scan(limit=1).to_table()
    Table(path).upsert(row)
    assert sorted(answers(path)["now"], key=str) == before["now"]
    assert str(Table(path).upgrade()) == "the table has version 9 already"


def archived(entries: list[dict[str, object]], schema: dict[str, object]) -> bytes:
    """A block of archived instants, as version 6 has it."""
    datums = []
    for entry in entries:
        datum = io.BytesIO()
        fastavro.schemaless_writer(datum, fastavro.parse_schema(copy.deepcopy(schema)), entry)
        datums.append(struct.pack(">i", len(datum.getvalue())) + datum.getvalue())
    content = struct.pack(">ii", 3, len(datums)) + b"".join(datums)
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: json.dumps(schema), HeaderKey.INSTANT_TIME: "1"}, content)


def test_what_version_6_archived_is_in_the_history_of_8(recorded_table: Unpack) -> None:
    path = recorded_table("v6_mor_written_by_12", fresh=True)
    table = Table(path)
    first = table.timeline.writes[0]
    said = decode_commit_metadata(encode_commit_metadata(table.timeline.metadata(first)))
    cleaned = {
        "startCleanTime": "20200101000000001",
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 0,
        "earliestCommitToRetain": "20200101000000000",
        "partitionMetadata": {},
        "version": 2,
    }
    fields = [("hoodieCommitMetadata", COMMIT_METADATA), ("hoodieCleanMetadata", CLEAN_METADATA)]
    schema = {
        "type": "record",
        "name": "HoodieArchivedMetaEntry",
        "fields": [
            *({"name": name, "type": ["null", kind], "default": None} for name, kind in fields),
            *({"name": n, "type": ["null", "string"], "default": None} for n in ("commitTime", "actionType", "actionState")),
        ],
    }
    old = {"commitTime": "20200101000000000", "actionType": "deltacommit"}
    entries = [
        {**old, "actionState": "INFLIGHT"},
        {**old, "actionState": "COMPLETED", "hoodieCommitMetadata": said},
        {"commitTime": "20200101000000001", "actionType": "clean", "actionState": "COMPLETED", "hoodieCleanMetadata": cleaned},
    ]
    folder = path / table.properties.history_folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".commits_.archive.1_1-0-1").write_bytes(archived(entries, schema))
    (folder / ".commits_.archive.2_1-0-1").write_bytes(archived(entries[:2], schema))  # archived twice
    report = table.upgrade()
    assert "2 archived instants are in its history" in str(report)
    history = Table(path).timeline.history
    found = history.load()
    assert found["instant_time"].to_pylist() == ["20200101000000000", "20200101000000001"]
    assert found["action"].to_pylist() == ["deltacommit", "clean"]
    assert decode_commit_metadata(found["metadata"][0].as_py())["partitionToWriteStats"] == said["partitionToWriteStats"]
    assert [i.time for i in history.instants()] == found["instant_time"].to_pylist()
    Table(path).metadata.validate().raise_if_differs()


LOST_LOCK = pytest.mark.filterwarnings("ignore:the upkeep of the metadata table is left to a later write")


@LOST_LOCK
@pytest.mark.parametrize("number", in_turn(range(100), PARTS))
def test_an_upgrade_of_version_6_that_fails_is_finished_by_the_next(recorded_table: Unpack, number: int) -> None:
    path = recorded_table("v6_mor_written_by_12", fresh=True)
    before, indexes = answers(path), Table(path).properties.metadata_partitions
    faulty = FaultyStorage(open_storage(str(path)), FaultPlan(number, Fault.ERROR_BEFORE))
    try:
        change_version(faulty, OPTIONS.read({}), 8, "upgrade")
    except StorageError:
        now = answers(path)
        assert {moment: now[moment] for moment in before} == before
        change_version(open_storage(str(path)), OPTIONS.read({}), 8, "upgrade")
    now = answers(path)
    assert {moment: now[moment] for moment in before} == before
    assert Table(path).properties.metadata_partitions == indexes
    Table(path).metadata.validate().raise_if_differs()


@pytest.mark.parametrize("options", [INDEXED, UNINDEXED])
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_down_and_up_again(tmp_path: Path, type: str, options: dict[str, str]) -> None:
    table = written(tmp_path / "t", 9, type, options)
    indexes = Table(table.path).properties.metadata_partitions
    for verb, version in (("downgrade", 8), ("upgrade", 9)):
        getattr(Table(table.path), verb)()
        assert Table(table.path).version == version
        assert Table(table.path).properties.metadata_partitions == indexes
        table.check()
        table.write(Operation.UPSERT, simple_rows(range(6, 14), version))
        table.check()
        check_all(table.storage)
        if indexes:
            Table(table.path).metadata.validate().raise_if_differs()


@pytest.mark.parametrize("to", [8, 9])
def test_an_index_of_another_version_is_used(tmp_path: Path, to: int) -> None:
    """Before any write; also where the caller still names the version that the table was created with."""
    table = written(tmp_path / "t", 17 - to, "COPY_ON_WRITE", INDEXED)
    change = Table(table.path, {"hoodie.write.table.version": str(17 - to)})
    report = change.upgrade() if to == 9 else change.downgrade()
    assert report.to == to
    for where, index in (("id = 'k0005'", "record_index"), ("x = 9.0", "partition_stats")):
        scan = Table(table.path).scan(where)
        assert (
            scan.to_table().num_rows == Table(table.path, {"hoodie.metadata.enable": "false"}).scan(where).to_table().num_rows
        )
        assert index in str(scan.report)


@LOST_LOCK
@pytest.mark.parametrize("fault", [Fault.ERROR_BEFORE, Fault.ERROR_AFTER])
@pytest.mark.parametrize("number", in_turn(range(64), PARTS))
def test_a_downgrade_that_fails_is_finished_by_the_next(tmp_path: Path, number: int, fault: Fault) -> None:
    table = written(tmp_path / "t", 9, "MERGE_ON_READ", INDEXED)
    indexes = Table(table.path).properties.metadata_partitions
    try:
        change_version(FaultyStorage(table.storage, FaultPlan(number, fault)), OPTIONS.read({}), 8, "downgrade")
    except StorageError:
        table.check()
        change_version(table.storage, OPTIONS.read({}), 8, "downgrade")
    assert Table(table.path).version == 8
    assert Table(table.path).properties.metadata_partitions == indexes
    table.check()
    Table(table.path).metadata.validate().raise_if_differs()
    check_all(table.storage)


def test_a_damaged_note_of_a_move_is_told(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 8, "COPY_ON_WRITE", SIMPLE_OPTIONS)
    table.storage.put(".hoodie/.aux/hudimeta/version_change.json", b'{"from": 9}')
    with pytest.raises(CorruptFileError, match=r"version_change\.json"):
        Table(table.path).upgrade()
    assert Table(table.path).version == 8


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_is_pending_keeps_the_version(tmp_path: Path, type: str) -> None:
    table = written(tmp_path / "t", 8, type, SIMPLE_OPTIONS)
    instant = table.session().times.next(Table(table.path).timeline.last_time)
    TimelineWriter(table.storage).create_requested(instant, Action.CLUSTERING, replacement_plan())  # an empty one would go
    before = list(Table(table.path).timeline)
    with pytest.raises(TableError, match=f"clustering {instant}.*Wait for their end"):
        Table(table.path).upgrade()
    assert Table(table.path).version == 8
    assert list(Table(table.path).timeline) == before, "nothing was compacted for an upgrade that does not come"


@pytest.mark.parametrize(("verb", "to", "named"), [("upgrade", 8, "9"), ("downgrade", 6, "Version 6 is not written here")])
def test_versions_that_no_verb_leads_to(tmp_path: Path, verb: str, to: int, named: str) -> None:
    table = written(tmp_path / "t", 9, "COPY_ON_WRITE", SIMPLE_OPTIONS)
    with pytest.raises(ConfigError, match=named):
        getattr(Table(table.path), verb)(to)


def test_what_version_8_cannot_say_stays_at_9(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 9, "COPY_ON_WRITE", SIMPLE_OPTIONS)
    update(table.storage, {"hoodie.table.ordering.fields": "ts,x"})
    before = (tmp_path / "t/.hoodie/hoodie.properties").read_bytes()
    with pytest.raises(UnsupportedFeature, match="several ordering fields"):
        change_version(table.storage, OPTIONS.read({}), 8, "downgrade")
    assert (tmp_path / "t/.hoodie/hoodie.properties").read_bytes() == before


SPELLING = "hoodie.write.complex.keygen.new.encoding"


def by_two_columns(path: Path, version: int, **options: str) -> Table:
    """A table with one column of keys and the generator COMPLEX."""
    schema = simple_rows([], 0).schema
    chosen = {"hoodie.write.table.version": str(version), **options}
    return Table.create(path, schema, key="id", partition_by=["part", "x"], ordering="ts", type="MERGE_ON_READ", options=chosen)


def test_bounds_that_version_8_cannot_hold_are_left_behind(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("wide", pa.decimal128(38, 10))])
    table = Table.create(tmp_path / "t", schema, key="id", options={"hoodie.write.table.version": "9"})
    table.insert([{"id": "a", "wide": Decimal(10) ** 27}])
    table.indexes.create("far", "column_stats", "wide", expression="identity")
    assert "expr_index_far is not built again" in str(table.downgrade())
    table = Table(tmp_path / "t")
    assert "expr_index_far" not in table.properties.metadata_partitions
    with pytest.raises(UnsupportedFeature, match=r"identity\(wide\), which is decimal128\(38, 10\)"):
        table.indexes.create("far", "column_stats", "wide", expression="identity")
    table.upsert([{"id": "b", "wide": Decimal(1)}])
    assert table.scan("wide > 5").to_table()["id"].to_pylist() == ["a"]


@pytest.mark.parametrize("stated", [True, False])
def test_keys_that_are_bare_values_stay_at_8(tmp_path: Path, stated: bool) -> None:
    """Version 9 spells them otherwise, so that an upsert would find none of them; Apache Hudi refuses it as well."""
    by_two_columns(tmp_path / "t", 8).upsert(simple_rows(range(4), 1))
    if not stated:
        update(open_storage(str(tmp_path / "t")), {SPELLING: None})
    before = (tmp_path / "t/.hoodie/hoodie.properties").read_bytes()
    for dry_run in (True, False):
        with pytest.raises(UnsupportedFeature, match="bare values of 'id'"):
            Table(tmp_path / "t").upgrade(dry_run=dry_run)
    assert (tmp_path / "t/.hoodie/hoodie.properties").read_bytes() == before
    Table(tmp_path / "t").upsert(simple_rows(range(4), 1))
    assert Table(tmp_path / "t").scan().count() == 4


@pytest.mark.parametrize("begun", [True, False])
def test_keys_with_the_name_of_their_column_go_up_and_down(tmp_path: Path, begun: bool) -> None:
    """Also those of a table that has none yet."""
    by_two_columns(tmp_path / "t", 8, **({SPELLING: "false"} if begun else {}))
    if begun:
        Table(tmp_path / "t").upsert(simple_rows(range(4), 1))
    for verb in ("upgrade", "downgrade"):
        getattr(Table(tmp_path / "t"), verb)()
        Table(tmp_path / "t").upsert(simple_rows(range(4), 1))
        keys = Table(tmp_path / "t").scan(columns=["_hoodie_record_key"]).to_table()["_hoodie_record_key"].to_pylist()
        assert sorted(keys) == [f"id:k000{n}" for n in range(4)]


def test_a_table_without_rows_spells_its_keys_at_8_as_at_9(tmp_path: Path) -> None:
    by_two_columns(tmp_path / "t", 9)
    Table(tmp_path / "t").downgrade()
    Table(tmp_path / "t").upsert(simple_rows(range(2), 1))
    keys = Table(tmp_path / "t").scan(columns=["_hoodie_record_key"]).to_table()["_hoodie_record_key"].to_pylist()
    assert sorted(keys) == ["id:k0000", "id:k0001"]


def test_a_custom_key_generator_of_version_6_needs_its_types() -> None:
    texts = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.partition.fields": "day,region",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    }
    option = "hoodie.datasource.write.partitionpath.field"
    with pytest.raises(ConfigError, match="day:SIMPLE,region:SIMPLE"):
        property_changes(TableProperties(texts), 8, {})
    changes = property_changes(TableProperties(texts), 8, {option: "day:TIMESTAMP, region:simple"})
    assert changes["hoodie.table.partition.fields"] == "day:TIMESTAMP,region:SIMPLE"


@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_table_that_was_moved_reads_on(tmp_path: Path, type: str) -> None:
    """A change of version leaves the instants: what the object had read of the metadata table was still believed."""
    rows = simple_rows(range(8), 1)
    options = {"hoodie.write.table.version": "9", "hoodie.metadata.index.bloom.filter.enable": "true"}
    Table.create(str(tmp_path / "t"), rows.schema, "id", type=type, options=options).upsert(rows)
    table = Table(str(tmp_path / "t"))
    assert table.scan("id = 'k0003'").to_table().num_rows == 1
    for move in (table.downgrade, table.upgrade, table.downgrade):
        move()
        assert table.scan("id = 'k0003'").to_table().num_rows == 1
        assert table.metadata.validate(deep=True).holds
