"""P36: rows that Spark computes, from a join and expressions, written through Spark into the tables of P8 and P9.

Where rows come from Parquet files as they are, our tasks read the files themselves. Rows of a join must be handed to Python:
how long Spark takes for that alone, with tasks that drop them, is the floor. The engine's side, without Spark, is given the
computed rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import lineitem, ours, p08_bulk_insert, p09_upsert, routed, written
from benchmarks.case import (
    GZIP,
    HANDED_OVER,
    OURS,
    PLAIN,
    ROUTED,
    SPARK,
    Case,
    Goal,
    Side,
    faster_than_apache,
    versions_of_apache,
)
from benchmarks.job import Job
from benchmarks.p08_bulk_insert import WITH_KEYS, WITHOUT_KEYS
from benchmarks.written import COW, RANDOM, Written

WAYS = {
    "AIR": "by air",
    "FOB": "free on board",
    "MAIL": "by mail",
    "RAIL": "by rail",
    "REG AIR": "by regular air",
    "SHIP": "by ship",
    "TRUCK": "by truck",
}
"""What is joined: a text for each mode of shipping."""
COMPUTED = {
    "l_extendedprice": "CAST(l_extendedprice * (1 - l_discount) AS DECIMAL(15, 2))",
    "l_shipinstruct": "concat(l_shipinstruct, ', ', way)",
}
COLUMNS = (
    *("l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount", "l_tax"),
    *("l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode"),
    *("l_comment", lineitem.KEY, lineitem.PARTITION),
)
QUERY = (
    f"SELECT {', '.join(f'{COMPUTED[name]} AS {name}' if name in COMPUTED else name for name in COLUMNS)} "
    f"FROM {{stored}} JOIN VALUES {', '.join(str(pair) for pair in WAYS.items())} AS ways(mode, way) ON l_shipmode = mode"
)
TABLE = Written(COW)


def computed(rows: pa.Table) -> pa.Table:
    """What the query makes of rows."""
    price = pc.multiply(rows["l_extendedprice"], pc.subtract(pa.scalar(1, pa.decimal128(1, 0)), rows["l_discount"]))
    way = pa.array(WAYS.values()).take(pc.index_in(rows["l_shipmode"], pa.array(WAYS)))
    made = {
        "l_extendedprice": pc.round(price, 2, "half_towards_infinity").cast(pa.decimal128(15, 2)),
        "l_shipinstruct": pc.binary_join_element_wise(rows["l_shipinstruct"], way, ", "),
    }
    return pa.table({name: made.get(name, rows[name]) for name in COLUMNS})


def _engine_loads(indexes: list[str]) -> Side:
    def run(job: Job) -> None:
        rows = computed(lineitem.rows(job.settings))
        for _ in range(job.rounds):
            with job.folder() as folder, job.timed():
                ours.bulk_insert(folder / "t", rows, indexes)

    return run


def _engine_upserts(job: Job) -> None:
    source = written.by_us(job.settings, TABLE)
    with job.folder() as folder:
        path = written.copied(source, folder)
        for file in written.batches(job.settings, p09_upsert.hundredth(job.settings, TABLE), RANDOM, job.rounds):
            batch = computed(pq.read_table(file))
            with job.timed():
                report = ours.upsert(path, batch)
            job.note("updated", report.updated)


def _load_case(name: str, title: str, indexes: list[str], factor: float) -> Case:
    frame = routed.by_query(QUERY)
    everyone = {
        OURS: _engine_loads(indexes),
        ROUTED: routed.bulk_inserts(indexes, frame=frame),
        PLAIN: routed.bulk_inserts(indexes, write=routed.saved, frame=frame),
        HANDED_OVER: routed.handed_over(frame),
        SPARK: p08_bulk_insert.spark_parquet(QUERY),
        **versions_of_apache(p08_bulk_insert.by_hudi(indexes, query=QUERY)),
        GZIP: p08_bulk_insert.by_hudi(indexes, "gzip", QUERY),
    }
    prepare = p08_bulk_insert.prepare
    return Case(f"P36-{name}", title, everyone, _faster(factor), 3, prepare, not_in_smoke=(PLAIN,))


def _upsert_case() -> Case:
    frame, what = routed.by_query(QUERY), (TABLE, p09_upsert.hundredth, RANDOM)
    everyone = {
        OURS: _engine_upserts,
        ROUTED: p09_upsert.through_spark(*what, frame=frame),
        PLAIN: p09_upsert.through_spark(*what, write=routed.saved, frame=frame),
        **versions_of_apache(p09_upsert.by_hudi(*what, query=QUERY)),
        GZIP: p09_upsert.by_hudi(replace(TABLE, codec="gzip"), *what[1:], query=QUERY),
    }
    prepare = partial(p09_upsert.make_ready, table=TABLE, count=p09_upsert.hundredth, how=RANDOM)
    title = "upsert of 1 %, random keys, rows of a join"
    return Case("P36-upsert", title, everyone, _faster(5), p09_upsert.ROUNDS, prepare, not_in_smoke=(PLAIN,))


def _faster(factor: float) -> tuple[Goal, ...]:
    return tuple(goal for side in (ROUTED, PLAIN) for goal in faster_than_apache(factor, side=side))


CASES = [
    _load_case("load", "bulk insert of 1.5M rows of a join, column statistics", WITHOUT_KEYS, 2.5),
    _load_case("load-record-index", "the same and a record index", WITH_KEYS, 4),
    _upsert_case(),
]
