"""What the demo does: each function is one step, and its body is printed before it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from hudimeta.read.scan import Scan


def write_flights(flights: DataFrame, path: str) -> None:
    """A bulk insert that creates the table."""
    (
        flights.write.format("hudimeta")
        .mode("append")
        .option("hoodie.table.name", "flights")
        .option("hoodie.datasource.write.recordkey.field", "id")
        .option("hoodie.datasource.write.partitionpath.field", "month")
        .option("hoodie.datasource.write.precombine.field", "updated_at")
        .option("hoodie.datasource.write.operation", "bulk_insert")
        .save(path)
    )


def write_dimension(rows: DataFrame, name: str, key: str, path: str) -> None:
    """A small table without partitions."""
    (
        rows.write.format("hudimeta")
        .mode("overwrite")
        .option("hoodie.table.name", name)
        .option("hoodie.datasource.write.recordkey.field", key)
        .save(path)
    )


def least_punctual(spark: SparkSession, path: str) -> Any:
    """A query by DataFrames."""
    flights = spark.read.format("hudimeta").load(path)
    by_carrier = flights.groupBy("carrier").agg({"arr_delay": "avg", "*": "count"})
    return by_carrier.orderBy("avg(arr_delay)", ascending=False).take(5)


def correct_delays(spark: SparkSession, path: str) -> None:
    """An upsert of changed rows."""
    flights = spark.read.format("hudimeta").load(path)
    late = flights.where("month = 6 AND arr_delay > 120")
    corrected = late.selectExpr(
        "* EXCEPT (arr_delay, updated_at)",
        "arr_delay - 15 AS arr_delay",
        "updated_at + INTERVAL 1 DAY AS updated_at",
    )
    writer = corrected.write.format("hudimeta").mode("append")
    writer.option("hoodie.datasource.write.operation", "upsert").save(path)


def delete_cancelled(spark: SparkSession, path: str) -> None:
    """A delete by keys."""
    reader = spark.read.format("hudimeta")
    cancelled = reader.option("hudimeta.filter", "month = 2 AND dep_time IS NULL").load(path)
    writer = cancelled.write.format("hudimeta").mode("append")
    writer.option("hoodie.datasource.write.operation", "delete").save(path)


def june(spark: SparkSession, path: str) -> Any:
    """A month as it is now."""
    flights = spark.read.format("hudimeta").load(path)
    return flights.where("month = 6").selectExpr("count(*) AS flights", "avg(arr_delay)").first()


def june_before(spark: SparkSession, path: str, instant: str) -> Any:
    """The same month as it was."""
    flights = spark.read.format("hudimeta").option("as.of.instant", instant).load(path)
    return flights.where("month = 6").selectExpr("count(*) AS flights", "avg(arr_delay)").first()


def longest_delays(spark: SparkSession, path: str, predicate: str) -> Any:
    """A read that skips files through the metadata table."""
    flights = (
        spark.read.format("hudimeta")
        .option("hudimeta.filter", predicate)
        .option("hudimeta.columns", "month, day, carrier, flight, dest, dep_delay")
        .load(path)
    )
    return flights.orderBy("dep_delay", ascending=False).collect()


def same_read_alone(path: str, predicate: str) -> tuple[Scan, pa.Table]:
    """The same read without Spark."""
    import hudimeta

    columns = ["month", "day", "carrier", "flight", "dest", "dep_delay"]
    scan = hudimeta.Table(path).scan(where=predicate, columns=columns)
    return scan, scan.to_table()


def register(spark: SparkSession, folder: str) -> None:
    """Tables of the catalog."""
    for name in ("flights", "airlines", "planes", "weather"):
        spark.sql(f"CREATE TABLE {name} USING hudimeta LOCATION '{folder}/{name}'")


def windy_departures(spark: SparkSession) -> Any:
    """A join of registered tables."""
    return spark.sql("""
        SELECT a.name AS airline, p.manufacturer, count(*) AS flights,
               avg(f.dep_delay) AS delay, avg(w.wind_speed) AS wind
        FROM flights f
        JOIN airlines a ON a.carrier = f.carrier
        JOIN planes p ON p.tailnum = f.tailnum
        JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
        WHERE w.wind_speed > 25
        GROUP BY ALL ORDER BY flights DESC LIMIT 5""").collect()


def insert_by_sql(spark: SparkSession) -> None:
    """An INSERT into a registered table."""
    spark.sql("INSERT INTO airlines VALUES ('ZZ', 'Zeppelin Air')")


def create_live(spark: SparkSession, folder: str) -> None:
    """A merge-on-read table with a record index, made and filled in SQL."""
    import pyspark_hudimeta

    pyspark_hudimeta.attach(spark)
    spark.sql(f"""
        CREATE TABLE live USING hudimeta PARTITIONED BY (month)
        TBLPROPERTIES (type = 'mor', primaryKey = 'id', orderingFields = 'updated_at',
                       'hoodie.metadata.record.index.enable' = 'true')
        LOCATION '{folder}/live'
        AS SELECT id, carrier, dest, dep_delay, arr_delay, updated_at, month FROM flights""")


def merge_news(spark: SparkSession) -> None:
    """Updates, deletes and inserts in one statement: they go to log files."""
    spark.sql("""
        MERGE INTO live USING (
            SELECT * FROM live WHERE month = 12 AND arr_delay > 60
            UNION ALL SELECT 'extra', 'ZZ', 'HNL', 0, 0, timestamp'2014-01-01', 12) AS news
        ON live.id = news.id
        WHEN MATCHED AND news.arr_delay > 180 THEN DELETE
        WHEN MATCHED THEN UPDATE SET arr_delay = news.arr_delay - 15, updated_at = news.updated_at + INTERVAL 1 DAY
        WHEN NOT MATCHED THEN INSERT *""")


def upsert_live(spark: SparkSession, path: str) -> Any:
    """An upsert through the table's own object, which returns its report."""
    from pyspark_hudimeta import HudiTable

    early = spark.table("live").where("month = 1 AND dep_delay < -10")
    return HudiTable(spark, path).upsert(early.selectExpr("* EXCEPT (dep_delay)", "-10L AS dep_delay"))


def compact_live(spark: SparkSession, path: str) -> Any:
    """Log files become base files."""
    from pyspark_hudimeta import HudiTable

    return HudiTable(spark, path).compact()


def changed_since(spark: SparkSession, path: str, instant: str) -> Any:
    """What later commits wrote."""
    from pyspark_hudimeta import HudiTable

    changes = HudiTable(spark, path).scan(query_type="incremental", begin=instant)
    return changes.to_df().groupBy("month").count().orderBy("month").collect()


def one_flight(spark: SparkSession) -> Any:
    """A look-up: the record index leaves one file."""
    return spark.sql("SELECT carrier, dest, arr_delay FROM live WHERE id = 'extra'").collect()


def rows_of(frame: Any) -> int:
    """How many rows a DataFrame has."""
    return int(frame.count())
