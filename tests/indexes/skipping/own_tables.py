"""Tables that hudimeta writes with indexes of all kinds, for the queries that are generated over tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudimeta

__all__ = ["EXPRESSION", "OWN", "build"]

EXPRESSION = "lower(note)"
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("qty", pa.int32()),
        ("price", pa.float64()),
        ("note", pa.string()),
        ("day", pa.date32()),
    ]
)
_ALL = ["column_stats", "partition_stats", "record_index", "bloom_filters"]
_LOGS = {"type": "MERGE_ON_READ", "options": {"hoodie.logfile.data.block.format": "avro"}}
OWN: dict[str, dict[str, Any]] = {
    "own_cow": {"indexes": _ALL, "partition_by": "part"},
    "own_mor": {"indexes": _ALL, "partition_by": "part", **_LOGS},
    "own_cow_flat": {"indexes": _ALL},
    "own_mor_flat": {"indexes": _ALL, "type": "MERGE_ON_READ"},
    "own_mor_v9": {"indexes": _ALL, "partition_by": "part", **_LOGS},
    "own_cow_statistics": {"indexes": ["column_stats"], "partition_by": ["part", "day"]},
}
"""How each is created."""


def _rows(dice: random.Random, numbers: range | list[int], ts: int) -> pa.Table:
    days = 20_000
    rows = [
        {
            "id": f"k{n:03}",
            "part": f"p{n % 3}",
            "ts": ts,
            "qty": dice.choice([None, dice.randrange(-5, 40)]),
            "price": dice.choice([None, 0.1 * dice.randrange(100), float("nan"), -0.0]),
            "note": dice.choice([None, "Ab", "aB", f"Note {n % 7}", "z" * 40]),
            "day": days + n % 2,
        }
        for n in numbers
    ]
    return pa.Table.from_pylist([{**row, "day": None} for row in rows], SCHEMA).set_column(
        6, "day", pa.array([row["day"] for row in rows], pa.int32()).cast(pa.date32())
    )


def build(name: str, folder: Path) -> Path:
    """Write a table: inserts, updates, deletes, and a compaction in between where there are log files."""
    how, dice = dict(OWN[name]), random.Random(name)
    options = {"hoodie.parquet.small.file.limit": "0", **how.pop("options", {})}
    if name.endswith("_v9"):
        options["hoodie.write.table.version"] = "9"
    path = folder / name
    table = hudimeta.Table.create(path, SCHEMA, key="id", ordering="ts", options=options, **how)
    table.insert(_rows(dice, range(60), 1))
    table.insert(_rows(dice, range(60, 120), 2))
    if "record_index" in how["indexes"]:
        table.metadata.create_index("by_note", "secondary_index", "note")
        table.metadata.create_index("low", "column_stats", "note", expression="lower")
        table.metadata.create_index("low_bloom", "bloom_filters", "note", expression="lower")
    table.upsert(_rows(dice, dice.sample(range(120), 30), 3))
    table.delete(_rows(dice, dice.sample(range(120), 10), 4))
    if how.get("type") == "MERGE_ON_READ":
        table.compact()
        table.upsert(_rows(dice, dice.sample(range(120), 30), 5))
        table.delete(_rows(dice, dice.sample(range(120), 10), 6))
    return path
