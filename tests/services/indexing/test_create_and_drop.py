"""Indexes are built over tables with rows, kept by every commit from then on, and dropped; a death in between harms nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.commit.session import WriteSession
from hudimeta.errors import ConfigError, HudiError, IndexNotReady, StorageError, TableError, UnsupportedFeature
from hudimeta.reports import Reports
from hudimeta.services import clustering, compaction
from hudimeta.services.indexing import create_index
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.naming import pending_name
from hudimeta.types import Action, Operation, State
from hudimeta.write.table_files import TableFiles
from hudimeta.write.table_writer import write_rows

MOR = {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
KINDS: dict[str, dict[str, Any]] = {
    "record_index": {"type": "record_index"},
    "bloom_filters": {"type": "bloom_filters"},
    "expr_index_low": {"name": "low", "type": "column_stats", "columns": "id", "expression": "upper"},
    "expr_index_day": {
        "name": "day",
        "type": "column_stats",
        "columns": "ts",
        "expression": "from_unixtime",
        "options": {"format": "yyyy-MM-dd"},
    },
    "expr_index_sub": {
        "name": "sub",
        "type": "bloom_filters",
        "columns": ["id"],
        "expression": "substring",
        "options": {"pos": 2, "len": 3},
    },
}

OF_FILES = set(KINDS) - {"record_index"}


def _table(folder: Path, options: dict[str, str] | None = None) -> ModelledTable:
    table = ModelledTable(str(folder / "t"), options or MOR)
    table.write(Operation.INSERT, simple_rows(range(40), 86_400))
    table.write(Operation.UPSERT, simple_rows(range(0, 40, 3), 3 * 86_400))
    return table


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> ModelledTable:
    """A table for what changes none."""
    return _table(tmp_path_factory.mktemp("unchanged"))


class _Death(FaultPlan):
    """Every mutating call fails from one on, as if the process were gone."""

    def __init__(self, at: int) -> None:
        super().__init__(None, Fault.ERROR_BEFORE)
        self._end = at

    def around(self, name: str, act: Callable[[], Any]) -> Any:
        if len(self.calls) >= self._end and ".locks" not in name:
            raise StorageError(name, "the process is dead")
        return super().around(name, act)


def _holds(table: ModelledTable) -> None:
    check_all(table.storage)
    report = hudimeta.Table(table.path).metadata.validate()
    assert report.holds, report
    table.model.check(table.read())


@pytest.mark.rotation(3)
@pytest.mark.parametrize("options", [SIMPLE_OPTIONS, MOR], ids=["cow", "mor"])
@pytest.mark.parametrize("partition", KINDS)
def test_an_index_is_built_kept_and_dropped(tmp_path: Path, partition: str, options: dict[str, str]) -> None:
    table = _table(tmp_path, dict(options))
    handle = hudimeta.Table(table.path)
    report = handle.metadata.create_index(**KINDS[partition])
    assert report.partition == partition
    assert report.records
    assert partition in handle.metadata.ready
    _holds(table)
    for step, operation in enumerate((Operation.UPSERT, Operation.DELETE, Operation.INSERT, Operation.INSERT_OVERWRITE)):
        table.write(operation, simple_rows(range(5 * step, 5 * step + 30, 2), (step + 5) * 86_400))
        _holds(table)
    if options is MOR:
        hudimeta.Table(table.path).compact()
        _holds(table)
    hudimeta.Table(table.path, {"hoodie.clean.commits.retained": 1}).clean()
    _holds(table)
    dropped = handle.metadata.drop_index(KINDS[partition].get("name", partition))
    assert str(dropped).startswith(f"{partition} dropped")
    assert partition not in handle.metadata.ready
    assert not Path(table.path, ".hoodie/metadata", partition).exists()
    assert partition not in handle.metadata.index_definitions
    table.write(Operation.UPSERT, simple_rows(range(10), 99 * 86_400))
    _holds(table)


def test_an_index_that_was_dropped_begins_anew(tmp_path: Path) -> None:
    """What commits wrote to its predecessor of the same name is neither read nor missed."""
    table = _table(tmp_path)
    handle = hudimeta.Table(table.path)
    for round_ in range(3):
        handle.metadata.create_index(**KINDS["expr_index_low"])
        table.write(Operation.UPSERT, simple_rows(range(3, 9), (round_ + 10) * 86_400))
        handle.metadata.create_index("bloom_filters", "bloom_filters")
        table.write(Operation.UPSERT, simple_rows(range(6, 19), (round_ + 20) * 86_400))
        _holds(table)
        handle.metadata.drop_index("low")
        handle.metadata.drop_partition("bloom_filters")
        _holds(table)


def test_files_are_left_out_by_an_expression(tmp_path: Path) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0"})
    for start in range(0, 40, 10):
        table.write(Operation.BULK_INSERT, simple_rows(range(start, start + 10), 86_400 * start, partitions=1))
    for kind in ("column_stats", "bloom_filters"):
        handle = hudimeta.Table(table.path, {"hudimeta.index.use": "expression_index"})
        handle.metadata.create_index("up", kind, "id", expression="upper")
        scan = handle.scan(where="upper(id) = 'K0025'")
        assert scan.to_table().num_rows == 1
        assert (scan.report.files, scan.report.files_kept) == (4, 1)
        handle.metadata.drop_index("up")


def test_bounds_of_every_partition_are_kept(tmp_path: Path) -> None:
    """Apache Hudi opens only partitions that have a record, once any has one."""
    table = _table(tmp_path)
    hudimeta.Table(table.path).metadata.create_index(**KINDS["expr_index_low"])
    table.write(Operation.INSERT, simple_rows(range(50, 60), 1, partitions=5))
    metadata = hudimeta.Table(table.path).metadata
    found = metadata.expression_partition_stats("expr_index_low", pa.string()).to_pylist()
    by_partition = {row["partition_path"]: (row["min"], row["max"]) for row in found}
    assert by_partition == {
        "p0": ("K0000", "K0055"),
        "p1": ("K0001", "K0056"),
        "p2": ("K0052", "K0057"),
        "p3": ("K0053", "K0058"),
        "p4": ("K0054", "K0059"),
    }


def test_statistics_can_be_made_later(tmp_path: Path) -> None:
    table = _table(tmp_path, {**SIMPLE_OPTIONS, "hoodie.metadata.index.column.stats.enable": "false"})
    handle = hudimeta.Table(table.path)
    assert handle.metadata.ready == ("files",)
    handle.metadata.create_index(type="column_stats", columns=["id", "ts"])
    handle.metadata.create_index(type="partition_stats")
    assert handle.metadata.index_definitions["column_stats"].source_fields[3:] == ("id", "ts")
    table.write(Operation.UPSERT, simple_rows(range(9), 5 * 86_400))
    _holds(table)
    with pytest.raises(TableError, match="needed by partition_stats"):
        handle.metadata.drop_index("column_stats")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"type": "btree"}, ConfigError),
        ({"type": "column_stats"}, TableError),
        ({"name": "Odd Name", "type": "column_stats", "columns": "id", "expression": "lower"}, ConfigError),
        ({"name": "a", "type": "column_stats", "columns": "nothing", "expression": "lower"}, ConfigError),
        ({"name": "a", "type": "column_stats", "columns": ["id", "x"], "expression": "lower"}, ConfigError),
        ({"name": "a", "type": "column_stats", "columns": "id", "expression": "soundex"}, UnsupportedFeature),
        ({"name": "a", "type": "bloom_filters", "columns": "x", "expression": "identity"}, UnsupportedFeature),
        ({"name": "a", "type": "secondary_index", "columns": "x"}, ConfigError),
        ({"name": "a" * 129, "type": "column_stats", "columns": "id", "expression": "lower"}, ConfigError),
        ({"type": "bloom_filters", "options": {"hoodie.metadata.index.bloom.filter.file.group.cout": 2}}, ConfigError),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    unchanged: ModelledTable, given: dict[str, Any], error: type[HudiError]
) -> None:
    path = unchanged.path
    before = sorted(str(p) for p in Path(path).rglob("*") if ".locks" not in str(p))
    with pytest.raises(error):
        hudimeta.Table(path).metadata.create_index(**given)
    assert sorted(str(p) for p in Path(path).rglob("*") if ".locks" not in str(p)) == before


@pytest.mark.parametrize("kind", ["record_index", "bloom_filters", "secondary_index"])
def test_files_without_keys_are_not_indexed_by_key(tmp_path: Path, kind: str) -> None:
    table = _table(tmp_path, {**MOR, "hoodie.populate.meta.fields": "false"})
    before, columns = table.storage.list(".hoodie/timeline"), ["x"] if kind == "secondary_index" else []
    for mode in ("sync", "async"):
        with pytest.raises(UnsupportedFeature, match=f"{kind} on a table with virtual keys"):
            hudimeta.Table(table.path).metadata.create_index(type=kind, columns=columns, mode=mode)
    assert table.storage.list(".hoodie/timeline") == before


@pytest.mark.parametrize("option", ["hoodie.metadata.record.index.enable", "hoodie.metadata.index.bloom.filter.enable"])
def test_a_metadata_table_that_is_made_later_indexes_no_keys_that_files_lack(tmp_path: Path, option: str) -> None:
    table = _table(tmp_path, {**MOR, "hoodie.populate.meta.fields": "false", "hoodie.metadata.enable": "false"})
    asking = hudimeta.Table(table.path, {option: "true"})
    makers: list[Callable[[], object]] = [
        lambda: asking.metadata.create(dry_run=True),
        asking.metadata.create,
        asking.metadata.rebuild,
        lambda: asking.upsert(simple_rows([1], 9)),
    ]
    for make in makers:
        with pytest.raises(UnsupportedFeature, match="on a table with virtual keys"):
            make()
    assert not hudimeta.Table(table.path).properties.has_metadata_table
    assert len(list(hudimeta.Table(table.path).timeline)) == 2


def test_only_indexes_of_the_table_can_be_dropped(unchanged: ModelledTable) -> None:
    handle = hudimeta.Table(unchanged.path)
    with pytest.raises(ConfigError, match="column_stats, partition_stats"):
        handle.metadata.drop_index("nothing")
    with pytest.raises(TableError, match="rebuild"):
        handle.metadata.drop_index("files")


def test_a_table_without_a_metadata_table_has_no_indexes(tmp_path: Path) -> None:
    table = _table(tmp_path, {**SIMPLE_OPTIONS, "hoodie.metadata.enable": "false"})
    with pytest.raises(IndexNotReady):
        hudimeta.Table(table.path).metadata.create_index(type="bloom_filters")


def test_a_write_that_was_under_way_keeps_the_new_index(tmp_path: Path) -> None:
    from hudimeta.commit.timings import Timings
    from hudimeta.write.table_writer import prepare, publish, write_batch

    table = _table(tmp_path)
    session = table.session()
    rows = simple_rows(range(10, 30), 7 * 86_400)
    files = TableFiles.at(session, session.properties.load_timeline(session.storage))
    prepared = prepare(files, session, Operation.UPSERT, rows)
    with session.coordinator.writing(Operation.UPSERT, files.snapshot.timeline) as (write, timeline):
        outcome = write_batch(session, TableFiles.at(session, timeline), write, prepared, Timings())
        for partition in sorted(OF_FILES):
            hudimeta.Table(table.path).metadata.create_index(**KINDS[partition])
        publish(session, files, write, prepared.schema, outcome, Timings())
    table.model.write(Operation.UPSERT, rows)
    assert set(hudimeta.Table(table.path).metadata.ready) > OF_FILES
    _holds(table)


def test_a_secondary_index_is_proven_from_the_start(tmp_path: Path) -> None:
    table = _table(tmp_path)
    handle = hudimeta.Table(table.path)
    handle.metadata.create_index(type="record_index")
    handle.metadata.create_index("by_ts", "secondary_index", "ts")
    with pytest.raises(TableError, match="needed by secondary_index_by_ts"):
        handle.metadata.drop_index("record_index")
    for _ in range(2):
        scan = handle.scan(where=f"ts = {3 * 86_400}")
        assert scan.to_table().num_rows
        assert not any("nothing proves" in note for note in scan.report.notes), scan.report
        table.write(Operation.UPSERT, simple_rows(range(1, 12, 2), 9 * 86_400))
        _holds(table)


@pytest.mark.parametrize("partition", ["expr_index_low"])
def test_a_death_at_any_request_leaves_a_usable_table(tmp_path: Path, partition: str) -> None:
    given = KINDS[partition]
    arguments = {
        "kind": given["type"],
        "name": given.get("name"),
        "columns": [given["columns"]] if "columns" in given else [],
        "expression": given.get("expression"),
    }
    deaths, template = 0, _table(tmp_path / "template")
    for number in range(0, 200, 2):  # every request of each kind is among the crash tests
        table = template.copy(str(tmp_path / str(number)))
        storage = FaultyStorage(table.storage, _Death(number))
        try:
            create_index(table.session(storage), **arguments)
        except StorageError:
            deaths += 1
        else:
            break
        table.model.check(table.read())
        table.write(Operation.UPSERT, simple_rows(range(4), 50 * 86_400))
        hudimeta.Table(table.path).recover()
        _holds(table)
        if partition not in hudimeta.Table(table.path).metadata.ready:
            hudimeta.Table(table.path).metadata.create_index(**given)
            _holds(table)
    assert deaths > 5


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("next_step", ["write", "recover", "index"])
def test_a_maker_that_went_on_after_it_was_taken_back_harms_nobody(tmp_path: Path, next_step: str, waits: bool) -> None:
    """It was stopped between its two files, taken for dead, and made the second one when its request was gone."""
    table = _table(tmp_path)
    if waits:  # a plan: then builds that others began are looked for, after what died of ours was removed
        hudimeta.Table(table.path).services.indexing.schedule("bloom_filters")
    session = table.session()
    timeline = session.properties.load_timeline(session.storage)
    late = f"{timeline.folder}/{pending_name(session.times.next(timeline.last_time), Action.INDEXING, State.INFLIGHT)}"
    session.storage.put(late, b"")
    if next_step == "write":
        table.write(Operation.UPSERT, simple_rows(range(4), 50 * 86_400))
    elif next_step == "recover":
        hudimeta.Table(table.path).recover()
    else:
        hudimeta.Table(table.path).metadata.create_index(**KINDS["expr_index_low"])
    assert session.storage.stat(late) is None
    _holds(table)


def test_the_definition_is_what_apache_hudi_writes(tmp_path: Path) -> None:
    table = _table(tmp_path)
    hudimeta.Table(table.path).metadata.create_index(**KINDS["expr_index_day"])
    stored = json.loads(Path(table.path, ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    assert stored["expr_index_day"] == {
        "indexName": "expr_index_day",
        "indexType": "column_stats",
        "indexFunction": "from_unixtime",
        "sourceFields": ["ts"],
        "indexOptions": {"expr": "from_unixtime", "format": "yyyy-MM-dd"},
        "version": "V1",
    }


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_apache_hudi_may_lay_its_next_index_out_at_the_instant_of_the_newest_action(tmp_path: Path, mode: str) -> None:
    """It does where that is an indexing, and takes what is there for a failed attempt of its own."""
    table = hudimeta.Table(_table(tmp_path).path)
    for index in ({"type": "record_index"}, {"name": "by_ts", "type": "secondary_index", "columns": "ts"}):
        table.metadata.create_index(**index, mode=mode)
        newest = table.timeline.completed[-1]
        assert (newest.action is Action.INDEXING) == (mode == "async")
        assert newest.action is not Action.INDEXING or table.metadata.timeline.get(newest.time) is None
    row = table.scan(columns=["id", "ts"]).to_table().slice(0, 1).to_pylist()[0]
    scan = table.scan(f"ts = {row['ts']} AND id = '{row['id']}'")
    assert scan.to_table().num_rows == 1
    assert not any("not used: the metadata table holds" in note for note in scan.report.notes)
    table.metadata.validate().raise_if_differs()
    check_all(hudimeta.storage.open_storage(table.path))


def test_no_action_of_indexes_is_the_newest_instant(tmp_path: Path) -> None:
    """Apache Hudi would begin all indexes of its next write at that instant, and take back each for the next one."""
    table = hudimeta.Table(_table(tmp_path).path)
    newest = max(instant.time for instant in table.timeline.completed)
    for index in ("partition_stats", "column_stats"):
        table.metadata.drop_index(index)
    for kind in ("record_index", "column_stats"):
        hudimeta.Table(table.path).metadata.create_index(type=kind)
    hudimeta.Table(table.path).metadata.validate(prove=True)
    hudimeta.Table(table.path).metadata.rebuild()
    timeline = hudimeta.Table(table.path).timeline
    actions = [instant for instant in timeline.completed if instant.action is Action.INDEXING]
    assert len({instant.time for instant in actions}) >= 5
    assert max(instant.time for instant in timeline.completed) == newest > max(instant.time for instant in actions)
    check_all(hudimeta.storage.open_storage(table.path))


@pytest.mark.parametrize("dropped", ["expr_index_low", "secondary_index_by_part", "column_stats"])
def test_an_index_is_dropped_while_a_write_begins(tmp_path: Path, dropped: str) -> None:
    """It read the properties before the drop, and the definitions after it: nothing is damaged, and it is tried again."""
    modelled = _table(tmp_path)
    table = hudimeta.Table(modelled.path)
    kinds = {**KINDS, "secondary_index_by_part": {"name": "by_part", "type": "secondary_index", "columns": "part"}}
    if dropped.startswith("secondary"):
        table.metadata.create_index(type="record_index")
    if dropped != "column_stats":
        table.metadata.create_index(**kinds[dropped])
    session = modelled.session()
    assert dropped in session.properties.metadata_partitions
    for index in ("partition_stats", dropped) if dropped == "column_stats" else (dropped,):
        hudimeta.Table(table.path).metadata.drop_index(index)
    report = write_rows(session, Operation.UPSERT, simple_rows([1, 2], 9))
    assert (report.attempts, report.completion is not None) == (2, True)
    assert dropped not in hudimeta.Table(table.path).metadata.ready
    hudimeta.Table(table.path).metadata.validate().raise_if_differs()
    check_all(hudimeta.storage.open_storage(table.path))


def test_an_index_is_dropped_again_while_the_next_attempt_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modelled = _table(tmp_path)
    table, plain = hudimeta.Table(modelled.path), WriteSession.reload
    table.metadata.create_index(**KINDS["expr_index_low"])
    session = modelled.session()
    table.metadata.drop_index("expr_index_low")

    def beside_another_drop(other: WriteSession) -> None:
        if other is session and session.attempt == 1:
            table.metadata.create_index(**KINDS["expr_index_low"])
            plain(session)
            table.metadata.drop_index("expr_index_low")
        else:
            plain(other)

    monkeypatch.setattr(WriteSession, "reload", beside_another_drop)
    monkeypatch.setattr("hudimeta.engine.machine.pause", lambda seconds: None)
    assert write_rows(session, Operation.UPSERT, simple_rows([1, 2], 9)).attempts == 3
    check_all(hudimeta.storage.open_storage(modelled.path))


@pytest.mark.parametrize("service", [clustering.cluster, compaction.compact])
def test_an_index_is_dropped_while_a_service_begins(tmp_path: Path, service: Callable[[WriteSession], Reports[Any]]) -> None:
    modelled = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    for ts in (1, 2):
        modelled.write(Operation.UPSERT, simple_rows(range(6), ts))
    hudimeta.Table(modelled.path).metadata.create_index(**KINDS["expr_index_low"])
    session = modelled.session()
    hudimeta.Table(modelled.path).metadata.drop_index("expr_index_low")
    reports = service(session)
    assert len(reports) == 1
    modelled.check()
    assert not hudimeta.Table(modelled.path).timeline.pending
    check_all(hudimeta.storage.open_storage(modelled.path))
