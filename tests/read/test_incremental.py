"""Incremental reads: which commits lie in a range, and the rows that they left."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ConfigError, TableError
from hudimeta.formats.avro.container import sealed_container
from hudimeta.read.split import read_split
from hudimeta.types import Instant
from tests.conftest import Unpack

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
BY_HAND = {
    "hoodie.table.name": "t",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def create(path: Path, kind: str, **options: str) -> hudimeta.Table:
    given = {**BY_HAND, **options}
    return hudimeta.Table.create(
        str(path / "t"), SCHEMA, key="id", partition_by=["part"], ordering=["ts"], type=kind, options=given
    )


def put(table: hudimeta.Table, ids: Iterable[str], value: str, ts: int, part: str = "p") -> Instant:
    rows = [{"id": one, "part": part, "ts": ts, "v": value} for one in ids]
    table.upsert(pa.Table.from_pylist(rows, SCHEMA))
    return table.timeline.writes[-1]


def changed(table: hudimeta.Table, begin: str, end: str | None = None) -> dict[str, str]:
    rows = table.scan(query_type="incremental", begin=begin, end=end, columns=["id", "v"]).to_table().to_pylist()
    return {row["id"]: row["v"] for row in rows}


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_that_ends_before_today_begins_in_the_archive(kind: str, tmp_path: Path) -> None:
    """The rows are those of the end of the range, also where later commits have changed them."""
    table = create(tmp_path, kind)
    ends = [put(table, [f"k{number}"], "then", number).completed_at for number in range(5)]
    put(table, ["k1", "k4"], "later", 9)
    wanted = {f"k{number}": "then" for number in range(5)}
    assert changed(table, "earliest", ends[-1]) == wanted
    if kind == "MERGE_ON_READ":
        table.compact()
    assert table.archive().archived
    assert changed(table, "earliest", ends[-1]) == wanted
    del wanted["k0"]
    assert changed(table, ends[0], ends[-1]) == wanted, "an archived beginning is excluded as well"


def test_a_compaction_that_ends_behind_the_newest_write_is_no_change(tmp_path: Path) -> None:
    """Planned before writes that cleaning has let go of meanwhile, and run after them."""
    table = create(tmp_path, "MERGE_ON_READ", **{"hoodie.clean.commits.retained": "1"})
    for number in range(4):
        put(table, ["other"], "early", number, part="q")
        table.compact()
    put(table, ["k0"], "first", 0)
    put(table, ["k0"], "second", 1)
    assert table.schedule_compaction()
    for number in range(3, 6):
        newest = put(table, ["k0"], "later", number)
    assert table.clean().deleted
    table.compact()
    assert newest.completion is not None
    planned, _ = table.timeline.writes_between(newest.completion)  # the other one was planned after the writes
    assert planned.time < newest.time
    assert changed(table, newest.completion, planned.completion) == {}


def test_commits_archived_behind_a_savepoint_are_in_the_range(tmp_path: Path) -> None:
    """Archiving steps over savepointed writes, so that the oldest active one does not tell what is archived."""
    table = create(tmp_path, "COPY_ON_WRITE")
    first = put(table, ["k0"], "a", 0)
    for number in range(1, 6):
        put(table, [f"k{number}"], "a", number)
    timeline = tmp_path / "t/.hoodie/timeline"
    kept = shutil.copytree(timeline, tmp_path / "kept", ignore=shutil.ignore_patterns("history"))
    assert table.archive().archived
    for file in kept.glob(f"{first.time}*"):
        shutil.copy(file, timeline / file.name)
    (timeline / f"{first.time}_{first.completion}.savepoint").write_bytes(b"")
    assert first.completion is not None
    assert changed(hudimeta.Table(table.path), first.completion) == {f"k{number}": "a" for number in range(1, 6)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("archives", [False, True])
def test_a_range_that_ends_at_a_savepoint_is_read_whatever_was_cleaned_since(kind: str, archives: bool, tmp_path: Path) -> None:
    """Before a restore to it, and after one, when the last clean speaks of writes that are gone."""
    table = create(tmp_path, kind, **{"hoodie.clean.commits.retained": "1", "hoodie.compact.inline.max.delta.commits": "1"})

    def go_on(numbers: Iterable[int]) -> list[Instant]:
        made = []
        for number in numbers:
            made.append(put(table, [f"k{number}", "all"], f"v{number}", number))
            if kind == "MERGE_ON_READ" and number % 3 == 1:
                table.compact()
            table.clean()
            if archives:
                table.archive()
        return made

    first, *_, before, pinned = go_on(range(6))
    table.savepoint(pinned.time)
    later = go_on(range(6, 12))
    assert (first in table.timeline.writes) is not archives
    assert later[0].time < table.snapshot().earliest_kept, "cleaning has let go of what the range ends before"
    wanted = {**{f"k{number}": f"v{number}" for number in range(6)}, "all": "v5"}

    def is_read() -> None:
        assert changed(table, "earliest", pinned.completion) == wanted
        assert changed(table, first.completed_at, pinned.completion) == {id: v for id, v in wanted.items() if id != "k0"}
        assert changed(table, before.completed_at, pinned.completion) == {"k5": "v5", "all": "v5"}

    def is_refused(end: Instant) -> None:
        with pytest.raises(TableError, match="cleaning may have removed its files"):
            changed(table, "earliest", end.completion)

    is_read()
    is_refused(before)
    is_refused(later[0])
    table.restore(pinned.time)
    is_read()
    assert changed(table, "earliest") == wanted
    is_refused(before)
    put(table, ["k0", "all"], "after", 20)
    is_read()
    table.delete_savepoint(pinned.time)
    is_refused(pinned)


def complete_at(table: hudimeta.Table, instant: Instant, completion: int) -> hudimeta.Table:
    """The table with another completion time of an instant."""
    folder = Path(table.path) / ".hoodie/timeline"
    done, name = folder / instant.file_name, f"{instant.time}_{completion}.{instant.action.value}"
    (folder / name).write_bytes(sealed_container(done.read_bytes(), name))
    done.unlink()
    return hudimeta.Table(table.path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_replaced_after_the_range_is_in_it(kind: str, tmp_path: Path) -> None:
    """The replacing commit began within the range, and completed after it."""
    table = create(tmp_path, kind)
    put(table, ["k0"], "first", 0)
    table.insert_overwrite(pa.Table.from_pylist([{"id": "k1", "part": "p", "ts": 1, "v": "replaced"}], SCHEMA))
    replacing = table.timeline.writes[-1]
    last = put(table, ["k2"], "last", 2, part="q")
    assert last.completion is not None
    table = complete_at(table, replacing, int(last.completion) + 1)
    assert changed(table, "earliest", last.completion) == {"k0": "first", "k2": "last"}
    assert changed(table, last.completion) == {"k1": "replaced"}
    asked = table.scan("id = 'k0'", query_type="incremental", begin="earliest", end=last.completion, columns=["v"])
    assert asked.to_table()["v"].to_pylist() == ["first"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_updated_after_the_range_is_in_it_as_it_was(kind: str, tmp_path: Path) -> None:
    """The updating commit began within the range, and completed after it."""
    table = create(tmp_path, kind)
    put(table, ["k0"], "first", 0)
    updating = put(table, ["k0"], "updated", 1)
    last = put(table, ["k2"], "last", 2, part="q")
    assert last.completion is not None
    table = complete_at(table, updating, int(last.completion) + 1)
    assert changed(table, "earliest", last.completion) == {"k0": "first", "k2": "last"}
    assert changed(table, last.completion) == {"k0": "updated"}


def test_only_files_of_the_range_are_read(tmp_path: Path) -> None:
    """Write stats of a log file name those before it in the slice as well, where changes are captured."""
    table = create(tmp_path, "MERGE_ON_READ", **{"hoodie.table.cdc.enabled": "true"})
    put(table, ["k0", "k1"], "base", 0)
    before = put(table, ["k0"], "before", 1)
    own = put(table, ["k1"], "own", 2)
    assert before.completion is not None
    scan = table.scan(query_type="incremental", begin=before.completion)
    slices = scan.plan().slices.to_pylist()
    assert [one["base_file"] for one in slices] == [None]
    ((name,),) = [one["log_files"] for one in slices]
    assert own.time in name
    assert [one["log_sizes"] for one in slices] == [[(tmp_path / "t/p" / name).stat().st_size]]
    assert changed(table, before.completion) == {"k1": "own"}


def test_archived_commits_of_a_table_without_meta_columns_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path, "MERGE_ON_READ", **{"hoodie.populate.meta.fields": "false"})
    for number in range(6):
        put(table, [f"k{number}"], "a", number)
    table.compact()
    assert table.archive().archived
    with pytest.raises(TableError, match="do not say which commit wrote them") as caught:
        table.scan(query_type="incremental", begin="earliest").plan()
    since = table.timeline.writes[0]
    assert since.completion is not None
    assert since.completion in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "service"), [("COPY_ON_WRITE", "cluster"), ("MERGE_ON_READ", "cluster"), ("MERGE_ON_READ", "compact")]
)
def test_services_bring_no_rows_of_a_table_without_meta_columns(kind: str, service: str, tmp_path: Path) -> None:
    """There the files of a range tell its rows: those into which a service only copied older ones are none of them."""
    rule = {"hoodie.populate.meta.fields": "false", "hoodie.compact.inline.max.delta.commits": "1"}
    table = create(tmp_path, kind, **rule)
    put(table, ["k0", "k1"], "base", 1)
    written = put(table, ["k0"], "changed", 2).completion
    before = table.timeline.writes[0].completion
    assert written is not None
    assert before is not None
    assert getattr(table, service)()
    assert changed(table, written) == {}
    assert changed(table, before)["k0"] == "changed"
    put(table, ["k1"], "later", 3)
    assert changed(table, written)["k1"] == "later"
    assert getattr(table, service)()
    assert changed(table, written)["k1"] == "later"


@pytest.mark.parametrize("service", ["", "compact", "cluster"])
@pytest.mark.parametrize("payload", ["", "org.apache.hudi.common.model.PartialUpdateAvroPayload"])
def test_a_service_in_the_range_brings_no_older_rows_into_its_merge(service: str, payload: str, tmp_path: Path) -> None:
    """A late row, and an update that leaves a column alone, are what their commit wrote; Apache Hudi 1.0.2 and 1.2.0 say so."""
    rule = {"hoodie.datasource.write.payload.class": payload} if payload else {}
    table = create(tmp_path, "MERGE_ON_READ", **rule, **{"hoodie.compact.inline.max.delta.commits": "1"})
    begin = put(table, ["k0", "k1", "k2"], "base", 5).completion
    assert begin is not None
    put(table, ["k0"], "before the service", 6)
    if service:
        getattr(table, service)()
    rows = [{"id": "k1", "part": "p", "ts": 4, "v": "late"}, {"id": "k2", "part": "p", "ts": 7, "v": None}]
    table.upsert(pa.Table.from_pylist(rows, SCHEMA))
    assert changed(table, begin) == {"k0": "before the service", "k1": "late", "k2": None}


@pytest.mark.parametrize("service", ["", "compact", "cluster"])
def test_an_update_that_logs_only_what_it_sets_comes_with_all_columns(service: str, tmp_path: Path) -> None:
    rule = {"hoodie.spark.sql.merge.into.partial.updates": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    table = create(tmp_path, "MERGE_ON_READ", **rule)
    begin = put(table, ["k0", "k1", "k2"], "base", 5).completion
    assert begin is not None
    put(table, ["k0"], "whole", 6)
    if service:
        getattr(table, service)()
    table.update({"v": "'set'"}, "id = 'k1'")
    end = table.timeline.writes[-1].completed_at
    wanted = {"k0": "whole", "k1": "set"}
    assert changed(table, begin) == wanted
    put(table, ["k1"], "later", 7)
    assert changed(table, begin, end) == wanted
    scan = table.scan("v = 'set'", query_type="incremental", begin=begin, end=end, columns=["ts", "part"])
    elsewhere = pickle.loads(pickle.dumps(scan.task))  # as tasks of Spark read it
    batches = [batch for split in scan.plan().splits() for batch in read_split(elsewhere, split)]
    assert pa.Table.from_batches(batches).to_pylist() == [{"ts": 5, "part": "p"}]


@pytest.mark.parametrize("name", ["partial_merge_mor", "partial_merge_mor8"])
def test_updates_of_single_columns_by_apache_hudi_come_with_all_columns(rich_table: Unpack, name: str) -> None:
    """Its `MERGE INTO` logs only the columns that it sets: a range gives its rows as the table has them at its end."""
    table = hudimeta.Table(rich_table(name))
    columns = [column for column in table.schema.names if column not in ("_hoodie_file_name", "_hoodie_commit_seqno")]
    writes = table.timeline.writes
    for number, last in enumerate(writes):
        table_then = table.scan(as_of=last.time, columns=columns).to_table().to_pylist()
        for first in {0, number}:
            begin = writes[first - 1].completed_at if first else "earliest"
            rows = table.scan(query_type="incremental", begin=begin, end=last.completed_at, columns=columns).to_table()
            times = {write.time for write in writes[first : number + 1]}
            wanted = [row for row in table_then if row["_hoodie_commit_time"] in times]
            assert sorted(rows.to_pylist(), key=str) == sorted(wanted, key=str)


def test_archived_commits_of_version_6_are_in_the_range(rich_table: Unpack) -> None:
    """Its archive is not read: commit times tell what lies in the range. Apache Hudi leaves rows out that lie in file groups to
    which no active commit wrote, though it tells the others."""
    path = rich_table("v6_mor_written_by_12", fresh=True)
    table = hudimeta.Table(path)
    first, second, *_, last = table.timeline.writes
    rows = table.scan().to_table().to_pylist()
    archive = path / table.timeline.history.folder
    archive.mkdir(exist_ok=True)
    (archive / ".commits_.archive.1_1-0-1").write_bytes(b"entries that say the same")
    for instant in (first, second):
        for file in (path / ".hoodie").glob(f"{instant.time}.*"):
            file.unlink()
    table = hudimeta.Table(path)
    columns = table.schema.names
    for begin, wanted in (("earliest", rows), (first.time, [row for row in rows if row["_hoodie_commit_time"] > first.time])):
        found = table.scan(query_type="incremental", begin=begin, columns=columns).to_table()
        assert sorted(found.to_pylist(), key=str) == sorted(wanted, key=str)
    with pytest.raises(TableError, match="archived"):
        table.scan(query_type="incremental", begin="earliest", end=second.time).to_table()
    assert table.scan(query_type="incremental", begin=last.time).to_table().num_rows == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_whose_file_versions_are_cleaned_is_refused_unless_what_is_left_will_do(kind: str, tmp_path: Path) -> None:
    """Such a cleaner names no earliest commit; rows that later commits have rewritten would be missing from the range."""
    one_version = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    table = create(tmp_path, kind, **one_version, **{"hoodie.table.cdc.enabled": "true"})
    first = put(table, ["a", "b"], "first", 1)
    other = put(table, ["z"], "other", 1, "q")
    put(table, ["a"], "then", 2)
    if kind == "MERGE_ON_READ":
        table.compact()
    then = table.timeline.writes[-1].completed_at
    put(table, ["a"], "now", 3)
    if kind == "MERGE_ON_READ":
        table.compact()
    table.clean()
    with pytest.raises(TableError, match="cleaning removed files that the range") as refused:
        changed(table, "earliest", then)
    assert "Give it a later end" in refused.value.hint
    with pytest.raises(TableError, match=r"changes of commit .* cannot be known"):
        table.scan(query_type="cdc", begin="earliest", end=then).to_table()
    assert changed(table, first.completed_at, other.completed_at) == {"z": "other"}, "the files of this range are there"
    assert changed(table, "earliest", None) == {"a": "now", "b": "first", "z": "other"}
    assert changed(table, other.completed_at) == {"a": "now"}
    fallback = hudimeta.Table(table.path, {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"})
    assert changed(fallback, "earliest", then) == {"b": "first", "z": "other"}, "what the table still has of it"


def test_a_moment_is_no_end_of_a_range(tmp_path: Path) -> None:
    table = create(tmp_path, "COPY_ON_WRITE")
    put(table, ["k0"], "first", 1)
    for kind in ("incremental", "cdc"):
        asked = {"as.of.instant": "2026-01-02", "hoodie.datasource.query.type": kind}
        for refused in (
            partial(table.scan, query_type=kind, begin="earliest", as_of="2026-01-02"),
            partial(hudimeta.Table(table.path, asked).scan, begin="earliest"),
        ):
            with pytest.raises(ConfigError, match=r"as\.of\.instant.*Let the range end there with hoodie"):
                refused()


def test_a_version_number_is_no_bound_of_a_range(tmp_path: Path) -> None:
    table = create(tmp_path, "COPY_ON_WRITE")
    put(table, ["k0"], "first", 1)
    for bounds in ({"begin": "5"}, {"begin": "earliest", "end": "5"}):
        with pytest.raises(ConfigError, match=r"instanttime' has the value '5', allowed is the first four or more digits"):
            table.scan(query_type="incremental", **bounds).count()
