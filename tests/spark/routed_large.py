"""A program for `test_routed_writes.py`: a large routed upsert, and what it cost the driver's Python; prints JSON.

python routed_large.py FOLDER ROWS MASTER
"""

from __future__ import annotations

import json
import resource
import sys
import time

import pyarrow as pa


def main(folder: str, rows: int, master: str) -> None:
    """Load half of the rows, then upsert all of them."""
    from pyspark.sql import SparkSession
    from pyspark_hudimeta import HudiTable

    import hudimeta

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fields = [("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("x", pa.float64()), ("text", pa.string())]
    path = f"{folder}/t"
    hudimeta.Table.create(path, pa.schema(fields), "id", "part", "ts", indexes=["record_index", "column_stats"])
    table = HudiTable(spark, path)

    def frame(last: int, ts: int) -> object:
        values = ("id", "concat('p', id % 4) part", f"{ts}L ts", "rand() x", "concat('a text of row ', id) text")
        return spark.range(0, last, 1, 8).selectExpr(*values)

    seen = []
    for last, ts in ((rows // 2, 1), (rows, 2), (1000, 3), (1000, 4)):
        begin = time.perf_counter()
        report = table.upsert(frame(last, ts))
        took = time.perf_counter() - begin
        seen.append({"rows": last, "seconds": took, "phases": dict(report.seconds), "notes": list(report.notes)})
    counts = [report.inserted, report.updated, table.scan().to_df().count()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print("SEEN " + json.dumps({"writes": seen, "last": counts, "driver MiB": peak}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
