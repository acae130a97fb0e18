"""An index kind that hudimeta does not have, added as CONTRIBUTING says: three rooms, one line in each table of kinds.

`distinct_values/` beside this test is what its author would write: the codec (`hudimeta/metadata/`), `keep.py` with the plan
and `skip.py` (`hudimeta/indexes/<kind>/`), the check (`hudimeta/services/validation/`).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.errors import ValidationFailed
from hudimeta.indexes import plan, registry, skipping
from hudimeta.metadata import kinds
from hudimeta.services.validation import run
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all
from tests.indexes.distinct_values import check, codec, keep, skip

SCHEMA = pa.schema([("id", pa.string()), ("month", pa.string()), ("colour", pa.string()), ("ts", pa.int64())])


@pytest.fixture(autouse=True)
def _new_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds.CODECS, codec.PARTITION, kinds.Codec(codec.SCHEMA, codec.decode_values, codec.encode_values))
    monkeypatch.setattr(registry, "MAINTAINERS", (*registry.MAINTAINERS, keep.DistinctValues()))
    monkeypatch.setitem(plan.PLANNERS, codec.PARTITION, keep.plan)
    monkeypatch.setattr(skipping, "KINDS", (*skipping.KINDS, skip.indexes))
    monkeypatch.setattr(run, "CHECKS", (*run.CHECKS, check.checks))


def rows(month: str, *colours: str | None, first: int = 0, ts: int = 1) -> pa.Table:
    numbers = range(first, first + len(colours))
    columns = [[f"{month}-{n}" for n in numbers], [month] * len(colours), list(colours), [ts] * len(colours)]
    return pa.table(columns, schema=SCHEMA)


def made(path: Path, kind: str = "COPY_ON_WRITE") -> hudimeta.Table:
    """A table of three partitions, indexed after its first write."""
    made = hudimeta.Table.create(str(path), SCHEMA, key="id", partition_by=["month"], ordering=["ts"], type=kind, indexes=[])
    made.insert(pa.concat_tables([rows("jan", "red", "blue"), rows("feb", "blue", None), rows("mar", "amber", "violet")]))
    made.metadata.create_index(type=codec.PARTITION, columns="colour")
    return hudimeta.Table(str(path))


def read(table: hudimeta.Table, where: str) -> tuple[list[str], int, set[str]]:
    """Keys found, slices read, and by what others were left out."""
    scan = hudimeta.Table(table.path).scan(where=where)
    keys = sorted(scan.to_table()["id"].to_pylist())
    return keys, scan.report.slices_kept, {skip.by for skip in scan.report.skipped}


def test_scan_leaves_files_out_by_it(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    assert read(table, "colour = 'blue'") == (["feb-0", "jan-1"], 2, {codec.PARTITION})
    assert read(table, "colour IN ('amber', 'none')") == (["mar-0"], 1, {codec.PARTITION})
    assert read(table, "colour > 'b'") == (["feb-0", "jan-0", "jan-1", "mar-1"], 3, set())


def test_switching_it_off_changes_no_answer(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    off = hudimeta.Table(table.path, {"hudimeta.index.use": "none"}).scan(where="colour = 'amber'")
    assert off.to_table()["id"].to_pylist() == ["mar-0"]
    assert off.report.slices_kept == 3


def test_commits_keep_it(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.upsert(rows("jan", "green", ts=2))
    table.insert(rows("apr", "green"))
    assert read(table, "colour = 'green'") == (["apr-0", "jan-0"], 2, {codec.PARTITION})
    assert read(table, "colour = 'red'")[:2] == ([], 0)
    table.delete("id = 'jan-0'")
    assert read(table, "colour = 'green'")[:2] == (["apr-0"], 1)
    check_all(open_storage(table.path))


def test_log_files_are_unknown_and_stay(tmp_path: Path) -> None:
    table = made(tmp_path / "t", "MERGE_ON_READ")
    table.upsert(rows("jan", "green", ts=2))
    assert read(table, "colour = 'green'") == (["jan-0"], 1, {codec.PARTITION})


def test_cleaning_takes_the_records_of_deleted_files(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for ts in (2, 3, 4):
        table.upsert(rows("jan", f"shade {ts}", ts=ts))
    hudimeta.Table(table.path, {"hoodie.clean.commits.retained": "1"}).clean()
    shades = hudimeta.Table(table.path).metadata.records(codec.PARTITION)["value"].to_pylist()
    assert "shade 4" in shades
    assert not {"red", "shade 2"} & set(shades)


def test_validation_holds_it_against_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    assert hudimeta.Table(table.path).metadata.validate([codec.PARTITION]).holds
    monkeypatch.setattr(keep, "values_of", lambda *_: pa.array(["grey"], pa.string()))
    table.upsert(rows("jan", "green", ts=2))
    with pytest.raises(ValidationFailed, match="other values than the file's: 1"):
        hudimeta.Table(table.path).metadata.validate([codec.PARTITION]).raise_if_differs()


def test_without_who_keeps_it_no_write_leaves_it_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    monkeypatch.setattr(registry, "MAINTAINERS", registry.MAINTAINERS[:-1])
    with pytest.raises(hudimeta.HudiError, match=codec.PARTITION):
        table.insert(rows("apr", "green"))
