"""A writer dies; the other engine's next write, or `recover`, takes back what it left, and both go on."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.errors import CorruptFileError
from hudimeta.testing.builders import ModelledTable
from hudimeta.types import Operation
from tests.interop.apache_hudi import ROOT, ApacheHudi, HudiFailed
from tests.interop.sides import FULL, SCHEMA, TABLE_VERSION, Model, Ours, Row, Theirs, assert_everybody_reads, row

REFUSED = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
"""Options by which a write of Apache Hudi fails between its data files and its commit, and leaves everything as it is then."""

ASYNC = {
    "hoodie.metadata.index.async": "true",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.table.version": TABLE_VERSION,
    "hoodie.write.auto.upgrade": "false",
}
"""What Apache Hudi must be told to build an index beside writers."""

DEATHS = {
    "data written": r"put_if_absent \.hoodie/metadata/\.hoodie/timeline/\d+\.deltacommit\.requested",
    "metadata half written": r"put \.hoodie/metadata/column_stats/",
    "metadata written": r"put_if_absent \.hoodie/timeline/\d+_\d+\.commit",
}
"""When a writer of ours dies: before which request."""


def _begin(path: Path, hudi: ApacheHudi) -> tuple[Ours, Theirs, Model]:
    """A table that each has written once."""
    ours, theirs, model = Ours(path), Theirs(path, hudi), Model()
    for side, first in ((ours, 0), (theirs, 20)):
        rows = [row(n, 100) for n in range(first, first + 30)]
        side.write("upsert", rows)
        model.put(rows)
    return ours, theirs, model


def _doomed() -> list[Row]:
    """Updates in every partition and rows for a new one; none of them may ever be seen."""
    rows = [dict(row(n, 500), note="doomed") for n in range(0, 60, 2)]
    return [*rows, dict(row(900, 500), month="2026-09")]


def _traces(path: Path, instant: str) -> list[str]:
    """Files that bear an instant, but for those of the rollbacks that name it."""
    return sorted(str(f.relative_to(path)) for f in path.rglob(f"*{instant}*") if f.is_file() and ".crc" not in f.name)


def _pending(path: Path) -> list[str]:
    return [i.time for i in hudimeta.Table(path).timeline.pending]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("server", [False, True] if FULL else [False])
def test_we_take_back_a_write_of_hudi(hudi: ApacheHudi, tmp_path: Path, server: bool) -> None:
    path = tmp_path / "table"
    ours, theirs, model = _begin(path, hudi)
    theirs.options = {**REFUSED, "hoodie.embed.timeline.server": str(server).lower()}
    with pytest.raises(HudiFailed, match="Failed to upsert"):
        theirs.write("upsert", _doomed())
    (dead,) = _pending(path)
    assert [f for f in _traces(path, dead) if f.endswith(".parquet")]
    assert_everybody_reads(path, hudi, model.sorted(), "the write that died")
    assert hudimeta.Table(path).recover() == (dead,)
    assert not _traces(path, dead)
    theirs.options = {}
    _go_on(path, hudi, ours, theirs, model)


def test_we_take_back_a_write_of_hudi_that_its_metadata_table_knows(hudi: ApacheHudi, tmp_path: Path) -> None:
    """It died in the very last step, between the metadata table's commit and its own; its markers may be gone as well."""
    path = tmp_path / "table"
    ours, theirs, model = _begin(path, hudi)
    theirs.write("upsert", _doomed())
    dead = hudimeta.Table(path).timeline.writes[-1]
    (path / ".hoodie/timeline" / dead.file_name).unlink()
    (path / ".hoodie/timeline" / f".{dead.file_name}.crc").unlink(missing_ok=True)
    assert_everybody_reads(path, hudi, model.sorted(), "the write that died")
    ours.write("upsert", [])  # nothing to write takes nothing back
    assert _pending(path) == [dead.time]
    _go_on(path, hudi, ours, theirs, model)
    assert not _traces(path, dead.time)


def _empty(file: Path) -> None:
    """As Apache Hudi leaves it that was killed after it had made the file, long ago, and before it wrote it."""
    file.write_bytes(b"")
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    os.utime(file, (1, 1))


@pytest.mark.filterwarnings("ignore:.* is empty:hudimeta.config.HudiWarning")
def test_both_go_on_over_an_empty_compaction_of_the_metadata_table(hudi: ApacheHudi, tmp_path: Path) -> None:
    path = tmp_path / "table"
    ours, theirs, model = _begin(path, hudi)
    theirs.options = {"hoodie.metadata.compact.max.delta.commits": "1"}
    rows = [row(n, 200) for n in range(10)]
    theirs.write("upsert", rows)
    model.put(rows)
    _empty(sorted((path / ".hoodie/metadata/.hoodie/timeline").glob("*_*.commit"))[-1])
    theirs.options = {}
    _go_on(path, hudi, ours, theirs, model)


@pytest.mark.filterwarnings("ignore:.* is empty:hudimeta.config.HudiWarning")
def test_we_go_on_over_an_empty_commit_as_hudi_does(hudi: ApacheHudi, tmp_path: Path) -> None:
    """The newest one we take back when we are told to."""
    path = tmp_path / "table"
    ours, theirs, model = _begin(path, hudi)
    for number, ts in ((10, 200), (20, 300)):
        theirs.write("upsert", rows := [row(n, ts) for n in range(number)])
        model.put(rows)
        if ts == 200:
            _empty(path / ".hoodie/timeline" / hudimeta.Table(path).timeline.writes[-1].file_name)
    _go_on(path, hudi, ours, theirs, model)
    theirs.write("upsert", _doomed())
    newest = hudimeta.Table(path).timeline.writes[-1]
    _empty(path / ".hoodie/timeline" / newest.file_name)
    with pytest.raises(CorruptFileError, match=f"t.rollback\\('{newest.time}'\\)"):
        ours.write("upsert", [row(1, 900)])
    hudimeta.Table(path).rollback(newest.time)
    assert not _traces(path, newest.time)
    _go_on(path, hudi, theirs, ours, model)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("death", DEATHS if FULL else ["metadata written"])
def test_hudi_takes_back_a_write_of_ours(hudi: ApacheHudi, tmp_path: Path, death: str) -> None:
    path = tmp_path / "table"
    ours, theirs, model = _begin(path, hudi)
    dead = _die(path, tmp_path / "rows.parquet", DEATHS[death])
    data_files = [f for f in _traces(path, dead) if f.endswith(".parquet")]
    assert data_files
    assert len(list((path / f".hoodie/.temp/{dead}").rglob("*.marker.*"))) == len(data_files)
    assert_everybody_reads(path, hudi, model.sorted(), "the write that died")
    _go_on(path, hudi, theirs, ours, model)
    assert not _traces(path, dead)


def _die(path: Path, rows: Path, pattern: str) -> str:
    pq.write_table(pa.Table.from_pylist(_doomed(), SCHEMA), rows)
    script = ROOT / "tests" / "interop" / "dying_writer.py"
    done = subprocess.run([sys.executable, str(script), str(path), str(rows), pattern], cwd=ROOT, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    (dead,) = _pending(path)
    return dead


def test_we_take_back_an_index_that_hudi_named_and_did_not_complete(hudi: ApacheHudi, tmp_path: Path) -> None:
    path = tmp_path / "table"
    ours, theirs, model = _begin(path, hudi)
    options = {**ASYNC, "hoodie.metadata.index.bloom.filter.enable": "true"}
    planned = hudi.service(path, "plan_index", options, "BLOOM_FILTERS")
    hudi.service(path, "run_index", options, planned)
    for file in path.glob(f".hoodie/timeline/*{planned}_*"):
        file.unlink()
    table = hudimeta.Table(path)
    assert "bloom_filters" in table.properties["hoodie.table.metadata.partitions"]
    assert "bloom_filters" not in table.metadata.ready
    assert_everybody_reads(path, hudi, model.sorted(), "the build that died")
    assert table.recover() == (planned,)
    assert _pending(path) == [planned]
    assert hudimeta.Table(path).services.indexing.execute(str(planned)).partition == "bloom_filters"
    _go_on(path, hudi, ours, theirs, model)


def _go_on(path: Path, hudi: ApacheHudi, first: Ours | Theirs, second: Ours | Theirs, model: Model) -> None:
    """Both write again; rows and metadata table are right after each."""
    for side, ts in ((first, 600), (second, 700)):
        rows = [row(n, ts) for n in range(10, 60, 5)]
        side.write("upsert", rows)
        model.put(rows)
        assert_everybody_reads(path, hudi, model.sorted(), f"the next write by {type(side).__name__}")
        assert all(hudi.validate(path).values())
        assert not _pending(path)


def test_hudi_takes_back_a_write_of_ours_that_another_one_outlasted(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Where its options do not say that the table is shared, it does so only if a heartbeat shows it."""
    path = tmp_path / "table"
    ours, theirs, model = _begin(path, hudi)
    session = ModelledTable(str(path), {}, exists=True).session()
    session.coordinator.begin(Operation.UPSERT)
    rows = [row(n, 200) for n in range(5)]
    ours.write("upsert", rows)
    model.put(rows)
    del session
    gc.collect()
    _go_on(path, hudi, theirs, ours, model)
