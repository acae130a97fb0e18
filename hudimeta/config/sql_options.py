"""Options of INSERT in SQL."""

from __future__ import annotations

from hudimeta.config.registry import OPTIONS

__all__ = ["OVERWRITE_MODE", "SQL_BULK_INSERT", "SQL_INSERT_MODE", "SQL_INSERT_OPERATION"]

OVERWRITE_MODE = OPTIONS.choice(
    "hoodie.datasource.overwrite.mode",
    "STATIC",
    ["STATIC", "DYNAMIC"],
    "Overwrite the whole table, or only the partitions written to.",
)
SQL_INSERT_OPERATION = OPTIONS.choice(
    "hoodie.spark.sql.insert.into.operation",
    None,
    ["insert", "bulk_insert", "upsert"],
    "What INSERT INTO does in an attached session; by default upsert in tables with ordering columns, else insert.",
)
SQL_INSERT_MODE = OPTIONS.choice(
    "hoodie.sql.insert.mode",
    "upsert",
    ["upsert", "strict", "non-strict"],
    "Hudi's older way: `non-strict` lets INSERT INTO insert in tables with ordering columns too; the others change nothing.",
)
SQL_BULK_INSERT = OPTIONS.flag(
    "hoodie.sql.bulk.insert.enable",
    False,
    "Hudi's older way: INSERT INTO is a bulk insert where `hoodie.sql.insert.mode` is `non-strict` or the table has no order.",
)
