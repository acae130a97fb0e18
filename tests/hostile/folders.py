"""Hostile table folders: each function changes a sound table so that something of it leads outside, or takes endless memory."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudimeta.formats.avro.container import encode_container
from hudimeta.formats.avro.schemas import (
    CLEANER_PLAN,
    COMPACTION_PLAN,
    REQUESTED_REPLACE_METADATA,
    RESTORE_PLAN,
    SAVEPOINT_METADATA,
)
from hudimeta.formats.parquet.thrift import Fields, decode_struct, encode_struct
from hudimeta.table.properties_file import PROPERTIES_PATH
from hudimeta.timeline.clean_record import CleanPlan, encode_plan
from hudimeta.timeline.rollback_record import encode_rollback_plan
from hudimeta.types import Action
from tests.hostile.rewriting import change_container, change_metadata, make_foreign, replaced
from tests.hostile.trial import PARTS

Spoil = Callable[[Path], None]
"""Changes the table at a path; `victim` and `x` lie beside it."""

LATE = "20990101000000000"
DEAD = "20990101000000001"
FOLDERS: dict[str, Spoil] = {}


def _folder(name: str) -> Callable[[Spoil], Spoil]:
    def add(spoil: Spoil) -> Spoil:
        assert name not in FOLDERS
        FOLDERS[name] = spoil
        return spoil

    return add


def _timeline(table: Path) -> Path:
    return table / ".hoodie" / "timeline"


def _set(table: Path, **values: str) -> None:
    """Properties as somebody else may leave them: without our seal."""
    path = table / PROPERTIES_PATH
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    given = {key.replace("__", "."): value for key, value in values.items()}
    kept = [line for line in lines if line.partition("=")[0] not in given]
    path.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in given.items()), ""]))


def _dead_write(table: Path) -> Path:
    """A write that died, whose markers are still to come."""
    for state in ("requested", "inflight"):
        (_timeline(table) / f"{DEAD}.deltacommit.{state}").write_bytes(b"")
    folder = table / ".hoodie" / ".temp" / DEAD
    folder.mkdir(parents=True)
    return folder


def _newest(table: Path, ending: str = ".deltacommit") -> Path:
    return max(p for p in _timeline(table).iterdir() if p.name.endswith(ending))


def _rewrite_commit(table: Path, change: Callable[[dict[str, Any]], None]) -> None:
    change_container(_newest(table), change)


# Plans and markers

for _name, _partition in {
    "the folder above": "..",
    "a folder beside": "../victim",
    "an absolute folder": "/{victim}",
    "round about": "a/../../victim",
    "an encoded folder": "%2e%2e/victim",
    "an empty segment": "a//../../victim",
}.items():

    def _rollback(table: Path, partition: str = _partition) -> None:
        _dead_write(table).rmdir()
        partition = partition.format(victim=table.parent / "victim")
        plan = encode_rollback_plan(str(table), DEAD, Action.DELTA_COMMIT, {partition: ["canary", "victim/canary"]})
        (_timeline(table) / f"{LATE}.rollback.requested").write_bytes(plan)
        (_timeline(table) / f"{LATE}.rollback.inflight").write_bytes(b"")

    def _clean(table: Path, partition: str = _partition) -> None:
        partition = partition.format(victim=table.parent / "victim")
        plan = CleanPlan("KEEP_LATEST_COMMITS", None, {partition: ("canary",)}, (partition,), LATE)
        (_timeline(table) / f"{LATE}.clean.requested").write_bytes(encode_plan(str(table), plan))
        (_timeline(table) / f"{LATE}.clean.inflight").write_bytes(b"")

    def _markers(table: Path, partition: str = _partition) -> None:
        folder = _dead_write(table)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        partition = partition.format(victim=table.parent / "victim")
        (folder / "MARKERS0").write_text(f"{partition}/canary.marker.CREATE\n")

    def _commit(table: Path, partition: str = _partition) -> None:
        partition = partition.format(victim=table.parent / "victim")

        def change(record: dict[str, Any]) -> None:
            stats = next(iter(record["partitionToWriteStats"].values()))
            for stat in stats:
                stat["partitionPath"], stat["path"] = partition, f"{partition}/{stat['path'].rpartition('/')[2]}"
            record["partitionToWriteStats"][partition] = stats

        _rewrite_commit(table, change)

    _folder(f"a rollback plan with {_name}")(_rollback)
    _folder(f"a clean plan with {_name}")(_clean)
    _folder(f"a marker with {_name}")(_markers)
    _folder(f"a commit with {_name}")(_commit)


def _compaction_plan_outside(table: Path) -> bytes:
    operation = {
        "baseInstantTime": "20260101000000000",
        "deltaFilePaths": ["../../victim/canary"],
        "dataFilePath": "../victim/canary",
        "fileId": "canary",
        "partitionPath": "../victim",
        "metrics": {},
        "bootstrapFilePath": str(table.parent / "victim" / "canary"),
    }
    return encode_container(COMPACTION_PLAN, [{"operations": [operation], "extraMetadata": None, "version": 2}])


@_folder("a compaction plan that leads out")
def _(table: Path) -> None:
    (_timeline(table) / f"{LATE}.compaction.requested").write_bytes(_compaction_plan_outside(table))


@_folder("a log compaction plan that leads out")
def _(table: Path) -> None:
    (_timeline(table) / f"{LATE}.logcompaction.requested").write_bytes(_compaction_plan_outside(table))


@_folder("a clustering plan that leads out")
def _(table: Path) -> None:
    one = {"dataFilePath": "../victim/canary", "deltaFilePaths": ["../victim/canary"], "fileId": "canary"}
    slice = {**one, "partitionPath": "../victim", "bootstrapFilePath": str(table.parent / "victim" / "canary"), "version": 1}
    group = {"slices": [slice], "metrics": {}, "numOutputFileGroups": 1, "extraMetadata": {}, "version": 1}
    plan = {"inputGroups": [group], "strategy": None, "extraMetadata": {}, "version": 1, "preserveHoodieMetadata": True}
    requested = {"operationType": "CLUSTER", "clusteringPlan": plan, "extraMetadata": {}, "version": 1}
    (_timeline(table) / f"{LATE}.clustering.requested").write_bytes(encode_container(REQUESTED_REPLACE_METADATA, [requested]))


@_folder("a savepoint that names files outside")
def _(table: Path) -> None:
    saved = {"../victim": {"partitionPath": "../victim", "savepointDataFile": ["../victim/canary"]}}
    record = {"savepointedBy": "", "savepointedAt": 0, "comments": "", "partitionMetadata": saved, "version": 1}
    time = _newest(table).name.partition("_")[0]
    for name in (f"{time}.savepoint.inflight", f"{time}_{LATE}.savepoint"):
        (_timeline(table) / name).write_bytes(encode_container(SAVEPOINT_METADATA, [record]))


@_folder("a restore that is pending")
def _(table: Path) -> None:
    plan = {"instantsToRollback": [{"commitTime": "../victim", "action": "deltacommit"}], "version": 2}
    (_timeline(table) / f"{LATE}.restore.requested").write_bytes(encode_container(RESTORE_PLAN, [plan]))
    (_timeline(table) / f"{LATE}.restore.inflight").write_bytes(b"")


@_folder("a clean plan without fields")
def _(table: Path) -> None:
    schema = {"type": "record", "name": CLEANER_PLAN["name"], "fields": [{"name": "policy", "type": "string"}]}
    (_timeline(table) / f"{LATE}.clean.requested").write_bytes(encode_container(schema, [{"policy": "x"}]))


@_folder("a rollback plan without fields")
def _(table: Path) -> None:
    schema = {"type": "record", "name": "P", "fields": [{"name": "instantToRollback", "type": "string"}]}
    (_timeline(table) / f"{LATE}.rollback.requested").write_bytes(encode_container(schema, [{"instantToRollback": "x"}]))


@_folder("a replacement of groups outside")
def _(table: Path) -> None:
    (_timeline(table) / f"{LATE}.clustering.requested").write_bytes(
        encode_container(REQUESTED_REPLACE_METADATA, [{"operationType": "CLUSTER", "clusteringPlan": None}])
    )


# Properties

for _key, _value in {
    "hoodie__timeline__path": "../../x",
    "hoodie__timeline__history__path": "../../../x",
    "hoodie__table__index__defs__path": "../x/index.json",
    "hoodie__table__metadata__partitions": "files,../../../victim",
    "hoodie__table__partition__fields": "../victim",
    "hoodie__table__recordkey__fields": "../victim\\n",
    "hoodie__bootstrap__base__path": "../victim",
    "hoodie__table__base__file__format": "../victim",
    "hoodie__table__create__schema": "[" * 50_000,
    "hoodie__table__name": "../victim",
}.items():

    def _property(table: Path, key: str = _key, value: str = _value) -> None:
        _set(table, **{key: value})

    _folder(f"the property {_key.replace('__', '.')}")(_property)


@_folder("an absolute timeline path")
def _(table: Path) -> None:
    _set(table, hoodie__timeline__path=str(table.parent / "x"))


@_folder("properties of many keys")
def _(table: Path) -> None:
    with (table / PROPERTIES_PATH).open("a") as file:
        file.writelines(f"k{i}={'v' * 80}\n" for i in range(30_000))


@_folder("properties of a gigabyte")
def _(table: Path) -> None:
    os.truncate(table / PROPERTIES_PATH, 1 << 30)


# Links and what is no file

for _path in (
    *(".hoodie", ".hoodie/timeline", ".hoodie/metadata", ".hoodie/metadata/files", ".hoodie/.temp", ".hoodie/.locks"),
    *(".hoodie/.heartbeat", ".hoodie/.schema", ".hoodie/.index_defs", ".hoodie/timeline/history", PARTS[0]),
):

    def _link_folder(table: Path, path: str = _path) -> None:
        target = table.parent / "victim" / "folder"
        here = table / path
        if here.exists():
            shutil.move(here, target)
        else:
            target.mkdir()
            (target / "canary").write_bytes(b"canary")
        here.symlink_to(target)

    _folder(f"a link for {_path}")(_link_folder)


def _data_file(table: Path, ending: str) -> Path:
    return next(p for p in sorted((table / PARTS[0]).iterdir()) if p.name.endswith(ending) or ending in p.name)


for _what, _find in {
    "the properties": lambda table: table / PROPERTIES_PATH,
    "a base file": lambda table: _data_file(table, ".parquet"),
    "a log file": lambda table: _data_file(table, ".log."),
    "a commit": _newest,
    "the lock": lambda table: table / ".hoodie/.locks/table_lock.json",
}.items():

    def _link_file(table: Path, find: Callable[[Path], Path] = _find) -> None:
        target = table.parent / "victim" / "linked"
        here = find(table)
        shutil.move(here, target)
        here.symlink_to(target)

    def _pipe(table: Path, find: Callable[[Path], Path] = _find) -> None:
        here = find(table)
        here.unlink()
        os.mkfifo(here)

    _folder(f"a link for {_what}")(_link_file)
    _folder(f"a pipe for {_what}")(_pipe)


@_folder("links that lead round")
def _(table: Path) -> None:
    shutil.rmtree(table / ".hoodie" / "metadata")
    _set(table, hoodie__table__metadata__partitions="")
    (table / "round").symlink_to(".")
    (table / "again").symlink_to(".")


# Bombs and endless counts


def _zeros(size: int, wbits: int) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


def _varint(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@_folder("a commit of a deflated gigabyte")
def _(table: Path) -> None:
    text = json.dumps({"type": "record", "name": "HoodieCommitMetadata", "fields": [{"name": "a", "type": "bytes"}]}).encode()
    block = _zeros(1 << 30, -15)
    head = b"Obj\x01" + _varint(2) + b"\x16avro.schema" + _varint(len(text)) + text + b"\x14avro.codec\x0edeflate\x00"
    sync = bytes(16)
    _newest(table).write_bytes(head + sync + _varint(1) + _varint(len(block)) + block + sync)


@_folder("a commit with a schema of endless columns")
def _(table: Path) -> None:
    kind: object = "int"
    for i in range(40):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": "int" if i == 0 else f"R{i - 1}"}]
        kind = {"type": "record", "name": f"R{i}", "fields": fields}
    _rewrite_commit(table, lambda record: record["extraMetadata"].update(schema=json.dumps(kind)))


@_folder("a commit with a schema of endless depth")
def _(table: Path) -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":' * 20_000
    _rewrite_commit(table, lambda record: record["extraMetadata"].update(schema=text))


@_folder("a commit with endless groups of the metadata table")
def _(table: Path) -> None:
    def change(record: dict[str, Any]) -> None:
        for key in record["extraMetadata"]:
            if key.startswith("hudimeta."):
                record["extraMetadata"][key] = '{"files":1000000000,"column_stats":1e999,"record_index":-5}'

    _rewrite_commit(table, change)


@_folder("a commit of brackets")
def _(table: Path) -> None:
    _newest(table).write_bytes(b"[" * 1_000_000)


@_folder("a commit of an endless list")
def _(table: Path) -> None:
    data = _newest(table).read_bytes()
    head = data[: data.index(data[-16:]) + 16]
    block = b"\x02\x02a\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    _newest(table).write_bytes(head + _varint(1) + _varint(len(block)) + block + data[-16:])


@_folder("index definitions of brackets")
def _(table: Path) -> None:
    (table / ".hoodie/.index_defs/index.json").write_text('{"indexDefinitions":' * 100_000)


@_folder("an index outside")
def _(table: Path) -> None:
    entry = {"indexName": "../../../victim", "indexType": "secondary_index", "sourceFields": ["v"], "indexOptions": {}}
    (table / ".hoodie/.index_defs/index.json").write_text(json.dumps({"indexDefinitions": {"../../../victim": entry}}))
    _set(table, hoodie__table__metadata__partitions="column_stats,files,record_index,../../../victim")


@_folder("a history that names files outside")
def _(table: Path) -> None:
    history = _timeline(table) / "history"
    history.mkdir(exist_ok=True)
    (history / "_version_").write_text("1")
    (history / "manifest_1").write_text('{"files":[{"fileName":"../../../../victim/canary","fileLen":6}]}')


@_folder("a history of an endless version")
def _(table: Path) -> None:
    history = _timeline(table) / "history"
    history.mkdir(exist_ok=True)
    (history / "_version_").write_text("9" * 10_000)


@_folder("a lock of brackets")
def _(table: Path) -> None:
    (table / ".hoodie/.locks/table_lock.json").write_text("[" * 100_000)


@_folder("a log block of endless length")
def _(table: Path) -> None:
    path = _data_file(table, ".log.")
    data = bytearray(path.read_bytes())
    struct.pack_into(">q", data, 6, 1 << 62)
    path.write_bytes(data)


def _refooted(table: Path, change: Callable[[Fields], None]) -> None:
    """Change the footer of a base file."""
    path = _data_file(table, ".parquet")
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    fields, _ = decode_struct(data[start:-8])
    change(fields)
    footer = encode_struct(fields)
    path.write_bytes(data[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1")


@_folder("a Parquet footer of endless rows")
def _(table: Path) -> None:
    def change(fields: Fields) -> None:
        fields[3] = (fields[3][0], 1 << 60)
        for group in fields[4][1].values:
            group[3] = (group[3][0], 1 << 60)

    _refooted(table, change)


@_folder("a Parquet footer of endless depth")
def _(table: Path) -> None:
    def change(fields: Fields) -> None:
        schema = fields[2][1].values
        schema[1:1] = [{3: (5, 0), 4: (8, b"a"), 5: (5, 1)} for _ in range(50_000)]

    _refooted(table, change)


@_folder("a Parquet footer of endless pages")
def _(table: Path) -> None:
    def change(fields: Fields) -> None:
        for group in fields[4][1].values:
            for column in group[1][1].values:
                column[3][1][6], column[3][1][7] = (6, 1 << 40), (6, 1 << 40)

    _refooted(table, change)


@_folder("names with control characters")
def _(table: Path) -> None:
    for name in ("new\nline", "tab\t", "\x1b[31mred", "\u202eright to left", "'quote\"", "back\\slash", "a=b:c"):
        (table / PARTS[0] / name).write_bytes(b"x")
        (table / name).mkdir()
        (table / name / ".hoodie_partition_metadata").write_bytes(b"commitTime=0\npartitionDepth=1\n")


@_folder("names that are no text")
def _(table: Path) -> None:
    with open(os.fsencode(table / PARTS[0]) + b"/\xff\xfe", "wb"):
        pass


@_folder("instants of odd names")
def _(table: Path) -> None:
    for name in ("99999999999999999_99999999999999999.deltacommit", f"{'9' * 200}.commit.requested", "..commit", "\n.commit"):
        (_timeline(table) / name).write_bytes(b"")


@_folder("a metadata HFile of zeros")
def _(table: Path) -> None:
    for path in (table / ".hoodie/metadata").rglob("*.hfile"):
        data = path.read_bytes()
        path.write_bytes(re.sub(rb"DATABLK\*........", b"DATABLK*\x7f\xff\xff\xff\x7f\xff\xff\xff", data, flags=re.DOTALL))


# Records of the metadata table

for _what, _texts in {
    "a partition above": ("aaaaaaaaa", "../victim"),
    "an absolute partition": ("aaaaaaaaa", "/../../.."),
    "an encoded partition": ("aaaaaaaaa", "%2e%2e/vv"),
    "a file in another folder": (".parquet", "/../../x"),
    "another ending": (".parquet", ".victims"),
}.items():
    for _partition in ("files", "record_index", "column_stats"):

        def _records(table: Path, texts: tuple[str, str] = _texts, partition: str = _partition) -> None:
            make_foreign(table)
            change_metadata(table / ".hoodie/metadata" / partition, replaced(*texts))

        _folder(f"{_what} in {_partition}")(_records)
