"""Reads and writes of a table with a metadata table list no folder of data, and a cold plan has a budget of requests.

The budget of a cold plan: 2 LIST, and 6 GET, one GET for each log of the metadata table that is not yet compacted, one for each
completed replacecommit on the active timeline. The number of partitions and of files is not in it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudimeta
from hudimeta.types import Action
from tests.acceptance.counted import Counter
from tests.conftest import Unpack
from tests.recorded_tables import RICH

TIMELINES = {".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline", ".hoodie", ".hoodie/metadata/.hoodie"}
"""Version 6 keeps its instants in the folder `.hoodie` itself."""
LISTED = ("files", "column_stats", "partition_stats")


def budget(path: Path, partitions: tuple[str, ...]) -> int:
    """GETs that a cold plan may cost that reads these partitions of the metadata table."""
    table = hudimeta.Table(path)
    metadata = table.metadata
    logs = sum(len(g.logs) for p in partitions if p in metadata.ready for g in metadata.file_groups(p))
    replaced = sum(i.action is Action.REPLACE_COMMIT for i in table.timeline.completed)
    # A log compaction rewrites logs into one that no commit of the data table stands behind: finding it costs a read more.
    own = {i.time for i in table.timeline.completed}
    compacted_logs = sum(
        i.time not in own for i in metadata.timeline.writes if i.action is Action.DELTA_COMMIT and i.time > "1"
    )
    return 6 + logs + replaced + compacted_logs


def predicate_over(path: Path) -> str:
    """A predicate that looks at statistics and can exclude nothing."""
    column = next(field.name for field in hudimeta.Table(path).schema if not field.name.startswith("_hoodie_"))
    return f"({column} IS NULL OR {column} IS NOT NULL) AND _hoodie_commit_time > '0'"


def plan_of(path: Path, counter: Counter, where: str | None) -> tuple[list[str], list[str]]:
    """Folders listed and files read by a cold plan."""
    plan = hudimeta.Table(path).scan(where=where).plan()
    lists, gets = counter.lists(), counter.gets()
    assert (plan.report.requests_of("LIST"), plan.report.requests_of("GET")) == (len(lists), len(gets))
    return lists, gets


@pytest.mark.parametrize("name", ["archived_lsm", "big_mor"])
def test_a_cold_plan_of_a_long_lived_table_stays_in_the_budget(name: str, rich_table: Unpack, counter: Counter) -> None:
    path = rich_table(name)
    for where, partitions in ((None, ("files",)), (predicate_over(path), LISTED)):
        allowed = budget(path, partitions)
        lists, gets = plan_of(path, counter, where)
        assert sorted(lists) == [".hoodie/metadata/.hoodie/timeline", ".hoodie/timeline"]
        assert len(gets) <= allowed
        assert len(gets) == len(set(gets)), "nothing is read twice"


@pytest.mark.rotation(5)
@pytest.mark.parametrize("name", RICH.names())
def test_a_read_lists_no_folder_of_data(name: str, rich_table: Unpack, counter: Counter) -> None:
    path = rich_table(name)
    table = hudimeta.Table(path)
    if not table.properties.has_metadata_table:
        scan = table.scan()
        assert scan.report.fallbacks, "a table without a metadata table is listed, and the report says so"
        return
    altered = {".hoodie/.schema"} if (path / ".hoodie" / ".schema").is_dir() else set()
    folders = {".hoodie/metadata/files"} if table.version == 6 else set()
    for where, partitions in ((None, ("files",)), (predicate_over(path), LISTED)):
        allowed = budget(path, partitions)
        lists, gets = plan_of(path, counter, where)
        assert set(lists) <= TIMELINES | altered | folders
        assert len(lists) == len(set(lists)), "no folder is listed twice"
        assert len(gets) <= allowed
    scan = hudimeta.Table(path).scan()
    scan.to_table()
    assert set(counter.lists()) <= TIMELINES | altered | folders
    assert counter.data_files() <= set(scan.plan().files)


@pytest.mark.parametrize("partitions", [1, 40])
def test_writes_list_no_folder_of_data(partitions: int, tmp_path: Path, counter: Counter) -> None:
    schema = pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", pa.float64())])

    def rows(low: int, high: int) -> pa.Table:
        ids = list(range(low, high))
        return pa.table(
            {"id": ids, "part": [f"p{i % partitions:02d}" for i in ids], "value": [i / 2 for i in ids]}, schema=schema
        )

    hudimeta.Table.create(tmp_path / "t", schema, key="id", partition_by="part")
    for write in (
        lambda t: t.bulk_insert(rows(0, 200)),
        lambda t: t.insert(rows(200, 260)),
        lambda t: t.upsert(rows(100, 300)),
        lambda t: t.delete(rows(0, 20)),
        lambda t: t.delete("id = 33"),
        lambda t: t.insert_overwrite(rows(20, 20 + partitions)),
        lambda t: t.insert_overwrite_table(rows(0, 100)),
    ):
        report = write(hudimeta.Table(tmp_path / "t"))
        lists = counter.lists()
        assert not [folder for folder in lists if folder not in TIMELINES and not is_metadata(folder)], report.operation
        for folder in {f for f in lists if is_metadata(f)}:
            assert lists.count(folder) == 1, f"{report.operation} lists {folder} once at most"
        assert not [folder for folder in lists if folder.startswith("p")]
    lists, gets = plan_of(tmp_path / "t", counter, predicate_over(tmp_path / "t"))
    assert len(lists) == 2
    assert len(gets) <= budget(tmp_path / "t", LISTED)


def is_metadata(folder: str) -> bool:
    """A partition of the metadata table, or a folder that the write itself made."""
    parent, _, name = folder.rpartition("/")
    return (parent == ".hoodie/metadata" and not name.startswith(".")) or folder.startswith(".hoodie/.temp")


def test_a_second_scan_of_an_unchanged_table_lists_the_timeline_and_reads_nothing(rich_table: Unpack, counter: Counter) -> None:
    table = hudimeta.Table(rich_table("big_mor"))
    table.scan().plan()
    mark = len(counter.log)
    assert table.scan().plan().files
    assert counter.lists(mark) == [".hoodie/timeline"]
    assert counter.gets(mark) == []


def test_budgets_hold_whatever_the_number_of_partitions(tmp_path: Path, counter: Counter) -> None:
    """The same writes into 2 and into 120 partitions: the same plan, request by request."""
    costs = []
    for partitions in (2, 120):
        path = tmp_path / f"t{partitions}"
        ids = list(range(240))
        rows = pa.table({"id": ids, "part": [f"{i % partitions:03d}" for i in ids]})
        hudimeta.Table.create(path, rows.schema, key="id", partition_by="part").bulk_insert(rows)
        lists, gets = plan_of(path, counter, None)
        costs.append((len(lists), len(gets)))
        lists, gets = plan_of(path, counter, "part = '001'")
        costs.append((len(lists), len(gets)))
        assert hudimeta.Table(path).scan(where="part = '001'").to_table().num_rows == 240 // partitions
    assert costs[:2] == costs[2:]
    assert costs[0] <= (2, 6 + 1)
