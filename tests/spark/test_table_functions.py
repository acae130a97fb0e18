"""Table functions of SQL answer as the engine does, in classic sessions and through Connect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_hudimeta
import pytest
from pyspark.errors import AnalysisException
from pyspark_hudimeta.spark_version import is_connect

import hudimeta
from tests.elsewhere import REMOTE, only_when
from tests.spark.tables import create, refusal, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def sql(spark: SparkSession) -> Callable[[str], Any]:
    """`sql(text)` is the answer of a session that knows the functions, as Arrow."""
    pyspark_hudimeta.register_functions(spark)
    return lambda text: spark.sql(text).toArrow()


def same(found: Any, expected: Any) -> None:
    """The same columns and rows; order does not count."""
    assert found.column_names == expected.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.cast(found.schema).to_pylist()))
    assert expected.num_rows > 0


@pytest.mark.oldest
def test_the_timeline(sql: Callable[[str], Any], recorded_table: Callable[[str], Path]) -> None:
    path = recorded_table("archived_lsm")
    timeline = hudimeta.Table(path).timeline
    active = sql(f"select * from hudi_timeline('{path}')")
    assert active.column("timestamp").to_pylist() == [i.time for i in timeline]
    assert {"COMPLETED"} == set(active.column("state").to_pylist())
    query = "select Timestamp from hudi_query_timeline('{}', archived => true) where Total_Records_Written > 0"
    assert sql(query.format(path)).num_rows > len(timeline.writes)


@pytest.mark.rotation(2)
@pytest.mark.parametrize("partition", ["files", "column_stats", "record_index", "bloom_filters"])
def test_the_metadata_table(sql: Callable[[str], Any], recorded_table: Callable[[str], Path], partition: str) -> None:
    path = recorded_table("mdt_all_v8")
    same(sql(f"select * from hudi_metadata('{path}', '{partition}')"), hudimeta.Table(path).metadata.records(partition))


def test_records_of_the_whole_metadata_table(sql: Callable[[str], Any], recorded_table: Callable[[str], Path]) -> None:
    path = recorded_table("mdt_all_v8")
    metadata, call = hudimeta.Table(path).metadata, f"hudi_metadata('{path}')"
    keys = sql(f"select key, recordIndexMetadata.partitionName as p from {call} where type = 5")
    assert sorted(keys["key"].to_pylist()) == sorted(metadata.records("record_index")["record_key"].to_pylist())
    files = sql(f"select explode(map_keys(filesystemMetadata)) as name from {call} where type = 2")
    assert sorted(files["name"].to_pylist()) == sorted(metadata.files()["name"].to_pylist())
    bounds = f"select ColumnStatsMetadata.* from {call} where type = 3"
    (found,) = sql(
        f"select min(minValue.member6.value) as x from ({bounds}) where columnName = '_hoodie_record_key'"
    ).to_pylist()
    assert found["x"] == min(hudimeta.Table(path).scan().to_table()["_hoodie_record_key"].to_pylist())


def test_rows_by_the_type_of_query(sql: Callable[[str], Any], spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path / "t", type="MERGE_ON_READ")
    table.upsert(rows([1], ts=2, x=-1.0))
    for kind in ("snapshot", "read_optimized"):
        expected = hudimeta.Table(table.path).scan(query_type=kind).to_table()
        same(sql(f"select * from hudi_query('{table.path}', '{kind}')"), expected)
    told = sql(f"select s.id from hudi_query('{table.path}', 'SNAPSHOT') s where x = -1.0")
    assert told["id"].to_pylist() == [1]
    if not REMOTE:
        frame = spark.sql(f"select id from hudi_query('{table.path}', 'snapshot')")
        table.upsert(rows([20]))
        assert frame.count() == 10, "the rows of the moment in which the query was made"


@pytest.mark.oldest
def test_rows_that_changed(sql: Callable[[str], Any], tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    begin = table.timeline.writes[-1].completion
    table.upsert(rows([1, 11], ts=2))
    end = table.timeline.writes[-1].completion
    table.upsert(rows([2], ts=3))
    everything = sql(f"select * from hudi_table_changes('{table.path}', 'latest_state', 'earliest')")
    same(everything, hudimeta.Table(table.path).scan().to_table())
    cases = [(f"'{begin}'", [1, 2, 11]), (f"'{begin}', '{end}'", [1, 11]), (f"'{begin}', end => '{end}'", [1, 11])]
    for words, ids in cases:
        found = sql(f"select id from hudi_table_changes('{table.path}', 'latest_state', {words})")
        assert sorted(found.column("id").to_pylist()) == ids


@pytest.mark.rotation(2)
@pytest.mark.parametrize("name", ["cdc_cow_full", "cdc_mor_before"])
def test_changes_one_by_one(sql: Callable[[str], Any], recorded_table: Callable[[str], Path], name: str) -> None:
    path = recorded_table(name)
    expected = hudimeta.Table(path).scan(query_type="cdc", begin="earliest").to_table()
    same(sql(f"select * from hudi_table_changes('{path}', 'cdc', 'earliest')"), expected)


@pytest.mark.rotation(2)
@pytest.mark.oldest
@pytest.mark.parametrize("name", ["all_types_mor", "all_types_cow8"])
def test_every_type_comes_through(sql: Callable[[str], Any], recorded_table: Callable[[str], Path], name: str) -> None:
    path = recorded_table(name)
    expected = hudimeta.Table(path).scan(query_type="incremental", begin="earliest").to_table()
    same(sql(f"select * from hudi_table_changes('{path}', 'latest_state', 'earliest')"), expected)


@only_when(not REMOTE, "classic sessions: through Connect, each action makes its query anew")
def test_the_end_is_the_newest_commit_when_the_query_was_made(spark: SparkSession, tmp_path: Path) -> None:
    pyspark_hudimeta.register_functions(spark)
    table = create(tmp_path / "t")
    frame = spark.sql(f"select id from hudi_table_changes('{table.path}', 'latest_state', 'earliest')")
    assert frame.count() == 10
    table.upsert(rows([20]))
    assert frame.count() == 10


@pytest.mark.rotation(2)
@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("hudi_timeline('/no/such/folder')", "HUDIMETA_TABLE_NOT_FOUND: no Hudi table at '/no/such/folder'"),
        ("hudi_timeline('{path}', 'perhaps')", "true or false"),
        ("hudi_metadata('{path}', 'record_index')", "HUDIMETA_INDEX_NOT_READY: index 'record_index' is not built"),
        ("hudi_table_changes('{path}', 'newest', 'earliest')", "latest_state or cdc"),
        ("hudi_table_changes('{path}', 'latest_state', 'soon')", "hoodie.datasource.read.begin.instanttime"),
        ("hudi_table_changes('{path}', 'cdc', 'earliest')", "hoodie.table.cdc.enabled"),
        ("hudi_table_changes('{path}', 'cdc', cast(null as string))", "HUDIMETA_CONFIG: argument 'begin'"),
        ("hudi_table_changes('{path}', 'cdc')", "HUDIMETA_CONFIG: call of hudi_table_changes has the value '?, ?'"),
        ("hudi_query('{path}', 'incremental')", "snapshot or read_optimized"),
        ("hudi_query('{path}')", "hudi_query(path, 'snapshot' | 'read_optimized')"),
        ("hudi_table_changes()", "hudi_table_changes(path, 'latest_state' | 'cdc', begin[, end])"),
        ("hudi_metadata('{path}', 'files', 3)", "allowed is hudi_metadata(path[, partition])"),
        ("hudi_query_timeline('{path}', archive => true)", "archive"),
        ("hudi_filesystem_view('{path}', '*', partitions => '*')", "HUDIMETA_CONFIG: call of hudi_filesystem_view"),
    ],
)
def test_what_does_not_fit_is_refused_when_the_query_is_made(spark: SparkSession, tmp_path: Path, call: str, says: str) -> None:
    pyspark_hudimeta.register_functions(spark)
    create(tmp_path / "t")
    assert says in refusal(lambda: spark.sql(f"select * from {call.format(path=tmp_path / 't')}").collect())


def vectors(path: Path, ids: range, **names: str) -> hudimeta.Table:
    """A table of vectors, by other names of its columns if need be."""
    emb = pa.field(names.get("emb", "emb"), pa.list_(pa.float32()), metadata={"hudi_type": "VECTOR(2)"})
    schema = pa.schema([pa.field("id", pa.int64()), pa.field(names.get("note", "note"), pa.string()), emb])
    table = hudimeta.Table.create(path, schema, key="id")
    found = [[i, f"n{i}", None if i == 4 else [i, 9 - i]] for i in ids]
    table.insert(pa.table([pa.array(column) for column in zip(*found, strict=True)], schema.names))
    return table


@pytest.mark.rotation(2)
def test_the_vectors_nearest_to_one(sql: Callable[[str], Any], tmp_path: Path) -> None:
    table = vectors(tmp_path / "t", range(10))
    call = f"hudi_vector_search('{table.path}', 'emb', array(0.5, 3.25), 3{{}})"
    for words, metric in (("", "cosine"), (", 'INNER_PRODUCT', 'brute_force'", "dot_product")):
        expected = table.scan().nearest("emb", [0.5, 3.25], 3, metric)
        found = sql(f"select * from {call.format(words)}")
        assert found.column_names == expected.column_names
        assert found.to_pylist() == expected.to_pylist()
    told = sql(f"select note from {call.format('')} where id in (select id from {call.format('')}) order by _hudi_distance")
    assert told["note"].to_pylist() == table.scan().nearest("emb", [0.5, 3.25], 3)["note"].to_pylist()


@pytest.mark.rotation(2)
def test_the_vectors_nearest_to_one_in_the_rows_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    table = vectors(tmp_path / "t", range(10))
    pyspark_hudimeta.register_functions(spark)
    shown = ("id", "emb", "timestamp '2026-01-02 03:04:05' at", "map('k', id) counts", "struct(note, id) both")
    frame = spark.read.format("hudimeta").load(str(table.path)).repartition(3).selectExpr(*shown)
    frame.createOrReplaceTempView("seen")
    try:
        call = "hudi_vector_search('seen', 'EMB', array(0.5, 3.25), k => 3, metric => 'l2')"
        found = pyspark_hudimeta.sql(spark, f"select * from {call} order by _hudi_distance")
        assert found.columns == ["id", "at", "counts", "both", "_hudi_distance"]
        told = [(row["id"], round(row["_hudi_distance"], 9)) for row in found.collect()]
        expected = table.scan(columns=["id", "emb"]).nearest("emb", [0.5, 3.25], 3, "l2").to_pylist()
        assert told == [(row["id"], round(row["_hudi_distance"], 9)) for row in expected]
        first = found.first()
        assert first is not None
        number = first["id"]
        whole = spark.table("seen").where(f"id = {number}").first()
        assert whole is not None
        assert (first["at"], first["counts"], first["both"]) == (whole["at"], whole["counts"], whole["both"])
        by_table = "hudi_vector_search(path => TABLE(select id, emb from seen where id > 5), column => 'emb', "
        some = spark.sql(f"select id from {by_table} vector => array(0.5, 3.25), k => 99)").collect()
        assert sorted(row["id"] for row in some) == [6, 7, 8, 9]
        none = "hudi_vector_search(TABLE(select id, emb from seen where id < 0), 'emb', array(1, 2), 3)"
        assert spark.sql(f"select * from {none}").count() == 0
        for wrong, says in (
            ("hudi_vector_search('seen', 'id', array(1, 2), 3)", "a column of vectors"),
            ("hudi_vector_search('seen', 'emb', array(1, 2), 0)", "1 or more"),
            ("hudi_vector_search(TABLE(select emb, 1 _hudi_distance from seen), 'emb', array(1, 2), 3)", "of other names"),
            (
                "hudi_vector_search_batch('seen', 'emb', 'seen', 'emb', 3)",
                "write the whole path" if is_connect(spark) else "the path of a table",
            ),
        ):
            assert says in refusal(lambda call=wrong: pyspark_hudimeta.sql(spark, f"select * from {call}").collect())
    finally:
        spark.catalog.dropTempView("seen")


@pytest.mark.rotation(2)
def test_the_vectors_nearest_to_those_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    table, asked = vectors(tmp_path / "t", range(10)), vectors(tmp_path / "asked", range(3, 6), emb="query", note="NOTE")
    for name, path in (("searched_by", table.path), ("searched_for", asked.path)):
        pyspark_hudimeta.sql(spark, f"create table {name} using hudimeta location '{path}'")
    try:
        call = "hudi_vector_search_batch('searched_by', 'emb', 'searched_for', 'query', 2, 'l2')"
        found = pyspark_hudimeta.sql(spark, f"select * from {call}").toArrow()
    finally:
        pyspark_hudimeta.sql(spark, "drop table searched_by")
        pyspark_hudimeta.sql(spark, "drop table searched_for")
    meta = [name for name in table.scan().schema.names if name.startswith("_hoodie")]
    beside = [*(f"_hudi_query_{name}" for name in meta), "_hudi_query_id", "_hudi_query_NOTE"]
    assert found.column_names == [*meta, "id", "note", *beside, "_hudi_query_index", "_hudi_distance"]
    names = ["_hudi_query_id", "_hudi_query_index", "id", "_hudi_distance"]
    near = [tuple(row.values()) for row in found.select(names).to_pylist()]
    assert near[0] == (3, 0, 3, 0.0)
    assert near[2] == (5, 1, 5, 0.0)
    assert [(query, number, round(distance, 3)) for query, number, _, distance in near] == [
        (3, 0, 0.0),
        (3, 0, 1.414),
        (5, 1, 0.0),
        (5, 1, 1.414),
    ]


@pytest.mark.rotation(2)
@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("('{path}', 'emb', array(1), 3)", "a list of 2 numbers"),
        ("('{path}', 'emb', array('a', 'b'), 3)", "HUDIMETA_CONFIG: argument 'vector'"),
        ("('{path}', 'emb', array(1, null), 3)", "an array of numbers"),
        ("('{path}', 'id', array(1, 2), 3)", "a column of vectors"),
        ("('{path}', 'emb', array(1, 2), 0)", "a number of rows, 1 or more"),
        ("('{path}', 'emb', array(1, 2), 3, 'far')", "dot_product"),
        ("('{path}', 'emb', array(1, 2), 3, 'l2', 'hnsw')", "brute_force"),
        ("('{path}', 'emb', array(1, 2))", "call of hudi_vector_search"),
        ("_batch('{path}', 'emb', '{path}', 'note', 3)", "a column of vectors"),
        ("_batch('{path}', 'emb', '/no/such/folder', 'emb', 3)", "HUDIMETA_TABLE_NOT_FOUND"),
    ],
)
def test_a_search_that_does_not_fit_is_refused(spark: SparkSession, tmp_path: Path, call: str, says: str) -> None:
    pyspark_hudimeta.register_functions(spark)
    vectors(tmp_path / "t", range(2))
    text = f"select * from hudi_vector_search{call.format(path=tmp_path / 't')}"
    assert says in refusal(lambda: spark.sql(text).collect())


def test_every_file_slice(sql: Callable[[str], Any], tmp_path: Path) -> None:
    table = create(tmp_path / "t", type="MERGE_ON_READ")
    table.upsert(rows([1], ts=2))
    table.compact()
    table.upsert(rows([1, 2], ts=3))
    view = sql(f"select * from hudi_filesystem_view('{table.path}')")
    now, then = table.file_slices(), table.call("show_fsview_all", limit=100)
    assert view.num_rows == then.num_rows == now.num_rows + 1
    assert sum(view["Log_File_Count"].to_pylist()) == 3
    sizes = then["total_delta_file_size"].to_pylist()
    assert sorted(view["Log_File_Unscheduled"].to_pylist()) == sorted(view["Log_File_Size"].to_pylist()) == sorted(sizes)
    newest = {(row["partition_path"], row["base_instant"]) for row in now.to_pylist()}
    assert newest < {(row["Partition_Path"], row["Base_Instant_Time"]) for row in view.to_pylist()}
    (path,) = sorted(path for path, _ in newest)[:1]
    some = sql(f"select distinct Partition_Path as p from hudi_filesystem_view('{table.path}', '{path[:-1]}?')")
    assert path in some["p"].to_pylist()
    assert sql(f"select * from hudi_filesystem_view('{table.path}', 'nothing*')").num_rows == 0


@pytest.mark.rotation(2)
def test_names_of_the_catalog_stand_for_folders_where_statements_are_ours(spark: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    pyspark_hudimeta.sql(spark, f"create table function_of using hudimeta location '{tmp_path / 't'}'")
    try:
        for call in (
            "hudi_query_timeline('function_of')",
            "hudi_timeline(path => 'default.function_of', archived => 'true')",
            "hudi_metadata('spark_catalog.default.function_of', 'files')",
            "hudi_table_changes('FUNCTION_OF', 'latest_state', 'earliest')",
            "hudi_filesystem_view('`function_of`')",
        ):
            query = f"select count(*) as n from {call} x join (select 'function_of' as text) y where y.text = 'function_of'"
            assert pyspark_hudimeta.sql(spark, query).collect()[0].n > 0, call
        with pytest.raises(AnalysisException, match=r"\AHUDIMETA_CONFIG: argument 'path' has the value 'nothing'[^\n]*\.\Z"):
            pyspark_hudimeta.sql(spark, "select * from hudi_timeline('nothing')")
    finally:
        spark.sql("drop table function_of")


@pytest.mark.oldest
def test_a_name_of_the_catalog_is_no_path(spark: SparkSession) -> None:
    pyspark_hudimeta.register_functions(spark)
    said = refusal(lambda: spark.sql("select * from hudi_timeline('trips')").collect())
    assert said.startswith("HUDIMETA_CONFIG: argument 'path'")
