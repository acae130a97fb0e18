"""A program for `test_installed.py`: a Spark Connect session that uses an installed hudimeta; prints what it saw as JSON.

python connect_session.py FOLDER
"""

from __future__ import annotations

import json
import pkgutil
import re
import sys
from collections.abc import Callable
from typing import Any


def refusal(statement: Callable[[], object]) -> str:
    """What hudimeta says to a statement that it refuses."""
    try:
        statement()
    except Exception as error:
        found = re.search(r"HUDIMETA_.*", str(error))
        return found.group() if found else str(error)
    return "nothing was refused"


def main(folder: str) -> dict[str, Any]:
    """Write, read, and use SQL through Connect."""
    from connect_port import on_a_port_of_its_own
    from pyspark.sql import SparkSession

    import hudimeta

    seen: dict[str, Any] = {"hudimeta": hudimeta.__file__}
    seen["discovered"] = [m.module_finder.path for m in pkgutil.iter_modules() if m.name == "pyspark_hudimeta"]
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    spark = on_a_port_of_its_own(builder).getOrCreate()
    seen["session"] = type(spark).__module__
    path = f"{folder}/t"
    rows = spark.range(100).selectExpr("id", "concat('p', id % 2) part", "1L ts")
    writer = rows.write.format("hudimeta").mode("append").option("hoodie.table.name", "t")
    writer.option("hoodie.datasource.write.recordkey.field", "id").option(
        "hoodie.datasource.write.partitionpath.field", "part"
    ).option("hoodie.datasource.write.precombine.field", "ts").save(path)
    frame = spark.read.format("hudimeta").load(path)
    seen["written"] = frame.count()
    seen["filtered"] = spark.read.format("hudimeta").option("hudimeta.filter", "part = 'p1' AND id < 10").load(path).count()
    spark.sql(f"create table t using hudimeta location '{path}'")
    spark.sql("insert into t select id + 1000, ts, part from t where id < 5")
    seen["inserted"] = spark.table("t").count()
    seen["itself"] = refusal(lambda: spark.sql("insert into t select * from t"))
    seen["relative"] = refusal(lambda: spark.read.format("hudimeta").load("t").count())
    seen["relative write"] = refusal(lambda: rows.write.format("hudimeta").mode("append").save("t2"))
    spark.stop()
    return seen


if __name__ == "__main__":
    print("SEEN " + json.dumps(main(sys.argv[1])))
