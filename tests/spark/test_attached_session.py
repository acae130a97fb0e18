"""What attaching does to a session, to its threads and to others, and what a reader learns of damage."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_hudimeta
import pytest

import hudimeta
from tests.spark.attached import PYTHON_SCAN, mor, plan, staging
from tests.spark.tables import create, ids, refusal
from tests.spark.test_reads import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_detaching_leaves_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    create(tmp_path / "cow")
    assert state(spark)  # Spark keeps what was asked for once
    before = state(spark)
    pyspark_hudimeta.attach(spark)
    pyspark_hudimeta.attach(spark)
    frame, plain_files = load(spark, tmp_path / "t"), load(spark, tmp_path / "cow")
    assert frame.count() == 39
    folder = Path(staging(spark))
    assert list(folder.iterdir())
    pyspark_hudimeta.detach(spark)
    pyspark_hudimeta.detach(spark)
    assert state(spark) == before
    assert not folder.exists()
    assert pyspark_hudimeta.last_reports(spark) == ()
    assert PYTHON_SCAN in plan(load(spark, tmp_path / "t"))
    assert ids(plain_files) == list(range(10)), "what needs no merged rows goes on"
    assert "detach" in refusal(lambda: frame.where("id < 39").count())


def state(spark: SparkSession) -> list[Any]:
    """What could be left behind: the object's class and attributes, tables and views, the configuration."""
    settings = spark._jsparkSession.sessionState().conf().getAllConfs().toSeq()
    texts = sorted(settings.apply(n).toString() for n in range(settings.size()))
    tables = sorted(str(table) for table in spark.catalog.listTables())
    return [type(spark), sorted(vars(spark)), tables, texts]


def test_other_sessions_stay_as_they_are(attached: SparkSession, tmp_path: Path) -> None:
    create(tmp_path / "t")
    other = attached.newSession()
    assert type(other) is not type(attached)
    assert PYTHON_SCAN in plan(load(other, tmp_path / "t"))
    assert pyspark_hudimeta.last_reports(other) == ()


@pytest.mark.rotation(3)
def test_eight_threads_at_once(attached: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    create(tmp_path / "cow")
    shared = load(attached, tmp_path / "t")
    ready = threading.Barrier(8)

    def ask(number: int) -> list[tuple[list[int], int, int]]:
        ready.wait()
        found = []
        for turn in range(3):
            part = f"p{(number + turn) % 5}"
            own = load(attached, tmp_path / ("t" if number % 2 else "cow")).where(f"part = '{part}'")
            found.append((ids(shared.where(f"part = '{part}'")), shared.where(f"id > {number}").count(), own.count()))
        return found

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(ask, range(8)))
    for number, result in enumerate(results):
        for turn, (found, more, own) in enumerate(result):
            part = (number + turn) % 5
            expected = [n for n in range(40) if n % 5 == part and n != 7]
            assert found == expected
            assert more == len([n for n in range(40) if n > number and n != 7])
            assert own == (len(expected) if number % 2 else 2)


def test_a_damaged_log_is_named(attached: SparkSession, tmp_path: Path) -> None:
    mor(tmp_path / "t")
    frame = load(attached, tmp_path / "t")
    log = next((tmp_path / "t" / "p0").glob(".*.log.*"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(bytes(data))
    says = refusal(lambda: frame.collect())
    assert says.startswith("HUDIMETA_CORRUPT_FILE")
    assert log.name in says


@pytest.mark.parametrize("skip", [False, True])
def test_a_damaged_page_is_no_other_value(attached: SparkSession, tmp_path: Path, skip: bool) -> None:
    """Uncompressed, so that nothing but the page's checksum can tell: Spark compares it when it is asked to."""
    options = {"hoodie.parquet.compression.codec": "uncompressed"}
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    table = hudimeta.Table.create(tmp_path / "t", schema, key="id", options=options)
    table.insert({"id": ["a"], "v": [1234567890123456789]})
    (base,) = (tmp_path / "t").glob("*.parquet")
    data, value = base.read_bytes(), (1234567890123456789).to_bytes(8, "little")
    base.write_bytes(data.replace(value, value[:-1] + b"\x22", 1))
    reader = attached.read.format("hudimeta").option("hudimeta.read.corrupt", "skip" if skip else "fail")
    frame = reader.load(str(tmp_path / "t")).select("v")
    if skip:
        assert frame.collect() == []
    else:
        with pytest.raises(Exception, match=r"CRC checksum verification failed|FAILED_READ_FILE"):
            frame.collect()
