"""New tables: what is on storage afterwards, for us and for Apache Hudi."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudimeta.errors import ConfigError, HudiError, TableError, UnsupportedTableVersion
from hudimeta.formats.properties import decode_properties, encode_properties
from hudimeta.storage import open_storage
from hudimeta.table import properties as table_properties
from hudimeta.table.create import FOLDERS, NewTable, create_table_layout
from hudimeta.table.key_generator import KeyGeneratorType
from hudimeta.table.properties import TableProperties
from hudimeta.types import MergeMode, TableType

VERSION_8 = {
    "hoodie.table.name": "t1",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "8",
    "hoodie.table.initial.version": "8",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "archived",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.keygenerator.type": "NON_PARTITION",
    "hoodie.table.precombine.field": "ts",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.table.timeline.timezone": "UTC",
}
"""The set that Apache Hudi 1.0.2 and 1.2.0 and hudi-rs read, and that the former write on."""


def test_a_table_of_version_8() -> None:
    made = NewTable(name="t1", type=TableType.MERGE_ON_READ, record_keys=["id"], ordering_fields=["ts"]).properties()
    assert dict(made) == VERSION_8


def test_a_table_of_version_9() -> None:
    made = NewTable(
        name="t1", type=TableType.MERGE_ON_READ, version=9, record_keys=["id"], ordering_fields=["ts", "n"]
    ).properties()
    expected = {k: v for k, v in VERSION_8.items() if k.split(".")[-1] not in ("field", "id", "class")}
    assert dict(made) == {
        **expected,
        "hoodie.table.version": "9",
        "hoodie.table.initial.version": "9",
        "hoodie.table.ordering.fields": "ts,n",
        "hoodie.table.format": "native",
    }


def test_the_folder_of_a_new_table(tmp_path: Path) -> None:
    storage = open_storage(tmp_path / "deep" / "table")
    made = create_table_layout(storage, NewTable(name="t1", record_keys=["id"], database="db").properties())
    root = tmp_path / "deep" / "table"
    assert {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()} == {".hoodie/hoodie.properties"}
    assert all((root / folder).is_dir() for folder in FOLDERS)
    assert table_properties.load(storage) == made
    assert made.checksum == made.right_checksum
    assert made.load_timeline(storage).instants == ()
    text = (root / ".hoodie/hoodie.properties").read_text()
    assert text.startswith("#Properties saved on 20")
    assert decode_properties(text.encode()) == dict(made)


def test_a_table_is_never_created_over_another(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    first = create_table_layout(storage, NewTable(name="first").properties())
    with pytest.raises(TableError, match="already"):
        create_table_layout(storage, NewTable(name="second").properties())
    assert table_properties.load(storage) == first


def test_of_many_creators_one_succeeds(tmp_path: Path) -> None:
    def create(n: int) -> bool:
        try:
            create_table_layout(open_storage(tmp_path), NewTable(name=f"t{n}").properties())
        except TableError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(16))) == 1


@pytest.mark.parametrize(
    ("keys", "partitions", "expected"),
    [
        (["id"], [], KeyGeneratorType.NON_PARTITION),
        (["a", "b"], [], KeyGeneratorType.NON_PARTITION),
        (["id"], ["p"], KeyGeneratorType.SIMPLE),
        ([], ["p"], KeyGeneratorType.SIMPLE),
        (["a", "b"], ["p"], KeyGeneratorType.COMPLEX),
        (["id"], ["p", "q"], KeyGeneratorType.COMPLEX),
    ],
)
def test_the_key_generator_follows_the_fields(keys: list[str], partitions: list[str], expected: KeyGeneratorType) -> None:
    assert NewTable(name="t", record_keys=keys, partition_fields=partitions).properties().keygen is expected


def test_what_a_new_table_cannot_be() -> None:
    with pytest.raises(ConfigError, match="a name"):
        NewTable(name=" ").properties()
    with pytest.raises(ConfigError, match="8 or 9"):
        NewTable(name="t", version=6).properties()
    with pytest.raises(ConfigError, match="Several need version 9"):
        NewTable(name="t", ordering_fields=["a", "b"]).properties()
    with pytest.raises(ConfigError, match="UTC or LOCAL"):
        NewTable(name="t", timezone="CET").properties()
    with pytest.raises(UnsupportedTableVersion):
        create_table_layout(
            open_storage("/nowhere"), {**VERSION_8, "hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}
        )


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(lambda text: bool(text.strip()))
fields = st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), max_size=3, unique=True)


@given(
    name=names,
    database=st.text(max_size=10),
    kind=st.sampled_from(TableType),
    version=st.sampled_from([8, 9]),
    keys=fields,
    partitions=fields,
    ordering=fields,
    mode=st.sampled_from([None, MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING]),
    hive_style=st.booleans(),
)
def test_what_was_asked_for_is_what_is_read(
    name: str,
    database: str,
    kind: TableType,
    version: int,
    keys: list[str],
    partitions: list[str],
    ordering: list[str],
    mode: MergeMode | None,
    hive_style: bool,
) -> None:
    try:
        made = NewTable(
            name=name,
            type=kind,
            version=version,
            record_keys=keys,
            partition_fields=partitions,
            ordering_fields=ordering,
            merge_mode=mode,
            database=database,
            hive_style=hive_style,
        ).properties()
    except HudiError as error:
        refusal = error
    else:
        read = TableProperties(decode_properties(encode_properties(made)))
        assert (read.name, read.database, read.type, read.version) == (name.strip(), database, kind, version)
        assert (list(read.record_keys), list(read.partition_fields)) == (keys, partitions)
        assert (list(read.ordering_fields), read.hive_style) == (ordering, hive_style)
        assert read.merge_mode is (mode or (MergeMode.EVENT_TIME_ORDERING if ordering else MergeMode.COMMIT_TIME_ORDERING))
        return
    assert version == 8
    assert len(ordering) > 1
    assert "Several need version 9" in str(refusal)
