"""Orphans, metafiles, damaged cleans, properties: what is wrong is named and put right, everything else stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.errors import HudiError, TableError
from hudimeta.services import repair
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation

KEPT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
LOST_LOCK = pytest.mark.filterwarnings("ignore:the upkeep of the metadata table is left to a later write")
LATER = "20991231235959999"
BETWEEN = "20200101000000000"


def written(path: Path, writes: int = 3, **more: str) -> ModelledTable:
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, **KEPT, **more})
    for ts in range(1, writes + 1):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
    return table


def session(table: ModelledTable, number: int | None = None) -> WriteSession:
    return WriteSession(FaultyStorage(table.storage, FaultPlan(number, Fault.ERROR_BEFORE)), table.options, engine=table.engine)


@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_orphans_are_listed_then_deleted(tmp_path: Path, type: str, metadata: str) -> None:
    given = {"hoodie.datasource.write.table.type": type, "hoodie.metadata.enable": metadata}
    table = written(tmp_path / "t", 6, **given)
    root, face = Path(table.path), Table(table.path, table.options.given)
    face.savepoint()
    writes = [i.time for i in face.timeline.writes]
    (root / f".hoodie/timeline/{LATER}.commit.requested").write_bytes(b"")
    face.archive()
    assert face.timeline.writes[0].time > writes[0], "some writes are archived"
    kept = {p for p in root.rglob("*") if p.is_file()}
    orphans = {
        f"p0/6f3c2c1e-0000-0000-0000-000000000000-0_0-7-0_{writes[-1]}.parquet": "its write was completed without it",
        f"p1/6f3c2c1e-0000-0000-0000-000000000001-0_0-7-0_{int(writes[-1]) + 1}.parquet": "no write of its instant",
        f"p1/.6f3c2c1e-0000-0000-0000-000000000001-0_{int(writes[-1]) + 1}.log.1_0-7-0": "no write of its instant",
        f"p0/6f3c2c1e-0000-0000-0000-000000000002-0_0-7-0_{writes[0]}.parquet": "its write was completed without it",
    }
    unknown = {
        f"p0/6f3c2c1e-0000-0000-0000-000000000003-0_0-7-0_{LATER}.parquet",
        f"p0/6f3c2c1e-0000-0000-0000-000000000004-0_0-7-0_{BETWEEN}.parquet",
    }
    for name in (*orphans, *unknown, "p0/notes.txt"):
        (root / name).write_bytes(b"x" * 10)
    found = repair.repair_orphans(session(table), dry_run=True)
    assert {one.path for one in found.findings} == set(orphans)
    assert all(one.why.startswith(orphans[one.path]) and one.size == 10 for one in found.findings)
    assert "2 files stay of whose writes too little is known" in str(found)
    assert str(found).startswith("would repair 4 files, 40 bytes")
    assert all((root / name).exists() for name in orphans)
    (root / f".hoodie/timeline/{LATER}.commit.requested").unlink()
    (root / f"p0/6f3c2c1e-0000-0000-0000-000000000003-0_0-7-0_{LATER}.parquet").unlink()
    assert str(face.repair.orphans(dry_run=False)).startswith("repaired 4 files, 40 bytes")
    assert not any((root / name).exists() for name in orphans)
    assert {p for p in kept if not p.exists()} <= {root / f".hoodie/timeline/{LATER}.commit.requested"}
    assert (root / "p0/notes.txt").exists()
    (root / f"p0/6f3c2c1e-0000-0000-0000-000000000004-0_0-7-0_{BETWEEN}.parquet").unlink()
    table.model.check(table.read())


@LOST_LOCK
def test_orphans_fail_and_go_on(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 2)
    root, last = Path(table.path), Table(table.path).timeline.writes[-1].time
    names = [f"p0/6f3c2c1e-0000-0000-0000-00000000000{n}-0_0-7-0_{last}.parquet" for n in range(3)]
    for name in names:
        (root / name).write_bytes(b"x")
    for number in range(8):
        try:
            repair.repair_orphans(session(table, number), dry_run=False)
        except HudiError:
            table.check()
    repair.repair_orphans(table.session(), dry_run=False)
    assert not any((root / name).exists() for name in names)
    check_all(table.storage)


def test_metafiles_are_written_with_the_first_write(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 2)
    root, face = Path(table.path), Table(table.path)
    first = face.timeline.writes[0].time
    (root / "p0/.hoodie_partition_metadata").unlink()
    (root / "p1/.hoodie_partition_metadata").write_bytes(b"#nothing\n")
    (root / "other").mkdir()
    (root / "other/notes.parquet").write_bytes(b"x")
    shown = face.repair.metafiles(dry_run=True)
    assert [one.path for one in shown.findings] == [f"p{n}/.hoodie_partition_metadata" for n in range(2)]
    assert "the partition has no metafile" in str(shown)
    assert not (root / "p0/.hoodie_partition_metadata").exists()
    with pytest.raises(HudiError):
        repair.repair_metafiles(session(table, 0), dry_run=False)
    face.repair.metafiles()
    for partition in ("p0", "p1"):
        text = (root / partition / ".hoodie_partition_metadata").read_text()
        assert f"commitTime={first}" in text
        assert "partitionDepth=1" in text
    assert not (root / "other/.hoodie_partition_metadata").exists()
    assert str(face.repair.metafiles()) == "nothing to repair"
    (root / "other/notes.parquet").unlink()
    check_all(table.storage)


def cleaned(path: Path) -> tuple[ModelledTable, Path]:
    """A table whose cleaning has deleted files, and its timeline's folder."""
    table = written(path, 4)
    assert Table(table.path, table.options.given).clean().deleted
    return table, Path(table.path) / ".hoodie/timeline"


@pytest.mark.parametrize("damage", [b"", b"Obj\x01broken"])
def test_a_pending_clean_without_a_sound_plan_is_removed(tmp_path: Path, damage: bytes) -> None:
    table, timeline = cleaned(tmp_path / "t")
    table.write(Operation.UPSERT, simple_rows(range(8), 9))
    (timeline / f"{LATER}.clean.requested").write_bytes(damage)
    (timeline / f"{LATER}.clean.inflight").write_bytes(b"")
    face = Table(table.path, table.options.given)
    shown = face.repair.cleans(dry_run=True)
    assert f"{LATER}.clean.requested" in str(shown)
    assert "the next clean plans anew" in str(shown)
    for number in range(5):
        try:
            repair.repair_cleans(session(table, number), dry_run=False)
        except HudiError:
            table.model.check(table.read())
    face.repair.cleans()
    assert not list(timeline.glob(f"{LATER}*"))
    assert face.clean().deleted
    table.model.check(table.read())
    check_all(table.storage)


@pytest.mark.parametrize("plan_too", [False, True])
def test_a_damaged_record_of_a_clean_is_written_anew(tmp_path: Path, plan_too: bool) -> None:
    table, timeline = cleaned(tmp_path / "t")
    (record,) = timeline.glob("*_*.clean")
    record.write_bytes(b"")
    if plan_too:
        next(timeline.glob("*.clean.requested")).write_bytes(b"")
    face = Table(table.path, table.options.given)
    shown = face.repair.cleans(dry_run=True)
    assert ("from nothing" if plan_too else "from its plan") in str(shown)
    face.repair.cleans()
    assert str(face.repair.cleans()) == "nothing to repair"
    for ts in range(10, 13):
        table.write(Operation.UPSERT, simple_rows(range(8), ts))
    assert face.clean().deleted
    table.model.check(table.read())
    face.metadata.validate().raise_if_differs()


def test_properties_come_back_out_of_their_backup(tmp_path: Path) -> None:
    table = written(tmp_path / "t", 1)
    file = Path(table.path) / ".hoodie/hoodie.properties"
    backup = file.with_name("hoodie.properties.backup")
    sound = file.read_bytes()
    assert str(Table(table.path).repair.properties()) == "nothing to repair"
    backup.write_bytes(sound)
    file.write_bytes(sound[: len(sound) // 2])
    shown = Table(table.path).repair.properties(dry_run=True)
    assert "written anew from .hoodie/hoodie.properties.backup" in str(shown)
    assert backup.exists()
    before = dict(Table(table.path).properties)
    for number in range(5):
        try:
            repair.repair_properties(session(table, number), dry_run=False)
        except HudiError:
            assert dict(Table(table.path).properties) == before
    Table(table.path).repair.properties()
    assert not backup.exists()
    assert dict(Table(table.path).properties) == before
    backup.write_bytes(sound)
    assert "a writer that died left it" in str(Table(table.path).repair.properties())
    assert not backup.exists()
    file.write_bytes(b"")
    with pytest.raises(TableError, match="empty or cut short"):
        Table(table.path)
