"""Input and tables that a write must not take as they are: an error that says what is wrong, and nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.commit.session import WriteSession
from hudimeta.errors import ConfigError, SchemaError, UnsupportedFeature
from hudimeta.storage import open_storage
from hudimeta.table import properties as table_properties
from hudimeta.testing.builders import SIMPLE_OPTIONS, ModelledTable, simple_rows
from hudimeta.testing.invariants import check_all
from hudimeta.timeline.clock import Clock, parse_instant
from hudimeta.types import Action, Operation
from hudimeta.write.table_writer import write_rows

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def table_of(path: Path, kind: str) -> ModelledTable:
    table = ModelledTable(str(path), {**SIMPLE_OPTIONS, "hoodie.datasource.write.table.type": kind})
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    return table


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModelledTable]:
    """`unchanged(type)` is a table for what changes none."""
    return cache(lambda kind: table_of(tmp_path_factory.mktemp("unchanged") / kind, kind))


class Stopped(Clock):
    """A clock that stands still."""

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms


@BOTH
def test_a_clock_that_runs_behind_makes_no_older_instant(tmp_path: Path, kind: str) -> None:
    """A write with an instant before another's would hide below it."""
    table = table_of(tmp_path / "t", kind)
    newest = Table(table.path).timeline.writes[-1]
    behind = Stopped(parse_instant(newest.time, table.session().properties.zone) - 365 * 86_400_000)
    rows = simple_rows(range(3, 9), 2)
    report = write_rows(WriteSession(table.storage, table.options, behind, table.engine), Operation.UPSERT, rows)
    assert report.instant > (newest.completion or "")
    table.model.write(Operation.UPSERT, rows)
    table.check()
    check_all(table.storage)


@BOTH
def test_a_table_with_an_index_that_we_do_not_know_is_left_alone(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    have = table.session().properties["hoodie.table.metadata.partitions"]
    table_properties.update(open_storage(table.path), {"hoodie.table.metadata.partitions": f"{have},vector_index_v"})
    for write in (
        lambda: Table(table.path).upsert(simple_rows([1], 9)),
        lambda: Table(table.path).delete("id = 'k0001'"),
        lambda: Table(table.path).delete_partition("p0"),
        lambda: Table(table.path).alter(drop="x"),
    ):
        with pytest.raises(UnsupportedFeature, match="vector_index_v"):
            write()
    table.check()


@BOTH
@pytest.mark.parametrize(("column", "kind_of_column"), [("ts", pa.decimal128(30, 5)), ("id", pa.list_(pa.string()))])
def test_types_that_do_not_promote(tmp_path: Path, kind: str, column: str, kind_of_column: pa.DataType) -> None:
    table = table_of(tmp_path / "t", kind)
    rows = simple_rows([1], 9)
    at = rows.schema.get_field_index(column)
    odd = rows.set_column(at, column, pa.nulls(1, kind_of_column))
    for operation in (Operation.UPSERT, Operation.INSERT, Operation.INSERT_OVERWRITE):
        with pytest.raises(SchemaError, match=column):
            table.write(operation, odd)
    table.model.check(table.read())


@BOTH
def test_options_that_contradict_the_table(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path / "t", kind)
    for option, value in (
        ("hoodie.datasource.write.recordkey.field", "ts"),
        ("hoodie.datasource.write.precombine.field", "x"),
        ("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING"),
        ("hoodie.write.table.version", "9"),
        ("hoodie.table.cdc.enabled", "true"),
        ("hoodie.table.timeline.timezone", "LOCAL"),
        ("hoodie.table.cdc.supplemental.logging.mode", "OP_KEY_ONLY"),
        ("hoodie.datasource.write.keygenerator.type", "TIMESTAMP"),
        ("hoodie.datasource.write.keygenerator.type", "NON_PARTITION"),
    ):
        with pytest.raises(ConfigError, match=option.replace(".", r"\.")):
            Table(table.path, {option: value}).upsert(simple_rows([1], 9))
    table.check()


@pytest.mark.parametrize(
    "verb", [lambda t: t.upsert(simple_rows([1], 9)), lambda t: t.insert_overwrite_table(simple_rows([1], 9)), Table.cluster]
)
def test_a_table_of_buckets_takes_no_other_index(tmp_path: Path, verb: Callable[[Table], object]) -> None:
    """Its file groups would be no bucket's, and every later write by buckets be refused."""
    table = ModelledTable(str(tmp_path / "t"), {**SIMPLE_OPTIONS, **BUCKETS})
    table.write(Operation.INSERT, simple_rows(range(6), 1))
    for other in ("SIMPLE", "global_bloom", "RECORD_INDEX"):
        with pytest.raises(ConfigError, match=r"hoodie\.index\.type.*what the table has: 'BUCKET'"):
            verb(Table(table.path, {"hoodie.index.type": other}))
    Table(table.path, {"hoodie.index.type": "bucket"}).upsert(simple_rows([1], 9))
    table.model.write(Operation.UPSERT, simple_rows([1], 9))
    table.check()


@BOTH
@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.table.base.file.format": "ORC"},
        {"hoodie.layout.optimize.enable": "true"},
        {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"},
        {"hoodie.datasource.write.record.merger.impls": "com.shop.Merger"},
        {"hoodie.keep.min.commits": "9", "hoodie.keep.max.commits": "9"},
        {"hoodie.compaction.strategy": "com.shop.LogFileSizeBasedCompactionStrategy"},
        {"timestampAsOf": "2026-01-02"},
    ],
)
def test_options_that_are_not_done_are_refused_by_every_verb(
    unchanged: Callable[[str], ModelledTable], tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    table = unchanged(kind)
    before = len(Table(table.path).timeline.writes)
    for verb in (
        lambda: Table(table.path, options).upsert(simple_rows([1], 9)),
        lambda: Table(table.path, options).delete("id = 'k0001'"),
        lambda: Table(table.path, options).clean(),
        lambda: Table.create(tmp_path / "new", simple_rows([], 0).schema, key="id", options=options).upsert(
            simple_rows([1], 9)
        ),
    ):
        with pytest.raises((ConfigError, UnsupportedFeature)):
            verb()
    assert len(Table(table.path).timeline.writes) == before
    table.check()


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({"hoodie.table.log.file.format": "HFILE_LOG"}, False),
        ({"hoodie.datasource.write.slash.separated.date.partitioning": "true"}, True),
        ({"hoodie.table.multiple.base.file.formats.enable": "true"}, True),
        ({"hoodie.bucket.index.partition.rule.type": "range"}, True),
        ({"hoodie.partition.metafile.use.base.format": "true"}, True),
    ],
)
def test_tables_that_use_what_is_not_done_are_refused(tmp_path: Path, changes: dict[str, str], read: bool) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE")
    table_properties.update(open_storage(table.path), changes)
    key = next(iter(changes)).replace(".", r"\.")
    if read:
        assert Table(table.path).scan().to_table().num_rows == 6
    with pytest.raises(UnsupportedFeature, match=key):
        Table(table.path).upsert(simple_rows([1], 9)) if read else Table(table.path)


@pytest.mark.parametrize(("form", "says"), [("ORC", "reading it works"), ("LANCE", r"with Apache Hudi\.$")])
def test_base_files_that_are_not_written_are_named(tmp_path: Path, form: str, says: str) -> None:
    table = table_of(tmp_path / "t", "COPY_ON_WRITE")
    table_properties.update(open_storage(table.path), {"hoodie.table.base.file.format": form})
    with pytest.raises(UnsupportedFeature, match=f"writing {form} base files is not supported.*{says}"):
        Table(table.path).upsert(simple_rows([1], 9))


def test_services_can_be_left_out_of_writes(tmp_path: Path) -> None:
    options = {**SIMPLE_OPTIONS, "hoodie.clean.commits.retained": "1", "hoodie.table.services.enabled": "false"}
    table = ModelledTable(str(tmp_path / "t"), options)
    for ts in range(5):
        table.write(Operation.UPSERT, simple_rows(range(4), ts))
        Table(table.path, options).upsert(simple_rows(range(4), ts))
    assert not [i for i in Table(table.path).timeline.completed if i.action is Action.CLEAN]
    Table(table.path, {**options, "hoodie.table.services.enabled": "true"}).upsert(simple_rows(range(4), 9))
    assert [i for i in Table(table.path).timeline.completed if i.action is Action.CLEAN]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hudimeta.merger", "nowhere:at_all"),
        ("hudimeta.merger", "no name"),
        ("hoodie.bucket.index.num.buckets", "1"),
        ("hoodie.bucket.index.hash.field", "part"),
    ],
)
def test_what_a_verb_needs_later_is_looked_at_first(tmp_path: Path, option: str, value: str) -> None:
    """Services left their plan behind, and overwrites an instant that was rolled back."""
    table = ModelledTable(
        str(tmp_path / "t"), {**SIMPLE_OPTIONS, **BUCKETS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    )
    table.write(Operation.UPSERT, simple_rows(range(4), 1))
    table.write(Operation.UPSERT, simple_rows(range(2), 2))
    before = sorted(path.name for path in (tmp_path / "t/.hoodie").rglob("*"))
    handle, rows = Table(table.path, {option: value}), simple_rows([1], 9)
    for verb in (lambda: handle.insert_overwrite(rows), lambda: handle.insert_overwrite_table(rows), handle.compact):
        with pytest.raises(ConfigError, match=option.replace(".", r"\.")):
            verb()
    assert sorted(path.name for path in (tmp_path / "t/.hoodie").rglob("*")) == before


def test_a_merger_that_is_none_is_told_by_every_read(unchanged: Callable[[str], ModelledTable]) -> None:
    with pytest.raises(ConfigError, match=r"hudimeta\.merger"):
        Table(unchanged("MERGE_ON_READ").path, {"hudimeta.merger": "nowhere:at_all"}).scan().to_table()
