"""Clustering: fewer files, rows sorted, and no answer changes; what died is run again, what is planned is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta import Table
from hudimeta.commit.markers import MARKERS
from hudimeta.config import OPTIONS, HudiWarning
from hudimeta.errors import CommitConflict, CommitError, ConfigError, CorruptFileError, StorageError, UnsupportedFeature
from hudimeta.services import clustering
from hudimeta.storage.faults import Fault, FaultPlan, FaultyStorage
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.types import Action, Operation

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXES = {
    "none": {"hoodie.metadata.enable": "false"},
    "all": {
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.record.index.min.filegroup.count": "1",
        "hoodie.metadata.index.secondary.column": "ts",
        "hoodie.metadata.index.bloom.filter.enable": "true",
    },
}
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "x,id"}


FIRST = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}


def written(path: Path, type: str = "COPY_ON_WRITE", **options: str) -> ModelledTable:
    """Two partitions with a few small files each; of a merge-on-read table with log files."""
    given = {
        **SIMPLE_OPTIONS,
        "hoodie.datasource.write.table.type": type,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.clean.automatic": "false",
        **options,
    }
    table = ModelledTable(str(path), given)
    for stamp, first in enumerate((0, 20, 40), 1):
        table.write(Operation.INSERT, simple_rows(range(first, first + 20), stamp, 100.0 - first))
    table.write(Operation.UPSERT, simple_rows(range(5, 25), 8, 7.0))
    table.write(Operation.DELETE, simple_rows([0, 1, 30], 9))
    return table


def answers(path: str, begin: str) -> dict[str, Any]:
    """What every kind of query answers, rows in no order, without the names of files."""
    table = Table(path)

    def rows(found: pa.Table) -> list[str]:
        names = [name for name in found.column_names if name != "_hoodie_file_name"]
        return sorted(map(repr, found.select(names).to_pylist()))

    return {
        "snapshot": rows(table.scan().to_table()),
        "by key": rows(table.scan("id = 'k0007' or id = 'k0041'").to_table()),
        "by value": rows(table.scan("x between 6 and 61").to_table()),
        "by time": rows(table.scan("ts = 8").to_table()),
        "as of": rows(table.scan(as_of=begin).to_table()),
        "incremental": rows(table.scan(query_type="incremental", begin="earliest").to_table()),
        "since": rows(table.scan(query_type="incremental", begin=begin).to_table()),
    }


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("indexes", INDEXES)
@pytest.mark.parametrize("type", TYPES)
def test_no_answer_changes(tmp_path: Path, type: str, indexes: str, version: str) -> None:
    table = written(tmp_path / "t", type, **INDEXES[indexes], **{"hoodie.write.table.version": version})
    begin = Table(table.path).timeline.writes[1].completed_at
    before = answers(table.path, begin)
    slices = len(Table(table.path).file_slices())
    (report,) = Table(table.path, SORTED).cluster()
    after = Table(table.path).file_slices()
    assert slices == 6
    assert (len(after), sum(map(len, after["log_files"].to_pylist()))) == (2, 0)
    assert report.files_after == 2
    assert report.bytes_after < report.bytes_before
    assert answers(table.path, begin) == before
    table.check()
    check_all(table.storage)
    (stored,) = [i for i in Table(table.path).timeline.completed if i.time == report.instant]
    assert stored.action is Action.REPLACE_COMMIT
    last = stored.completed_at
    assert Table(table.path).scan(query_type="incremental", begin=begin).to_table().num_rows
    assert Table(table.path).scan(query_type="incremental", begin=_before(table.path, last)).to_table().num_rows == 0
    table.write(Operation.UPSERT, simple_rows(range(10, 30), 12, 1.0))
    table.write(Operation.DELETE, simple_rows([40, 41], 13))
    table.check()
    check_all(table.storage)


COPIES = {"hoodie.clustering.execution.strategy.class": "SparkBinaryCopyClusteringExecutionStrategy"}


@pytest.mark.parametrize("indexes", INDEXES)
def test_files_are_put_together_without_decoding_them(tmp_path: Path, indexes: str) -> None:
    table = written(tmp_path / "t", **INDEXES[indexes])
    begin = Table(table.path).timeline.writes[1].completed_at
    before = answers(table.path, begin)
    if indexes == "all":
        Table(table.path).indexes.create("up", "column_stats", "id", expression="upper")
    (report,) = Table(table.path, COPIES).cluster()
    assert (report.groups_copied, report.files_before, report.files_after) == (2, 6, 2)
    assert "copied    2 groups without decoding them" in str(report)
    assert answers(table.path, begin) == before
    check_all(table.storage)
    if indexes == "all":
        Table(table.path).metadata.validate().raise_if_differs()
    table.write(Operation.UPSERT, simple_rows(range(10, 30), 12, 1.0))
    table.check()


@pytest.mark.parametrize(
    ("type", "more", "why"),
    [
        ("COPY_ON_WRITE", SORTED, "rows are sorted"),
        ("MERGE_ON_READ", {}, "there are slices with log files, or whose rows lie elsewhere"),
    ],
)
def test_what_cannot_be_copied_is_decoded(tmp_path: Path, type: str, more: dict[str, str], why: str) -> None:
    table = written(tmp_path / "t", type)
    (report,) = Table(table.path, COPIES | more).cluster()
    assert (report.groups_copied, report.decoded_because) == (0, (why,))
    assert f"decoded   the other groups: {why}" in str(report)
    table.check()


def test_damage_is_not_put_together(tmp_path: Path) -> None:
    """In the column of keys, which is read, as well as where pages are only copied."""
    table = written(tmp_path / "t")
    file = next(Path(table.path).glob("p0/*.parquet"))
    whole = file.read_bytes()
    for column in ("_hoodie_record_key", "x"):
        metadata = pq.read_metadata(file)
        chunk = metadata.row_group(0).column(metadata.schema.names.index(column))
        at = chunk.data_page_offset + chunk.total_compressed_size - 3
        file.write_bytes(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
        with pytest.raises(CorruptFileError, match=file.name):
            Table(table.path, COPIES).cluster()
        file.write_bytes(whole)
    Table(table.path, COPIES).cluster()
    table.check()


def test_files_of_before_a_new_column_are_decoded(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    Table(table.path).upsert(simple_rows([5], 20).append_column("more", pa.array([1])))
    (report,) = Table(table.path, COPIES).cluster()
    assert (report.groups_copied, len(report.decoded_because)) == (0, 2)
    assert all(because.endswith("has other columns than the table") for because in report.decoded_because)
    assert Table(table.path).scan("more = 1").to_table().num_rows == 1


def _before(path: str, completion: str) -> str:
    """The completion time before another one."""
    return max(i.completed_at for i in Table(path).timeline.writes if i.completed_at < completion)


def test_captured_changes_are_those_of_before(tmp_path: Path) -> None:
    table = written(tmp_path / "t", **{"hoodie.table.cdc.enabled": "true"})
    before = Table(table.path).scan(query_type="cdc", begin="earliest").to_table()
    Table(table.path).cluster("id")
    assert Table(table.path).scan(query_type="cdc", begin="earliest").to_table().num_rows == before.num_rows


@pytest.mark.parametrize("strategy", ["linear", "zorder", "hilbert"])
def test_rows_lie_so_that_filters_leave_files_out(tmp_path: Path, strategy: str) -> None:
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0"})
    ids = [(n * 37) % 400 for n in range(400)]
    for part in range(4):
        table.write(Operation.INSERT, simple_rows(ids[part * 100 : part * 100 + 100], 1, float(part), partitions=1))
    size = Table(table.path).file_slices()["base_size"].to_pylist()[0]
    options = {"hoodie.clustering.plan.strategy.target.file.max.bytes": str(size // 4)}
    (report,) = Table(table.path, options).cluster(["id", "ts"], strategy=strategy)
    assert report.files_after >= 16
    before, after = report.skipped["id"]
    assert before < 0.1 < 0.6 < after
    scan = Table(table.path).scan("id = 'k0123'")
    assert scan.to_table().num_rows == 1
    assert scan.report.files_kept <= 2
    assert "a filter on one value of id leaves out" in str(report)
    table.check()


def test_partitions_and_dry_runs(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    here = Table(table.path)
    planned = here.cluster("x", partitions="p1", dry_run=True)
    assert "p1: 3 slices" in str(planned)
    assert "p0" not in str(planned)
    assert here.timeline.pending == ()
    here.cluster("x", partitions="p1")
    slices = Table(table.path).file_slices().to_pylist()
    assert sorted(s["partition_path"] for s in slices) == ["p0", "p0", "p0", "p1"]
    assert here.cluster(partitions="nowhere") == []
    with pytest.raises(ConfigError, match="columns of the table"):
        here.cluster("nothing")
    table.check()


def test_a_plan_takes_no_group_of_a_pending_plan_and_keeps_writers_out(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    services = Table(table.path).services.clustering
    instant = services.schedule()
    assert instant is not None
    assert services.schedule() is None
    with pytest.raises(CommitConflict, match=f"the pending clustering {instant} is going to replace"):
        table.write(Operation.UPSERT, simple_rows([7], 20))
    table.write(Operation.INSERT, simple_rows(range(70, 80), 20))
    report = services.execute(instant)
    assert report.commit.file_groups_replaced == 6
    table.write(Operation.UPSERT, simple_rows([7, 70], 21))
    table.check()
    check_all(table.storage)
    with pytest.raises(CommitError, match="no pending clustering"):
        services.execute(instant)


def test_writers_go_first_where_they_are_told_to(tmp_path: Path) -> None:
    table = written(tmp_path / "t", **FIRST)
    instant = clustering.schedule(table.session())
    assert instant is not None
    report = table.write(Operation.UPSERT, simple_rows([7], 20))
    assert f"clustering {instant} was taken back" in str(report)
    assert Table(table.path).timeline.pending == ()
    running = clustering.schedule(table.session())
    assert running is not None
    with table.session().coordinator.running(running, Action.CLUSTERING), pytest.raises(CommitConflict, match=running):
        table.write(Operation.UPSERT, simple_rows([7], 21))
    table.check()
    check_all(table.storage)


@pytest.mark.parametrize("verb", ["insert_overwrite", "insert_overwrite_table", "delete_partition"])
def test_overwrites_too_wait_for_a_plan_or_go_first(tmp_path: Path, verb: str) -> None:
    """Apache Hudi lets them be in any case: its run of the plan then brings back what they took away."""
    table = written(tmp_path / "t")
    given = "p1" if verb == "delete_partition" else simple_rows([7], 20)
    services = Table(table.path).services.clustering
    instant = services.schedule()
    assert instant is not None
    before = table.read()
    with pytest.raises(CommitConflict, match=f"the pending clustering {instant} is going to replace"):
        getattr(Table(table.path), verb)(given)
    assert table.read().equals(before)
    report = getattr(Table(table.path, FIRST), verb)(given)
    assert f"clustering {instant} was taken back" in str(report)
    assert [r["id"] for r in table.read().to_pylist() if r["part"] == "p1"] == ([] if verb == "delete_partition" else ["k0007"])
    check_all(table.storage)


def test_a_cancelled_plan_is_gone(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    services = Table(table.path).services.clustering
    instant = services.schedule()
    assert instant is not None
    services.cancel(instant)
    assert Table(table.path).timeline.pending == ()
    table.write(Operation.UPSERT, simple_rows([7], 20))
    table.check()
    check_all(table.storage)
    with pytest.raises(CommitError, match="no pending clustering"):
        services.cancel(instant)


def test_an_index_made_since_the_plan_is_kept(tmp_path: Path) -> None:
    table = written(tmp_path / "t", **INDEXES["all"])
    services = Table(table.path).services
    instant = services.clustering.schedule()
    assert instant is not None
    Table(table.path).indexes.drop("bloom_filters")
    Table(table.path).indexes.create(type="bloom_filters")
    services.clustering.execute(instant)
    table.check()
    check_all(table.storage)
    Table(table.path).metadata.validate().raise_if_differs()


class _CannotPublish(FaultyStorage):
    """Fails where the completed file of a clustering is created."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path.endswith(".replacecommit"):
            raise StorageError(path, "the store is full")
        super().put_if_absent(path, data)


def test_a_run_that_failed_is_taken_back_and_run_again(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "MERGE_ON_READ", **INDEXES["all"])
    instant = clustering.schedule(table.session())
    assert instant is not None
    with pytest.raises(StorageError):
        clustering.execute(table.session(_CannotPublish(table.storage, FaultPlan(None, Fault.ERROR_BEFORE))), instant)
    table.check()
    table.write(Operation.INSERT, simple_rows(range(70, 80), 20))
    assert table.storage.list(MARKERS) == []
    clustering.execute(table.session(), instant)
    table.check()
    check_all(table.storage)


def test_inline_after_so_many_commits(tmp_path: Path) -> None:
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3", **SORTED}
    given = {**SIMPLE_OPTIONS, "hoodie.parquet.small.file.limit": "0", **inline}
    Table.create(tmp_path / "t", simple_rows([], 0).schema, options=given)
    table = Table(tmp_path / "t", given)
    reports = [table.insert(simple_rows(range(n * 10, n * 10 + 10), n)) for n in range(7)]
    assert ["clustered at" in str(report) for report in reports] == [False, False, True, False, False, True, False]
    assert table.scan().to_table().num_rows == 70
    check_all(ModelledTable(str(tmp_path / "t"), given, exists=True).storage)


def test_tables_in_buckets_are_refused(tmp_path: Path) -> None:
    given = {**SIMPLE_OPTIONS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = ModelledTable(str(tmp_path / "t"), given)
    table.write(Operation.UPSERT, simple_rows(range(10), 1))
    with pytest.raises(UnsupportedFeature, match="buckets"):
        clustering.schedule(table.session(options=OPTIONS.read(given)))


BULK_MODE, BULK_COLUMNS = "hoodie.bulkinsert.sort.mode", "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
COPIES = {"hoodie.clustering.execution.strategy.class": "SparkBinaryCopyClusteringExecutionStrategy"}


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ({BULK_MODE: "GLOBAL_SORT"}, "_hoodie_record_key"),
        ({BULK_COLUMNS: "x"}, "x"),
        ({BULK_MODE: "GLOBAL_SORT", **SORTED}, "x"),
    ],
)
def test_without_columns_of_its_own_a_clustering_sorts_as_bulk_inserts_do(
    tmp_path: Path, options: dict[str, str], column: str
) -> None:
    table = written(tmp_path / "t")
    (report,) = Table(table.path, options).cluster()
    assert next(iter(report.skipped)) == column
    for row in Table(table.path).file_slices().to_pylist():
        values = pq.read_table(Path(table.path) / row["partition_path"] / row["base_file"], columns=[column])[
            column
        ].to_pylist()
        assert values == sorted(values)
    table.check()


def test_row_groups_are_copied_however_bulk_inserts_sort(tmp_path: Path) -> None:
    table = written(tmp_path / "t")
    (report,) = Table(table.path, {BULK_MODE: "GLOBAL_SORT", **COPIES}).cluster()
    assert report.groups_copied == 2
    table.check()


EXPIRES = {"hoodie.clustering.enable.expirations": "true", "hoodie.clustering.expiration.threshold.mins": "0"}


@pytest.mark.parametrize("service", ["clean", "cluster"])
def test_plans_that_are_too_old_are_taken_back(tmp_path: Path, service: str) -> None:
    table = written(tmp_path / "t")
    planned = Table(table.path).services.clustering.schedule()
    assert planned is not None
    young = Table(table.path, {**EXPIRES, "hoodie.clustering.expiration.threshold.mins": "60"})
    young.clean()
    assert clustering.pending(Table(table.path).timeline), "it is not old enough"
    with pytest.warns(HudiWarning, match=f"the clustering planned at {planned} was taken back"):
        getattr(Table(table.path, EXPIRES), service)()
    assert planned not in {i.time for i in Table(table.path).timeline.instants if i.action is not Action.ROLLBACK}
    assert clustering.pending(Table(table.path).timeline) == []
    table.write(Operation.UPSERT, simple_rows(range(30), 12))
    table.check()
    check_all(table.storage)
