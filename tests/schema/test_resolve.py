"""Which schema a table has."""

from __future__ import annotations

import io
import json

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudimeta.errors import SchemaError
from hudimeta.formats.properties import decode_properties
from hudimeta.schema import resolve_table_schema, table_avro_schema
from hudimeta.types import META_COLUMNS
from tests.recorded_tables import RICH
from tests.schema.test_avro_arrow import DATA_COMMITS

A = pa.schema([("a", pa.int32())])
B = pa.schema([("a", pa.int64()), ("b", pa.string())])


def commit(schema, operation="UPSERT"):
    extra = {} if schema is None else {"schema": table_avro_schema(schema, "t")}
    return lambda: {"operationType": operation, "extraMetadata": extra}


def forbidden():
    raise AssertionError("this must not be read")


def test_the_newest_commit_counts_and_older_ones_are_not_read():
    found = resolve_table_schema([("2", commit(B)), ("1", forbidden)], create_schema="{}", base_file_schema=forbidden)
    assert (found.data, found.source) == (B, "commit 2")
    assert found.full.names == [*META_COLUMNS, "a", "b"]
    assert all(f.nullable and f.type == pa.string() for f in list(found.full)[:5])


def test_as_of():
    commits = [("2", forbidden), ("1", commit(A))]
    assert resolve_table_schema(commits, as_of="1").data == A


def test_commits_without_schema_are_passed_over():
    assert resolve_table_schema([("2", commit(None)), ("1", commit(A))]).data == A


def test_a_compaction_counts_only_when_nothing_else_does():
    newest_first = [("3", commit(A, "COMPACT")), ("2", commit(B)), ("1", forbidden)]
    assert resolve_table_schema(newest_first).data == B
    assert resolve_table_schema([("3", commit(A, "CLUSTER")), ("2", commit(None))]).source == "commit 3"


def test_create_schema_then_base_file():
    text = table_avro_schema(A, "t", create_schema=True)
    assert resolve_table_schema([], create_schema=text, base_file_schema=forbidden).source == "create schema"
    file = pa.schema([*[pa.field(m, pa.string()) for m in META_COLUMNS], *B])
    found = resolve_table_schema([], base_file_schema=lambda: file)
    assert (found.data, found.source, found.avro) == (B, "base file", None)
    with pytest.raises(SchemaError, match=r"hoodie\.table\.create\.schema"):
        resolve_table_schema([], base_file_schema=lambda: None)


def test_dropped_partition_columns_come_last():
    assert resolve_table_schema([("1", commit(A))], partition_fields=["p", "a"]).data.names == ["a", "p"]


def test_a_schema_that_carries_meta_columns_is_not_doubled():
    text = table_avro_schema(A, "t", meta_columns=True)
    found = resolve_table_schema([("1", lambda: {"extraMetadata": {"schema": text}})])
    assert found.data == A


@pytest.mark.parametrize("name", RICH.names())
def test_recorded_tables_have_the_columns_that_apache_hudi_shows(name, rich_table):
    base = rich_table(name)
    properties = decode_properties((base / ".hoodie" / "hoodie.properties").read_bytes())
    folder = base / ".hoodie" / ("timeline" if (base / ".hoodie" / "timeline").is_dir() else "")
    done = sorted((f for f in folder.glob("*") if f.name.endswith(DATA_COMMITS) and f.stat().st_size), reverse=True)

    def reader(path):
        def read():
            content = path.read_bytes()
            return next(iter(fastavro.reader(io.BytesIO(content)))) if content[:3] == b"Obj" else json.loads(content)

        return read

    def any_file():
        files = (f for f in base.rglob("*.parquet") if ".hoodie" not in f.relative_to(base).parts)
        return next((pq.read_schema(f) for f in files), None)

    drops = properties.get("hoodie.datasource.write.drop.partition.columns") == "true"
    fields = properties.get("hoodie.table.partition.fields", "").split(",") if drops else []
    found = resolve_table_schema(
        [(f.name.split("_")[0].split(".")[0], reader(f)) for f in done],
        create_schema=properties.get("hoodie.table.create.schema"),
        base_file_schema=any_file,
        partition_fields=fields,
    )
    shown = [c["name"] for c in RICH.answer(name)["schema"] if c["name"] not in META_COLUMNS]
    assert found.data.names == shown
    if found.internal is not None:
        assert found.internal.arrow.names == shown
