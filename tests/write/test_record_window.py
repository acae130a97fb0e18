"""Tables with a record window: which keys are found, what is read for it, and that nothing but time depends on what is kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.config import OPTIONS
from hudimeta.errors import ConfigError, DuplicateKeys, IndexNotReady, TableError, UnsupportedFeature
from hudimeta.indexes.record_window.chains import slice_print
from hudimeta.indexes.record_window.content import all_keys
from hudimeta.indexes.record_window.folder import WindowFolder
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from hudimeta.types import Operation
from hudimeta.write.table_writer import prepare, write_prepared
from tests.write.windows import BOTH, FOLDER, SCHEMA, THREE, contents, create, rows


@BOTH
def test_a_key_is_known_in_all_days_of_the_window(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind)
    for day in range(1, 8):
        table.upsert(rows((f"k{day}", day, 1)))
    report = table.upsert(rows(("k5", 7, 2), ("k7", 7, 2), ("k4", 7, 2), ("new", 6, 2)))
    assert contents(tmp_path) == sorted(
        [*((f"k{day}", day, 1) for day in (1, 2, 3, 4, 6)), ("k4", 7, 2), ("k5", 5, 2), ("k7", 7, 2), ("new", 6, 2)]
    ), "k4 is of a day before the window: it is another row from now on"
    assert (report.looked_up, report.found) == (4, 2)
    assert report.index == "record window index: 4 keys looked up, 2 keys found (3 days, 3 file slices in it)"
    check_all(open_storage(tmp_path))


@BOTH
def test_an_older_row_is_found_in_its_own_partition(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind)
    for day in range(1, 8):
        table.upsert(rows((f"k{day}", day, 1)))
    report = table.upsert(rows(("k2", 2, 2), ("x", 2, 2), ("k6", 2, 2)))
    assert [row for row in contents(tmp_path) if row[2] == 2] == [("k2", 2, 2), ("k6", 6, 2), ("x", 2, 2)]
    assert "1 key columns read" in report.index
    assert "3 rows looked up in older files by bloom filters" in report.index, "k6 could be a row of day 2 as well"
    check_all(open_storage(tmp_path))


@BOTH
def test_rows_move_where_that_is_asked_for(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind, hudimeta_record_window_days="3", hoodie_record_index_update_partition_path="true")
    table.upsert(rows(("a", 5, 1), ("b", 6, 1)))
    report = table.upsert(rows(("a", 7, 2), ("b", 6, 2)))
    assert contents(tmp_path) == [("a", 7, 2), ("b", 6, 2)]
    assert report.moved == 1
    table.upsert(rows(("a", 5, 3)))
    assert contents(tmp_path) == [("a", 5, 3), ("b", 6, 2)]
    check_all(open_storage(tmp_path))


@BOTH
def test_deleted_keys_are_forgotten(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind)
    table.upsert(rows(("a", 5, 1), ("b", 5, 1), ("c", 6, 1)))
    assert table.delete(rows(("a", 7, 0), ("c", 6, 0))).found == 2
    report = table.upsert(rows(("a", 7, 2), ("c", 7, 2)))
    assert report.found == 0
    assert contents(tmp_path) == [("a", 7, 2), ("b", 5, 1), ("c", 7, 2)]


def test_rows_before_the_window_are_refused_where_that_is_said(tmp_path: Path) -> None:
    table = create(tmp_path, hudimeta_record_window_days="2", hudimeta_record_window_older="refuse")
    table.upsert(rows(("a", 5, 1), ("b", 6, 1)))
    with pytest.raises(ConfigError, match=r"rows of the window's 2 days, not of partition '2026-01-03' and 1 more"):
        table.upsert(rows(("c", 3, 1), ("d", 4, 1), ("e", 5, 1)))
    assert contents(tmp_path) == [("a", 5, 1), ("b", 6, 1)]
    check_all(open_storage(tmp_path))


@BOTH
def test_nothing_is_read_anew_while_we_write(tmp_path: Path, kind: str) -> None:
    """Neither after our writes of every kind nor after our services; and a look-up opens no data file."""
    table = create(tmp_path, kind)
    table.bulk_insert(rows(*((f"k{n}", 5 + n % 3, 1) for n in range(30))))
    table.insert(rows(("new", 7, 1)))
    table.delete(rows(("k1", 6, 0)))
    table.upsert(rows(("k2", 7, 2), ("k3", 5, 2)))
    if kind == "MERGE_ON_READ":
        table.compact()
        table.upsert(rows(("k5", 7, 3)))
    table.cluster()
    report = table.upsert(rows(("k4", 6, 4), ("k5", 7, 4)))
    assert report.index == "record window index: 2 keys looked up, 2 keys found (3 days, 3 file slices in it)"
    assert len(contents(tmp_path)) == 30
    assert table.metadata.validate().check("record_window").compared == 30
    assert table.indexes.validate(table.indexes.list()["name"].to_pylist()).holds
    absent = hudimeta.Table(tmp_path).delete(rows(("absent", 7, 0)))
    assert not [purpose for _, purpose in absent.requests if purpose == "data"]
    check_all(open_storage(tmp_path))


@BOTH
def test_what_others_did_is_read(tmp_path: Path, kind: str) -> None:
    """Writers that know nothing of it, a rollback and a restore: the slices that they changed are read, no others."""
    table = create(tmp_path, kind)
    for day in (5, 6, 7):
        table.upsert(rows((f"a{day}", day, 1), (f"b{day}", day, 1)))
    _others_write(tmp_path, table, rows(("c6", 6, 1), ("a6", 6, 2)))
    report = table.upsert(rows(("c6", 7, 2)))
    assert contents(tmp_path)[-1] == ("c6", 6, 2)
    assert "3 file slices in it, 1 of them read anew" in report.index
    table.restore(table.timeline.writes[2].time)
    assert [row for row in contents(tmp_path) if row[1] == 6] == [("a6", 6, 1), ("b6", 6, 1)]
    report = table.upsert(rows(("c6", 7, 3), ("b6", 7, 3)))
    assert report.found == 1
    assert ("c6", 7, 3) in contents(tmp_path)
    check_all(open_storage(tmp_path))


def _others_write(path: Path, table: hudimeta.Table, given: pa.Table) -> None:
    """A write after which the window is as if a writer had made it who does not know it."""
    kept = path.parent / f"{path.name} kept"
    shutil.copytree(path / FOLDER, kept)
    table.upsert(given)
    shutil.rmtree(path / FOLDER)
    shutil.move(kept, path / FOLDER)


@pytest.mark.parametrize("harm", ["manifest", "run", "no run", "no folder", "empty manifest"])
def test_a_damaged_window_is_made_anew(tmp_path: Path, harm: str) -> None:
    table = create(tmp_path)
    for day in (5, 6, 7):
        table.upsert(rows((f"a{day}", day, 1)))
    folder = tmp_path / FOLDER
    manifest = max(folder.glob("*.json"))
    if harm == "no folder":
        shutil.rmtree(folder)
    elif harm == "empty manifest":
        manifest.write_bytes(b"")
    elif harm == "manifest":
        manifest.write_bytes(manifest.read_bytes().replace(b"runs", b"nuns"))
    else:
        for run in folder.glob("*.run"):
            run.unlink() if harm == "no run" else run.write_bytes(b"\x00" + run.read_bytes()[1:])
    report = table.upsert(rows(("a5", 7, 2), ("a7", 6, 2)))
    assert contents(tmp_path) == [("a5", 5, 2), ("a6", 6, 1), ("a7", 7, 2)]
    assert "3 of them read anew" in report.index
    if harm != "no folder":
        assert "the record window " in report.index
        assert "made anew: " in report.index
    assert "anew" not in table.upsert(rows(("a5", 7, 3))).index
    check_all(open_storage(tmp_path))


@pytest.mark.rotation(2)
@BOTH
def test_many_commits_leave_few_runs(tmp_path: Path, kind: str) -> None:
    table = create(tmp_path, kind, hudimeta_record_window_days="3", hoodie_parquet_small_file_limit="0")
    for number in range(24):
        table.upsert(rows((f"k{number}", 1 + number // 8, number), (f"k{max(0, number - 1)}", 1 + number // 8, number)))
    files = [file.name for file in (tmp_path / FOLDER).iterdir()]
    manifests, runs = ([name for name in files if name.endswith(ending)] for ending in (".json", ".run"))
    named = max((tmp_path / FOLDER).glob("*.json")).read_text().count(".run")
    assert named <= 10, "merged on the way"
    assert len(manifests) <= 16 + 10, "those of before are removed by each merge"
    old = list((tmp_path / FOLDER).glob("*.run"))
    for file in old:
        os.utime(file, (1, 1))
    for number in range(24, 34):
        table.upsert(rows((f"k{number}", 4, number)))
    assert len(runs) > 10 >= len({file.name for file in old if file.exists()}), "gone some seconds after they were merged"
    assert len(contents(tmp_path)) == 34
    check_all(open_storage(tmp_path))


def test_days_of_event_time(tmp_path: Path) -> None:
    """A slice is in the window while its newest event is; of the others the rows' own partition is asked."""
    schema = pa.schema([SCHEMA.field(name) for name in ("id", "v", "ts")])
    options = {**THREE, "hudimeta.record.window.column": "ts", "hoodie.parquet.small.file.limit": "0"}
    table = hudimeta.Table.create(tmp_path, schema, key="id", options=options, name="t")
    for day in range(1, 8):
        table.upsert(rows((f"k{day}", day, 1)).select(schema.names))
    report = table.upsert(rows(("k6", 7, 2), ("k2", 7, 2), ("new", 7, 2)).select(schema.names))
    assert "3 days of ts, 3 file slices in it" in report.index
    assert "2 rows looked up in older files by bloom filters" in report.index
    found = hudimeta.Table(tmp_path).scan().to_table()
    assert sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == sorted(
        [*((f"k{day}", 1) for day in (1, 3, 4, 5, 7)), ("k2", 2), ("k6", 2), ("new", 2)]
    )
    check_all(open_storage(tmp_path))


def test_two_writers_that_add_one_key_on_two_days(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.upsert(rows(("a", 6, 1), ("b", 7, 1)))
    session = WriteSession(open_storage(tmp_path), OPTIONS.read(THREE))
    others = [rows(("x", 6, 1))]

    def make(files: Any) -> Any:
        prepared = prepare(files, session, Operation.UPSERT, rows(("x", 7, 2)))
        if others:
            table.upsert(others.pop())
        return prepared

    report = write_prepared(session, Operation.UPSERT, make)
    assert report.updated == 1, "tried again, it finds the row of the other"
    assert contents(tmp_path) == [("a", 6, 1), ("b", 7, 1), ("x", 6, 2)]
    check_all(open_storage(tmp_path))


@BOTH
def test_keys_that_others_added_to_the_same_file_group(tmp_path: Path, kind: str) -> None:
    """The write is put on top of theirs, of which the window does not hear, and knows nothing of their keys."""
    table = create(tmp_path, kind)
    table.upsert(rows(("a", 6, 1), ("b", 7, 1)))
    session = WriteSession(open_storage(tmp_path), OPTIONS.read(THREE))
    others = [rows(("theirs", 6, 1))]

    def make(files: Any) -> Any:
        prepared = prepare(files, session, Operation.UPSERT, rows(("a", 6, 2)))
        if others:
            _others_write(tmp_path, table, others.pop())
        return prepared

    write_prepared(session, Operation.UPSERT, make)
    check_all(open_storage(tmp_path))
    assert table.upsert(rows(("theirs", 7, 3))).found == 1
    assert contents(tmp_path) == [("a", 6, 2), ("b", 7, 1), ("theirs", 6, 3)]


def test_a_log_that_came_after_a_compaction_was_planned(tmp_path: Path) -> None:
    table = create(tmp_path, "MERGE_ON_READ", hudimeta_record_window_days="3", hudimeta_log_inserts="true")
    table.insert(rows(("a", 6, 1)))
    table.upsert(rows(("a", 6, 2)))
    planned = table.services.compaction.schedule()
    table.upsert(rows(("late", 6, 3)))
    table.services.compaction.execute(planned)
    assert table.upsert(rows(("late", 7, 4), ("a", 7, 4))).found == 2
    assert contents(tmp_path) == [("a", 6, 4), ("late", 6, 4)]
    check_all(open_storage(tmp_path))


def test_made_later_shown_and_dropped(tmp_path: Path) -> None:
    table = create(tmp_path, hudimeta_learn="true")
    table.insert(rows(("a", 5, 1), ("b", 6, 1), ("c", 7, 1)))
    with pytest.raises(IndexNotReady, match=r"t\.indexes\.create\(type='record_window'"):
        hudimeta.Table(tmp_path, {"hoodie.index.type": "RECORD_WINDOW"}).upsert(rows(("a", 7, 2)))
    report = table.indexes.create(type="record_window", options={"days": 2})
    assert str(report).startswith("record_window created: 2 records in 2 file groups")
    assert table.indexes.list().to_pylist()[-1] == {
        "name": "record_window",
        "type": "record_window",
        "columns": [],
        "expression": None,
    }
    with pytest.raises(TableError, match="already"):
        table.indexes.create(type="record_window", options={"days": 2})
    assert "2 days" in table.upsert(rows(("b", 7, 2))).index
    assert str(table.indexes.drop("record_window")).startswith("record_window dropped")
    assert not (tmp_path / FOLDER).exists()
    assert "simple index" in table.upsert(rows(("b", 7, 3))).index
    assert contents(tmp_path) == [("a", 5, 1), ("b", 6, 2), ("b", 7, 3), ("c", 7, 1)]
    with pytest.raises(ConfigError, match="record_window"):
        table.indexes.drop("record_window")


def test_refusals(tmp_path: Path) -> None:
    table = create(tmp_path / "a", hudimeta_learn="true")
    table.insert(rows(("a", 5, 1)))
    create_one = table.indexes.create
    with pytest.raises(ConfigError, match="how many days"):
        create_one(type="record_window")
    with pytest.raises(ConfigError, match="days, older"):
        create_one(type="record_window", options={"days": 3, "weeks": 2})
    with pytest.raises(ConfigError, match="a column of dates or timestamps"):
        create_one(type="record_window", columns="v", options={"days": 3})
    with pytest.raises(ConfigError, match="Leave one of them out"):
        create_one(type="record_window", columns="ts", options={"days": 3, "older": "refuse"})
    with pytest.raises(ConfigError, match="a table has one window"):
        create_one("mine", "record_window", options={"days": 3})
    table.indexes.create(type="record_index")
    with pytest.raises(TableError, match="which knows the keys of all days"):
        create_one(type="record_window", options={"days": 3})
    places = hudimeta.Table.create(tmp_path / "b", SCHEMA, key="id", partition_by="id", name="t")
    places.insert(rows(("north", 5, 1)))
    with pytest.raises(ConfigError, match="a table whose partition paths name days, not 'north'"):
        places.indexes.create(type="record_window", options={"days": 3})
    for more, error in (
        ({"hoodie.index.type": "BUCKET"}, UnsupportedFeature),
        ({"hoodie.metadata.record.index.enable": "true"}, ConfigError),
        ({"hoodie.populate.meta.fields": "false"}, UnsupportedFeature),
    ):
        with pytest.raises(error):
            create(tmp_path / "c", **{key.replace(".", "_"): value for key, value in {**THREE, **more}.items()})
        assert not (tmp_path / "c/.hoodie/hoodie.properties").exists()
    create(tmp_path / "d")
    with pytest.raises(ConfigError, match=r"hudimeta\.record\.window\.days.*what the table has: '3'"):
        hudimeta.Table(tmp_path / "d", {"hudimeta.record.window.days": "4"}).upsert(rows(("a", 5, 1)))


def test_duplicates_are_dropped_by_it(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(rows(("a", 5, 1), ("b", 7, 1)))
    dropping = hudimeta.Table(tmp_path, {"hoodie.datasource.write.insert.drop.duplicates": "true"})
    assert dropping.insert(rows(("a", 7, 2), ("c", 7, 2))).dropped_duplicates == 1
    refusing = hudimeta.Table(tmp_path, {"hoodie.datasource.insert.dup.policy": "fail"})
    with pytest.raises(DuplicateKeys):
        refusing.insert(rows(("a", 6, 3)))
    assert contents(tmp_path) == [("a", 5, 1), ("b", 7, 1), ("c", 7, 2)]


def test_validation_finds_what_is_wrong_in_it(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.insert(rows(("a", 6, 1), ("b", 6, 1), ("c", 7, 1)))
    (one,) = table.snapshot().key_files(["2026-01-06"])["2026-01-06"]
    folder = WindowFolder(open_storage(tmp_path))
    wrong = all_keys([(one.partition_path, one.file_id, slice_print(one.name, (), ()))], [pa.array(["a", "x", "y"])])
    folder.add(folder.manifest(), [folder.write(wrong)])
    report = table.metadata.validate(["record_window"])
    found = {str(difference) for difference in report.check("record_window").differences}
    assert "live keys that it lacks: 1 (b)" in found
    assert f"keys of no row: 2 (one more of 2026-01-06/{one.file_id}; one more of 2026-01-06/{one.file_id})" in found
    table.indexes.drop("record_window")
    with pytest.raises(ConfigError, match="record_window"):
        hudimeta.Table(tmp_path).metadata.validate(["record_window"])


def test_a_report_tells_where_the_window_could_not_be_told(tmp_path: Path) -> None:
    """Of writes and of services: the next look-up reads what they changed."""
    table = create(tmp_path, "MERGE_ON_READ")
    table.insert(rows(("a", 6, 1), ("b", 6, 1)))
    table.upsert(rows(("a", 6, 2)))
    max((tmp_path / FOLDER).glob("*.json")).write_bytes(b"{}")
    (compacted,) = table.compact()
    written = table.insert(rows(("c", 7, 1)))
    for report in (compacted, written):
        assert any("the record window hears of this write by the next one" in note for note in report.notes)
    assert "read anew" in table.upsert(rows(("b", 7, 3))).index
    assert contents(tmp_path) == [("a", 6, 2), ("b", 6, 3), ("c", 7, 1)]
    check_all(open_storage(tmp_path))
