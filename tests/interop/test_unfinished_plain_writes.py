"""Apache Hudi takes back what a Spark job of ours left, and a write whose metadata table was just compacted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudimeta
from hudimeta.api.plain_write import PlainWrite
from hudimeta.types import Action
from tests.interop.apache_hudi import ROOT, ApacheHudi
from tests.interop.sides import SCHEMA, Model, Ours, Theirs, assert_everybody_reads, row


def begin(path: Path, hudi: ApacheHudi, options: dict[str, str]) -> tuple[Ours, Theirs, Model]:
    """A table that we have written three times."""
    ours, theirs, model = Ours(path, options=options), Theirs(path, hudi), Model()
    for turn in range(3):
        rows = [row(n, 100 + turn) for n in range(10 * turn, 10 * turn + 20)]
        ours.write("upsert", rows)
        model.put(rows)
    return ours, theirs, model


@pytest.mark.timeout(300)
def test_a_job_that_ended_after_its_tasks(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Its tasks staged rows and wrote files; the job never came to commit them."""
    path = tmp_path / "table"
    _, theirs, model = begin(path, hudi, {})
    doomed = pa.Table.from_pylist([row(n, 500) for n in range(50)], SCHEMA)
    for operation in ("upsert", "bulk_insert"):
        write = PlainWrite.begin(str(path), {"hoodie.datasource.write.operation": operation}, SCHEMA, overwrite=False)
        write.write(iter(doomed.to_batches()), 0, 0)
    assert len(hudimeta.Table(path).timeline.pending) == 2
    rows = [row(n, 600) for n in range(5, 15)]
    theirs.write("upsert", rows)
    model.put(rows)
    assert not hudimeta.Table(path).timeline.pending
    assert_everybody_reads(path, hudi, model.sorted(), "the write by Apache Hudi")
    assert all(hudi.validate(path).values())


@pytest.mark.timeout(300)
def test_a_write_that_died_when_the_metadata_table_was_compacted(hudi: ApacheHudi, tmp_path: Path) -> None:
    """Hudi takes no write back whose instant lies before the last compaction: so none may."""
    path = tmp_path / "table"
    _, theirs, model = begin(path, hudi, {"hoodie.metadata.compact.max.delta.commits": "1"})
    assert [i for i in hudimeta.Table(path).metadata.timeline.writes if i.action is Action.COMMIT]
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([row(n, 500) for n in range(50)], SCHEMA), file)
    command = [sys.executable, str(ROOT / "tests/interop/dying_writer.py"), str(path), str(file)]
    done = subprocess.run([*command, r"put_if_absent \.hoodie/timeline/\d+_\d+\.commit"], cwd=ROOT, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    rows = [row(n, 600) for n in range(5, 15)]
    theirs.write("upsert", rows)
    model.put(rows)
    assert not hudimeta.Table(path).timeline.pending
    assert_everybody_reads(path, hudi, model.sorted(), "the write by Apache Hudi")
    assert all(hudi.validate(path).values())
