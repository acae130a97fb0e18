"""VECTOR and BLOB in an attached session: declared, written, read by Spark, shown, and refused where they are none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hudimeta
from hudimeta.errors import HudiError
from tests.elsewhere import SAYS_STATEMENTS
from tests.spark.sql_tables import is_said, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = SAYS_STATEMENTS


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_vectors_and_blobs_are_columns_of_sql(attached: SparkSession, tmp_path: Path, kind: str) -> None:
    path, name = tmp_path / "t", f"vectors_{kind}"
    attached.sql(
        f"create table {name} (id bigint, emb VECTOR(2), small vector(2, int8) not null comment 'a VECTOR', "
        "doc blob, ts bigint) "
        f"using hudimeta tblproperties (type = '{kind}', primaryKey = 'id', orderingFields = 'ts') location '{path}'"
    )
    inline = "named_struct('type', 'INLINE', 'data', X'01', 'reference', null)"
    attached.sql(f"insert into {name} values (1, array(1f, 2f), array(1y, 2y), {inline}, 1), (2, null, array(3, 4), null, 1)")
    attached.sql(f"update {name} set emb = array(9, 8) where id = 2")
    attached.sql(
        f"merge into {name} t using (select 1L as id, array(4f, 4f) as emb, 5L as ts) s on t.id = s.id "
        "when matched then update set emb = s.emb, ts = s.ts"
    )
    assert rows(attached, name, "id, emb, small, doc.data") == [(1, [4, 4], [1, 2], b"\1"), (2, [9, 8], [3, 4], None)]
    assert rows(attached, f"{name} where emb[0] > 5", "id") == [(2,)]
    (tmp_path / "content").write_bytes(b"0123456789")
    place = f"named_struct('external_path', '{tmp_path / 'content'}', 'offset', 2L, 'length', 3L, 'managed', false)"
    outside = f"named_struct('type', 'OUT_OF_LINE', 'data', null, 'reference', {place})"
    attached.sql(f"update {name} set doc = {outside} where id = 2")
    assert rows(attached, name, "id, read_blob(doc)") == [(1, b"\1"), (2, b"234")]
    (said,) = attached.sql(f"show create table {name}").first() or ()
    for declared in ("`emb` VECTOR(2)", "`small` VECTOR(2, INT8) NOT NULL", "`doc` BLOB"):
        assert declared in said
    told = {field.name: field.metadata[b"hudi_type"] for field in hudimeta.Table(path).schema if field.metadata}
    assert told == {"emb": b"VECTOR(2)", "small": b"VECTOR(2, INT8)", "doc": b"BLOB"}
    with pytest.raises(Exception) as refused:
        attached.sql(f"insert into {name} values (3, array(1f), array(1y, 2y), null, 1)")
    assert is_said(r"'emb' is a list of 1.*needs VECTOR\(2\)", refused.value)
    with pytest.raises(HudiError, match="column emb of type VECTOR"):
        attached.sql(f"alter table {name} add column x int")
    attached.sql(f"create table {name}_copy using hudimeta location '{tmp_path / 'copy'}' as select * from {name}")
    assert "`emb` VECTOR(2)" in (attached.sql(f"show create table {name}_copy").first() or ("",))[0]
    assert len(rows(attached, f"{name}_copy")) == 2
    for made in (name, f"{name}_copy"):
        attached.sql(f"drop table {made}")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_variants_are_columns_of_sql(attached: SparkSession, tmp_path: Path, kind: str) -> None:
    path, name = tmp_path / "t", f"variants_{kind}"
    attached.sql(
        f"create table {name} (id bigint, v variant, ts bigint) using hudimeta "
        f"tblproperties (type = '{kind}', primaryKey = 'id', orderingFields = 'ts') location '{path}'"
    )
    attached.sql(f"""insert into {name} values (1, parse_json('{{"a": [1, 2]}}'), 1), (2, null, 1), (3, parse_json('3'), 1)""")
    attached.sql(f"update {name} set v = parse_json('true') where id = 2")
    attached.sql(
        f"merge into {name} t using (select 3L as id, parse_json('\"x\"') as v, 5L as ts) s on t.id = s.id "
        "when matched then update set v = s.v, ts = s.ts"
    )
    assert rows(attached, name, "id, to_json(v)") == [(1, '{"a":[1,2]}'), (2, "true"), (3, '"x"')]
    assert rows(attached, f"{name} where variant_get(v, '$.a[1]', 'int') = 2", "id") == [(1,)]
    assert hudimeta.Table(path).schema.field("v").metadata == {b"hudi_type": b"VARIANT"}
    attached.sql(f"drop table {name}")


def test_columns_of_dataframes_state_their_types(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.types import ArrayType, FloatType, LongType, StructField, StructType

    path = str(tmp_path / "t")
    vectors = StructField("emb", ArrayType(FloatType()), metadata={"hudi_type": "VECTOR(2)"})
    frame = spark.createDataFrame([(1, [1.0, 2.0]), (2, None)], StructType([StructField("id", LongType()), vectors]))
    frame.write.format("hudimeta").option("hoodie.table.name", "t").option(
        "hoodie.datasource.write.recordkey.field", "id"
    ).mode("append").save(path)
    found = spark.read.format("hudimeta").load(path)
    assert found.schema["emb"].metadata == {"hudi_type": "VECTOR(2)"}
    assert sorted(map(tuple, found.select("id", "emb").collect())) == [(1, [1.0, 2.0]), (2, None)]
    assert hudimeta.Table(path).schema.field("emb").metadata == {b"hudi_type": b"VECTOR(2)"}
