"""Bounds of partitions after columns changed their names or types: whoever reads by them misses no row of older files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudimeta import Table
from hudimeta.indexes.column_stats.keep import PartitionStatsKeep
from hudimeta.indexes.protocol import CommitChange, IndexDelta
from hudimeta.metadata import column_stats, partition_stats
from hudimeta.metadata.delta import PartitionDelta
from hudimeta.metadata.statistics import widened_partition_statistics
from hudimeta.storage import open_storage
from hudimeta.testing.invariants import check_all

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
ANYTHING = ("", chr(0x10FFFF) * 8)


def bounds(path: Path, name: str) -> dict[str, tuple[str, str]]:
    """Of a column of texts, by partition, as the metadata table has them."""
    metadata, wanted = Table(path).snapshot().metadata, {name: pa.string()}
    assert metadata is not None
    records = metadata.prefixed(partition_stats.PARTITION, column_stats.prefixes(wanted, None))
    stated = column_stats.typed_columns(records, wanted)[name].to_pylist()
    return {r["file_name"]: (r["min"], r["max"]) for r in stated}


@BOTH
@pytest.mark.parametrize("how", ["renamed", "retyped", "written as texts"])
def test_partitions_are_not_said_to_lack_what_their_older_files_hold(tmp_path: Path, kind: str, how: str) -> None:
    """Apache Hudi passes over a partition whose bounds of a column leave no value that is looked for."""
    names = {"id": pa.string(), "ts": pa.int64(), "region": pa.string(), "note": pa.string(), "many": pa.int32()}
    schema = pa.schema(list(names.items()))
    rows = [{"id": f"k{n}", "ts": 1, "region": "eu" if n % 2 else "us", "note": f"n{n}", "many": n * 7} for n in range(8)]
    options = {"hudimeta.schema.widen": "any"}
    table = Table.create(tmp_path / "t", schema, "id", "region", "ts", kind, ["column_stats", "partition_stats"], options)
    table.insert(pa.Table.from_pylist(rows, schema=schema))
    if how == "renamed":
        table.alter(rename={"note": "remark"})
    elif how == "retyped":
        table.alter(retype={"many": pa.string()})
    else:
        texts = pa.schema(list((names | {"many": pa.string()}).items()))
        table.upsert(pa.Table.from_pylist([{**rows[1], "many": "x"}], schema=texts))
    name = "remark" if how == "renamed" else "many"
    assert bounds(tmp_path / "t", name) == {"eu": ANYTHING, "us": ANYTHING}
    check_all(open_storage(tmp_path / "t"))
    table.update({"ts": 2}, where="id = 'k1'")
    check_all(open_storage(tmp_path / "t"))
    if kind == "MERGE_ON_READ":
        table.compact()
        check_all(open_storage(tmp_path / "t"))
    table.cluster(["ts"])
    check_all(open_storage(tmp_path / "t"))


def by_new_files_alone(keep: PartitionStatsKeep, partition: str, change: CommitChange) -> IndexDelta:
    """How Apache Hudi bounds partitions by a column whose name older files do not know."""
    files = [(file.partition_path, file.statistics) for file in change.written]
    rows, _ = widened_partition_statistics(files, {}, {"remark": pa.string()}, "V1")
    return IndexDelta([PartitionDelta(partition, partition_stats.encode_values(rows, change.layout))])


@BOTH
def test_partitions_that_others_bounded_by_new_files_alone_are_bounded_again(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or Apache Hudi goes on to pass over the rows of older files, which the next write of hudimeta is to end."""
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("region", pa.string()), ("note", pa.string())])
    rows = [{"id": f"k{n}", "ts": 1, "region": "eu" if n % 2 else "us", "note": f"n{n}"} for n in range(8)]
    options = {"hoodie.parquet.small.file.limit": "0"}
    table = Table.create(tmp_path / "t", schema, "id", "region", "ts", kind, ["column_stats", "partition_stats"], options)
    table.insert(pa.Table.from_pylist(rows, schema=schema))
    table.alter(rename={"note": "remark"})
    new = pa.schema([schema.field(n) for n in ("id", "ts", "region")] + [("remark", pa.string())])
    more = [{"id": f"m{n}", "ts": 1, "region": "eu" if n % 2 else "us", "remark": "z"} for n in range(4)]

    with monkeypatch.context() as others:
        others.setattr(PartitionStatsKeep, "delta", by_new_files_alone)
        Table(tmp_path / "t", options).insert(pa.Table.from_pylist(more, schema=new))
    assert bounds(tmp_path / "t", "remark") == {"eu": ("z", "z"), "us": ("z", "z")}
    Table(tmp_path / "t", options).upsert(pa.Table.from_pylist([{**more[0], "ts": 2}], schema=new))
    assert bounds(tmp_path / "t", "remark") == {"eu": ANYTHING, "us": ANYTHING}
    size = len(Table(tmp_path / "t").metadata.records("partition_stats"))
    Table(tmp_path / "t", options).upsert(pa.Table.from_pylist([{**more[0], "ts": 3}], schema=new))
    assert bounds(tmp_path / "t", "remark") == {"eu": ANYTHING, "us": ANYTHING}
    assert len(Table(tmp_path / "t").metadata.records("partition_stats")) == size
