"""Random expressions judged by Spark and by us: over rows of every type, over recorded tables, through every door.

`HUDIMETA_PREDICATES=20000` (`make predicates-full`) asks so many; a normal run two hundred.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark_hudimeta
import pytest

from hudimeta import Table
from hudimeta.errors import ConfigError, HudiError
from tests.predicate.all_types import rows
from tests.predicate.judging import Verdicts, lost_files, statistics
from tests.predicate.random_predicates import KINDS, Predicates
from tests.predicate.spark_answers import RAISED, SparkRows
from tests.recorded_tables import RICH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.conftest import Unpack

TOTAL = int(os.environ.get("HUDIMETA_PREDICATES", "200"))
SEED = int(os.environ.get("HUDIMETA_PREDICATES_SEED", "20"))
FULL = TOTAL > 1000
OVER_TYPES = TOTAL // 2
RECORDED = RICH.names() if FULL else ["all_types_cow8", "all_types_mor"]
OVER_RECORDED = max(TOTAL * 3 // 8 // len(RECORDED), 1)
IN_DOORS = TOTAL // 8 if FULL else 4
AT_ONCE = 2000


def _report(verdicts: Verdicts) -> None:
    print(dict(verdicts.counts))
    assert not verdicts.different, "\n".join(verdicts.different[:50])
    assert not verdicts.accepted, "\n".join(verdicts.accepted[:50])


@pytest.mark.parametrize("part", range(-(-OVER_TYPES // AT_ONCE)))
def test_rows_of_every_type(spark: SparkSession, tmp_path: Path, part: int) -> None:
    """Also: what bounds of a dozen rows leave out has no row of the answer."""
    table, zone = rows(random.Random(SEED + part), 120), ["UTC", "Europe/Berlin"][part % 2]
    made, many = Predicates(table.schema, SEED + part), min(AT_ONCE, OVER_TYPES)
    texts = [made.predicate() for _ in range(many * 2 // 3)] + [
        made.value(made.random.choice(KINDS), 3) for _ in range(many // 3)
    ]
    verdicts, known = Verdicts(), statistics(table)
    lost = []
    for text, theirs in zip(texts, SparkRows(spark, table, tmp_path / "rows.parquet").answers(texts, zone), strict=True):
        bound = verdicts.judge(text, table, zone, theirs)
        if bound is not None and bound.expr.type == pa.bool_() and lost_files(bound, table, known):
            lost.append(text)
    assert not lost, "\n".join(lost)
    _report(verdicts)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_tables(spark: SparkSession, tmp_path: Path, recorded_table: Unpack, name: str) -> None:
    table = Table(str(recorded_table(name)))
    whole = table.scan().to_table()
    whole = whole.append_column("row_of_test", pa.array(range(whole.num_rows)))
    if "_hoodie_commit_seqno" not in whole.column_names or not whole.num_rows:
        return  # nothing to tell rows apart by
    keys = ["_hoodie_partition_path", "_hoodie_record_key", "_hoodie_commit_seqno"]
    made = Predicates(pa.schema([field for field in whole.schema if field.name != "row_of_test"]), SEED)
    texts = [made.predicate() for _ in range(OVER_RECORDED)]
    plain_rows = whole.cast(pa.schema([pa.field(f.name, _for_parquet(f.type)) for f in whole.schema]))
    different = []
    for text, theirs in zip(texts, SparkRows(spark, plain_rows, tmp_path / "rows.parquet").answers(texts), strict=True):
        try:
            found = table.scan(where=text, columns=keys).to_table()
        except ConfigError:
            continue  # which of these Spark evaluates is counted over rows of every type
        if isinstance(theirs, str):
            if not theirs.startswith("raised"):
                different.append(f"{text}: {theirs}")
            continue
        true = pa.array([value is True for value in theirs])
        sure = _keys(whole.filter(true), keys)
        may = _keys(whole.filter(pc.or_(true, pa.array([value is RAISED for value in theirs]))), keys)
        if not sure <= _keys(found, keys) <= may:
            different.append(f"{text}: {len(sure)} rows in Spark, {found.num_rows} here")
    assert not different, "\n".join(different)


def _for_parquet(t: pa.DataType) -> pa.DataType:
    return t.value_type if pa.types.is_dictionary(t) else t


def _keys(table: pa.Table, names: list[str]) -> set[tuple[Any, ...]]:
    return set(zip(*(table[name].to_pylist() for name in names), strict=True))


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pa.Table]:
    """A table of every type in three file groups, the last third of it written over; and its rows."""
    made = rows(random.Random(SEED), 90).drop_columns(["mi"])  # keys of maps are strings in Avro
    keyed = made.append_column("id", pa.array([f"k{n:03d}" for n in range(90)]))
    keyed = keyed.append_column("part", pa.array([f"p{n % 3}" for n in range(90)]))
    path = str(tmp_path_factory.mktemp("written") / "t")
    options = {"hoodie.metadata.index.column.stats.enable": "true"}
    table = Table.create(path, keyed.schema, key="id", partition_by=["part"], type=request.param, options=options)
    table.insert(keyed)
    table.upsert(keyed.slice(60))
    columns = [name for name in keyed.column_names if name not in ("id", "part")]
    return path, table.scan(columns=["id", *columns]).to_table()


@pytest.mark.rotation(2)
def test_every_door(spark: SparkSession, tmp_path: Path, written: tuple[str, pa.Table]) -> None:
    path, keyed = written
    made = Predicates(pa.schema([f for f in keyed.schema if f.name != "id"]), SEED + 1)
    texts = [made.predicate(1) for _ in range(IN_DOORS)]
    answers = SparkRows(spark, keyed, tmp_path / "rows.parquet").answers(texts)
    different: list[str] = []
    for number, (text, theirs) in enumerate(zip(texts, answers, strict=True)):
        if isinstance(theirs, str) or RAISED in theirs:
            continue
        wanted = sorted(key for key, value in zip(keyed["id"].to_pylist(), theirs, strict=True) if value is True)
        try:
            found = {"engine": sorted(Table(path).scan(where=text, columns=["id"]).to_table()["id"].to_pylist())}
        except ConfigError:
            continue
        found |= _through_spark(spark, path, text)
        if number % 4 == 0:
            found |= _by_writes(path, text, wanted, tmp_path / f"copy{number}")
        if found["attached"] != wanted and found["attached"] == _pushed_down(spark, tmp_path / "rows.parquet", text):
            del found["attached"]  # Spark's Parquet reader knows 0.0 and -0.0 for two values
        different += [
            f"{door}: {text}: {len(wanted)} in Spark, {len(ids)} here" for door, ids in found.items() if ids != wanted
        ]
    assert not different, "\n".join(different)


def _through_spark(spark: SparkSession, path: str, text: str) -> dict[str, list[str]]:
    """The plain door with the option, and the attached one with `where`."""
    reader = spark.read.format("hudimeta")
    plain = reader.option("hudimeta.filter", text).load(path).select("id").collect()
    pyspark_hudimeta.attach(spark)
    try:
        attached = spark.read.format("hudimeta").load(path).where(text).select("id").collect()
    finally:
        pyspark_hudimeta.detach(spark)
    return {"plain": sorted(row.id for row in plain), "attached": sorted(row.id for row in attached)}


def _pushed_down(spark: SparkSession, rows_file: Path, text: str) -> list[str]:
    """What Spark finds when it hands the predicate to its Parquet reader."""
    return sorted(row.id for row in spark.read.parquet(str(rows_file)).where(text).select("id").collect())


def _by_writes(path: str, text: str, wanted: list[str], copy: Path) -> dict[str, list[str]]:
    """What an update changes, and then what a delete takes away."""
    shutil.copytree(path, copy)
    table = Table(str(copy))
    everything = set(table.scan(columns=["id"]).to_table()["id"].to_pylist())
    try:
        table.update({"s": "'touched by the update'"}, where=text)
        touched = Table(str(copy)).scan(where="s = 'touched by the update'", columns=["id"]).to_table()["id"].to_pylist()
        shutil.rmtree(copy)
        shutil.copytree(path, copy)
        Table(str(copy)).delete(text)
        left = set(Table(str(copy)).scan(columns=["id"]).to_table()["id"].to_pylist())
    except HudiError as error:
        return {"writes": [str(error)[:200]]}
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return {"update": sorted(touched), "delete": sorted(everything - left)}
