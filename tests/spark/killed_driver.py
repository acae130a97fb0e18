"""A program for `test_killed_drivers.py`: does to tables what it is told in one Spark session, until somebody kills it.

python killed_driver.py HOME

Each line of its input is an `Order` as JSON. Lines of its output that begin with `MARK` are answers: `ready`, then `began` and
`done` (or `failed` and why) for each order.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARK = "DRIVER "

MERGE = (
    "merge into {t} using fresh s on t.id = s.id when matched then update set x = s.x "
    "when not matched then insert (id, part, ts, x) values (s.id, s.part, s.ts, s.x)"
)
UPDATE, DELETE = "update {t} set x = x + 1 where ts = 2", "delete from {t} where ts = 2"


@dataclass(frozen=True)
class Order:
    """Something to do to a table.

    Attributes:
        act: One of `ACTS`.
        path: The table.
        attached: In an attached session.
        options: Of the write or service.
        rows: A Parquet file of rows to write, or the table that is copied.
        operation: Which write.
    """

    act: str
    path: str
    attached: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    rows: str = ""
    operation: str = ""

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))


def save(frame: DataFrame, order: Order) -> None:
    """`df.write.format("hudimeta")` of rows in two partitions of Spark's."""
    writer = frame.repartition(2, "id").write.format("hudimeta").options(**order.options)
    writer.option("hoodie.datasource.write.operation", order.operation).mode("append").save(order.path)


def write(spark: SparkSession, order: Order) -> None:
    save(spark.read.parquet(order.rows), order)


def stream(spark: SparkSession, order: Order) -> None:
    """What `foreachBatch` makes of everything that the stream has to offer, from where its checkpoint stands."""
    incoming = Path(order.path + ".incoming")
    incoming.mkdir(exist_ok=True)
    rows = spark.readStream.schema("id string, part string, ts long, x double").json(str(incoming))
    if not (incoming / "a.json").exists():
        lines = [json.dumps(row) for row in pq.read_table(order.rows).to_pylist()]
        (incoming / "a.json").write_text("\n".join(lines))
    writer = rows.writeStream.option("checkpointLocation", order.path + ".checkpoint").trigger(availableNow=True)
    writer.foreachBatch(lambda batch, _: save(batch, order)).start().awaitTermination()


def copy(spark: SparkSession, order: Order) -> None:
    """Stream a table into another one, commit by commit, from where the checkpoint stands to where the first one ends now."""
    changes = spark.readStream.format("hudimeta").option("maxFilesPerTrigger", "1").load(order.rows)
    given = {"checkpointLocation": order.path + ".checkpoint", "hoodie.datasource.write.operation": order.operation}
    sink = changes.writeStream.format("hudimeta").options(**order.options, **given).trigger(availableNow=True)
    sink.start(order.path).awaitTermination()


def statement(text: str) -> Callable[[SparkSession, Order], None]:
    """A statement about the table `{t}` and the rows `fresh`."""

    def run(spark: SparkSession, order: Order) -> None:
        spark.sql("drop table if exists killed")
        spark.sql(f"create table killed using hudimeta location '{order.path}'")
        if order.rows:
            spark.read.parquet(order.rows).createOrReplaceTempView("fresh")
        spark.sql(text.format(t="killed t" if "merge" in text else "killed"))

    return run


def upsert(spark: SparkSession, order: Order) -> None:
    from pyspark_hudimeta import HudiTable

    HudiTable(spark, order.path, order.options).upsert(spark.read.parquet(order.rows).repartition(2, "id"))


def compact(spark: SparkSession, order: Order) -> None:
    from pyspark_hudimeta import HudiTable

    HudiTable(spark, order.path, order.options).compact()


def clean(spark: SparkSession, order: Order) -> None:
    from pyspark_hudimeta import HudiTable

    HudiTable(spark, order.path, order.options).clean()


def index(spark: SparkSession, order: Order) -> None:
    """Makes an index of values, unless it is there."""
    from pyspark_hudimeta import HudiTable

    table = HudiTable(spark, order.path, order.options)
    if "secondary_index_part" not in table.properties.metadata_partitions:
        table.metadata.create_index("part", "secondary_index", "part")


ACTS: Mapping[str, Callable[[SparkSession, Order], None]] = {
    "write": write,
    "stream": stream,
    "copy": copy,
    "merge": statement(MERGE),
    "update": statement(UPDATE),
    "delete": statement(DELETE),
    "upsert": upsert,
    "compact": compact,
    "clean": clean,
    "index": index,
}


def tell(answer: str) -> None:
    print(MARK + answer, flush=True)


def session(home: str) -> SparkSession:
    """A small session; it has imported what it needs once it has read something."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.local.dir", f"{home}/scratch")
    builder = builder.config(
        "spark.driver.extraJavaOptions", f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dderby.system.home={home}"
    )
    spark = builder.config("spark.sql.warehouse.dir", f"{home}/warehouse").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.range(2).mapInArrow(lambda batches: batches, "id long").collect()
    return spark


def main(home: str) -> None:
    """Do what the input says."""
    from pyspark_hudimeta import attach, detach

    spark = session(home)
    tell("ready")
    for line in sys.stdin:
        order = Order(**json.loads(line))
        (attach if order.attached else detach)(spark)
        tell("began")
        try:
            ACTS[order.act](spark, order)
        except Exception as error:
            tell(f"failed {type(error).__name__}: {str(error)[:2000]!r}")
        else:
            tell("done")


if __name__ == "__main__":
    main(sys.argv[1])
