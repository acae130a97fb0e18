"""Hostile table folders of which something leads outside: plans, markers, properties, links, indexes, and metadata."""

from __future__ import annotations

import json
import os
import shutil
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
from hudimeta.table.properties_file import PROPERTIES_PATH
from hudimeta.timeline.clean_record import CleanPlan, encode_plan
from hudimeta.timeline.rollback_record import encode_rollback_plan
from hudimeta.types import Action
from tests.hostile.folders import DEAD, LATE, Folders, data_file, dead_write, newest, rewrite_commit, set_properties, timeline
from tests.hostile.rewriting import change_metadata, make_foreign, replaced
from tests.hostile.trial import PARTS

FOLDERS = Folders()


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
        dead_write(table).rmdir()
        partition = partition.format(victim=table.parent / "victim")
        plan = encode_rollback_plan(str(table), DEAD, Action.DELTA_COMMIT, {partition: ["canary", "victim/canary"]})
        (timeline(table) / f"{LATE}.rollback.requested").write_bytes(plan)
        (timeline(table) / f"{LATE}.rollback.inflight").write_bytes(b"")

    def _clean(table: Path, partition: str = _partition) -> None:
        partition = partition.format(victim=table.parent / "victim")
        plan = CleanPlan("KEEP_LATEST_COMMITS", None, {partition: ("canary",)}, (partition,), LATE)
        (timeline(table) / f"{LATE}.clean.requested").write_bytes(encode_plan(str(table), plan))
        (timeline(table) / f"{LATE}.clean.inflight").write_bytes(b"")

    def _markers(table: Path, partition: str = _partition) -> None:
        folder = dead_write(table)
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

        rewrite_commit(table, change)

    FOLDERS.add(f"a rollback plan with {_name}")(_rollback)
    FOLDERS.add(f"a clean plan with {_name}")(_clean)
    FOLDERS.add(f"a marker with {_name}")(_markers)
    FOLDERS.add(f"a commit with {_name}")(_commit)


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


@FOLDERS.add("a compaction plan that leads out")
def _(table: Path) -> None:
    (timeline(table) / f"{LATE}.compaction.requested").write_bytes(_compaction_plan_outside(table))


@FOLDERS.add("a log compaction plan that leads out")
def _(table: Path) -> None:
    (timeline(table) / f"{LATE}.logcompaction.requested").write_bytes(_compaction_plan_outside(table))


@FOLDERS.add("a clustering plan that leads out")
def _(table: Path) -> None:
    one = {"dataFilePath": "../victim/canary", "deltaFilePaths": ["../victim/canary"], "fileId": "canary"}
    slice = {**one, "partitionPath": "../victim", "bootstrapFilePath": str(table.parent / "victim" / "canary"), "version": 1}
    group = {"slices": [slice], "metrics": {}, "numOutputFileGroups": 1, "extraMetadata": {}, "version": 1}
    plan = {"inputGroups": [group], "strategy": None, "extraMetadata": {}, "version": 1, "preserveHoodieMetadata": True}
    requested = {"operationType": "CLUSTER", "clusteringPlan": plan, "extraMetadata": {}, "version": 1}
    (timeline(table) / f"{LATE}.clustering.requested").write_bytes(encode_container(REQUESTED_REPLACE_METADATA, [requested]))


@FOLDERS.add("a savepoint that names files outside")
def _(table: Path) -> None:
    saved = {"../victim": {"partitionPath": "../victim", "savepointDataFile": ["../victim/canary"]}}
    record = {"savepointedBy": "", "savepointedAt": 0, "comments": "", "partitionMetadata": saved, "version": 1}
    time = newest(table).name.partition("_")[0]
    for name in (f"{time}.savepoint.inflight", f"{time}_{LATE}.savepoint"):
        (timeline(table) / name).write_bytes(encode_container(SAVEPOINT_METADATA, [record]))


@FOLDERS.add("a restore that is pending")
def _(table: Path) -> None:
    plan = {"instantsToRollback": [{"commitTime": "../victim", "action": "deltacommit"}], "version": 2}
    (timeline(table) / f"{LATE}.restore.requested").write_bytes(encode_container(RESTORE_PLAN, [plan]))
    (timeline(table) / f"{LATE}.restore.inflight").write_bytes(b"")


@FOLDERS.add("a clean plan without fields")
def _(table: Path) -> None:
    schema = {"type": "record", "name": CLEANER_PLAN["name"], "fields": [{"name": "policy", "type": "string"}]}
    (timeline(table) / f"{LATE}.clean.requested").write_bytes(encode_container(schema, [{"policy": "x"}]))


@FOLDERS.add("a rollback plan without fields")
def _(table: Path) -> None:
    schema = {"type": "record", "name": "P", "fields": [{"name": "instantToRollback", "type": "string"}]}
    (timeline(table) / f"{LATE}.rollback.requested").write_bytes(encode_container(schema, [{"instantToRollback": "x"}]))


@FOLDERS.add("a replacement of groups outside")
def _(table: Path) -> None:
    (timeline(table) / f"{LATE}.clustering.requested").write_bytes(
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
        set_properties(table, **{key: value})

    FOLDERS.add(f"the property {_key.replace('__', '.')}")(_property)


@FOLDERS.add("an absolute timeline path")
def _(table: Path) -> None:
    set_properties(table, hoodie__timeline__path=str(table.parent / "x"))


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

    FOLDERS.add(f"a link for {_path}")(_link_folder)

for _what, _find in {
    "the properties": lambda table: table / PROPERTIES_PATH,
    "a base file": lambda table: data_file(table, ".parquet"),
    "a log file": lambda table: data_file(table, ".log."),
    "a commit": newest,
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

    FOLDERS.add(f"a link for {_what}")(_link_file)
    FOLDERS.add(f"a pipe for {_what}")(_pipe)


@FOLDERS.add("links that lead round")
def _(table: Path) -> None:
    shutil.rmtree(table / ".hoodie" / "metadata")
    set_properties(table, hoodie__table__metadata__partitions="")
    (table / "round").symlink_to(".")
    (table / "again").symlink_to(".")


@FOLDERS.add("an index outside")
def _(table: Path) -> None:
    entry = {"indexName": "../../../victim", "indexType": "secondary_index", "sourceFields": ["v"], "indexOptions": {}}
    (table / ".hoodie/.index_defs/index.json").write_text(json.dumps({"indexDefinitions": {"../../../victim": entry}}))
    set_properties(table, hoodie__table__metadata__partitions="column_stats,files,record_index,../../../victim")


@FOLDERS.add("a history that names files outside")
def _(table: Path) -> None:
    history = timeline(table) / "history"
    history.mkdir(exist_ok=True)
    (history / "_version_").write_text("1")
    (history / "manifest_1").write_text('{"files":[{"fileName":"../../../../victim/canary","fileLen":6}]}')


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

        FOLDERS.add(f"{_what} in {_partition}")(_records)
