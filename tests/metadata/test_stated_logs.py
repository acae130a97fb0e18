"""Look-ups in the record index leave out logs whose commits state that none of the keys is in them, and answer the same."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta.metadata import MetadataTable, answers, index_reader, record_index, stated_logs
from hudimeta.metadata.groups import GroupFinder
from hudimeta.metadata.rollback import METADATA_ROOT
from hudimeta.storage import CountingStorage
from hudimeta.storage.counting import RequestKind
from hudimeta.table import stated_keys
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.timeline import instant_files
from hudimeta.types import Operation

INDEXED = {
    **SIMPLE_OPTIONS,
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.compact.max.delta.commits": "100",
}


def opened(table: ModelledTable) -> tuple[MetadataTable, CountingStorage]:
    """The metadata table, and what counts its requests from then on."""
    storage = CountingStorage(table.storage)
    session = table.session(storage)
    found = MetadataTable.open(storage, session.properties, session.properties.load_timeline(storage))
    return found, storage


def keys(*numbers: int) -> pa.Array:
    """Of `simple_rows`."""
    return pa.array([f"k{n:04d}" for n in numbers])


def logs_read(storage: CountingStorage) -> int:
    """Log files of the record index that were read."""
    return sum("record_index/." in request.path for request in storage.log.since(0))


@pytest.fixture
def table(tmp_path: Path) -> ModelledTable:
    made = ModelledTable(str(tmp_path / "t"), INDEXED)
    for number in range(6):
        made.write(Operation.UPSERT, simple_rows([10 * number, 10 * number + 1], 1))
    return made


def test_only_logs_with_the_key_are_read(table: ModelledTable) -> None:
    metadata, storage = opened(table)
    assert answers.record_locations(metadata, keys(20)).num_rows == 1
    assert logs_read(storage) == 1
    metadata, storage = opened(table)
    assert answers.record_locations(metadata, keys(7, 8, 9)).num_rows == 0
    assert logs_read(storage) == 0


def test_a_removed_key_is_not_found(table: ModelledTable) -> None:
    table.write(Operation.DELETE, simple_rows([20], 2))
    table.write(Operation.UPSERT, simple_rows([77], 2))
    metadata, storage = opened(table)
    assert answers.record_locations(metadata, keys(20, 21))["record_key"].to_pylist() == ["k0021"]
    assert 1 <= logs_read(storage) <= 3


def test_all_logs_are_read_where_commits_state_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stated_keys, "_MOST", 0)
    made = ModelledTable(str(tmp_path / "t"), INDEXED)
    for number in range(4):
        made.write(Operation.UPSERT, simple_rows([number], 1))
    metadata, storage = opened(made)
    assert answers.record_locations(metadata, keys(0, 1, 2, 3)).num_rows == 4
    assert logs_read(storage) == 4


def test_a_log_that_no_commit_stands_for_makes_all_be_read(table: ModelledTable, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata, storage = opened(table)
    strange = metadata.named_groups(record_index.PARTITION)[0].logs[0].instant
    known = GroupFinder.data_instant
    monkeypatch.setattr(GroupFinder, "data_instant", lambda self, time: None if time == strange else known(self, time))
    assert answers.record_locations(metadata, keys(7, 8)).num_rows == 0
    assert logs_read(storage) == sum(len(group.logs) for group in metadata.named_groups(record_index.PARTITION))


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_all_logs(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    made = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.metadata.compact.max.delta.commits": "7"})
    made.write(Operation.UPSERT, simple_rows(range(10), 1))
    for step in range(2, 14):
        operation = rng.choice([Operation.UPSERT, Operation.DELETE, Operation.UPSERT])
        with monkeypatch.context() as patched:
            patched.setattr(stated_keys, "_MOST", rng.choice([0, 1000, 1000]))
            made.write(operation, simple_rows(sorted(rng.sample(range(30), 4)), step))
    for wanted in [keys(n) for n in range(30)] + [keys(*range(30))]:
        told = answers.record_locations(opened(made)[0], wanted)
        with monkeypatch.context() as patched:
            patched.setattr(index_reader, "only_logs_of", lambda *_: None)
            plain = answers.record_locations(opened(made)[0], wanted)
        assert told.sort_by("record_key").to_pylist() == plain.sort_by("record_key").to_pylist()


def test_a_commit_is_read_where_that_spares_several_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instant_files, "HANDED_ON_BYTES", -1)  # as for commits of other processes
    made = ModelledTable(str(tmp_path / "t"), {**INDEXED, "hoodie.metadata.record.index.min.filegroup.count": "8"})
    for number in range(4):
        made.write(Operation.UPSERT, simple_rows(range(100 * number, 100 * number + 20), 1))
    metadata, storage = opened(made)
    groups = metadata.named_groups(record_index.PARTITION)
    assert min(len(group.logs) for group in groups) >= 3

    def fresh() -> GroupFinder:
        """One that has read no commit yet."""
        data = made.session().properties.load_timeline(storage)
        return GroupFinder(storage.sub(METADATA_ROOT), metadata.timeline, data, len(metadata.ready))

    mark = len(storage.log)
    (alone,) = (stated_logs.only_logs_of(fresh(), record_index.PARTITION, keys(7), groups[:1]),)
    assert alone is not None
    assert alone(groups[0]) == groups[0], "a commit costs no less than one log"
    assert not storage.log.paths(RequestKind.GET, mark)
    together = stated_logs.only_logs_of(fresh(), record_index.PARTITION, keys(7), groups)
    assert together is not None
    first = made.session().properties.load_timeline(made.storage).writes[0].time
    assert {log.instant for group in groups for log in together(group).logs} == {first}
    assert len(storage.log.paths(RequestKind.GET, mark)) == 4, "one for each commit, instead of one for each log"


def test_what_later_commits_removed_is_asked_of_those_that_state_it(table: ModelledTable) -> None:
    table.write(Operation.DELETE, simple_rows([20], 2))
    first = table.session().properties.load_timeline(table.storage).writes[0].time
    metadata, storage = opened(table)
    assert metadata.removed_later(record_index.PARTITION, first, keys(7, 8)).to_pylist() == []
    assert logs_read(storage) == 0
    assert metadata.removed_later(record_index.PARTITION, first, keys(7, 20)).to_pylist() == ["k0020"]
